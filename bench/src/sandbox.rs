//! A sandbox that stays, for as long as something is measured with it.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use handover::{STATUS_FILE, State, Status};

use crate::interrupt;
use crate::place::Caller;

/// Made by `agentbox create`; removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Sandbox {
    caller: Caller,
    pub(crate) id: String,
}

impl Sandbox {
    pub(crate) fn create(caller: &Caller) -> Result<Self> {
        Self::create_with(caller, &[])
    }

    /// One with options of its own.
    pub(crate) fn create_with(caller: &Caller, options: &[&str]) -> Result<Self> {
        interrupt::check()?;
        let made = caller.agentbox(&["create"])?.args(options).stdin(Stdio::null()).output()?;
        if !made.status.success() {
            bail!("create: {}", String::from_utf8_lossy(&made.stderr));
        }
        Ok(Self { caller: caller.clone(), id: String::from_utf8(made.stdout)?.trim().to_owned() })
    }

    /// `agentbox exec` of /bin/true in it.
    pub(crate) fn exec(&self) -> Result<Command> {
        self.exec_of(&["/bin/true"])
    }

    /// `agentbox exec` of a command in it.
    pub(crate) fn exec_of(&self, command: &[&str]) -> Result<Command> {
        let mut whole = self.caller.agentbox(&["exec", &self.id, "--"])?;
        whole.args(command);
        Ok(whole)
    }

    /// Removes it while it runs.
    pub(crate) fn remove(mut self) -> Result<()> {
        let id = std::mem::take(&mut self.id);
        succeed(&mut self.caller.agentbox(&["rm", "--force", &id])?).map(drop)
    }

    /// Its directory in the state.
    pub(crate) fn kept(&self, state: &Path) -> PathBuf {
        state.join("sandboxes").join(&self.id)
    }

    /// The processes of ours behind it: its keeper, its init and its supervisor.
    pub(crate) fn processes(&self, state: &Path) -> Result<[i32; 3]> {
        let status: Status = serde_json::from_slice(&fs::read(self.kept(state).join(STATUS_FILE))?)?;
        match status.state {
            State::Running { keeper, init, supervisor, .. } => Ok([keeper, init, supervisor]),
            State::Stopped { .. } => bail!("sandbox {} has ended", self.id),
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if self.id.is_empty() {
            return;
        }
        // Not in our own process group: who presses Ctrl-C twice must not keep it from its work.
        let removal = self.caller.agentbox(&["rm", "--force", &self.id]);
        let _ = removal.map(|mut command| quiet(command.process_group(0)).status());
    }
}

/// The state directory of whoever measures.
pub(crate) fn state() -> Result<PathBuf> {
    Ok(PathBuf::from(std::env::var_os("AGENTBOX_HOME").context("AGENTBOX_HOME is not set")?))
}

pub(crate) fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// Runs a command to its good end, and says how long it took.
pub(crate) fn succeed(command: &mut Command) -> Result<Duration> {
    interrupt::check()?;
    let begun = Instant::now();
    let status = quiet(command).status().with_context(|| format!("{command:?}"))?;
    let taken = begun.elapsed();
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(taken)
}
