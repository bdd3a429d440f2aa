//! The Landlock domain that every started process lives in. It is entered once, by the spawner's thread: one
//! domain for all, so that they may signal and trace each other, with init's main thread outside of it, out of
//! their reach. Landlock only ever takes away: it must never be the only wall in front of anything.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The oldest version that serves: the one before refuses every rename across directories.
const FLOOR: ABI = ABI::V2;

/// The newest version whose restrictions real tools have been run under.
const CEILING: ABI = ABI::V6;

/// What the processes may touch.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
}

/// Why the domain could not be entered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DomainError {
    #[error("the kernel's Landlock does not serve: {0}")]
    Ruleset(#[from] RulesetError),
    #[error("cannot open '{}' for a Landlock rule: {errno}", path.display())]
    Path { path: PathBuf, errno: Errno },
}

impl Domain {
    /// Puts the calling thread, and whatever it forks from now on, into the domain. There is no way out.
    pub(crate) fn enter(&self) -> Result<(), DomainError> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(FLOOR))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(CEILING))?
            .scope(Scope::from_all(CEILING))?
            .create()?;
        // REFER on what is only readable gives nothing away: the kernel refuses a link that would gain rights.
        for path in &self.read {
            rules = rules
                .add_rule(PathBeneath::new(open(path)?, AccessFs::from_read(CEILING) | AccessFs::Refer))?;
        }
        for path in &self.write {
            rules = rules.add_rule(PathBeneath::new(open(path)?, AccessFs::from_all(CEILING)))?;
        }
        // Without it no program could ask a terminal for its size.
        if let Ok(devices) = open(Path::new("/dev")) {
            rules = rules.add_rule(PathBeneath::new(devices, AccessFs::IoctlDev))?;
        }
        rules.restrict_self()?;
        Ok(())
    }
}

/// A handle that needs no right to the file itself. The crate's own way to open one loses O_PATH on musl,
/// whose O_ACCMODE covers that bit.
fn open(path: &Path) -> Result<OwnedFd, DomainError> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| DomainError::Path { path: path.to_owned(), errno })
}
