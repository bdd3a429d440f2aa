//! Starts init as PID 1 of a namespace of its own and speaks to it as the supervisor does. What it starts keeps
//! the ids of root inside, which is whoever runs the tests outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustix::process::Pid;
use tokio::time::{sleep, timeout};
use wire::{
    Ask, Channel, Connection, Event, Exec, ExecEvent, ExecInput, Exited, Failed, LaneReceiver, Request, Side,
    Step, Tell, VERSION, WindowSize, over_socket,
};

/// Longer than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running init and the other end of its channel.
pub(crate) struct Init {
    process: Child,
    pub(crate) connection: Connection,
}

/// What a process did.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) output: Bytes,
    pub(crate) error: Bytes,
    pub(crate) exited: Exited,
}

impl Outcome {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }
}

/// init in namespaces of its own.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut unshare = vec!["--user", "--map-root-user"];
    unshare.extend(NAMESPACES);
    namespaced(&unshare, arguments)
}

const NAMESPACES: [&str; 5] = ["--pid", "--fork", "--kill-child", "--mount", "--mount-proc"];

fn namespaced(unshare: &[&str], arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(unshare).arg("--").arg(program()).args(arguments);
    command
}

/// init's own file.
pub(crate) fn program() -> PathBuf {
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.pop();
    program.push("examples/pid1");
    program
}

/// Runs init to its end, with nobody on its channel.
pub(crate) fn alone(arguments: &[&str]) -> Output {
    command(arguments).stdin(Stdio::null()).output().unwrap()
}

impl Init {
    /// Without a Landlock domain.
    pub(crate) fn start() -> Self {
        Self::with_arguments(&["--landlock", "off"])
    }

    /// With every id there is, which only root can have without more ado.
    pub(crate) fn with_all_ids() -> Option<Self> {
        let root = rustix::process::geteuid().is_root();
        root.then(|| Self::from_command(namespaced(&NAMESPACES, &["--landlock", "off"])))
    }

    pub(crate) fn with_arguments(arguments: &[&str]) -> Self {
        Self::from_command(command(arguments))
    }

    pub(crate) fn from_command(mut command: Command) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let theirs = OwnedFd::from(theirs);
        let process = command.stdin(theirs.try_clone().unwrap()).stdout(theirs).spawn().unwrap();
        // The command holds the other end until it is gone.
        drop(command);
        let (connection, _incoming) = over_socket(ours, Side::Asking).unwrap();
        Self { process, connection }
    }

    pub(crate) fn from_parts(process: Child, connection: Connection) -> Self {
        Self { process, connection }
    }

    /// Its process id outside.
    pub(crate) fn pid(&self) -> Pid {
        let unshare = self.process.id();
        let started = std::fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).unwrap();
        Pid::from_raw(started.trim().parse().unwrap()).unwrap()
    }

    /// Its processes that are not reaped, as they are known outside.
    pub(crate) fn children(&self) -> Vec<String> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let children = threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("children")));
        let children = children.map(Result::unwrap).collect::<String>();
        children.split_ascii_whitespace().map(str::to_owned).collect()
    }

    /// Opens a channel and asks for a process.
    pub(crate) async fn begin(&self, exec: Exec) -> Channel {
        self.ask(Request { version: VERSION, ask: Some(Ask::Exec(exec)) }, None).await
    }

    /// Opens a channel, passes a descriptor and asks.
    pub(crate) async fn ask(&self, request: Request, passed: Option<OwnedFd>) -> Channel {
        let mut channel = self.connection.open().unwrap();
        passed.into_iter().for_each(|descriptor| channel.handle.pass(descriptor).unwrap());
        channel.messages.sender.send_message(&request).await.unwrap();
        channel
    }

    /// Asks for a process and waits until it runs.
    pub(crate) async fn started(&self, exec: Exec) -> (Channel, i32) {
        self.started_passing(exec, None).await
    }

    async fn started_passing(&self, exec: Exec, passed: Option<OwnedFd>) -> (Channel, i32) {
        let request = Request { version: VERSION, ask: Some(Ask::Exec(exec)) };
        let mut channel = self.ask(request, passed).await;
        match event(&mut channel).await {
            Event::Started(started) => (channel, started.pid),
            other => panic!("{other:?}"),
        }
    }

    /// Runs a process to its end, with `input` as its stdin.
    pub(crate) async fn run_with(&self, exec: Exec, input: Bytes) -> Outcome {
        self.run_passing(exec, input, None).await
    }

    /// The same with a descriptor that is passed.
    pub(crate) async fn run_passing(&self, exec: Exec, input: Bytes, passed: Option<OwnedFd>) -> Outcome {
        let (mut channel, _) = self.started_passing(exec, passed).await;
        let mut sender = channel.input.sender;
        tokio::spawn(async move {
            let _ = sender.send(input).await;
        });
        let (output, error) =
            tokio::join!(everything(&mut channel.output.receiver), everything(&mut channel.error.receiver));
        let exited = exited(&mut channel.messages.receiver).await;
        Outcome { output, error, exited }
    }

    pub(crate) async fn run(&self, exec: Exec) -> Outcome {
        self.run_with(exec, Bytes::new()).await
    }

    pub(crate) async fn shell(&self, script: &str) -> Outcome {
        self.run(shell(script)).await
    }

    /// Asks for a process that cannot be started.
    pub(crate) async fn refused(&self, exec: Exec) -> (Step, i32) {
        let mut channel = self.begin(exec).await;
        failure(event(&mut channel).await)
    }

    /// Waits for init itself to end.
    pub(crate) async fn ended(mut self) -> ExitStatus {
        for _ in 0..PATIENCE.as_millis() / 10 {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("init is still there")
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn failure(event: Event) -> (Step, i32) {
    match event {
        Event::Failed(Failed { step, errno }) => (Step::try_from(step).unwrap(), errno),
        other => panic!("{other:?}"),
    }
}

/// The next event of a channel.
pub(crate) async fn event(channel: &mut Channel) -> Event {
    next_event(&mut channel.messages.receiver).await
}

pub(crate) async fn next_event(receiver: &mut LaneReceiver) -> Event {
    timeout(PATIENCE, receiver.next_message::<ExecEvent>()).await.unwrap().unwrap().unwrap().event.unwrap()
}

pub(crate) async fn exited(receiver: &mut LaneReceiver) -> Exited {
    match next_event(receiver).await {
        Event::Exited(exited) => exited,
        other => panic!("{other:?}"),
    }
}

/// All that comes on a lane.
pub(crate) async fn everything(lane: &mut LaneReceiver) -> Bytes {
    let mut all = BytesMut::new();
    while let Some(bytes) = timeout(PATIENCE, lane.next()).await.unwrap().unwrap() {
        all.extend_from_slice(&bytes);
    }
    all.freeze()
}

/// Reads until `wanted` has come.
pub(crate) async fn until(lane: &mut LaneReceiver, wanted: &str) -> String {
    let mut all = String::new();
    while !all.contains(wanted) {
        let bytes = timeout(PATIENCE, lane.next()).await.unwrap_or_else(|_| panic!("only {all:?}")).unwrap();
        all.push_str(&String::from_utf8_lossy(&bytes.unwrap_or_else(|| panic!("only {all:?}"))));
    }
    all
}

pub(crate) async fn tell(channel: &mut Channel, tell: Tell) {
    channel.messages.sender.send_message(&ExecInput { tell: Some(tell) }).await.unwrap();
}

pub(crate) const PATH: &str = "PATH=/usr/local/bin:/usr/bin:/bin";

pub(crate) fn exec(argv: &[&str]) -> Exec {
    Exec {
        argv: argv.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect(),
        environment: vec![Bytes::from_static(PATH.as_bytes())],
        workdir: Bytes::from_static(b"/"),
        ..Exec::default()
    }
}

pub(crate) fn shell(script: &str) -> Exec {
    exec(&["sh", "-c", script])
}

pub(crate) fn terminal(script: &str, rows: u32, columns: u32) -> Exec {
    Exec { terminal: Some(WindowSize { rows, columns }), ..shell(script) }
}

/// Bytes of every kind that do not repeat soon.
pub(crate) fn noise(length: usize) -> Bytes {
    let mut state = 0x9e37_79b9_u32;
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}
