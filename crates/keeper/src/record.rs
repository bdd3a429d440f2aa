//! What is on record of the sandbox, as its keeper sees to it: it puts the start on record before there is a supervisor
//! that could be killed, makes the next part when one is full, and writes the end where the supervisor could not. It
//! writes only when there is no supervisor.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::SystemTime;

use audit::{Event, Head, OurProcess, ReadError, Turn, WriteError, Writer};
use failpoint::Point;
use handover::{Answer, KeeperOrder};
use jail::Plan;
use policy::network::Mode;
use policy::{SandboxId, State};

use crate::error::KeeperError;

/// The log of one sandbox.
#[derive(Debug)]
pub(crate) struct Record {
    directory: PathBuf,
    id: SandboxId,
}

impl Record {
    pub(crate) fn of(order: &KeeperOrder) -> Self {
        Self { directory: order.audit.clone(), id: order.spec.id.clone() }
    }

    /// Puts the start on record once nobody else writes, for the supervisor to go on.
    pub(crate) fn begin(&self, order: &KeeperOrder, plan: &Plan) -> Result<(OwnedFd, Head), KeeperError> {
        self.put_start(order, plan).map_err(KeeperError::Audit)
    }

    fn put_start(&self, order: &KeeperOrder, plan: &Plan) -> Result<(OwnedFd, Head), WriteError> {
        let turn = audit::take_turn(&self.directory, &self.id).map_err(WriteError::Log)?;
        let Turn { descriptor, head, has_end } = turn;
        let is_new = head.seq == 0;
        // Nobody was left to say that the last keeper was killed, as when the machine lost its power.
        let lost = (!is_new && !has_end).then_some(Event::Lost { process: OurProcess::Keeper });
        let spec = &order.spec;
        let created = Event::Created { name: spec.name.clone(), backend: spec.backend };
        let walls = |state| {
            let lines = plan.report().walls().into_iter().filter(|line| line.state == state);
            lines.map(|line| line.wall).collect()
        };
        let started = Event::Started { missing: walls(State::Missing), weaker: walls(State::Weaker) };
        let mut writer = Writer::new(descriptor, head)?;
        let network = &order.spec.network;
        let policy = (network.mode != Mode::None).then(|| Event::policy(network));
        for event in lost.into_iter().chain(is_new.then_some(created)).chain([started]).chain(policy) {
            writer.append(SystemTime::now(), &event)?;
        }
        failpoint::attempt(Point::KeeperStartRecorded).map_err(WriteError::NotWritten)?;
        Ok(writer.into_parts())
    }

    /// The next part, if it is due. One that cannot be made now may be later: the supervisor goes on in the last.
    pub(crate) fn next_part(&self) -> Answer {
        match audit::next_part(&self.directory, &self.id) {
            Ok(part) => Answer::Part(part),
            Err(ReadError::Full(_)) => Answer::Full,
            Err(_) => Answer::NotNow,
        }
    }

    /// Writes the end, where there is none, once the supervisor is gone.
    pub(crate) fn conclude(&self, event: &Event) -> io::Result<()> {
        audit::conclude(&self.directory, &self.id, event).map(drop).map_err(io::Error::other)
    }
}
