//! Reads small files in as few system calls as can be: the kernel writes many of its own anew for each.

use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::retry_on_intr;

const ROOM: usize = 16 * 1024;

pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let (mut contents, mut buffer) = (Vec::new(), [0; ROOM]);
    loop {
        match retry_on_intr(|| rustix::io::read(&file, &mut buffer))? {
            0 => return Ok(contents),
            count => contents.extend_from_slice(&buffer[..count]),
        }
    }
}

/// As text. A name in it that is no UTF-8 is nothing that is looked for, and spoils no other line.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&bytes(path)?).into_owned())
}
