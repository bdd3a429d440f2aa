//! What the gateway sees, told to whoever keeps the record.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;

use policy::network::{HostName, Refusal};

use crate::conversation::Traffic;

/// Whom somebody inside means to reach.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Peer {
    /// A host by its name.
    Name(Arc<HostName>),
    /// An address that no name was asked for.
    Address(IpAddr),
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(formatter),
            Self::Address(address) => address.fmt(formatter),
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Seen<'event> {
    /// A name was asked for, and given an address or not.
    Question {
        /// The name; none where what was asked for is called like no host.
        name: Option<&'event HostName>,
        /// Why there is no answer.
        refusal: Option<Refusal>,
    },
    /// A connection was refused.
    Refused {
        /// To whom.
        peer: &'event Peer,
        /// On which port.
        port: NonZeroU16,
        /// Why.
        refusal: Refusal,
    },
    /// A connection was made, and nothing has been sent yet.
    Opened {
        /// Its number, counted up in a sandbox's life.
        number: u64,
        /// To whom.
        peer: &'event Peer,
        /// On which port.
        port: NonZeroU16,
        /// Where that is.
        address: SocketAddr,
        /// What goes both ways, counted while it does.
        traffic: &'event Arc<Traffic>,
    },
    /// Something was asked for over it by plain HTTP.
    Request {
        /// The connection.
        number: u64,
        /// How.
        method: &'event str,
        /// What.
        target: &'event str,
        /// Why it was not passed on.
        refusal: Option<Refusal>,
    },
    /// It is over.
    Closed {
        /// Its number.
        number: u64,
        /// To whom it was.
        peer: &'event Peer,
        /// On which port.
        port: NonZeroU16,
        /// Why it was ended from here, where it was.
        refusal: Option<Refusal>,
    },
}

/// There is no room to put something on record.
#[derive(Debug, thiserror::Error)]
#[error("there is no room for it on record")]
pub struct Unrecorded;

/// Whoever keeps the record.
pub trait Witness: fmt::Debug + Send + Sync {
    /// Puts it on record. What cannot be put there does not happen.
    fn see(&self, seen: &Seen<'_>) -> Result<(), Unrecorded>;
}
