//! Pseudo-terminals: made for the user of the process, sized as the client's window is.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::{InputModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use wire::WindowSize;

/// What the master side holds at most when the last process has gone; the kernel stops writers at this size.
pub(crate) const CAPACITY: usize = 64 * 1024;

/// A new terminal: its master, then the side that the process gets.
pub(crate) fn make(size: WindowSize) -> io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let slave = open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    // Erasing a character in line mode erases all of its bytes.
    let mut modes = tcgetattr(&slave)?;
    modes.input_modes |= InputModes::IUTF8;
    tcsetattr(&slave, OptionalActions::Now, &modes)?;
    resize(&master, size)?;
    Ok((master, slave))
}

/// Tells the terminal its size; the kernel tells the processes in it.
pub(crate) fn resize(master: impl AsFd, size: WindowSize) -> io::Result<()> {
    let lines = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
    let size = Winsize { ws_row: lines(size.rows), ws_col: lines(size.columns), ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(master, size)?)
}
