//! What a kernel writes about a process, `stat` and `status` in /proc. The kernel may be a sandbox's own, and then any
//! of it may be a lie: no number is too large, and no letter passes that is none.

/// What the line `stat` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) name: Vec<u8>,
    pub(super) state: char,
    pub(super) parent: i32,
    pub(super) session: i32,
    pub(super) cpu_ticks: u64,
    pub(super) threads: u64,
    pub(super) started_ticks: u64,
    resident_pages: u64,
}

impl Stat {
    /// The name may hold anything, also `)`: what is behind the last one is the kernel's.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let (open, close) =
            (line.iter().position(|byte| *byte == b'(')?, line.iter().rposition(|byte| *byte == b')')?);
        let fields: Vec<&str> =
            std::str::from_utf8(line.get(close + 1..)?).ok()?.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            name: line.get(open + 1..close)?.to_vec(),
            state: fields.first()?.chars().next().filter(char::is_ascii_alphabetic)?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            cpu_ticks: (11..=14).map(|index| number(index).unwrap_or(0)).fold(0, u64::saturating_add),
            threads: number(17)?,
            started_ticks: number(19)?,
            resident_pages: number(21)?,
        })
    }

    /// Memory in use, in bytes.
    pub(super) fn memory(&self) -> u64 {
        self.resident_pages.saturating_mul(rustix::param::page_size() as u64)
    }
}

/// What is only known by names, and is needed only of processes that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    /// Its id inside, in the innermost namespace.
    pub(super) pid: i32,
    pub(super) session: i32,
    /// Its user on the host.
    pub(super) user: u32,
}

impl Status {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let fields = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
            Some(line.split_whitespace())
        };
        Some(Self {
            pid: fields("NSpid")?.next_back()?.parse().ok()?,
            session: fields("NSsid")?.next_back()?.parse().ok()?,
            user: fields("Uid")?.next()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_is_a_name() {
        let line = b"42 (a) R 9 (b) S 7 42 40 0 -1 0 0 0 0 0 1 2 3 4 20 0 5 0 99 1000 6 x";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.name.as_slice(), stat.state, stat.parent), (&b"a) R 9 (b"[..], 'S', 7));
        assert_eq!((stat.session, stat.cpu_ticks, stat.threads), (40, 10, 5));
        assert_eq!((stat.started_ticks, stat.resident_pages), (99, 6));
        assert!(Stat::parse(b"42 (a").is_none());
        assert!(Stat::parse(b"42 )a(").is_none());
        assert!(Stat::parse(b"").is_none());
    }

    #[test]
    fn numbers_of_any_size_are_numbers_and_what_is_no_letter_is_no_state() {
        let most = u64::MAX;
        let line = format!("1 (a) S 7 1 1 0 -1 0 0 0 0 0 {most} {most} 3 4 20 0 {most} 0 {most} 1 {most}");
        let stat = Stat::parse(line.as_bytes()).unwrap();
        assert_eq!((stat.cpu_ticks, stat.memory(), stat.threads), (most, most, most));
        for state in ["\x1b", "\u{202e}", "\u{9b}", "7"] {
            assert!(
                Stat::parse(line.replace(" S ", &format!(" {state} ")).as_bytes()).is_none(),
                "{state:?}"
            );
        }
    }

    #[test]
    fn ids_are_those_of_the_innermost_namespace() {
        let text =
            "Name:\tx\nUid:\t1002\t1002\t1002\t1002\nNSpid:\t4711\t7\nNSpgid:\t4711\t7\nNSsid:\t4700\t5\n";
        assert_eq!(Status::parse(text), Some(Status { pid: 7, session: 5, user: 1002 }));
    }
}
