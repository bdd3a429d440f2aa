//! Execs by the control channel from many clients at once: how many a second one sandbox gets through.

use std::time::Instant;

use anyhow::Result;

use crate::Effort;
use crate::exec::Client;
use crate::goal::{Bound, Line};
use crate::place::Caller;
use crate::sandbox::Sandbox;
use crate::statistics::{median_milliseconds, percentile_milliseconds};

const CLIENTS: usize = 8;

pub(crate) fn measure(who: &str, effort: Effort) -> Result<Line> {
    let sandbox = Sandbox::create(&Caller::default())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (rate, exits) = runtime.block_on(async {
        let clients = (0..CLIENTS).map(|_| Client::connect(&sandbox)).collect::<Result<Vec<_>>>()?;
        let begun = Instant::now();
        let asking: Vec<_> = clients
            .into_iter()
            .map(|client| {
                tokio::spawn(async move {
                    let mut exits = Vec::new();
                    for _ in 0..effort.cycles * 10 {
                        exits.push(client.ask().await?.1);
                    }
                    anyhow::Ok(exits)
                })
            })
            .collect();
        let mut exits = Vec::new();
        for client in asking {
            exits.extend(client.await??);
        }
        anyhow::Ok((exits.len() as f64 / begun.elapsed().as_secs_f64(), exits))
    })?;
    Ok(Line {
        what: format!("exec by the control channel, {CLIENTS} clients at once, {who} (a second)"),
        measured: vec![
            ("agentbox".to_owned(), format!("{rate:.0}/s")),
            ("exit p50".to_owned(), format!("{:.2} ms", median_milliseconds(&exits))),
            ("exit p99".to_owned(), format!("{:.2} ms", percentile_milliseconds(&exits, 99))),
        ],
        value: Some(rate),
        goal: None,
        floor: Some(Bound::AtLeast(1000.0)),
    })
}
