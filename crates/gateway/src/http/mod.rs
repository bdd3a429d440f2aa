//! Plain HTTP between a hostile client inside and the server that was dialled for it. A request is read strictly, decided
//! on, and written anew: what the server reads was written here, and has one meaning. Nothing is guessed: what two
//! readers could read in two ways is refused, and the connection ends.

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
mod source;

#[cfg(test)]
mod tests;

use std::time::Duration;

use policy::network::Refusal;

pub(crate) use authority::{Authority, Host};
pub(crate) use exchange::relay;
pub(crate) use head::Head;

/// Whoever decides on requests.
pub(crate) trait Judge {
    /// Says whether a request may go on. It is asked before the server sees a byte of it, for each request anew.
    fn judge(&self, request: &Head<'_>) -> Result<(), Refusal>;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nothing more goes either way.
    Closed,
    /// Both sides speak something else from here on. Nothing that they said is held back.
    Upgraded,
}
