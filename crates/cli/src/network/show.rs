//! `agentbox net`: whom a sandbox has reached, and whom not.

use std::process::ExitCode;

use engine::Engine;
use serde_json::{Value, json};
use wire::Flow;

use crate::arguments::Net;
use crate::failure::{Failure, escape};
use crate::output::{json_line, print, print_on};
use crate::stay::in_runtime;

pub(crate) fn net(net: &Net) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&net.sandbox)?;
    in_runtime(async {
        let mut watched = engine.watch_network(&id, net.follow).await?;
        if net.follow {
            while let Some(flows) = watched.next().await? {
                let lines: String = flows.iter().map(|flow| one(flow, net.json)).collect();
                if !print_on(&lines)? {
                    break;
                }
            }
            return Ok(ExitCode::SUCCESS);
        }
        let mut all = Vec::new();
        while let Some(flows) = watched.next().await? {
            all.extend(flows);
        }
        print(&if net.json { json_line(&all.iter().map(describe).collect()) } else { table(&all) })
    })
}

fn one(flow: &Flow, as_json: bool) -> String {
    if as_json { json_line(&describe(flow)) } else { row(flow) }
}

fn describe(flow: &Flow) -> Value {
    json!({
        "host": flow.host,
        "port": (flow.port != 0).then_some(flow.port),
        "verdict": verdict(flow),
        "times": flow.times,
        "open": flow.open,
        "sent": flow.sent,
        "received": flow.received,
    })
}

fn verdict(flow: &Flow) -> &str {
    if flow.refusal.is_empty() { "allowed" } else { &flow.refusal }
}

fn table(flows: &[Flow]) -> String {
    let head = format!(
        "{:<40}{:<22}{:>8}{:>6}{:>14}{:>14}\n",
        "HOST", "VERDICT", "TIMES", "OPEN", "SENT", "RECEIVED"
    );
    head + &flows.iter().map(row).collect::<String>()
}

fn row(flow: &Flow) -> String {
    let host = match flow.port {
        0 => format!("{} (name)", escape(&flow.host)),
        port => format!("{}:{port}", escape(&flow.host)),
    };
    let Flow { times, open, sent, received, .. } = flow;
    let verdict = escape(verdict(flow));
    format!("{host:<40}{verdict:<22}{times:>8}{open:>6}{sent:>14}{received:>14}\n")
}
