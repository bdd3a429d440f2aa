//! `agentbox port`, and what is said of published ports when a sandbox starts.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;

use engine::Engine;
use policy::{HostPort, PORTS_LIMIT, PublishedPort};
use serde_json::{Value, json};
use wire::PortState;

use crate::arguments::{Port, PortAction};
use crate::failure::{Failure, escape};
use crate::output::print;
use crate::stay::in_runtime;

pub(crate) fn port(port: &Port) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&port.sandbox)?;
    match &port.action {
        PortAction::Add(add) => {
            warn(&[add.port]);
            let address = engine.publish(&id, add.port)?;
            print(&format!("{address}\n"))
        }
        PortAction::Ls(list) => {
            let ports = in_runtime(async { Ok(engine.ports(&id).await?) })?;
            print(&if list.json { format!("{}\n", describe(&ports)) } else { table(&ports) })
        }
        PortAction::Rm(remove) => {
            in_runtime(async { Ok(engine.unpublish(&id, remove.port).await?) })?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn describe(ports: &[PortState]) -> Value {
    let describe = |port: &PortState| {
        let host = port.host.parse::<SocketAddr>().ok();
        json!({
            "address": host.map(|host| host.ip()),
            "port": host.map(|host| host.port()),
            "inside": port.inside,
            "open": port.open,
            "total": port.total,
            "bytes_in": port.bytes_in,
            "bytes_out": port.bytes_out,
        })
    };
    ports.iter().map(describe).collect()
}

fn table(ports: &[PortState]) -> String {
    let mut text =
        format!("{:<24}{:>8}{:>8}{:>8}{:>14}{:>14}\n", "ADDRESS", "INSIDE", "OPEN", "TOTAL", "IN", "OUT");
    for port in ports {
        let PortState { inside, open, total, bytes_in, bytes_out, .. } = port;
        let host = escape(&port.host);
        text.push_str(&format!("{host:<24}{inside:>8}{open:>8}{total:>8}{bytes_in:>14}{bytes_out:>14}\n"));
    }
    text
}

/// Refuses more ports than one sandbox can publish, and says where others could come in.
pub(crate) fn check(ports: &[PublishedPort]) -> Result<(), Failure> {
    if ports.len() > PORTS_LIMIT {
        return Err(Failure::new(format!("{} ports are too many to publish", ports.len()))
            .hint(format!("a sandbox publishes at most {PORTS_LIMIT} at a time")));
    }
    warn(ports);
    Ok(())
}

fn warn(ports: &[PublishedPort]) {
    for HostPort { address, .. } in ports.iter().map(|port| port.host).filter(|host| !host.is_loopback()) {
        let _ = writeln!(
            io::stderr(),
            "warning: what is published on {address} is reachable from other machines"
        );
    }
}

/// Says which ports the kernel chose.
pub(crate) fn say_chosen(asked: &[PublishedPort], addresses: &[SocketAddr]) {
    for (port, address) in asked.iter().zip(addresses).filter(|(port, _)| port.host.port == 0) {
        let _ = writeln!(io::stderr(), "port {} inside is reached on {address}", port.inside);
    }
}
