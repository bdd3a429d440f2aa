//! The posture of one process, read from the host's /proc: one line for each thing.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines as the golden files have them.
pub(crate) struct Posture {
    pub(crate) lines: Vec<String>,
}

impl Posture {
    pub(crate) fn of(pid: i32) -> Self {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let read = |name: &str| {
            fs::read_to_string(process.join(name)).unwrap_or_else(|e| panic!("{pid} {name}: {e}"))
        };
        let mut lines = status(&read("status"));
        for name in ["uid_map", "gid_map"] {
            let map = name.replace('_', "-");
            lines.extend(read(name).lines().map(|line| format!("{map} {}", words(line).join(" "))));
        }
        lines.extend(namespaces(&process));
        lines.extend(descriptors(&process));
        lines.extend(limits(&read("limits")));
        lines.extend(read("mountinfo").lines().map(mount));
        Self { lines }
    }

    /// The same but for lines of one kind.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.lines.retain(|line| !line.starts_with(&format!("{name} ")));
        self
    }

    /// The rest of the only line that begins so.
    pub(crate) fn value(&self, name: &str) -> &str {
        let found = self.lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.unwrap_or_else(|| panic!("no line '{name}' in {:#?}", self.lines))
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn status(text: &str) -> Vec<String> {
    let names = [
        ("Uid:", "uid"),
        ("Gid:", "gid"),
        ("Groups:", "groups"),
        ("Umask:", "umask"),
        ("SigBlk:", "blocked-signals"),
        ("SigIgn:", "ignored-signals"),
        ("CapInh:", "capabilities-inheritable"),
        ("CapPrm:", "capabilities-permitted"),
        ("CapEff:", "capabilities-effective"),
        ("CapBnd:", "capabilities-bounding"),
        ("CapAmb:", "capabilities-ambient"),
        ("NoNewPrivs:", "no-new-privileges"),
        ("Seccomp:", "seccomp"),
        ("Seccomp_filters:", "seccomp-filters"),
    ];
    let shown = |line: &str| {
        let fields = words(line);
        let (_, name) = names.iter().find(|(field, _)| fields.first() == Some(field))?;
        // Real, effective, saved and file system ids, which are one.
        let values: Vec<&str> = fields[1..].to_vec();
        let mut distinct = values.clone();
        distinct.dedup();
        let values = if ["uid", "gid"].contains(name) { distinct } else { values };
        Some(format!("{name} {}", values.join(" ")).trim_end().to_owned())
    };
    text.lines().filter_map(shown).collect()
}

fn namespaces(process: &Path) -> Vec<String> {
    let names = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];
    let link = |process: &Path, name: &str| fs::read_link(process.join("ns").join(name)).unwrap();
    let shown = |name: &&str| {
        let same = link(process, name) == link(Path::new("/proc/self"), name);
        format!("namespace {name} {}", if same { "host" } else { "own" })
    };
    names.iter().map(shown).collect()
}

/// The first three one by one, of the others only what kinds there are.
fn descriptors(process: &Path) -> Vec<String> {
    let mut found: Vec<(u32, String)> = Vec::new();
    for entry in fs::read_dir(process.join("fd")).unwrap().flatten() {
        let number = entry.file_name().to_string_lossy().parse().unwrap();
        // One that is closed meanwhile is none.
        if let Ok(link) = fs::read_link(entry.path()) {
            found.push((number, kind(&link.display().to_string())));
        }
    }
    found.sort();
    let mut others: Vec<String> =
        found.iter().filter(|(number, _)| *number > 2).map(|(_, kind)| kind.clone()).collect();
    others.sort();
    others.dedup();
    let standard = found.iter().filter(|(number, _)| *number <= 2);
    let mut lines: Vec<String> =
        standard.map(|(number, kind)| format!("descriptor {number} {kind}")).collect();
    lines.extend(others.iter().map(|kind| format!("descriptor other {kind}")));
    lines
}

fn kind(link: &str) -> String {
    if let Some(kind) = link.strip_prefix("anon_inode:") {
        return kind.trim_matches(['[', ']']).to_owned();
    }
    match link.split_once(":[") {
        Some((kind, _)) => kind.to_owned(),
        None => link.to_owned(),
    }
}

fn limits(text: &str) -> Vec<String> {
    let names = [
        ("Max core file size", "core"),
        ("Max open files", "files"),
        ("Max processes", "processes"),
        ("Max address space", "address-space"),
    ];
    let shown = |line: &str| {
        let (field, name) = names.iter().find(|(field, _)| line.starts_with(field))?;
        let values = words(&line[field.len()..]);
        Some(format!("limit {name} {} {}", values[0], values[1]))
    };
    text.lines().filter_map(shown).collect()
}

/// Mount point, type and the flags that are walls; and any tie to the mounts of others.
fn mount(line: &str) -> String {
    let (left, right) = line.split_once(" - ").expect("a line of mountinfo");
    let left = words(left);
    let [_, _, _, _, point, options, ref ties @ ..] = left[..] else { panic!("{line}") };
    let kind = words(right)[0];
    let has = |flag: &str| options.split(',').any(|option| option == flag);
    let flags = ["ro", "rw", "nosuid", "nodev", "noexec"].into_iter().filter(|flag| has(flag));
    let mut shown = vec!["mount", point, kind];
    shown.extend(flags);
    shown.extend(ties);
    shown.join(" ")
}
