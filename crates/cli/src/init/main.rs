//! The program that becomes PID 1 of every sandbox. A file of its own, small and static, so that one copy in
//! memory serves all sandboxes and none of the owner's code is inside.
//!
//! It begins where C programs do: what the language does before its own `main` are calls that nothing here needs, and on
//! gVisor's kernel calls are what a start consists of.

#![no_main]

mod sys;

use heap as _;
