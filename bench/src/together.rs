//! Many sandboxes at once: from the first start until every one of them has said that it is ready.

use std::io::Read as _;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::contender::Contender;
use crate::goal::Line;
use crate::{Effort, interrupt, ratio};

const ROUNDS: usize = 5;

pub(crate) fn measure(who: &str, effort: Effort) -> Result<Vec<Line>> {
    let mut contenders = vec![Contender::agentbox()?, Contender::bubblewrap()];
    contenders.extend(Contender::bubblewrap_with_ids());
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..ROUNDS {
        for (contender, times) in contenders.iter().zip(&mut times) {
            times.push(start_all(contender, effort.together)?);
            std::thread::sleep(Duration::from_millis(500));
        }
    }
    let what = format!("{} sandboxes at once, all ready, {who}", effort.together);
    Ok(ratio::lines(&what, &contenders, &times, 0, (1.5, 2.0)))
}

fn start_all(contender: &Contender, count: usize) -> Result<Duration> {
    interrupt::check()?;
    let begun = Instant::now();
    // It says one byte and then waits for its stdin to end.
    let ready = ["/bin/sh", "-c", "echo; read line"];
    let mut processes = contender.start_many(&ready, count)?;
    for process in &mut processes {
        let stdout = process.stdout.as_mut().context("no stdout")?;
        stdout.read_exact(&mut [0]).with_context(|| format!("{} did not come up", contender.name))?;
    }
    let taken = begun.elapsed();
    processes.into_iter().try_for_each(end)?;
    Ok(taken)
}

pub(crate) fn end(mut process: Child) -> Result<()> {
    drop(process.stdin.take());
    process.wait()?;
    Ok(())
}
