//! A network of a test's own, in which everything that leaves the host is seen from the other side. One namespace
//! plays the host, where agentbox runs; the other plays everybody out there, at addresses of documentation. What is
//! where is listed in `world.py`, the names in `names.json`, the addresses of the host in `wires.rs`.
//!
//! It stands outside of every sandbox and of agentbox itself. It must never touch the machine's own network, and it
//! leaves nothing: the processes that hold the namespaces end when the test does, however that ends.

mod certificates;
mod repository;
mod seen;
mod wires;
mod world;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tempfile::TempDir;

pub use self::repository::Repository;
pub use self::seen::{Connection, Datagram, Packets, Question, Request, Seen};
use self::world::World;
use crate::{Agentbox, Caller, Finished};

const RESOLVER: &str = "nameserver 192.0.2.53\n";
const HOSTS: &str = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";

/// Two network namespaces and who serves in them. One for each test, as its records are of all that it saw. Only
/// root can make one. It goes when dropped.
#[derive(Debug)]
pub struct Internet {
    // The directory is the last to go.
    worlds: Mutex<Worlds>,
    host: u32,
    directory: TempDir,
}

#[derive(Debug)]
struct Worlds {
    host: World,
    outside: World,
}

impl Internet {
    /// One with the usual names.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it starts processes")]
    pub fn new() -> Self {
        Self::with_names(&Self::names())
    }

    /// One with these names: to each its `A`, `AAAA`, `CNAME`, `TTL`, and a `behaviour`, one of `timeout`,
    /// `servfail`, `nxdomain`, `truncate` over UDP, `flip` from one address to the next at each question, and `lie`,
    /// which answers what was not asked.
    #[must_use]
    pub fn with_names(names: &Value) -> Self {
        let directory = tempfile::Builder::new().prefix("agentbox-internet-").tempdir_in("/tmp").unwrap();
        let path = directory.path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        let separate = ["--net", "--mount", "--propagation", "private"];
        let host = World::start("host", &separate, path);
        let outside = World::start("internet", &["--net"], path);
        let mut worlds = Worlds { host, outside };
        // While both start.
        certificates::make(path);
        write(path, "names.json", &names.to_string());
        write(path, "resolv.conf", RESOLVER);
        write(path, "hosts", HOSTS);
        make_readable(&certificates::authority(path));
        worlds.each(|world| world.hear("here"));
        let host = worlds.host.pid();
        wires::connect(host, worlds.outside.pid());
        let (resolver, hosts) = (path.join("resolv.conf"), path.join("hosts"));
        wires::cover(host, &[(&resolver, "/etc/resolv.conf"), (&hosts, "/etc/hosts")]);
        worlds.each(|world| world.tell("begin"));
        worlds.each(|world| world.hear("ready"));
        Self { worlds: Mutex::new(worlds), host, directory }
    }

    /// The usual names, all below `test`, to which a test can add its own.
    #[must_use]
    pub fn names() -> Value {
        serde_json::from_str(include_str!("names.json")).unwrap()
    }

    /// The words before a command that let it run on the host of this network. They become the command, and its
    /// working directory is the root.
    #[must_use]
    pub fn prefix(&self) -> Vec<String> {
        let mut words = wires::enter(self.host, &["net", "mount"]);
        words.push("--".to_owned());
        words
    }

    /// The program as it ships, run on the host of this network.
    pub fn agentbox(&self, caller: Caller) -> Agentbox {
        Agentbox::shipped(caller).behind(self.prefix())
    }

    /// The certificate of the authority that vouches for the sites; everybody may read it.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        certificates::authority(self.directory.path())
    }

    /// A repository out there, of which there is one.
    #[must_use]
    pub fn repository(&self) -> Repository {
        Repository::make(self.directory.path())
    }

    /// The process that holds the host's namespaces.
    #[must_use]
    pub fn host_pid(&self) -> i32 {
        self.host.cast_signed()
    }

    /// The directory of this network's files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a command on the host of this network, as root and for no longer than a minute.
    #[must_use]
    pub fn run_in_host<I: IntoIterator<Item: AsRef<str>>>(&self, argv: I) -> Finished {
        let timeout = Path::new("/usr/bin/timeout");
        let mut command = Caller::Root.command_behind(&self.prefix(), timeout, &[]);
        command.arg("60").args(argv.into_iter().map(|word| word.as_ref().to_owned()));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or_default());
        Finished { code, stdout: output.stdout, stderr: output.stderr }
    }

    /// Nothing more comes to an address out there, and nobody is told so.
    pub fn cut(&self, address: &str) {
        self.route("add", address);
    }

    /// It is reached again.
    pub fn mend(&self, address: &str) {
        self.route("del", address);
    }

    fn route(&self, what: &str, address: &str) {
        let worlds = self.worlds.lock().unwrap_or_else(PoisonError::into_inner);
        wires::configure(worlds.outside.pid(), &format!("route {what} blackhole {address}/32 table local\n"));
    }

    /// Waits until both sides have written down all that has come to them.
    pub fn settle(&self) {
        let mut worlds = self.worlds.lock().unwrap_or_else(PoisonError::into_inner);
        worlds.each(|world| world.tell("settle"));
        worlds.each(|world| world.hear("settled"));
        // A world that stumbled may have missed something.
        worlds.each(|world| assert_eq!(world.errors(), ""));
    }

    /// What both sides have seen so far, once they have settled.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.settle();
        let read = |name: &str| fs::read_to_string(self.directory.path().join(name)).unwrap();
        Seen::read(&[read("internet.jsonl"), read("host.jsonl")])
    }
}

impl Worlds {
    /// Both do the same at the same time.
    fn each(&mut self, mut act: impl FnMut(&mut World)) {
        act(&mut self.host);
        act(&mut self.outside);
    }
}

/// Writes a file that everybody may read.
fn write(directory: &Path, name: &str, text: &str) {
    fs::write(directory.join(name), text).unwrap();
    make_readable(&directory.join(name));
}

fn make_readable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}

/// Runs a command that has to succeed, with this to read.
#[track_caller]
fn succeed(command: &mut Command, stdin: &str) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that does not read to the end says why.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
