//! Our own program, started anew with nothing of the caller's: no variable, no terminal, and above all not its memory. It is on
//! its way while the caller goes on, and may outlive it.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStringExt as _;

use crate::sys::{self, Given, Gone, Others, Started};

/// What this program is called.
const NAME: &str = "agentbox";

/// A process that is our own program. It goes on when this is dropped.
#[derive(Debug)]
pub struct Anew(Gone);

impl Anew {
    /// Starts it with one word, the other end of what it is told over, and these variables. It closes what else it finds
    /// open, first of all; that it could not be started is seen at that other end.
    pub fn start(word: &str, stdin: BorrowedFd<'_>, variables: &[(&str, OsString)]) -> io::Result<Self> {
        let null = File::options().write(true).open("/dev/null")?;
        let variables = variables.iter().map(|(name, value)| {
            let value = value.clone().into_vec();
            CString::new([name.as_bytes(), b"=", &value].concat()).map_err(io::Error::from)
        });
        let started = Started::new(Given {
            // Whatever has become of the file that this one was started from.
            path: c"/proc/self/exe".to_owned(),
            words: [NAME, word].into_iter().map(CString::new).collect::<Result<_, _>>()?,
            variables: variables.collect::<io::Result<_>>()?,
            stdin,
            outputs: null.as_fd(),
            others: Others::LeftToIt,
        })?;
        // The kernel often leaves it behind its maker while another processor falls idle; it is for speed alone.
        let _ = sys::send_elsewhere(started.pid());
        Ok(Self(started.let_go()))
    }

    /// It has been heard of.
    pub fn has_begun(&mut self) {
        self.0.has_left();
    }

    /// Waits for its end.
    pub fn wait(&mut self) {
        // There is nobody to be told: one that cannot be waited for has been.
        let _ = self.0.wait();
    }
}
