//! What became of a command, as an exit code or as a failure with a hint.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::process::ExitCode;

use engine::{Loss, Reason, find_outside};
use policy::{Root, SandboxId, SandboxSpec, Timeout};
use wire::{Exited, Failed, Step};

use crate::failure::{Failure, escape};

const TIMED_OUT: u8 = 124;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
const KILLED: u8 = 137;
const SIGNALLED: i32 = 128;
const SIGPIPE: u8 = 13;
pub(crate) const SIGHUP: u8 = 1;
const ENOENT: i32 = 2;
const E2BIG: i32 = 7;
const EAGAIN: i32 = 11;
const EFBIG: i32 = 27;
const ENOSPC: i32 = 28;

/// The code of a command that a signal ended, as shells have it.
pub(crate) fn signalled(signal: u8) -> ExitCode {
    ExitCode::from(SIGNALLED as u8 + signal)
}

/// Says how to come back to a terminal that goes on.
pub(crate) fn left(id: &SandboxId, terminal: &str) -> ExitCode {
    let terminal = escape(terminal);
    let _ = writeln!(
        io::stderr(),
        "detached from terminal '{terminal}'; come back with `agentbox attach {id} {terminal}`"
    );
    ExitCode::SUCCESS
}

/// A reader that left, as `head` does, is no failure; a disk that is full is one.
pub(crate) fn output_broken(error: io::Error) -> Result<ExitCode, Failure> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(signalled(SIGPIPE));
    }
    Err(Failure::new("cannot write what the command says to stdout").cause(error))
}

pub(crate) fn exit_code(exited: Exited, spec: &SandboxSpec) -> ExitCode {
    if exited.timed_out {
        return Failure::new("the command ran out of time")
            .hint("give it more with --timeout")
            .code(TIMED_OUT)
            .print();
    }
    let code = if exited.signal != 0 { SIGNALLED + exited.signal } else { exited.code };
    let code = u8::try_from(code & 0xff).unwrap_or(u8::MAX);
    if exited.out_of_memory {
        return Failure::new(format!("the command ran out of memory (limit {})", spec.limits.memory))
            .hint("give it more with --memory")
            .code(code)
            .print();
    }
    ExitCode::from(code)
}

/// The sandbox, and with it the command, was ended when its time was up.
pub(crate) fn expired(lifetime: Timeout) -> Failure {
    Failure::new(format!("the sandbox has lived for {lifetime}, and its time was up"))
        .hint("give it more with --lifetime")
        .code(TIMED_OUT)
}

/// All of the sandbox was ended for want of memory, as one with a kernel of its own may be.
pub(crate) fn out_of_memory(spec: &SandboxSpec) -> Failure {
    Failure::new(format!("the sandbox ran out of memory (limit {})", spec.limits.memory))
        .cause("the kernel has ended all of it")
        .hint("give it more with --memory")
        .code(KILLED)
}

/// Whoever of ours is gone without having been asked to was killed, or has failed.
const WHO_KILLS: &str = "where nobody killed it, this machine may have run out of memory: `sudo dmesg | tail` tells whom the kernel ended";

/// Something of the sandbox was gone before anybody had asked for it.
pub(crate) fn lost(loss: Loss) -> Failure {
    let failure = Failure::new("the sandbox ended before the command did");
    match loss {
        Loss::Supervisor(None) => failure.cause("its supervisor was lost").hint(WHO_KILLS),
        Loss::Supervisor(Some(why)) => failure
            .cause("its supervisor gave up")
            .cause(escape(&why))
            .hint("mend what it complains of, and start it again"),
        Loss::Inside(words) => {
            failure.cause(escape(&words)).hint("start it again; --backend native needs no runtime")
        }
    }
}

/// Its init is gone, or another command has ended it.
pub(crate) fn ended_early(reason: Reason) -> Failure {
    let failure = Failure::new("the sandbox ended before the command did");
    match reason {
        Reason::Killed => failure.cause("its init was killed").hint(WHO_KILLS),
        _ => failure.cause("another command has ended it"),
    }
}

/// Its keeper is gone, and everything inside with it.
pub(crate) fn no_keeper() -> Failure {
    Failure::new("the keeper ended without a word")
        .cause("it was killed or has failed, and the sandbox ended with it")
        .hint(WHO_KILLS)
}

/// By which command a process was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// By one that makes the sandbox, and says what is in it.
    Run,
    /// In a sandbox that is there.
    Exec,
}

/// What can be done where a program is outside and not inside.
const fn how_to_bring(asker: Asker, root: &Root) -> &'static str {
    match (asker, root) {
        (Asker::Run, Root::Host(_)) => {
            "--tools brings your tool chains along, --mount DIR:DIR any other directory"
        }
        (Asker::Run, Root::Image(_)) => "choose an image that has it, or add it with --mount DIR:DIR",
        (Asker::Exec, Root::Host(_)) => {
            "what is inside is said when a sandbox is made, with --tools or --mount; `agentbox cp` brings files in"
        }
        (Asker::Exec, Root::Image(_)) => {
            "the sandbox has what its image has, and what --mount named when it was made; `agentbox cp` brings files in"
        }
    }
}

pub(crate) fn not_started(failed: Failed, program: &OsStr, (spec, asker): (&SandboxSpec, Asker)) -> Failure {
    let outside = find_outside(program);
    let program = program.to_string_lossy();
    let cause = io::Error::from_raw_os_error(failed.errno);
    match Step::try_from(failed.step) {
        // Whether the kernel says so of the fork or of the program depends on who counts them.
        Ok(_) if failed.errno == EAGAIN => Failure::new(format!("cannot start '{program}'"))
            .cause(cause)
            .hint("it may hold as many processes as it may: `agentbox ps` lists them, --pids allows more"),
        Ok(Step::Program) if failed.errno == ENOENT => {
            let failure = Failure::new(format!("'{program}' is not found inside")).code(NOT_FOUND);
            match outside {
                Some(path) => failure
                    .cause(format!("it is at '{}' outside, which is not part of the sandbox", path.display()))
                    .hint(how_to_bring(asker, &spec.root)),
                None if program.contains('/') => {
                    failure.hint("check the path; the interpreter that a script names has to be inside too")
                }
                None => failure.hint(match spec.root {
                    Root::Host(_) => "check the spelling, or install it on the host",
                    Root::Image(_) => "check the spelling, or choose an image that has it",
                }),
            }
        }
        Ok(Step::Program) if failed.errno == E2BIG => Failure::new(format!("'{program}' cannot be executed"))
            .cause(cause)
            .hint("no word and no variable may be longer than 128KiB: pass what is large on stdin")
            .code(NOT_EXECUTABLE),
        Ok(Step::Program) => Failure::new(format!("'{program}' cannot be executed"))
            .cause(cause)
            .hint("check that it is a program with its executable bit set")
            .code(NOT_EXECUTABLE),
        Ok(Step::Request) if failed.errno == ENOSPC => {
            Failure::new(format!("'{program}' was not started: there is no room for its record"))
                .cause(cause)
                .hint("nothing runs unrecorded: make room on the disk of the state directory")
        }
        Ok(Step::Request) if failed.errno == EFBIG => {
            Failure::new(format!("'{program}' was not started: the record of its sandbox is full"))
                .cause("a record holds 1 GiB, and nothing runs unrecorded")
                .hint("`agentbox cp` still works; go on in a new sandbox")
        }
        Ok(Step::Workdir) => Failure::new(format!("cannot start in '{}'", spec.workdir))
            .cause(cause)
            .hint("name a directory that is inside with --workdir"),
        Ok(step) => Failure::new(format!("cannot start '{program}' ({step:?})")).cause(cause),
        Err(_) => Failure::new(format!("cannot start '{program}'")).cause(cause),
    }
}
