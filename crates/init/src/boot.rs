//! From the first instruction to the last, as one straight line.

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::io::Interest;
use wire::{Connection, ConnectionEnd, Incoming};

use crate::arguments::{Arguments, ArgumentsError, Landlock};
use crate::channel::Descriptors;
use crate::domain::{Domain, DomainError};
use crate::exec::{self, House};
use crate::reaper::Children;
use crate::remainder;
use crate::spawner::{Spawner, StartError};
use crate::sys;

/// Why init ends other than because the other side wanted it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BootError {
    #[error("{0}")]
    Arguments(#[from] ArgumentsError),
    #[error("{0}")]
    Domain(DomainError),
    #[error("{step}: {error}")]
    Start { step: &'static str, error: io::Error },
    #[error("{end}{}", cause(.end))]
    Channel { end: ConnectionEnd },
}

impl BootError {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Start { .. } | Self::Channel { .. } => 1,
            Self::Arguments(_) => 2,
            Self::Domain(_) => 3,
        }
    }
}

fn cause(end: &ConnectionEnd) -> String {
    end.source().map(|source| format!(": {source}")).unwrap_or_default()
}

/// Says why there is no spawner.
fn failed(error: StartError) -> BootError {
    match error {
        StartError::Domain(error) => BootError::Domain(error),
        StartError::Thread(error) => at("starting the spawner")(error),
    }
}

/// Names what was being done.
fn at(step: &'static str) -> impl FnOnce(io::Error) -> BootError {
    move |error| BootError::Start { step, error }
}

/// Runs init until the channel ends. To return is to end PID 1, and with it every process of the sandbox.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> Result<(), BootError> {
    // Before all else: from here on no process of the same user can trace us or read our memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| at("becoming undumpable")(error.into()))?;
    // What processes make is for their user to change and for everyone to read, as on any machine.
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let arguments = Arguments::parse(arguments)?;
    let descriptors = Descriptors::take().map_err(at("taking the channel"))?;
    // Before there is a second thread, which would not have it.
    remainder::build(arguments.ids, arguments.filter.as_deref()).map_err(|(step, error)| at(step)(error))?;
    // Blocked before the spawner's thread exists, which inherits it: the signal is only ever read.
    let signals = sys::child_signals().map_err(at("watching for SIGCHLD"))?;
    let children = Arc::new(Children::default());
    let domain = match arguments.landlock {
        Landlock::Off => None,
        Landlock::Required => Some(Domain { read: arguments.read, write: arguments.write }),
    };
    let (spawner, entering) =
        Spawner::start(domain, arguments.kernel, arguments.weaken, Arc::clone(&children)).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(at("starting the runtime"))?;
    let house = House::new(spawner, Arc::clone(&children));
    let end = runtime.block_on(async {
        let signals = sys::register(signals, Interest::READABLE).map_err(at("watching for SIGCHLD"))?;
        tokio::spawn(children.reap(signals));
        let (connection, incoming) =
            descriptors.connect(arguments.kernel).map_err(at("opening the channel"))?;
        // A task as all others: to wake whoever waits for the whole runtime takes two calls of the kernel.
        let serving = tokio::spawn(serve(connection, incoming, house));
        tokio::select! {
            served = serving => served.map_err(|error| at("serving")(error.into()))?,
            () = entering.refused() => Ok(()),
        }
    });
    // Whatever still runs is not waited for.
    runtime.shutdown_background();
    entering.finish().map_err(failed)?;
    end
}

async fn serve(connection: Connection, mut incoming: Incoming, house: House) -> Result<(), BootError> {
    let house = Arc::new(house);
    while let Some(channel) = incoming.next().await {
        tokio::spawn(exec::serve(channel, Arc::clone(&house)));
    }
    match connection.closed().await {
        ConnectionEnd::Clean => Ok(()),
        end => Err(BootError::Channel { end }),
    }
}
