//! Looks for what the host planted: canary files by any way in, canary variables, descriptors.

use std::fs;
use std::path::{Path, PathBuf};

/// More entries than a root without the host's own tree has.
const LIMIT: usize = 300_000;

/// Prints every way by which one of the paths, or any file with the token in its name, is there.
pub(crate) fn files(token: &str, paths: &[&str]) {
    for base in bases() {
        for path in paths {
            let path = format!("{base}{path}");
            if fs::symlink_metadata(&path).is_ok() {
                println!("found {path}");
            }
        }
    }
    walk(token);
}

/// Where a root other than ours could be hidden.
fn bases() -> Vec<String> {
    let mut bases: Vec<String> = vec![String::new(), "/host".to_owned()];
    let up = "/../../../../../../../..";
    for process in entries(Path::new("/proc")).iter().filter(|path| is_number(path)) {
        let process = process.display();
        bases.extend([format!("{process}/root"), format!("{process}/cwd"), format!("{process}/cwd{up}")]);
        for descriptor in entries(Path::new(&format!("{process}/fd"))) {
            let descriptor = descriptor.display();
            bases.extend([format!("{descriptor}"), format!("{descriptor}{up}")]);
        }
    }
    bases
}

fn is_number(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

/// Looks through the whole tree, except where the kernel or the system's programs are.
fn walk(token: &str) {
    let mut waiting = vec![PathBuf::from("/")];
    let mut seen = 0;
    while let Some(directory) = waiting.pop() {
        for path in entries(&directory) {
            seen += 1;
            if path.file_name().is_some_and(|name| name.to_string_lossy().contains(token)) {
                println!("found {}", path.display());
            }
            let is_system = path.ends_with("proc") || path.ends_with("sys") || path.ends_with("usr");
            if seen < LIMIT && !is_system && path.is_dir() && !path.is_symlink() {
                waiting.push(path);
            }
        }
    }
}

/// Prints every environment in which the token is.
pub(crate) fn environments(token: &str) {
    for process in entries(Path::new("/proc")).iter().filter(|path| is_number(path)) {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        if environment.windows(token.len()).any(|window| window == token.as_bytes()) {
            println!("found {}", process.join("environ").display());
        }
    }
    for (name, value) in std::env::vars_os() {
        println!("variable {}={}", name.display(), value.display());
    }
}

/// Prints the numbers of the open descriptors, and what each is.
pub(crate) fn descriptors() {
    let links: Vec<_> = entries(Path::new("/proc/self/fd"))
        .iter()
        .filter_map(|path| {
            Some((path.file_name()?.to_string_lossy().into_owned(), fs::read_link(path).ok()?))
        })
        .collect();
    // The directory that was read had a number itself; it is closed by now and gave no link.
    for (number, link) in links {
        println!("descriptor {number} {}", link.display());
    }
}
