//! The programs under test, copied once to where every user can reach them: the checkout may lie below a home
//! directory that others cannot enter.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::sys;
use crate::turn::workspace_root;

const PREFIX: &str = "agentbox-tests-";

/// Where the programs are.
#[derive(Debug)]
pub struct Binaries {
    directory: PathBuf,
}

impl Binaries {
    /// The program as it ships.
    #[must_use]
    pub fn shipped(&self) -> PathBuf {
        self.directory.join("shipped/agentbox")
    }

    /// The same with walls that can be taken away.
    #[must_use]
    pub fn weakened(&self) -> PathBuf {
        self.directory.join("weakened/agentbox")
    }

    /// The static program that runs inside sandboxes.
    #[must_use]
    pub fn probe(&self) -> PathBuf {
        self.directory.join("probe")
    }

    /// The directory of all of them, which goes when the test program ends.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// The programs, copied at the first call.
pub fn binaries() -> &'static Binaries {
    static BINARIES: LazyLock<Binaries> = LazyLock::new(copy);
    &BINARIES
}

/// The `--mount` value that brings the probe to /probe inside.
#[must_use]
pub fn probe_mount() -> String {
    format!("{}:/probe", binaries().probe().display())
}

fn copy() -> Binaries {
    remove_abandoned();
    let directory = Path::new("/tmp").join(format!("{PREFIX}{}", std::process::id()));
    let shipped = source("AGENTBOX_TEST_BIN", "target");
    let weakened = source("AGENTBOX_TEST_WEAK_BIN", "target/weak");
    make_directory(&directory);
    sys::remove_at_exit(&directory);
    for (name, from) in [("shipped", &shipped), ("weakened", &weakened)] {
        let to = directory.join(name);
        make_directory(&to);
        copy_file(from, &to, "agentbox");
        copy_file(from, &to, "agentbox-init");
    }
    copy_file(&shipped, &directory, "probe");
    Binaries { directory }
}

/// The directory that a variable names, or where the Makefile builds to.
fn source(variable: &str, target: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(
        || workspace_root().join(target).join(format!("{}-unknown-linux-musl/fast", std::env::consts::ARCH)),
        PathBuf::from,
    )
}

fn copy_file(from: &Path, to: &Path, name: &str) {
    let (source, target) = (from.join(name), to.join(name));
    if !copy_program(&source, &target) {
        panic!(
            "cannot copy '{}'\nbuild it with `make test`, or with\n  cargo build --profile fast \
             --target TRIPLE -p agentbox-cli\n  cargo build --profile fast --target TRIPLE -p agentbox-cli \
             --features weaken --target-dir target/weak\n  cargo build --profile fast --target TRIPLE \
             -p agentbox-tests --bin probe\nand name the directories in AGENTBOX_TEST_BIN and \
             AGENTBOX_TEST_WEAK_BIN",
            source.display()
        );
    }
    fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Copies a program by another process: what this one has open for writing may be inherited by what another test
/// starts at that moment, and a program that anybody could write to is not executed.
pub fn copy_program(from: &Path, to: &Path) -> bool {
    Command::new("cp").arg(from).arg(to).status().unwrap().success()
}

fn make_directory(path: &Path) {
    fs::create_dir(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What test programs left that were killed.
fn remove_abandoned() {
    for entry in fs::read_dir("/tmp").unwrap().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        if !Path::new("/proc").join(pid).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
