//! The processes inside sandboxes, as the host's /proc shows them: init and whatever descends from it. Nothing inside is
//! asked, so that one which stands still, or is full, can be looked at. Whatever a process calls itself is hostile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

/// What is read of one file of a process at most.
const MOST: u64 = 64 << 10;

/// A process inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id inside.
    pub pid: i32,
    /// Its parent's, inside; zero for init.
    pub parent: i32,
    /// The number of the exec that it comes from, as far as it can be known.
    pub exec: Option<u64>,
    /// Its user inside; none where that is not mapped.
    pub user: Option<u32>,
    /// What it does, by the kernel's letter.
    pub state: char,
    /// Its threads.
    pub threads: u64,
    /// Memory that it has in use, shared pages included, in bytes.
    pub memory: u64,
    /// Processor time that it has used, with that of children it has waited for.
    pub cpu: Duration,
    /// When it was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// Its command line, or the kernel's name for it where it has none.
    pub command: Vec<Vec<u8>>,
}

/// What one line of /proc says that is needed of every process of the machine.
#[derive(Clone, Debug)]
struct Stat {
    name: Vec<u8>,
    state: char,
    parent: i32,
    cpu_ticks: u64,
    threads: u64,
    started_ticks: u64,
    resident_pages: u64,
}

/// Every process of the machine at one moment.
#[derive(Debug)]
pub struct Snapshot {
    stats: BTreeMap<i32, Stat>,
    children: BTreeMap<i32, Vec<i32>>,
}

/// What a sandbox uses, summed over its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Memory in bytes; what processes share counts for each.
    pub memory: u64,
    /// Processor time.
    pub cpu: Duration,
    /// Processes and threads.
    pub pids: u64,
}

impl Snapshot {
    /// Looks at all processes.
    #[must_use]
    pub fn take() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let stats: BTreeMap<i32, Stat> = pids
            .filter_map(|pid| {
                Some((pid, Stat::parse(&read(&Path::new("/proc").join(pid.to_string()).join("stat"))?)?))
            })
            .collect();
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for (pid, stat) in &stats {
            children.entry(stat.parent).or_default().push(*pid);
        }
        Self { stats, children }
    }

    /// Whoever descends from `init`, which comes first: orphans inside become its children.
    fn descendants(&self, init: i32) -> Vec<i32> {
        let mut found: Vec<i32> = self.stats.contains_key(&init).then_some(init).into_iter().collect();
        let mut next = 0;
        // What is not looked at in one moment could say that two are each other's parents.
        let mut seen: BTreeSet<i32> = found.iter().copied().collect();
        while let Some(pid) = found.get(next) {
            let children = self.children.get(pid).into_iter().flatten().copied();
            let new: Vec<i32> = children.filter(|child| seen.insert(*child)).collect();
            found.extend(new);
            next += 1;
        }
        found
    }

    /// Init, where the first process of a sandbox is a runtime that started it: the first of a namespace within that
    /// process's own.
    #[must_use]
    pub(crate) fn init_below(&self, first: i32) -> Option<i32> {
        let levels = |pid: i32| -> Option<Vec<i32>> {
            let text = read(&Path::new("/proc").join(pid.to_string()).join("status"))?;
            let text = String::from_utf8_lossy(&text);
            let line = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
            Some(line.split_whitespace().filter_map(|number| number.parse().ok()).collect())
        };
        let depth = levels(first)?.len() + 1;
        let is_init =
            |pid: &i32| levels(*pid).is_some_and(|levels| levels.len() == depth && levels.last() == Some(&1));
        self.descendants(first).into_iter().find(is_init)
    }

    /// What the processes below `init` use together.
    #[must_use]
    pub fn sum(&self, init: i32) -> Sum {
        let stats = self.descendants(init).into_iter().filter_map(|pid| self.stats.get(&pid));
        stats.fold(Sum::default(), |sum, stat| Sum {
            memory: sum.memory + stat.memory(),
            cpu: sum.cpu + ticks(stat.cpu_ticks),
            pids: sum.pids + stat.threads,
        })
    }

    /// The processes below `init`, without it, by their ids inside. `execs` are the ids of processes that were asked
    /// for, with their numbers, the oldest first.
    #[must_use]
    pub fn processes(&self, init: i32, execs: &[(i32, u64)]) -> Vec<Process> {
        let users = IdMap::read(init);
        let booted = boot_ms();
        let mut processes: Vec<Process> = self
            .descendants(init)
            .into_iter()
            .skip(1)
            .filter_map(|pid| self.process(pid, &users, booted, execs))
            .collect();
        processes.sort_by_key(|process| process.pid);
        processes
    }

    /// None where it has ended meanwhile.
    fn process(&self, pid: i32, users: &IdMap, booted: u64, execs: &[(i32, u64)]) -> Option<Process> {
        let stat = self.stats.get(&pid)?;
        let directory = Path::new("/proc").join(pid.to_string());
        let status = Status::parse(&String::from_utf8_lossy(&read(&directory.join("status"))?))?;
        let parent = Path::new("/proc").join(stat.parent.to_string()).join("status");
        let parent = read(&parent).and_then(|text| Status::parse(&String::from_utf8_lossy(&text)));
        let known = |pid: i32| execs.iter().rev().find(|(of, _)| *of == pid).map(|(_, number)| *number);
        let exec = mark(&directory).or_else(|| known(status.pid)).or_else(|| known(status.session));
        let line = read(&directory.join("cmdline")).unwrap_or_default();
        let mut command: Vec<Vec<u8>> = line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        if command.last().is_some_and(Vec::is_empty) {
            command.pop();
        }
        if command.is_empty() {
            command.push(stat.name.clone());
        }
        Some(Process {
            pid: status.pid,
            parent: parent.map_or(0, |parent| parent.pid),
            exec,
            user: users.inside(status.user),
            state: stat.state,
            threads: stat.threads,
            memory: stat.memory(),
            cpu: ticks(stat.cpu_ticks),
            started_ms: booted + u64::try_from(ticks(stat.started_ticks).as_millis()).unwrap_or(0),
            command,
        })
    }
}

impl Stat {
    /// The name may hold anything, also `)`: what is behind the last one is the kernel's.
    fn parse(line: &[u8]) -> Option<Self> {
        let (open, close) =
            (line.iter().position(|byte| *byte == b'(')?, line.iter().rposition(|byte| *byte == b')')?);
        let fields: Vec<&str> =
            std::str::from_utf8(line.get(close + 1..)?).ok()?.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            name: line.get(open + 1..close)?.to_vec(),
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            cpu_ticks: (11..=14).map(|index| number(index).unwrap_or(0)).sum(),
            threads: number(17)?,
            started_ticks: number(19)?,
            resident_pages: number(21)?,
        })
    }

    fn memory(&self) -> u64 {
        self.resident_pages * rustix::param::page_size() as u64
    }
}

/// What is only known by names, and is needed only of processes that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Status {
    /// Its id inside, in the innermost namespace.
    pid: i32,
    session: i32,
    /// Its user on the host.
    user: u32,
}

impl Status {
    fn parse(text: &str) -> Option<Self> {
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

/// Which users inside are which outside.
#[derive(Debug)]
struct IdMap(Vec<[u32; 3]>);

impl IdMap {
    fn read(init: i32) -> Self {
        let text = read(&Path::new("/proc").join(init.to_string()).join("uid_map")).unwrap_or_default();
        let line = |line: &str| {
            let mut numbers = line.split_whitespace().map_while(|number| number.parse().ok());
            Some([numbers.next()?, numbers.next()?, numbers.next()?])
        };
        Self(String::from_utf8_lossy(&text).lines().filter_map(line).collect())
    }

    fn inside(&self, outside: u32) -> Option<u32> {
        self.0.iter().find_map(|[inside, first, count]| {
            outside.checked_sub(*first).filter(|offset| offset < count).map(|offset| inside + offset)
        })
    }
}

/// The exec that a process says it comes from. It may say anything: this is for a person's eyes alone.
fn mark(directory: &Path) -> Option<u64> {
    let environment = read(&directory.join("environ"))?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables
        .find_map(|variable| variable.strip_prefix(wire::EXEC_VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn ticks(count: u64) -> Duration {
    Duration::from_millis(count * 1000 / rustix::param::clock_ticks_per_second().max(1))
}

/// When the machine was started, in milliseconds since 1970.
fn boot_ms() -> u64 {
    let text = read(Path::new("/proc/stat")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime ")?.parse::<u64>().ok());
    seconds.unwrap_or(0) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_is_a_name() {
        let line = b"42 (a) R 9 (b) S 7 42 42 0 -1 0 0 0 0 0 1 2 3 4 20 0 5 0 99 1000 6 x";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.name.as_slice(), stat.state, stat.parent), (&b"a) R 9 (b"[..], 'S', 7));
        assert_eq!((stat.cpu_ticks, stat.threads, stat.started_ticks, stat.resident_pages), (10, 5, 99, 6));
        assert!(Stat::parse(b"42 (a").is_none());
        assert!(Stat::parse(b"").is_none());
    }

    #[test]
    fn ids_are_those_of_the_innermost_namespace() {
        let text =
            "Name:\tx\nUid:\t1002\t1002\t1002\t1002\nNSpid:\t4711\t7\nNSpgid:\t4711\t7\nNSsid:\t4700\t5\n";
        assert_eq!(Status::parse(text), Some(Status { pid: 7, session: 5, user: 1002 }));
    }

    #[test]
    fn users_are_mapped() {
        let map = IdMap(vec![[0, 200_000, 1000], [1000, 1001, 1], [1001, 201_000, 64_000]]);
        assert_eq!(map.inside(1001), Some(1000));
        assert_eq!(map.inside(200_005), Some(5));
        assert_eq!(map.inside(0), None);
    }

    #[test]
    fn we_see_ourselves_below_our_parent() {
        let snapshot = Snapshot::take();
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(snapshot.descendants(own).contains(&own));
        assert!(snapshot.sum(own).memory > 0);
        assert!(snapshot.descendants(-5).is_empty());
    }
}
