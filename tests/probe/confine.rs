//! Stands for a supervisor that hostile bytes have taken over: confines itself as the supervisor does and then
//! tries one thing, as some of them end the process.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use crate::sys::{Outcome, call, report, text};

pub(crate) fn run(uid: &str, action: &[&str]) -> ExitCode {
    if let Err(error) = jail::confine(uid.parse().ok()) {
        println!("unconfined {error}: {:?}", std::error::Error::source(&error));
        return ExitCode::FAILURE;
    }
    println!("confined");
    let _ = std::io::stdout().flush();
    report("attempt", attempt(action));
    let _ = std::io::stdout().flush();
    ExitCode::SUCCESS
}

fn attempt(action: &[&str]) -> Outcome {
    let outcome = |result: std::io::Result<()>| {
        result.map(|()| 0).map_err(|error| error.raw_os_error().unwrap_or_default())
    };
    match *action {
        ["nothing"] => Ok(0),
        ["exec", program] => Err(Command::new(program).exec().raw_os_error().unwrap_or_default()),
        ["read", path] => outcome(fs::read(path).map(drop)),
        ["list", path] => outcome(fs::read_dir(path).map(|entries| {
            for entry in entries.flatten() {
                println!("entry {}", entry.file_name().display());
            }
        })),
        ["write", path] => outcome(fs::write(path, "written by the supervisor")),
        ["connect", path] => outcome(std::os::unix::net::UnixStream::connect(path).map(drop)),
        ["signal", pid] => call(libc::SYS_kill, &[pid.parse().expect("a pid"), 0]),
        ["trace", pid] => {
            call(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as usize, pid.parse().expect("a pid"), 0, 0])
        }
        ["datagram", path] => datagram(path),
        ["mount"] => call(libc::SYS_mount, &[text("tmpfs"), text("/etc"), text("tmpfs"), 0, 0]),
        ["fork"] => call(libc::SYS_clone, &[libc::SIGCHLD as usize, 0, 0, 0, 0]),
        _ => panic!("no such attempt: {action:?}"),
    }
}

/// From a pair of datagram sockets one could send to any path.
fn datagram(path: &str) -> Outcome {
    let (socket, _other) =
        std::os::unix::net::UnixDatagram::pair().map_err(|error| error.raw_os_error().unwrap_or_default())?;
    socket.send_to(b"from the supervisor", path).map_err(|error| error.raw_os_error().unwrap_or_default())
}
