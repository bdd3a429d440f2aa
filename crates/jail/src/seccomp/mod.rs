//! The system call filters: which calls a process in a sandbox may make, and which the supervisor may make.
//!
//! It owns the two tables (`sandbox` and `supervisor`), the compiler that turns a table into classic BPF, and
//! an interpreter with which tests ask a filter about every number. A [`Program`] is built on the owner's side,
//! before clone; [`install`] runs in the child and must never allocate. A filter decides on numbers and on words in
//! registers alone: it never follows a pointer, since what is behind one can change after the look.

mod architecture;
mod bpf;
mod filter;
mod interpret;
mod rule;
mod sandbox;
mod socket;
mod supervisor;
mod sys;
mod verdicts;

pub use architecture::Architecture;
pub use filter::{Filter, Program};
pub use interpret::{Malformed, Run, SeccompData, interpret};
pub use rule::Action;
pub use sys::install;
