//! `init processes`: which processes there are, as the kernel inside has them in /proc, told over stdout. An ordinary
//! process inside with the rights of the agent; it is for sandboxes with a kernel of their own, whose processes the host
//! does not see.
//!
//! It reads and tells, and understands next to nothing of it: who asked does that. It must never hold more than one
//! process in memory, nor wait for one.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::path::Path;

use prost::Message as _;
use rustix::io::Errno;
use wire::{COMMAND_LIMIT, STAT_LIMIT, SeenProcess, exec_mark};

/// The first process is init itself, about which nobody asks.
const INIT: i32 = 1;

/// Tells of all of them but init and itself. The exit code is 0 where all that there are were told.
pub(crate) fn run() -> u8 {
    match tell(&mut BufWriter::new(io::stdout().lock())) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn tell(output: &mut impl Write) -> io::Result<()> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let booted = booted(&read(Path::new("/proc/stat"), STAT_LIMIT)?);
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if pid == INIT || pid == own {
            continue;
        }
        match look(pid, &entry.path(), booted) {
            Ok(Some(seen)) => output.write_all(&seen.encode_length_delimited_to_vec())?,
            Ok(None) => {}
            Err(error) if has_ended(&error) => {}
            // A list without one that runs would hide it.
            Err(error) => return Err(error),
        }
    }
    output.flush()
}

/// Whether a process is gone, by what the kernel says of its files.
fn has_ended(error: &io::Error) -> bool {
    [Errno::NOENT, Errno::SRCH].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn look(pid: i32, directory: &Path, booted: u64) -> io::Result<Option<SeenProcess>> {
    let Some(user) = user(&read(&directory.join("status"), STAT_LIMIT)?) else { return Ok(None) };
    let stat = read(&directory.join("stat"), STAT_LIMIT)?;
    let command = read(&directory.join("cmdline"), COMMAND_LIMIT).unwrap_or_default();
    // That of another user is not to be had.
    let exec =
        read(&directory.join("environ"), COMMAND_LIMIT).ok().and_then(|environment| exec_mark(&environment));
    Ok(Some(SeenProcess { pid, user, stat, command, exec, booted }))
}

/// The real user, out of the kernel's own text.
fn user(status: &[u8]) -> Option<u32> {
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(line).ok()?.split_whitespace().next()?.parse().ok()
}

fn booted(stat: &[u8]) -> u64 {
    let line = stat.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"btime "));
    line.and_then(|line| std::str::from_utf8(line).ok()?.trim().parse().ok()).unwrap_or(0)
}

fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use wire::EXEC_VARIABLE;

    use super::*;

    #[test]
    fn little_is_understood_of_what_is_told() {
        assert_eq!(user(b"Name:\tUid: 7\nUid:\t1000\t0\t0\t0\nGid:\t5\n"), Some(1000));
        assert_eq!(user(b"Name:\tx\n"), None);
        assert_eq!(booted(b"cpu 1 2\nbtime 1794948826\nprocesses 0\n"), 1_794_948_826);
        assert_eq!(booted(b""), 0);
    }

    #[test]
    fn whoever_runs_is_told_and_we_ourselves_are_not() {
        let mut told = Vec::new();
        let mut command = Command::new("cat");
        let mut child =
            command.env(EXEC_VARIABLE, "7").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Once it answers it is what it was to become; a new program's environment comes later than the program.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        tell(&mut told).unwrap();
        let _ = (child.kill(), child.wait());
        let (mut rest, mut found) = (told.as_slice(), Vec::new());
        while !rest.is_empty() {
            found.push(SeenProcess::decode_length_delimited(&mut rest).unwrap());
        }
        let pid = i32::try_from(child.id()).unwrap();
        let seen = found.iter().find(|seen| seen.pid == pid).unwrap();
        assert_eq!((seen.exec, seen.user), (Some(7), rustix::process::getuid().as_raw()));
        assert!(&*seen.command == b"cat\0" && seen.stat.starts_with(format!("{pid} (").as_bytes()));
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(found.iter().all(|seen| seen.pid != own && seen.pid != INIT));
    }
}
