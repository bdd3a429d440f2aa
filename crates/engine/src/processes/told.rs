//! The processes of a kernel of the sandbox's own, which alone knows them: asked of a process inside. All of it may be a
//! lie and is for a person's eyes alone; it is bounded in number, size and time.

use std::io;
use std::time::Duration;

use policy::SandboxId;
use tokio::time::timeout;
use wire::{Ask, COMMAND_LIMIT, Channel, Event, ExecEvent, STAT_LIMIT, SeenProcess};

use super::stat::Stat;
use super::{CommandLine, Execs, Process, started_ms, ticks};
use crate::ask::{Asked, silent};
use crate::error::EngineError;
use crate::start::Engine;

/// How long the answer may take as a whole.
const PATIENCE: Duration = Duration::from_secs(10);

/// No more processes than this are believed in.
const MOST_PROCESSES: usize = 1 << 16;

/// Nor more bytes about all of them.
const MOST_BYTES: usize = 16 << 20;

impl Engine {
    /// The processes that a sandbox's own kernel tells of, init aside, by their ids.
    pub(crate) async fn told_processes(
        &self,
        id: &SandboxId,
        execs: &[(i32, u64)],
    ) -> Result<Vec<Process>, EngineError> {
        let user = self.spec(id)?.user;
        let asked = self.ask(id, Ask::Processes(wire::Processes { uid: user.uid, gid: user.gid })).await?;
        let told = timeout(PATIENCE, listen(asked)).await;
        let told = told.unwrap_or_else(|_| Err(Unheard::Silent(io::ErrorKind::TimedOut.into())));
        let told = told.map_err(|unheard| match unheard {
            Unheard::Silent(source) => silent(id)(source),
            Unheard::NotStarted(source) => EngineError::NobodyInside { id: id.to_string(), source },
        })?;
        let mut processes: Vec<Process> =
            told.into_iter().filter_map(|seen| believe(seen, Execs(execs))).collect();
        processes.sort_by_key(|process| process.pid);
        Ok(processes)
    }
}

/// Why nothing was heard.
#[derive(Debug)]
enum Unheard {
    Silent(io::Error),
    /// Nobody could be started inside who tells.
    NotStarted(io::Error),
}

/// Hears all of it, or nothing: a list that was cut off would hide whatever comes later.
async fn listen(asked: Asked) -> Result<Vec<SeenProcess>, Unheard> {
    let Asked { channel: Channel { mut messages, mut output, .. }, .. } = asked;
    let mut told = Vec::new();
    let mut bytes = 0;
    let too_much = |what| Err(Unheard::Silent(io::Error::other(what)));
    while let Ok(Some(seen)) = output.receiver.next_message::<SeenProcess>().await {
        if seen.stat.len() > STAT_LIMIT || seen.command.len() > COMMAND_LIMIT {
            return too_much("it tells more of a process than there can be");
        }
        bytes += seen.stat.len() + seen.command.len();
        told.push(seen);
        if told.len() > MOST_PROCESSES || bytes > MOST_BYTES {
            return too_much("it tells of more processes than there can be");
        }
    }
    let last = messages.receiver.next_message::<ExecEvent>().await;
    match last.ok().flatten().and_then(|last| last.event) {
        Some(Event::Exited(exited)) if exited.code == 0 && exited.signal == 0 => Ok(told),
        Some(Event::Failed(failed)) => Err(Unheard::NotStarted(io::Error::from_raw_os_error(failed.errno))),
        _ => Err(Unheard::Silent(io::ErrorKind::UnexpectedEof.into())),
    }
}

/// What is shown of what was told; none of what no kernel would say.
fn believe(seen: SeenProcess, execs: Execs<'_>) -> Option<Process> {
    let stat = Stat::parse(&seen.stat)?;
    Some(Process {
        pid: seen.pid,
        parent: stat.parent,
        exec: execs.of(seen.exec, seen.pid, stat.session),
        user: Some(seen.user),
        state: stat.state,
        threads: stat.threads,
        memory: stat.memory(),
        cpu: ticks(stat.cpu_ticks),
        started_ms: started_ms(seen.booted, stat.started_ticks),
        command: CommandLine::of(seen.command, &stat.name),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use proptest::prelude::*;
    use wire::{Exited, LaneError, Request, Side};

    use super::*;

    fn seen(stat: &str) -> SeenProcess {
        let stat = stat.to_owned().into_bytes();
        SeenProcess { pid: 6, user: 1000, stat, command: b"sleep\x0077\0".to_vec(), exec: None, booted: 100 }
    }

    #[test]
    fn what_gvisors_kernel_says_is_a_process() {
        let line =
            "6 (sleep) S 4 2 2 0 0 0 0 0 0 0 100 0 0 0 20 0 1 0 800 11243520 1033 18446744073709551615 0";
        let process = believe(seen(line), Execs(&[(2, 1)])).unwrap();
        assert_eq!((process.pid, process.parent, process.exec), (6, 4, Some(1)));
        assert_eq!((process.state, process.threads, process.cpu), ('S', 1, Duration::from_secs(1)));
        assert_eq!(process.started_ms, 108_000);
        assert!(process.command.words().eq([&b"sleep"[..], b"77"]));
        let marked = SeenProcess { exec: Some(9), command: Vec::new(), ..seen(line) };
        let process = believe(marked, Execs(&[(2, 1)])).unwrap();
        assert!(process.exec == Some(9) && process.command.words().eq([b"sleep"]));
    }

    #[test]
    fn lies_of_any_size_overflow_nothing() {
        let most = u64::MAX;
        let line = format!("1 (a) S -7 1 1 0 -1 0 0 0 0 0 {most} {most} 3 4 20 0 {most} 0 {most} 1 {most}");
        let process = believe(SeenProcess { booted: most, ..seen(&line) }, Execs(&[])).unwrap();
        assert_eq!((process.memory, process.started_ms), (most, most));
        assert!(believe(seen("6 (sleep) S"), Execs(&[])).is_none());
    }

    proptest! {
        #[test]
        fn any_line_is_shown_or_not(name in "\\PC{0,20}", words in proptest::collection::vec("[^ ]{1,20}", 0..30)) {
            let line = format!("6 ({name}) {}", words.join(" "));
            if let Some(process) = believe(seen(&line), Execs(&[])) {
                prop_assert!(process.state.is_ascii_alphabetic() && process.command.words().count() == 2);
            }
        }
    }

    /// What is heard where this many are told of so, and these last words.
    fn heard(told: usize, seen: SeenProcess, last: Option<Event>) -> Result<usize, Unheard> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let (_connection, mut incoming) = wire::over_socket(theirs, Side::Answering).unwrap();
            let telling = tokio::spawn(async move {
                let Some(mut channel) = incoming.next().await else { return Ok(()) };
                channel.messages.receiver.next_message::<Request>().await?;
                let mut output = channel.output.sender;
                for _ in 0..told {
                    output.send_message(&seen).await?;
                }
                output.finish();
                channel.messages.sender.send_message(&ExecEvent { event: last }).await?;
                channel.handle.closed().await;
                Ok::<(), LaneError>(())
            });
            let asked = Asked::over(ours, Ask::Processes(wire::Processes::default())).await.unwrap();
            let heard = timeout(PATIENCE, listen(asked)).await.expect("nobody waits for ever");
            telling.abort();
            heard.map(|told| told.len())
        })
    }

    #[test]
    fn all_of_it_is_heard_or_nothing() {
        let exited = |code| Some(Event::Exited(Exited { code, ..Exited::default() }));
        assert_eq!(heard(3, seen(""), exited(0)).unwrap(), 3);
        assert!(matches!(heard(3, seen(""), exited(1)), Err(Unheard::Silent(_))));
        assert!(matches!(heard(3, seen(""), None), Err(Unheard::Silent(_))));
        let failed = Event::Failed(wire::Failed { step: 0, errno: 11 });
        assert!(matches!(heard(0, seen(""), Some(failed)), Err(Unheard::NotStarted(_))));
        let Err(Unheard::Silent(much)) = heard(MOST_PROCESSES + 1, seen(""), exited(0)) else {
            panic!("believed")
        };
        assert!(much.to_string().contains("more processes"), "{much}");
        // Nor is more of one believed, or of all together, than there can be.
        let command = |length| SeenProcess { command: vec![0; length], ..seen("") };
        assert!(matches!(heard(1, command(COMMAND_LIMIT + 1), exited(0)), Err(Unheard::Silent(_))));
        let most = MOST_BYTES / COMMAND_LIMIT;
        assert_eq!(heard(most, command(COMMAND_LIMIT), exited(0)).unwrap(), most);
        assert!(matches!(heard(most + 1, command(COMMAND_LIMIT), exited(0)), Err(Unheard::Silent(_))));
    }
}
