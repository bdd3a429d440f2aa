//! The ways to the site: straight, out of a sandbox, and by asking a proxy. Each has a client of its own that waits for
//! what it shall do, so that in each turn every way is taken once.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};

use super::network::{NAME, Network};
use super::process::Process;
use super::proxies::Proxy;
use super::task::{Outcome, Task};
use super::{CLIENT, own_program};
use crate::place::Place;
use crate::sandbox::Sandbox;

/// Where the client is inside.
const INSIDE: &str = "/opt/agentbox-bench";

/// No task takes longer, however slow the way.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) const DIRECT: &str = "direct";
pub(super) const AGENTBOX: &str = "agentbox";

/// One that is there; it goes when it is dropped.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) name: &'static str,
    client: Process,
    _proxy: Option<Process>,
    /// The one that the client is in.
    pub(super) sandbox: Option<Sandbox>,
}

impl Way {
    fn direct(network: &Network) -> Result<Self> {
        let client = Process::start(behind(network).arg(own_program()?).arg(CLIENT))?;
        Self { name: DIRECT, client, _proxy: None, sandbox: None }.tried()
    }

    /// Out of a sandbox from which nothing but the site may be reached.
    pub(super) fn agentbox(network: &Network, place: &Place) -> Result<Self> {
        let mount = format!("{}:{INSIDE}", own_program()?);
        let site = format!("{NAME}:*");
        let caller = place.caller().behind(network.prefix());
        // Whoever kills the measurement leaves a sandbox that ends by itself.
        let options = ["--mount", &mount, "--allow", &site, "--lifetime", "1h"];
        let sandbox = Sandbox::create_with(&caller, &options)?;
        let client = Process::start(&mut sandbox.exec_of(&[INSIDE, CLIENT])?)?;
        Self { name: AGENTBOX, client, _proxy: None, sandbox: Some(sandbox) }.tried()
    }

    fn proxy(proxy: Proxy, network: &Network, files: &Path) -> Result<Self> {
        let running = proxy.start(&network.prefix(), files)?;
        let mut command = behind(network);
        command.arg(own_program()?).arg(CLIENT).arg(proxy.address().to_string()).stderr(Stdio::null());
        let client = Process::start(&mut command)?;
        Self { name: proxy.name(), client, _proxy: Some(running), sandbox: None }.tried()
    }

    /// Every way that leads to the site from here; the first two are there always.
    pub(super) fn all(network: &Network, place: &Place, files: &Path) -> Result<Vec<Self>> {
        let mut ways = vec![Self::direct(network)?, Self::agentbox(network, place)?];
        for proxy in Proxy::ALL {
            match Self::proxy(proxy, network, files) {
                Ok(way) => ways.push(way),
                Err(error) => eprintln!("note: {} does not start here: {error:#}", proxy.name()),
            }
        }
        Ok(ways)
    }

    /// Whether it is only there to compare with.
    pub(super) fn is_peer(&self) -> bool {
        self.name != DIRECT && self.name != AGENTBOX
    }

    pub(super) fn ask(&mut self, task: Task) -> Result<Outcome> {
        let answer = self.client.ask(&serde_json::to_string(&task)?, PATIENCE);
        let answer = answer.with_context(|| format!("the client, {}", self.name))?;
        let outcome: Result<Outcome, String> = serde_json::from_str(&answer)?;
        outcome.map_err(|error| anyhow!("{}, {task:?}: {error}", self.name))
    }

    fn tried(mut self) -> Result<Self> {
        self.ask(Task::Reach)?;
        Ok(self)
    }
}

/// A command on the host of the network.
fn behind(network: &Network) -> Command {
    let words = network.prefix();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}
