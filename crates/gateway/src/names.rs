//! The names that a sandbox knows. Each that may be reached has an address of its own, from a range that nobody has in the
//! world, and keeps it: whoever connects to the address means the name. An address is never another name's later.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy::network::HostName;

/// The first address of the range, which is none; those behind it are for measurements in laboratories, and nobody's.
const RANGE: u32 = Ipv4Addr::new(198, 18, 0, 0).to_bits();
const BITS: u32 = 15;

/// The most names of one sandbox.
const MOST: usize = 16_384;

/// How many new names may be asked for at once where a rule does not name them one by one, and how long each takes to
/// be allowed again: a name can carry a message to whoever answers for it.
const AT_ONCE: u32 = 128;
const EACH: Duration = Duration::from_secs(1);

/// All names of one sandbox.
#[derive(Debug)]
pub(crate) struct Names {
    by_name: HashMap<Arc<HostName>, Ipv4Addr>,
    /// In the order of their addresses.
    by_address: Vec<Arc<HostName>>,
    allowance: Allowance,
}

/// How a name came to be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A rule has it.
    ByItself,
    /// A rule has all names below one.
    Below,
}

impl Names {
    pub(crate) fn new(now: Instant) -> Self {
        Self { by_name: HashMap::new(), by_address: Vec::new(), allowance: Allowance::new(now) }
    }

    /// The address of a name, a new one where it has none; none where there have been too many.
    pub(crate) fn address(&mut self, name: &HostName, named: Named, now: Instant) -> Option<Ipv4Addr> {
        if let Some(address) = self.by_name.get(name) {
            return Some(*address);
        }
        let number = self.by_address.len();
        if number >= MOST || (named == Named::Below && !self.allowance.take(now)) {
            return None;
        }
        let address = Ipv4Addr::from_bits(RANGE + 1 + u32::try_from(number).ok()?);
        let name = Arc::new(name.clone());
        self.by_address.push(Arc::clone(&name));
        self.by_name.insert(name, address);
        Some(address)
    }

    /// The name that an address was given to.
    pub(crate) fn name(&self, address: Ipv4Addr) -> Option<Arc<HostName>> {
        let number = address.to_bits().checked_sub(RANGE + 1)?;
        self.by_address.get(usize::try_from(number).ok()?).cloned()
    }

    /// Whether an address is one of those that names get.
    pub(crate) const fn are_at(address: Ipv4Addr) -> bool {
        address.to_bits() >> (32 - BITS) == RANGE >> (32 - BITS)
    }
}

/// A number of things that grows back.
#[derive(Debug)]
struct Allowance {
    left: u32,
    since: Instant,
}

impl Allowance {
    const fn new(now: Instant) -> Self {
        Self { left: AT_ONCE, since: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.since).as_secs() / EACH.as_secs();
        let grown = u32::try_from(passed).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(grown).min(AT_ONCE);
        // What is left of a second is not lost.
        self.since = self.since.checked_add(EACH.saturating_mul(grown)).unwrap_or(now);
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        text.parse().unwrap()
    }

    #[test]
    fn each_name_keeps_its_address() {
        let now = Instant::now();
        let mut names = Names::new(now);
        let first = names.address(&name("a.com"), Named::ByItself, now).unwrap();
        let second = names.address(&name("b.com"), Named::ByItself, now).unwrap();
        assert_eq!((first, second), (Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)));
        assert_eq!(names.address(&name("a.com"), Named::ByItself, now), Some(first));
        assert_eq!(*names.name(second).unwrap(), name("b.com"));
        for nobody in
            ["198.18.0.0", "198.18.0.3", "198.17.255.255", "198.20.0.1", "0.0.0.0", "255.255.255.255"]
        {
            assert_eq!(names.name(nobody.parse().unwrap()), None, "{nobody}");
        }
    }

    #[test]
    fn there_is_an_end_to_names() {
        let now = Instant::now();
        let mut names = Names::new(now);
        let last =
            (0..MOST).map(|number| names.address(&name(&format!("n{number}.com")), Named::ByItself, now));
        let last = last.last().flatten().unwrap();
        assert!(Names::are_at(last));
        assert_eq!(names.address(&name("one.more"), Named::ByItself, now), None);
        assert_eq!(names.address(&name("n7.com"), Named::ByItself, now), Some(Ipv4Addr::new(198, 18, 0, 8)));
    }

    #[test]
    fn names_below_one_come_slowly() {
        let start = Instant::now();
        let mut names = Names::new(start);
        let mut number = 0;
        let mut ask = |named, after: f64| {
            number += 1;
            let name = name(&format!("n{number}.example.com"));
            names.address(&name, named, start + Duration::from_secs_f64(after)).is_some()
        };
        for _ in 0..AT_ONCE {
            assert!(ask(Named::Below, 0.5));
        }
        assert!(!ask(Named::Below, 0.9));
        assert!(ask(Named::ByItself, 0.9));
        assert!(ask(Named::Below, 1.1) && !ask(Named::Below, 1.9));
        assert!(ask(Named::Below, 2.0) && !ask(Named::Below, 2.1));
        for _ in 0..AT_ONCE {
            assert!(ask(Named::Below, 1e6));
        }
        assert!(!ask(Named::Below, 1e6));
    }
}
