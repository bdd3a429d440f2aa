//! The keeper: one small process for each sandbox, with the owner's privileges. It takes one order, builds the
//! walls, waits for the end and cleans up.
//!
//! It stands on the owner's side: without async code, single-threaded but for what measures its disk, and it never reads a byte from inside.
//! All that it hears from the exposed side is a byte or two at a time ([`handover::Plea`]).

mod clean;
mod disk;
mod end;
mod error;
mod limits;
mod record;
mod runtime;
mod sandbox;
mod supervisor;
mod waiting;
mod walls;
mod watch;

use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use failpoint::Point;
use handover::{Bequest, KeeperEvent, KeeperOrder};
use jail::{Face, Subordinates, Survey};

use clean::Remains;
pub use clean::{DISK_FULL, PAUSED_FILE, cgroups, clean};
use error::KeeperError;
use sandbox::{Begun, Sandbox};
use supervisor::Supervise;
use watch::Watched;

/// The keeper's whole life: its stdin is a socket to the engine, over which the order comes. `supervise` is what
/// the process does that it forks for the exposed side.
#[must_use]
pub fn main(supervise: fn(Bequest) -> i32) -> ExitCode {
    let _ = rustix::thread::set_name(c"agentbox-keeper");
    jail::reset_signals();
    // First of all: what the caller had open is nobody's here, least of all the supervisor's.
    sandbox::drop_descriptors();
    // Nor is the directory that the caller happens to be in.
    let _ = rustix::process::chdir("/");
    // Away from the caller's terminal: a Ctrl-C there is for the command, and the sandbox outlives a hang-up.
    let _ = rustix::process::setsid();
    let Ok(engine) = rustix::io::dup(rustix::stdio::stdin()) else { return ExitCode::FAILURE };
    match keep(&UnixStream::from(engine), supervise) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The straight line: order, walls, wait, clean up, tell.
fn keep(engine: &UnixStream, supervise: Supervise) -> Result<(), KeeperError> {
    // Done while the order is still on its way.
    let begun = Begun::early();
    let subordinates = Subordinates::find();
    let begun = match (begun, subordinates.map_of_all()) {
        (Some(Ok(begun)), Some(ids)) => Some(begun.with_ids(&ids, Face::Agent)),
        (begun, _) => begun,
    };
    let survey = Survey::take(subordinates);
    let (order, lock, sockets) = match KeeperOrder::receive(engine) {
        Ok(received) => received,
        Err(error) => {
            if let Some(Ok(begun)) = begun {
                begun.abandon();
            }
            return Err(error.into());
        }
    };
    failpoint::pass(Point::KeeperOrdered);
    let mut remains = Remains::new(order.runtime.clone(), lock);
    let Watched { told, supervisor } = match Sandbox::start(&order, survey, begun, sockets, supervise) {
        Ok(sandbox) => watch::watch(sandbox, engine, &remains),
        Err(error) => Watched { told: Err(error), supervisor: None },
    };
    let leftover = remains.remove().err().map(|error| error.to_string());
    failpoint::pass(Point::KeeperRuntimeRemoved);
    let event = match told {
        Ok(end) => KeeperEvent::Ended { reason: end.reason, leftover, loss: end.loss() },
        Err(error) => KeeperEvent::Failed(error.problem()),
    };
    // Whoever ordered the sandbox may be gone; then nobody wants to know.
    let _ = handover::send(engine, &event, &[]);
    failpoint::pass(Point::KeeperEndTold);
    // Nothing is left of the sandbox but the two of us.
    if let Some(supervisor) = supervisor {
        supervisor.destroy();
    }
    Ok(())
}
