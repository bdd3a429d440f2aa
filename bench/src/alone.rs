//! runsc alone, with the bundle of a sandbox of ours: the same command line, document, trees and namespaces. Only the
//! program is another, as nobody is there whom our init could answer.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::gvisor::PAUSE;
use crate::place::Caller;
use crate::sandbox::{Sandbox, quiet, state, succeed};

/// Where runsc is in what was built for it, and where there is room for more.
const RUNTIME: &str = "/runtime";
const BUNDLE: &str = "/run/alone";
const STATE: &str = "/run/alone-state";
const NAME: &str = "alone";

/// A place to run it in: that of a sandbox that stays, and does nothing.
#[derive(Debug)]
pub(crate) struct Alone {
    sandbox: Sandbox,
    init: i32,
    words: Vec<String>,
}

impl Alone {
    /// Makes a sandbox, and a copy of its bundle that runs `program`.
    pub(crate) fn new(options: &[&str], program: &[&str]) -> Result<Self> {
        let sandbox = Sandbox::create_with(&Caller::default(), options)?;
        let [_, init, _] = sandbox.processes(&state()?)?;
        let words = fs::read_to_string(format!("/proc/{init}/cmdline"))?;
        let words = words.split_terminator('\0').skip(1).map(|word| changed(word, &sandbox.id)).collect();
        let alone = Self { sandbox, init, words };
        let document = fs::read(alone.root().join("bundle/config.json"))?;
        let mut document: Value = serde_json::from_slice(&document)?;
        document["process"]["args"] = json!(program);
        alone.write(&serde_json::to_vec(&document)?)?;
        Ok(alone)
    }

    /// The whole of it, once. To get there takes time as well, which is not counted.
    pub(crate) fn run(&self) -> Result<Duration> {
        std::thread::sleep(PAUSE);
        let entering = self.entering()?;
        std::thread::sleep(PAUSE);
        let whole = succeed(self.enter(&["--all"]).arg(RUNTIME).args(&self.words))?;
        Ok(whole.saturating_sub(entering))
    }

    pub(crate) fn remove(self) -> Result<()> {
        self.sandbox.remove()
    }

    /// How long it takes to get there and to begin a program, which does not know what it is asked for.
    fn entering(&self) -> Result<Duration> {
        let begun = Instant::now();
        let mut nothing = self.enter(&["--all"]);
        let status = quiet(nothing.args(["/rootfs/.agentbox/init", "--nothing"])).status()?;
        match status.code() {
            Some(2) => Ok(begun.elapsed()),
            _ => bail!("{nothing:?} ended with {status}"),
        }
    }

    fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.init))
    }

    /// As the root of those namespaces: nobody else can write there.
    fn enter(&self, namespaces: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.init.to_string()).args(namespaces).args(["-S", "0", "-G", "0"]);
        command
    }

    fn write(&self, document: &[u8]) -> Result<()> {
        let directory = self.root().join(BUNDLE.trim_start_matches('/'));
        succeed(self.enter(&["--user"]).arg("mkdir").arg(&directory))?;
        let mut writer = self.enter(&["--user"]);
        writer.args(["dd", "status=none"]).arg(format!("of={}", directory.join("config.json").display()));
        let mut writing = writer.stdin(Stdio::piped()).spawn()?;
        writing.stdin.take().context("no stdin")?.write_all(document)?;
        if !writing.wait()?.success() {
            bail!("{writer:?} failed");
        }
        Ok(())
    }
}

/// A word of the command line, for a container beside the sandbox's own.
fn changed(word: &str, id: &str) -> String {
    match word.split_once('=') {
        Some(("--root", _)) => format!("--root={STATE}"),
        Some(("--bundle", _)) => format!("--bundle={BUNDLE}"),
        _ if word == id => NAME.to_owned(),
        _ => word.to_owned(),
    }
}
