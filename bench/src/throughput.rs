//! How fast a command's stdout arrives at whoever reads the CLI's.

use std::io::Read as _;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::contender::Contender;
use crate::goal::{Bound, Line};
use crate::interrupt;

const BYTES: u64 = 2 << 30;
const ROUNDS: usize = 5;

pub(crate) fn measure(who: &str) -> Result<Line> {
    let contenders = [Contender::agentbox()?, Contender::bubblewrap()];
    let mut speeds = vec![Vec::new(); contenders.len()];
    for _ in 0..ROUNDS {
        for (contender, speeds) in contenders.iter().zip(&mut speeds) {
            speeds.push(speed(contender)?);
        }
    }
    for speeds in &mut speeds {
        speeds.sort_by(f64::total_cmp);
    }
    let medians: Vec<f64> = speeds.iter().map(|speeds| speeds[ROUNDS / 2]).collect();
    Ok(Line {
        what: format!("stdout of a process to the CLI, {who} (MiB/s)"),
        measured: contenders
            .iter()
            .zip(&medians)
            .map(|(contender, median)| (contender.name.to_owned(), format!("{median:.0} MiB/s")))
            .collect(),
        value: Some(medians[0]),
        goal: Some(Bound::AtLeast(500.0)),
        floor: Some(Bound::AtLeast(250.0)),
    })
}

fn speed(contender: &Contender) -> Result<f64> {
    let mut command = contender.command(&["/usr/bin/head", "-c", &BYTES.to_string(), "/dev/zero"]);
    interrupt::check()?;
    let begun = Instant::now();
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let mut stdout = process.stdout.take().context("no stdout")?;
    let mut buffer = vec![0; 1 << 18];
    let mut total = 0;
    loop {
        match stdout.read(&mut buffer)? {
            0 => break,
            count => total += count as u64,
        }
    }
    process.wait()?;
    anyhow::ensure!(total == BYTES, "{} delivered {total} bytes", contender.name);
    Ok((BYTES >> 20) as f64 / begun.elapsed().as_secs_f64())
}
