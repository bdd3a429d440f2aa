//! Plain HTTP between a hostile client inside and the server that was dialled for it. A request is read strictly, decided
//! on, and written anew: what the server reads was written here, and has one meaning. Nothing is guessed: what two
//! readers could read in two ways is refused, and the connection ends.

mod ahead;
mod answer;
mod authority;
mod blocked;
mod body;
mod end;
mod exchange;
mod fields;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod head;
mod proxied;
mod source;

#[cfg(test)]
mod tests;

use std::time::Duration;

use policy::network::Refusal;

pub(crate) use ahead::{look_ahead, take_head};
pub(crate) use authority::{Authority, Host};
pub(crate) use blocked::{Blocked, Status};
pub(crate) use end::say_last;
pub(crate) use exchange::{Between, relay};
pub(crate) use head::{Form, Head};
pub(crate) use proxied::{Aim, Errand};

/// Whoever decides on requests.
pub(crate) trait Judge {
    /// Says whether a request may go on. It is asked before the server sees a byte of it, for each request anew.
    fn judge(&self, request: &Head<'_>) -> Result<Passage, Refusal>;
}

/// Where a request goes on to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// To the server that was dialled.
    Here,
    /// To another one, or on somebody else's behalf: it is left as it is.
    Elsewhere,
}

/// How long something may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// A head, from its first byte to its end.
    pub(crate) head: Duration,
    /// Nothing at all: between two requests, and within one.
    pub(crate) idle: Duration,
}

/// How a relay ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nothing more goes either way.
    Closed,
    /// Both sides speak something else from here on. Nothing that they said is held back.
    Upgraded,
    /// The next request goes elsewhere. That is what the client has said and nobody has read, a whole head at least.
    Elsewhere(Vec<u8>),
}
