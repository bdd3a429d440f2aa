//! bubblewrap with the ids that agentbox gives a user with subuids: it is made to wait for its maps, and the two
//! set-user-id helpers write them. What a cycle with such ids takes at least.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::pipe::pipe;
use rustix::process::{getegid, geteuid};

use crate::contender::Contender;

/// The agent's id inside, and how many ids there are above and below.
const AGENT: u32 = 1000;
const ABOVE: u32 = 64_000;

/// One full cycle of /bin/true; `first` is the first id of the user's ranges.
pub(crate) fn cycle(first: u32) -> Result<Duration> {
    let begun = Instant::now();
    let status = Waiting::start(&["/bin/true"], |_| {})?.map(first)?.go()?.wait()?;
    let taken = begun.elapsed();
    if status.success() { Ok(taken) } else { bail!("bwrap ended with {status}") }
}

/// One that waits for its ids.
pub(crate) struct Waiting {
    bubblewrap: Child,
    info: File,
    go: File,
}

impl Waiting {
    /// Starts it for a command; `prepare` may say where its streams go.
    pub(crate) fn start(command: &[&str], prepare: impl FnOnce(&mut Command)) -> Result<Self> {
        // Inherited: both numbers are told to bubblewrap.
        let (read_info, info) = pipe()?;
        let (block, go) = pipe()?;
        let options = [
            "--unshare-user",
            "--userns-block-fd",
            &block.as_raw_fd().to_string(),
            "--info-fd",
            &info.as_raw_fd().to_string(),
        ];
        let mut bubblewrap = Contender::bubblewrap().with(&options).command(command);
        prepare(&mut bubblewrap);
        Ok(Self { bubblewrap: bubblewrap.spawn()?, info: read_info.into(), go: go.into() })
    }

    /// Starts what gives it its ids.
    pub(crate) fn map(self, first: u32) -> Result<Mapping> {
        let process = read_process(self.info)?;
        let [uids, gids] = [("newuidmap", geteuid().as_raw()), ("newgidmap", getegid().as_raw())]
            .map(|(helper, own)| map(helper, process, own, first));
        Ok(Mapping { bubblewrap: self.bubblewrap, helpers: [uids?, gids?], go: self.go })
    }
}

/// One that is being given its ids.
pub(crate) struct Mapping {
    bubblewrap: Child,
    helpers: [Child; 2],
    go: File,
}

impl Mapping {
    /// Waits until it has them, and lets it go on.
    pub(crate) fn go(mut self) -> Result<Child> {
        self.helpers.into_iter().try_for_each(succeed)?;
        self.go.write_all(b"g")?;
        Ok(self.bubblewrap)
    }
}

/// The process that waits for its maps, as bubblewrap tells it in JSON.
fn read_process(mut info: File) -> Result<u64> {
    let mut told = Vec::new();
    let mut buffer = [0; 1024];
    while !told.contains(&b'}') {
        let count = info.read(&mut buffer)?;
        if count == 0 {
            bail!("bwrap ended without a word");
        }
        told.extend_from_slice(&buffer[..count]);
    }
    let told: serde_json::Value = serde_json::from_slice(&told)?;
    told["child-pid"].as_u64().context("bwrap names no process")
}

fn map(helper: &str, process: u64, own: u32, first: u32) -> Result<Child> {
    let extents = [0, first, AGENT, AGENT, own, 1, AGENT + 1, first + AGENT, ABOVE];
    let mut command = Command::new(helper);
    command.arg(process.to_string()).args(extents.map(|number| number.to_string()));
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

fn succeed(mut helper: Child) -> Result<()> {
    let status = helper.wait()?;
    if status.success() { Ok(()) } else { bail!("a helper ended with {status}") }
}
