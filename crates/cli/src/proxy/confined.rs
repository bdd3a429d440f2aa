//! The proxy itself, in a process of its own. It reads what strangers send, so it gives up everything before the first byte
//! of that: it has the walls of a supervisor, and what it was handed. It is started anew and no fork of the owner's side,
//! whose memory holds the owner's environment.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

use gateway::token::SigningKey;
use gateway::{Limits, Proxy, raise_descriptors};
use jail::ConfineError;
use policy::network::UpstreamProxy;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::book::Log;

/// The word that it is started with.
pub(crate) const WORD: &str = "confined-proxy";

/// What it is told. The listener and the log come with it.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    /// Whom it is to become, where it is root's.
    pub(super) uid: Option<u32>,
    pub(super) key: Vec<u8>,
    /// The owner's own proxy.
    pub(super) upstream: Option<UpstreamProxy>,
}

/// All that the proxy has.
struct Inheritance {
    key: SigningKey,
    upstream: Option<UpstreamProxy>,
    /// The owner's side: it ends when that is gone.
    owner: UnixStream,
    listener: TcpListener,
    /// Where its records go.
    log: File,
}

/// The proxy's whole life: its stdin is a socket to the owner's side. Its exit code is zero, or the error number of why it
/// gave up.
pub(crate) fn main() -> ExitCode {
    let _ = rustix::thread::set_name(c"agentbox-proxy");
    jail::reset_signals();
    // First of all: what the caller had open is nobody's here.
    jail::drop_inherited_descriptors();
    // What is typed at the owner's terminal is for the owner's side, which tells when to end.
    let _ = rustix::process::setsid();
    match begin() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
            ExitCode::from(u8::try_from(errno).unwrap_or(u8::MAX))
        }
    }
}

fn begin() -> io::Result<()> {
    let owner = UnixStream::from(rustix::io::dup(rustix::stdio::stdin())?);
    let (Order { uid, key, upstream }, descriptors) = handover::receive(&owner).map_err(io::Error::other)?;
    let [listener, log]: [OwnedFd; 2] = descriptors.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
    let key = SigningKey::new(key).map_err(io::Error::other)?;
    raise_descriptors();
    jail::confine(uid).map_err(|error| match error {
        ConfineError::Step { source, .. } => source,
        ConfineError::Landlock(error) => io::Error::other(error),
    })?;
    live(Inheritance { key, upstream, owner, listener: listener.into(), log: log.into() })
}

fn live(Inheritance { key, upstream, owner, listener, log }: Inheritance) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        owner.set_nonblocking(true)?;
        let mut owner = tokio::net::UnixStream::from_std(owner)?;
        let proxy = Arc::new(Proxy::new(key, upstream, Limits::of_this_process(), Arc::new(Log::new(log))));
        owner.write_u8(0).await?;
        tokio::select! {
            served = proxy.serve(listener) => served,
            _ = owner.read_u8() => Ok(()),
        }
    })
}
