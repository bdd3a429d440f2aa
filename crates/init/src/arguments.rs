//! The command line that the jail or another backend writes. It comes from the trusted side, before anything
//! hostile runs; a mistake in it ends init, it is never guessed at.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::weaken::Weaken;

/// What init was told at its start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) landlock: Landlock,
    /// What processes may read and execute, and everything beneath it.
    pub(crate) read: Vec<PathBuf>,
    /// What processes may change, and everything beneath it.
    pub(crate) write: Vec<PathBuf>,
    /// The file of the filter on system calls, where no one has put it on yet.
    pub(crate) filter: Option<PathBuf>,
    /// Whether there is but one id, which shows as root's.
    pub(crate) ids: Ids,
    /// Which kernel stands between init and whoever it answers.
    pub(crate) kernel: Kernel,
    pub(crate) weaken: Weaken,
}

/// Whose kernel init runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// The host's.
    Host,
    /// One of the sandbox's own.
    Own,
}

/// Which ids there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// The agent's among them.
    Given,
    /// One, which a runtime had to be root by; it is to be the agent's.
    Single,
}

/// Whether processes are started inside a Landlock domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Landlock {
    /// The keeper has decided to do without, and reports it.
    Off,
    /// Without it, init does not start.
    Required,
}

/// What is wrong with the command line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArgumentsError {
    #[error("unknown argument {0:?}")]
    Unknown(OsString),
    #[error("{0} needs a value")]
    NoValue(&'static str),
    #[error("--landlock is 'off' or 'required', not {0:?}")]
    Landlock(OsString),
}

impl Arguments {
    pub(crate) fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Self, ArgumentsError> {
        let mut arguments = Self {
            landlock: Landlock::Required,
            read: Vec::new(),
            write: Vec::new(),
            filter: None,
            ids: Ids::Given,
            kernel: Kernel::Host,
            weaken: Weaken::default(),
        };
        while let Some(word) = words.next() {
            match word.to_str() {
                Some("--landlock") => {
                    let value = words.next().ok_or(ArgumentsError::NoValue("--landlock"))?;
                    arguments.landlock = match value.to_str() {
                        Some("off") => Landlock::Off,
                        Some("required") => Landlock::Required,
                        _ => return Err(ArgumentsError::Landlock(value)),
                    };
                }
                Some("--read") => {
                    arguments.read.push(words.next().ok_or(ArgumentsError::NoValue("--read"))?.into());
                }
                Some("--write") => {
                    arguments.write.push(words.next().ok_or(ArgumentsError::NoValue("--write"))?.into());
                }
                Some("--filter") => {
                    arguments.filter = Some(words.next().ok_or(ArgumentsError::NoValue("--filter"))?.into());
                }
                Some("--single") => arguments.ids = Ids::Single,
                Some("--own-kernel") => arguments.kernel = Kernel::Own,
                #[cfg(feature = "weaken")]
                Some("--weaken") => {
                    arguments.weaken.take_away(&words.next().ok_or(ArgumentsError::NoValue("--weaken"))?);
                }
                _ => return Err(ArgumentsError::Unknown(word)),
            }
        }
        if arguments.read.is_empty() {
            arguments.read.push(PathBuf::from("/"));
        }
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, ArgumentsError> {
        Arguments::parse(words.iter().map(OsString::from))
    }

    #[test]
    fn landlock_is_required_unless_turned_off() {
        let found = parse(&[]).unwrap();
        assert_eq!((found.landlock, found.read), (Landlock::Required, vec!["/".into()]));
        assert_eq!(parse(&["--landlock", "off"]).map(|found| found.landlock), Ok(Landlock::Off));
    }

    #[test]
    fn paths_add_up() {
        let found = parse(&["--write", "/tmp", "--read", "/usr", "--write", "/home"]).unwrap();
        assert_eq!(found.write, [PathBuf::from("/tmp"), PathBuf::from("/home")]);
        assert_eq!(found.read, [PathBuf::from("/usr")]);
    }

    #[test]
    fn what_a_runtime_leaves_to_init_is_named() {
        let found = parse(&["--single", "--filter", "/f"]).unwrap();
        assert_eq!((found.ids, found.filter), (Ids::Single, Some("/f".into())));
        assert_eq!(parse(&["--filter"]), Err(ArgumentsError::NoValue("--filter")));
        let found = parse(&[]).unwrap();
        assert_eq!((found.ids, found.filter), (Ids::Given, None));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parse(&["--landlock", "maybe"]), Err(ArgumentsError::Landlock("maybe".into())));
        assert_eq!(parse(&["--write"]), Err(ArgumentsError::NoValue("--write")));
        assert_eq!(parse(&["/tmp"]), Err(ArgumentsError::Unknown("/tmp".into())));
    }

    #[cfg(not(feature = "weaken"))]
    #[test]
    fn no_wall_can_be_taken_away() {
        let refused = parse(&["--weaken", "capabilities"]);
        assert_eq!(refused, Err(ArgumentsError::Unknown("--weaken".into())));
    }
}
