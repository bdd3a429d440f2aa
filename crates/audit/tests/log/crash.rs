//! A writer that is killed at any moment leaves a log that goes on.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use audit::Ending;

use crate::harness::{Log, fill};

/// As many times as it takes to hit a write, the beginning of a part and the moments between.
const ROUNDS: u64 = 100;

#[test]
fn a_writer_may_be_killed_at_any_moment() {
    let log = Log::new();
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.pop();
    program.push("examples/write");
    let mut chance: u64 = u64::from(std::process::id()) << 20 | 1;
    println!("chance begins with {chance}");
    // After which record something is torn. A writer that is killed before it can say so leaves it to the next.
    let (mut torn, mut last) = (BTreeSet::new(), 0);
    for round in 0..ROUNDS {
        let mut command = Command::new(&program);
        command.arg(log.path()).arg(log.id.as_str()).arg("1000000").stdout(Stdio::piped());
        let mut writer = command.spawn().unwrap();
        // Half of them are hit while they write, the others also while they begin.
        if round % 2 == 0 {
            let mut line = String::new();
            BufReader::new(writer.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "begun\n");
        }
        (0..3).for_each(|shift| chance ^= [chance << 13, chance >> 7, chance << 17][shift]);
        std::thread::sleep(Duration::from_micros(chance % 12_000));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let head = log.head();
        let noted = log.verify_to(head.hash).unwrap();
        assert_eq!((noted.ending, noted.count), (head.ending, head.seq), "round {round}");
        assert!(noted.count >= last, "round {round}");
        if matches!(noted.ending, Ending::Torn(_)) {
            torn.insert(noted.count);
        }
        last = noted.count;
    }
    fill(&mut log.writer(), 1);
    let verified = log.verify().unwrap();
    assert!(verified.count > ROUNDS, "{verified:?}");
    // Those that were found were accounted for, each once.
    assert_eq!((verified.torn, verified.ending), (torn.len() as u64, Ending::Clean));
    println!("{} records, {} torn", verified.count, torn.len());
}
