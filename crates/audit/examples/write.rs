//! A writer by itself, as the tests kill it and as its speed is measured: `write DIRECTORY ID PART_LIMIT [COUNT]`.
//! Without a count it says when the first record is written, and writes records of all lengths until it is killed.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use audit::{Arguments, Event, Head, Text, Writer, begin_part, open};
use policy::{SandboxId, User};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |name: &'static str| arguments.next().ok_or(name);
    let directory = PathBuf::from(argument("no directory")?);
    let id: SandboxId = argument("no id")?.parse()?;
    let part_limit = argument("no part limit")?.parse()?;
    let count: Option<u64> = argument("no count").ok().map(|count| count.parse()).transpose()?;

    let head = Head::read(&directory, &id)?;
    let mut writer = Writer::new(open(&directory, &id)?, head)?.with_part_limit(part_limit);
    let start = Instant::now();
    for number in 0..count.unwrap_or(u64::MAX) {
        if writer.is_full() {
            writer.go_on(begin_part(&directory, &id)?)?;
        }
        let length = if count.is_some() { 40 } else { number.wrapping_mul(7919) % 12_000 };
        writer.append(SystemTime::now(), &exec(number, usize::try_from(length)?))?;
        if number == 0 && count.is_none() {
            println!("begun");
        }
    }
    let rate = count.unwrap_or_default() as f64 / start.elapsed().as_secs_f64();
    println!("{rate:.0} records per second, {} bytes in the last part", writer.head().length);
    let start = Instant::now();
    let verified = audit::verify(&directory, &id, Some(writer.head().hash))?;
    println!("{:.0} verified per second", verified.count as f64 / start.elapsed().as_secs_f64());
    Ok(())
}

fn exec(number: u64, length: usize) -> Event {
    let argv = Arguments::new(["sh", "-c", &"x".repeat(length)]);
    Event::Exec {
        exec: number,
        argv,
        cwd: Text::new("/work"),
        user: User::AGENT,
        terminal: None,
        detached: false,
    }
}
