//! `agentbox doctor` as each kind of caller: what it finds here, what it finds on machines that lack something, and
//! that `agentbox run` refuses there with the same reason.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod checkup;
mod here;
mod lacking;
