//! `agentbox`: the owner's program. The same file is also the keeper and the supervisor, which are started
//! from it with one word and nothing else, the proxy, and what tries limits for `doctor`.

mod arguments;
mod audit;
mod configuration;
mod conversation;
mod cp;
mod dispatch;
mod doctor;
mod exec;
mod failure;
mod generate;
mod images;
mod keys;
mod network;
mod outcome;
mod output;
mod pause;
mod ports;
mod processes;
mod proxy;
mod record;
mod review;
mod rooted;
mod run;
mod sandboxes;
mod settings;
mod setup;
mod signals;
mod slowness;
mod stay;
mod stdio;
mod terminal;
mod terminals;
mod top;
mod workspace;

use std::process::ExitCode;

use engine::doctor::LIMITS_PROBE;
use engine::{Heritage, IMAGE_WORKER, RECORD_BASE, WaitingKeeper};
use heap as _;

use arguments::Arguments;

fn main() -> ExitCode {
    // The keeper starts first of all, while nothing of the caller's is in our memory, and gets ready while the arguments are
    // read; where they are wrong, it ends without an order.
    let starting = Heritage::find().filter(dispatch::starts_a_sandbox);
    let keeper = starting.map(|heritage| WaitingKeeper::fork(heritage, keep));
    // The process behind a sandbox takes its orders over a socket and has no arguments to parse.
    let word = std::env::args_os().nth(1);
    match word.as_ref().and_then(|word| word.to_str()) {
        Some("keeper") => return keep(),
        Some(proxy::WORD) => return proxy::confined(),
        Some(RECORD_BASE) => return engine::record_base(std::env::args_os().skip(2)),
        Some(IMAGE_WORKER) => return engine::image_worker(),
        Some(LIMITS_PROBE) => return engine::doctor::limits_probe(),
        _ => {}
    }
    match Arguments::read() {
        Ok(arguments) => dispatch::dispatch(arguments, keeper).unwrap_or_else(|failure| failure.print()),
        Err(error) => failure::usage(&error),
    }
}

fn keep() -> ExitCode {
    keeper::main(supervisor::main)
}
