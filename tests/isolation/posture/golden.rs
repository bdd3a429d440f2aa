//! A golden file: what a posture should be, with names in braces for what differs from machine to machine.
//!
//! A line that begins with `?` may be missing, as not every host has what it tells of. `*` stands for one word or
//! one part of a path, `**` for any number of parts.

use std::collections::BTreeMap;

use harness::{Caller, workspace_root};

use super::process::Posture;

/// The most descriptors that a sandbox's process may have open, if the caller may have as many.
const FILES: u64 = 65536;
const PROCESSES: u64 = 512;
/// Root's ranges: the first of all, and how many ids each has.
const SPAN: std::ops::Range<u64> = 0x7000_0000..0x8000_0000;
const RANGE: u64 = 0x1_0000;

/// What the names in braces stand for.
pub(crate) struct Values(BTreeMap<&'static str, String>);

impl Values {
    /// `limited` is whether processes are limited by their user, as no cgroup does it.
    pub(crate) fn of(caller: Caller, posture: &Posture, limited: bool) -> Self {
        let limit = |name: &str| -> String {
            let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
            let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
            line[name.len()..].split_whitespace().nth(1).unwrap().to_owned()
        };
        let files = limit("Max open files").parse::<u64>().map_or(FILES, |most| most.min(FILES));
        let mut values = BTreeMap::from([
            ("caller", caller.uid().to_string()),
            ("caller-group", caller.gid().to_string()),
            ("files", files.to_string()),
            ("processes", if limited { PROCESSES.to_string() } else { limit("Max processes") }),
        ]);
        values.extend(subordinate(caller).map(|first| ("subuids", first.to_string())));
        if caller == Caller::Root {
            values.insert("base", base(posture).to_string());
        }
        let yard = match caller {
            Caller::Root => ["base", "base"],
            Caller::Subordinate => ["subuids", "subuids"],
            Caller::Single => ["caller", "caller-group"],
        };
        let roots = yard.map(|name| values.get(name).cloned().unwrap_or_default());
        values.extend(["yard-root", "yard-root-group"].into_iter().zip(roots));
        Self(values)
    }

    /// For a process that the sandbox's own range is not to be read from.
    pub(crate) fn with_base(mut self, base: u64) -> Self {
        self.0.insert("base", base.to_string());
        self
    }

    /// Fills a line in: `{name}`, or `{name+number}`.
    fn fill(&self, line: &str) -> String {
        let mut filled = String::new();
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').expect("a closing brace");
            let (name, added) = name.split_once('+').unwrap_or((name, "0"));
            let value = self.0.get(name).unwrap_or_else(|| panic!("no value is named {name}"));
            let added: u64 = added.parse().unwrap();
            let shown =
                if added == 0 { value.clone() } else { (value.parse::<u64>().unwrap() + added).to_string() };
            filled.push_str(before);
            filled.push_str(&shown);
            rest = after;
        }
        filled + rest
    }
}

/// The first id of the sandbox's range, if it is one of root's; else a number that no line has.
fn base(posture: &Posture) -> u64 {
    let map: Vec<u64> = posture.value("uid-map").split(' ').map(|word| word.parse().unwrap()).collect();
    let is_range = SPAN.contains(&map[1]) && map[1].is_multiple_of(RANGE);
    if is_range { map[1] } else { u64::from(u32::MAX) * 2 }
}

fn subordinate(caller: Caller) -> Option<u64> {
    let ranges = std::fs::read_to_string("/etc/subuid").unwrap_or_default();
    let line = ranges.lines().find(|line| line.split(':').next() == Some(caller.user()))?;
    line.split(':').nth(1)?.parse().ok()
}

/// One golden file.
pub(crate) struct Golden {
    lines: Vec<String>,
}

impl Golden {
    pub(crate) fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(workspace_root().join("tests/golden").join(name)).unwrap();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self { lines: lines.map(str::to_owned).collect() }
    }

    /// The same but for what another file says: lines of its own, and after a `-` those that are not so there.
    pub(crate) fn but(mut self, name: &str) -> Self {
        for line in Self::read(name).lines {
            match line.strip_prefix("- ") {
                Some(other) => {
                    let count = self.lines.len();
                    self.lines.retain(|line| line != other);
                    assert!(self.lines.len() < count, "{name}: there is no line '{other}' to take out");
                }
                None => self.lines.push(line),
            }
        }
        self
    }

    /// Every line of the posture that should not be, and every line that should be and is not.
    pub(crate) fn compare(&self, posture: &Posture, values: &Values) -> Vec<String> {
        let golden: Vec<(bool, String)> = self
            .lines
            .iter()
            .map(|line| match line.strip_prefix("? ") {
                Some(line) => (false, values.fill(line)),
                None => (true, values.fill(line)),
            })
            .collect();
        let extra =
            posture.lines.iter().filter(|line| !golden.iter().any(|(_, pattern)| matches(pattern, line)));
        let missing = golden
            .iter()
            .filter(|(needed, pattern)| *needed && !posture.lines.iter().any(|line| matches(pattern, line)));
        let extra = extra.map(|line| format!("has '{line}'"));
        let missing = missing.map(|(_, pattern)| format!("lacks '{pattern}'"));
        extra.chain(missing).collect()
    }
}

fn matches(pattern: &str, line: &str) -> bool {
    let (pattern, line): (Vec<&str>, Vec<&str>) = (pattern.split(' ').collect(), line.split(' ').collect());
    pattern.len() == line.len()
        && pattern.iter().zip(&line).all(|(pattern, word)| matches_word(pattern, word))
}

fn matches_word(pattern: &str, word: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == word;
    }
    if let Some(above) = pattern.strip_suffix("/**") {
        return word.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
    }
    let (patterns, parts): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), word.split('/').collect());
    let part = |pattern: &str, part: &str| match pattern.split_once('*') {
        Some((before, after)) => part.starts_with(before) && part.ends_with(after),
        None => pattern == part,
    };
    patterns.len() == parts.len() && patterns.iter().zip(&parts).all(|(pattern, word)| part(pattern, word))
}

#[test]
fn patterns() {
    for (pattern, line, expected) in [
        ("mount /usr * ro", "mount /usr ext4 ro", true),
        ("mount /usr * ro", "mount /usr ext4 rw", false),
        ("mount /usr/** * ro", "mount /usr/lib/x ext4 ro", true),
        ("mount /usr/** * ro", "mount /usrlib ext4 ro", false),
        ("mount /sys/fs/cgroup/* cgroup ro", "mount /sys/fs/cgroup/cpu,cpuacct cgroup ro", true),
        ("mount /sys/fs/cgroup/* cgroup ro", "mount /sys/fs/cgroup/a/b cgroup ro", false),
        ("mount /etc/java-* * ro", "mount /etc/java-17 overlay ro", true),
        ("seccomp 2", "seccomp 0", false),
    ] {
        assert_eq!(matches(pattern, line), expected, "{pattern} {line}");
    }
}
