//! A network of the measurement's own: one namespace plays the host, where agentbox and its peers run, the other the
//! internet, with a cable in between. The machine's own network is never touched. Both go with the processes that hold
//! them.

use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::process::Process;
use super::{SERVERS, own_program};

/// The one site out there, at an address of documentation, and its name.
pub(super) const SITE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 10);
pub(super) const NAME: &str = "site.test";

const PATIENCE: Duration = Duration::from_secs(10);

const CABLE: &str = "\
link set lo up
link add wan type veth peer name wan netns INTERNET
";

const INTERNET: &str = "\
link set lo up
address add 192.0.2.254/24 dev wan
address add 203.0.113.10/32 dev lo
link set wan up
";

const HOST: &str = "\
address add 192.0.2.1/24 dev wan
link set wan up
route add default via 192.0.2.254 dev wan
";

/// What the host of this network has where the machine has its own.
const COVERED: [(&str, &str); 3] = [
    ("/etc/resolv.conf", "nameserver 192.0.2.254\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n"),
];

/// Both namespaces, for as long as it lives.
#[derive(Debug)]
pub(super) struct Network {
    host: Process,
    _internet: Process,
}

impl Network {
    /// Makes it; `files` is a directory for what it needs.
    pub(super) fn make(files: &Path) -> Result<Self> {
        let mut host = Command::new("unshare");
        host.args(["--net", "--mount", "--propagation", "private", "--", "cat"]);
        let mut host = Process::start(&mut host)?;
        // What comes back has been through cat, which is there only after the namespaces are.
        host.ask("here", PATIENCE).context("cannot make a network namespace")?;
        let mut internet = Command::new("unshare");
        internet.args(["--net", "--"]).arg(own_program()?).arg(SERVERS);
        let mut internet = Process::start(&mut internet)?;
        internet.hear(PATIENCE).context("the servers do not start")?;
        configure(host.id(), &CABLE.replace("INTERNET", &internet.id().to_string()))?;
        configure(internet.id(), INTERNET)?;
        configure(host.id(), HOST)?;
        for (path, text) in COVERED.iter().filter(|(path, _)| Path::new(path).exists()) {
            let file = files.join(Path::new(path).file_name().context("no name")?);
            fs::write(&file, text)?;
            let words = enter(host.id(), &["mount"]);
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).args(["mount", "--no-mtab", "--bind"]).arg(&file).arg(path);
            succeed(&mut command, "")?;
        }
        Ok(Self { host, _internet: internet })
    }

    /// The words before a command that let it run on the host of this network.
    pub(super) fn prefix(&self) -> Vec<String> {
        enter(self.host.id(), &["net", "mount"])
    }
}

/// The words that let a command run in these namespaces of a process.
fn enter(process: u32, kinds: &[&str]) -> Vec<String> {
    let mut words = vec!["nsenter".to_owned(), format!("--target={process}")];
    words.extend(kinds.iter().map(|kind| format!("--{kind}")));
    words.push("--".to_owned());
    words
}

fn configure(process: u32, commands: &str) -> Result<()> {
    let words = enter(process, &["net"]);
    succeed(Command::new(&words[0]).args(&words[1..]).args(["ip", "-batch", "-"]), commands)
}

/// Runs a command to its good end, with this to read.
fn succeed(command: &mut Command, stdin: &str) -> Result<()> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    child.stdin.take().context("no stdin")?.write_all(stdin.as_bytes())?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
