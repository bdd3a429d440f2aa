//! Users inside and outside.

/// Which users inside are which outside.
#[derive(Debug)]
pub(super) struct IdMap(Vec<[u32; 3]>);

impl IdMap {
    /// Out of the kernel's `uid_map`.
    pub(super) fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut numbers = line.split_whitespace().map_while(|number| number.parse().ok());
            Some([numbers.next()?, numbers.next()?, numbers.next()?])
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// None where it is not mapped.
    pub(super) fn inside(&self, outside: u32) -> Option<u32> {
        self.0.iter().find_map(|[inside, first, count]| {
            outside.checked_sub(*first).filter(|offset| offset < count).map(|offset| inside + offset)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_mapped() {
        let map = IdMap::parse("0 200000 1000\n1000 1001 1\n1001 201000 64000\n");
        assert_eq!(map.inside(1001), Some(1000));
        assert_eq!(map.inside(200_005), Some(5));
        assert_eq!(map.inside(0), None);
    }
}
