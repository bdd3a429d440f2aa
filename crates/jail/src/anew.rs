//! Our own program once more, with nothing of the caller's: no variable, no terminal, and above all not its memory. It is on
//! its way while the caller goes on, and may outlive it. It is started anew; or forked, first of all, by a program that has
//! not read anything of its caller's yet, and then wipes what the kernel has laid before it.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::process::ExitCode;

use policy::Wall;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::sys::{self, Given, Gone, Heritage, Others, Started};
use crate::weaken::Weaken;

/// What this program is called.
const NAME: &str = "agentbox";

/// The two ends of what a process is told over.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'socket> {
    /// The process's.
    pub its: BorrowedFd<'socket>,
    /// Its maker's.
    pub ours: BorrowedFd<'socket>,
}

/// A process that is our own program. It goes on when this is dropped.
#[derive(Debug)]
pub struct Anew(Gone);

impl Anew {
    /// Starts it with one word, the other end of what it is told over, and these variables. It closes what else it finds
    /// open, first of all; that it could not be started is seen at that other end.
    pub fn start(word: &str, stdin: BorrowedFd<'_>, variables: &[(&str, OsString)]) -> io::Result<Self> {
        let null = File::options().write(true).open("/dev/null")?;
        let started = Started::new(Given {
            // Whatever has become of the file that this one was started from.
            path: c"/proc/self/exe".to_owned(),
            words: [NAME, word].into_iter().map(CString::new).collect::<Result<_, _>>()?,
            variables: joined(variables)?,
            stdin,
            outputs: null.as_fd(),
            others: Others::LeftToIt,
        })?;
        // The kernel often leaves it behind its maker while another processor falls idle; it is for speed alone.
        let _ = sys::send_elsewhere(started.pid());
        Ok(Self(started.let_go()))
    }

    /// Forks it, to live `life`, from a program that has one thread and of what it was started with has at most looked at
    /// `heritage`. It costs a fifth of starting it anew, of which most is to make the program fit its random address.
    pub fn fork(
        heritage: Heritage,
        life: fn() -> ExitCode,
        (word, ends): (&str, Ends<'_>),
        variables: &[(&str, OsString)],
    ) -> io::Result<Self> {
        let null = File::options().write(true).open("/dev/null")?;
        let variables = joined(variables)?;
        let Some(pid) = sys::fork()? else {
            // While it is open here, too, nobody would hear that its maker is gone.
            let _ = sys::close(ends.ours.as_raw_fd());
            if Weaken::current().keeps(Wall::Environment) {
                heritage.wipe(&[NAME, "\0", word].concat().into_bytes(), variables);
            }
            let streams = [ends.its, null.as_fd(), null.as_fd()];
            if (0..)
                .zip(streams)
                .any(|(number, stream)| sys::duplicate_onto(stream.as_raw_fd(), number).is_err())
            {
                sys::exit(libc::EBADF);
            }
            crate::fork::end(if life() == ExitCode::SUCCESS { 0 } else { 1 });
        };
        let _ = sys::send_elsewhere(pid);
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self(Gone::new(pidfd_open(pid, PidfdFlags::empty())?)))
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

/// Variables as the kernel takes them.
fn joined(variables: &[(&str, OsString)]) -> io::Result<Vec<CString>> {
    let joined = variables.iter().map(|(name, value)| {
        let value = value.clone().into_vec();
        CString::new([name.as_bytes(), b"=", &value].concat()).map_err(io::Error::from)
    });
    joined.collect()
}
