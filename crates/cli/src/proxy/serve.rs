//! The owner's side of the proxy: opens all that it needs, starts it in a process of its own, and tells it when to end.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitCode};
use std::time::Duration;

use engine::{Directories, own_command};
use jail::LoneId;
use rustix::fs::{Mode, OFlags};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::Proxy;
use crate::configuration::upstream_proxy;
use crate::failure::Failure;
use crate::output::{json_line, print};
use crate::stay::in_runtime;

use super::confined::{self, Order};
use super::key;

/// How long the proxy may take to end.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub(super) fn serve(proxy: &Proxy) -> Result<ExitCode, Failure> {
    let key = key()?;
    let upstream = match &proxy.upstream_proxy {
        Some(choice) => choice.clone(),
        None => upstream_proxy()?,
    };
    let upstream = upstream.proxy();
    let listener = TcpListener::bind(proxy.listen).map_err(|error| {
        Failure::new(format!("cannot listen on {}", proxy.listen))
            .cause(error)
            .hint("name another place with --listen ADDR:PORT")
    })?;
    let unusable = |error: io::Error| Failure::new("cannot start the proxy").cause(error);
    let address = listener.local_addr().map_err(unusable)?;
    let log = log(proxy)?;
    let ranges = Directories::open()?.id_ranges();
    let own = LoneId::take(&ranges).map_err(|error| Failure::new("cannot start the proxy").cause(error))?;
    let uid = own.as_ref().map(|own| own.id);
    let (socket, inner) = UnixStream::pair().map_err(unusable)?;
    // The command holds the proxy's end, which would keep the proxy's end from being seen; it goes here.
    let mut process = own_command(confined::WORD)?.stdin(OwnedFd::from(inner)).spawn().map_err(unusable)?;
    let order = Order { uid, key: key.bytes().to_vec(), upstream };
    if handover::send(&socket, &order, &[listener.as_fd(), log.as_fd()]).is_err() {
        return Err(ended(&mut process));
    }
    drop((listener, log));
    // The id is the proxy's for as long as this process is here.
    let code = guard(proxy, address, &mut process, socket);
    drop(own);
    code
}

/// Where the records go: they can only be added to.
fn log(proxy: &Proxy) -> Result<OwnedFd, Failure> {
    let Some(path) = &proxy.log else { return stderr() };
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    file.map(OwnedFd::from)
        .map_err(|error| Failure::new(format!("cannot write records to '{}'", path.display())).cause(error))
}

/// Waits until the proxy serves, says so, and ends it when somebody asks for that.
fn guard(
    proxy: &Proxy,
    address: SocketAddr,
    process: &mut Child,
    mut socket: UnixStream,
) -> Result<ExitCode, Failure> {
    if socket.read_exact(&mut [0]).is_err() {
        return Err(ended(process));
    }
    if !address.ip().is_loopback() {
        let _ = writeln!(
            io::stderr(),
            "warning: others than this machine reach the proxy on {address}; a token that crosses a network can be read \
             there"
        );
    }
    let text = if proxy.json { json_line(&json!({"listening": address})) } else { format!("{address}\n") };
    in_runtime(async {
        let unusable = |error: io::Error| Failure::new("cannot wait for the proxy").cause(error);
        socket.set_nonblocking(true).map_err(unusable)?;
        let mut socket = tokio::net::UnixStream::from_std(socket).map_err(unusable)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(unusable)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(unusable)?;
        // Whoever has read this may ask for the end at once.
        print(&text)?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            // It never says more: that is its end.
            _ = socket.read_u8() => return Err(ended(process)),
        }
        drop(socket);
        if tokio::time::timeout(LAST_WORDS, gone(process)).await.is_err() {
            // It may wait for somebody to read its log.
            let _ = process.kill();
            let _ = process.wait();
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Our stderr, as the proxy gets it: opened anew where it can be, to be added to and not to be read, for a terminal is the
/// owner's keyboard as well.
fn stderr() -> Result<OwnedFd, Failure> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open("/proc/self/fd/2", flags, Mode::empty()).map_err(io::Error::from);
    let failure =
        |error| Failure::new("cannot write records to stderr").cause(error).hint("name a file with --log");
    match opened {
        Err(error) if io::stderr().is_terminal() => Err(failure(error)),
        // Of a socket there is no other than this.
        Err(_) => io::stderr().as_fd().try_clone_to_owned().map_err(failure),
        Ok(opened) => Ok(opened),
    }
}

/// Resolves when the proxy has ended.
async fn gone(process: &mut Child) {
    while let Ok(None) = process.try_wait() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Why the proxy has ended though nobody asked for it.
fn ended(process: &mut Child) -> Failure {
    let status = process.wait().ok();
    let failure = Failure::new("the proxy has ended");
    match status.and_then(|status| status.code()) {
        Some(errno) if errno != 0 => failure
            .cause(format!("it could not confine itself or listen: {}", io::Error::from_raw_os_error(errno)))
            .hint("`agentbox doctor` tells what this machine lacks"),
        _ => failure.cause("it was killed"),
    }
}
