//! An image from Debian packages: `mmdebstrap` or `debootstrap` of the owner's machine does it, from the mirrors that the
//! machine's own apt uses. They run with the owner's rights, as apt does.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::ImageError;
use crate::unpack::Owners;

/// A Debian system to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    suite: String,
    include: Vec<String>,
}

impl Bootstrap {
    /// Reads `debian:SUITE` and further packages.
    pub fn new(system: &str, include: &[String]) -> Result<Self, ImageError> {
        let refused = |why| ImageError::Refused { what: format!("'{}'", system.escape_debug()), why };
        let suite = system.strip_prefix("debian:").ok_or_else(|| refused("only debian:SUITE can be made"))?;
        let is_name = |text: &str| {
            text.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
                && text.bytes().all(|byte| {
                    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.')
                })
        };
        if !is_name(suite) {
            return Err(refused("that is no suite, as in debian:bookworm"));
        }
        if let Some(package) = include.iter().find(|package| !is_name(package)) {
            let what = format!("'{}'", package.escape_debug());
            return Err(ImageError::Refused { what, why: "that is no name of a package" });
        }
        Ok(Self { suite: suite.to_owned(), include: include.to_vec() })
    }

    /// Makes the system as a tar.
    pub fn make(&self, tar: &Path, owners: Owners) -> Result<(), ImageError> {
        let mut command = self.command(tar, owners, Path::new("/"))?;
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |source| ImageError::Bootstrap { program: program.clone(), source };
        let status = command.status().map_err(failed)?;
        if status.success() { Ok(()) } else { Err(failed(std::io::Error::other(status.to_string()))) }
    }

    fn command(&self, tar: &Path, owners: Owners, root: &Path) -> Result<Command, ImageError> {
        let mmdebstrap = find("mmdebstrap").ok_or(ImageError::NoBootstrap)?;
        let is_root = rustix::process::geteuid().is_root();
        let mode = match owners {
            _ if is_root => "root",
            Owners::Kept => "unshare",
            // Packages cannot be set up without more than one id.
            Owners::Dropped => return Err(ImageError::OneId),
        };
        let mut command = Command::new(mmdebstrap);
        command.arg(format!("--mode={mode}")).arg("--variant=minbase").arg("--format=tar");
        // Its locks and sockets are of no use, and it is told how to reach mirrors as the machine is.
        for option in proxies() {
            command.arg(format!("--aptopt={option}"));
        }
        if !self.include.is_empty() {
            command.arg(format!("--include={}", self.include.join(",")));
        }
        command.arg(&self.suite).arg(tar);
        command.args(self.sources(root).into_iter().map(OsString::from));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }

    /// The machine's own lists of mirrors that have the suite.
    fn sources(&self, root: &Path) -> Vec<PathBuf> {
        let apt = root.join("etc/apt");
        let parts = fs::read_dir(apt.join("sources.list.d")).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = parts.map(|entry| entry.path()).collect();
        files.push(apt.join("sources.list"));
        files.sort();
        let is_list =
            |path: &PathBuf| path.extension().is_some_and(|kind| kind == "list" || kind == "sources");
        let has_suite = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            lines.flat_map(str::split_whitespace).any(|word| word == self.suite)
        };
        files.into_iter().filter(is_list).filter(has_suite).collect()
    }
}

fn find(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/usr/sbin", "/bin"]
        .iter()
        .map(|place| Path::new(place).join(name))
        .find(|path| path.is_file())
}

/// How the machine's apt reaches its mirrors, where that is not directly.
fn proxies() -> Vec<String> {
    let dump = Command::new("/usr/bin/apt-config").arg("dump").stdin(Stdio::null()).output();
    let text = dump.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let is_wanted =
        |line: &&str| line.starts_with("Acquire::") && line.contains("Proxy") && !line.contains("\"\"");
    text.lines().filter(is_wanted).map(|line| line.trim_end_matches(';').to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_suites_and_packages_are_taken() {
        assert!(Bootstrap::new("debian:bookworm", &["git".to_owned(), "g++".to_owned()]).is_ok());
        for system in ["debian", "ubuntu:noble", "debian:", "debian:--help", "debian:../x", "debian:a b"] {
            assert!(Bootstrap::new(system, &[]).is_err(), "{system}");
        }
        for package in ["", "-x", "a b", "a;b", "/etc", "A"] {
            assert!(Bootstrap::new("debian:bookworm", &[package.to_owned()]).is_err(), "{package}");
        }
    }

    #[test]
    fn the_machines_own_mirrors_are_used() {
        let root = tempfile::tempdir().unwrap();
        let apt = root.path().join("etc/apt/sources.list.d");
        fs::create_dir_all(&apt).unwrap();
        fs::write(
            apt.join("debian.sources"),
            "Types: deb\nURIs: http://m/debian\nSuites: bookworm bookworm-updates\n",
        )
        .unwrap();
        fs::write(apt.join("other.list"), "# deb http://m bookworm main\ndeb http://m trixie main\n")
            .unwrap();
        fs::write(apt.join("off.list.disabled"), "deb http://m bookworm main\n").unwrap();
        let found = Bootstrap::new("debian:bookworm", &[]).unwrap().sources(root.path());
        assert_eq!(found, [apt.join("debian.sources")]);
    }
}
