//! What may leave sandboxes, from the owner's side: lists of rules that stand, and what is asked of running ones.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use policy::SandboxId;
use policy::network::{NetworkPolicy, Rule, parse_allowlist};
use wire::{Ask, Flow, Flows, Net, Total};

use crate::ask::{Asked, silent};
use crate::configuration;
use crate::error::EngineError;
use crate::kept;
use crate::start::Engine;

/// Reads a list of rules.
pub fn read_allowlist(path: &Path) -> Result<Vec<Rule>, EngineError> {
    let unusable = |source| EngineError::Allowlist { path: path.to_owned(), source };
    let bytes = fs::read(path).map_err(unusable)?;
    parse_allowlist(&bytes).map_err(|error| unusable(io::Error::other(error)))
}

/// The rules of every list in `allowlist.d` of the configuration directories: the caller's own and the machine's.
pub fn standing_rules() -> Result<Vec<Rule>, EngineError> {
    let mut rules = Vec::new();
    for directory in configuration::directories() {
        for list in lists(&directory.join("allowlist.d"))? {
            rules.extend(read_allowlist(&list)?);
        }
    }
    Ok(rules)
}

/// The lists in a directory, by their names; a directory that is not there has none.
fn lists(directory: &Path) -> Result<Vec<PathBuf>, EngineError> {
    let unusable = |source| EngineError::Allowlist { path: directory.to_owned(), source };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unusable)?,
    };
    let mut lists = Vec::new();
    for entry in entries {
        let path = entry.map_err(unusable)?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            lists.push(path);
        }
    }
    lists.sort();
    Ok(lists)
}

/// What has been seen of a sandbox's network, as it comes.
#[derive(Debug)]
pub struct Watched {
    asked: Asked,
    id: SandboxId,
}

impl Watched {
    /// The next lines; none where there are no more.
    pub async fn next(&mut self) -> Result<Option<Vec<Flow>>, EngineError> {
        let flows = self.asked.channel.messages.receiver.next_message::<Flows>().await;
        match flows.map_err(io::Error::other).map_err(silent(&self.id))? {
            Some(Flows { no_network: true, .. }) => Err(EngineError::NoNetwork(self.id.to_string())),
            flows => Ok(flows.map(|flows| flows.flows)),
        }
    }
}

/// How much of a new policy holds in a sandbox that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// All of it.
    All,
    /// Not on ports that nobody listened on at its start, where the kernel has no rules to lead them by.
    OnPorts {
        /// Those that lead out.
        open: Vec<u16>,
        /// Those that it names besides.
        closed: Vec<u16>,
    },
}

impl Held {
    /// `open` is empty where all ports lead out.
    fn of(policy: &NetworkPolicy, open: &[u32]) -> Self {
        let open: Vec<u16> = open.iter().filter_map(|port| u16::try_from(*port).ok()).collect();
        let mut closed: Vec<u16> = policy.named_ports().into_iter().collect();
        closed.retain(|port| !open.contains(port));
        if open.is_empty() || (closed.is_empty() && !policy.allows_unnamed_ports()) {
            return Self::All;
        }
        Self::OnPorts { open, closed }
    }
}

impl Engine {
    /// What may leave a sandbox.
    pub fn policy(&self, id: &SandboxId) -> Result<NetworkPolicy, EngineError> {
        Ok(self.filed(id)?.spec.network)
    }

    /// Gives a sandbox another policy: one that runs at once, one that is kept also when it starts again. Says what of it
    /// only holds then.
    pub async fn set_policy(&self, id: &SandboxId, policy: NetworkPolicy) -> Result<Held, EngineError> {
        let mut held = Held::All;
        let _lock = kept::lock(&self.directories.kept())?;
        let mut filed = self.filed(id)?;
        filed.spec.network = policy;
        if self.is_running(id) {
            let json = serde_json::to_string(&filed.spec.network).map_err(io::Error::other);
            let json = json.map_err(silent(id))?;
            self.tell(id, Ask::SetPolicy(wire::Policy { json })).await.map_err(without_network(id))?;
            held = Held::of(&filed.spec.network, &self.network_total(id).await?.ports);
        }
        self.refile(id, &filed)?;
        Ok(held)
    }

    /// What has been seen of a running sandbox's network; with `follow` also what is seen from now on.
    pub async fn watch_network(&self, id: &SandboxId, follow: bool) -> Result<Watched, EngineError> {
        let asked = self.ask(id, Ask::Net(Net { follow, total: false })).await?;
        Ok(Watched { asked, id: id.clone() })
    }

    /// What has gone in and out of a running sandbox so far; none where it has no network.
    pub async fn traffic(&self, id: &SandboxId) -> Result<Option<Total>, EngineError> {
        Ok(self.network_total(id).await?.total)
    }

    async fn network_total(&self, id: &SandboxId) -> Result<Flows, EngineError> {
        let mut asked = self.ask(id, Ask::Net(Net { follow: false, total: true })).await?;
        let flows = asked.channel.messages.receiver.next_message::<Flows>().await;
        Ok(flows.map_err(io::Error::other).map_err(silent(id))?.unwrap_or_default())
    }
}

/// What a supervisor says who has no network to give a policy to.
fn without_network(id: &SandboxId) -> impl Fn(EngineError) -> EngineError {
    const ENETDOWN: i32 = 100;
    move |error| match error {
        EngineError::Refused { source, .. } if source.raw_os_error() == Some(ENETDOWN) => {
            EngineError::NoNetwork(id.to_string())
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use policy::network::Mode;

    use super::*;

    #[test]
    fn what_is_not_listened_on_is_said() {
        let policy = |rules: &[&str]| NetworkPolicy {
            mode: Mode::Allowlist,
            allow: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
            ..NetworkPolicy::default()
        };
        let open = [53, 80, 443, 7];
        let held = |rules: &[&str]| Held::of(&policy(rules), &open);
        assert_eq!(held(&["a.example", "b.example:7"]), Held::All);
        let on_ports = |closed: &[u16]| Held::OnPorts { open: vec![53, 80, 443, 7], closed: closed.to_vec() };
        assert_eq!(held(&["a.example:22", "b.example:7"]), on_ports(&[22]));
        assert_eq!(held(&["a.example:*"]), on_ports(&[]));
        assert_eq!(Held::of(&policy(&["a.example:22"]), &[]), Held::All);
    }
}
