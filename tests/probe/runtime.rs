//! Stands where runsc stands, and becomes it: until it is told to do something else with a sandbox. It is told so in a file
//! beside the real one, in the directory that every runsc may bring along.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// The signal at which the real one is told to panic.
const PANIC: &str = "--panic-signal=12";

pub(crate) fn stand_in() -> ExitCode {
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let beside = own.parent().unwrap().join("gvisor-bin");
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let starts = words.iter().any(|word| word == "run");
    let how = std::fs::read_to_string(beside.join("how")).unwrap_or_default();
    match how.trim() {
        // The first process of a namespace cannot stop itself, but nothing makes it go on.
        "hangs" if starts => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        "vanishes" if starts => return ExitCode::from(7),
        "babbles" if starts => {
            let mut stderr = std::io::stderr();
            while stderr.write_all(b"\x1b]0;mine\x07\x1b[31mnot so\n").is_ok() {}
            return ExitCode::from(1);
        }
        "panics" => words.insert(0, PANIC.to_owned()),
        _ => {}
    }
    let error = Command::new(beside.join("runsc")).arg0("runsc").args(words).exec();
    panic!("{error}");
}
