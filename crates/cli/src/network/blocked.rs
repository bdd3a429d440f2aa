//! What a run says of its network: each that was kept from leaving once, with the option that would allow it, and at the end
//! how much it was. At the end the record is asked, so that nothing is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io::{self, Write as _};

use audit::{Event, Recorded, records};
use engine::Engine;
use policy::SandboxId;
use policy::network::Refusal;
use tokio::sync::oneshot;

use crate::failure::escape;
use crate::settings::Reporting;

use super::option;

/// How many are said; all are on record.
const MOST: usize = 30;

/// What has been said.
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    said: BTreeSet<String>,
}

impl Blocked {
    /// Says what is blocked as it happens, once the walls stand.
    pub(crate) async fn watch(
        &mut self,
        engine: &Engine,
        id: &SandboxId,
        standing: oneshot::Receiver<()>,
    ) -> Infallible {
        if standing.await.is_ok()
            && let Ok(mut watched) = engine.watch_network(id, true).await
        {
            while let Ok(Some(flows)) = watched.next().await {
                for flow in &flows {
                    let refusal = Refusal::ALL.iter().find(|refusal| refusal.code() == flow.refusal);
                    if let Some(refusal) = refusal {
                        self.say(&flow.host, u16::try_from(flow.port).unwrap_or(0), *refusal);
                    }
                }
            }
        }
        // What is said later is on record.
        std::future::pending().await
    }

    /// Says the rest, as the run is over.
    pub(crate) fn finish(&mut self, engine: &Engine, id: &SandboxId, reporting: Reporting) {
        let mut reached = BTreeSet::new();
        let mut open = BTreeMap::new();
        let mut blocked = BTreeSet::new();
        let mut connections = 0_u64;
        for record in records(&engine.records(), id).into_iter().flatten().flatten() {
            match record.event {
                Recorded::Known(Event::Connected { connection, host, port, .. }) => {
                    connections += 1;
                    reached.insert(host.as_str().to_owned());
                    open.insert(connection, (host.as_str().to_owned(), port));
                }
                Recorded::Known(Event::Disconnected { connection, refusal, .. }) => {
                    if let (Some((host, port)), Some(refusal)) = (open.remove(&connection), refusal) {
                        self.say(&host, port, refusal);
                        blocked.insert((host, port));
                    }
                }
                Recorded::Known(Event::Question { name, refusal: Some(refusal), .. }) => {
                    self.say(name.as_str(), 0, refusal);
                    blocked.insert((name.as_str().to_owned(), 0));
                }
                Recorded::Known(Event::Blocked { host, port, refusal, .. }) => {
                    self.say(host.as_str(), port, refusal);
                    blocked.insert((host.as_str().to_owned(), port));
                }
                _ => {}
            }
        }
        if !blocked.is_empty() || reporting == Reporting::Always {
            let (hosts, blocked, id) = (reached.len(), blocked.len(), id.as_str());
            let plural =
                |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
            tell(&format!(
                "network: {} to {}, {blocked} blocked; `agentbox audit {id}` has each\n",
                plural(connections, "connection"),
                plural(hosts as u64, "host"),
            ));
        }
    }

    fn say(&mut self, host: &str, port: u16, refusal: Refusal) {
        let shown = escape(host);
        let place = if port == 0 { shown } else { format!("{shown}:{port}") };
        let to_allow = option(refusal, host, port).map(|option| format!("; to allow: {option}"));
        let line = format!("blocked: {place} ({refusal}){}\n", to_allow.unwrap_or_default());
        if self.said.contains(&line) {
            return;
        }
        match self.said.len() {
            0..MOST => tell(&line),
            MOST => tell("blocked: more than can be shown here\n"),
            _ => return,
        }
        self.said.insert(line);
    }
}

fn tell(line: &str) {
    let _ = io::stderr().write_all(line.as_bytes());
}
