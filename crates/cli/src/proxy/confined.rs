//! The proxy itself, in a process of its own. It reads what strangers send, so it gives up everything before the first byte
//! of that: it has the walls of a supervisor, and what it was handed.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use gateway::token::SigningKey;
use gateway::{Limits, Proxy, raise_descriptors};
use jail::ConfineError;
use rustix::io::Errno;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::book::Log;

/// All that the proxy has.
pub(super) struct Inheritance {
    /// Whom it is to become, where it is root's.
    pub(super) uid: Option<u32>,
    pub(super) key: SigningKey,
    /// The owner's side: it ends when that is gone.
    pub(super) owner: UnixStream,
    pub(super) listener: TcpListener,
    /// Where its records go.
    pub(super) log: File,
}

/// The proxy's whole life. Its exit code is zero, or the error number of why it gave up.
pub(super) fn main(inheritance: Inheritance) -> i32 {
    let _ = rustix::thread::set_name(c"agentbox-proxy");
    // What is typed at the owner's terminal is for the owner's side, which tells when to end.
    let _ = rustix::process::setsid();
    raise_descriptors();
    let source = match jail::confine(inheritance.uid) {
        Ok(()) => match live(inheritance) {
            Ok(()) => return 0,
            Err(error) => error.raw_os_error(),
        },
        Err(ConfineError::Step { source, .. }) => source.raw_os_error(),
        Err(ConfineError::Landlock(_)) => None,
    };
    source.unwrap_or(Errno::IO.raw_os_error())
}

fn live(Inheritance { key, owner, listener, log, .. }: Inheritance) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        owner.set_nonblocking(true)?;
        let mut owner = tokio::net::UnixStream::from_std(owner)?;
        let proxy = Arc::new(Proxy::new(key, Limits::of_this_process(), Arc::new(Log::new(log))));
        owner.write_u8(0).await?;
        tokio::select! {
            served = proxy.serve(listener) => served,
            _ = owner.read_u8() => Ok(()),
        }
    })
}
