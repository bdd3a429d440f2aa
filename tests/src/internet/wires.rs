//! How the two namespaces of the fixture are connected, and which files the host's has that the machine has not.

use std::path::Path;
use std::process::Command;

use super::succeed;

/// The cables: `wan` to everybody, `lan` to a neighbour.
const CABLES: &str = "\
link set lo up
link add wan type veth peer name wan netns OUTSIDE
link add lan type veth peer name lan netns OUTSIDE
";

/// Every address of two networks of documentation answers, whether or not somebody listens there; one of them
/// swallows all.
const OUTSIDE: &str = "\
link set lo up
address add 192.0.2.254/24 dev wan
address add 192.0.2.53/24 dev wan
address add 2001:db8:0:1::fe/64 dev wan nodad
address add 10.7.0.9/24 dev lan
address add 169.254.169.254/32 dev lo
address add 100.64.0.9/32 dev lo
link set wan up
link set lan up
route add local 203.0.113.0/24 dev lo table local
route add local 198.51.100.0/24 dev lo table local
route add local 2001:db8:0:2::/64 dev lo table local
route add blackhole 203.0.113.66/32 table local
";

const HOST: &str = "\
address add 192.0.2.1/24 dev wan
address add 2001:db8:0:1::1/64 dev wan nodad
address add 10.7.0.1/24 dev lan
link set wan up
link set lan up
route add default via 192.0.2.254 dev wan
route add default via 2001:db8:0:1::fe dev wan
";

/// The words that let a command run in the namespaces of a process.
pub(super) fn enter(pid: u32, kinds: &[&str]) -> Vec<String> {
    let mut words = vec!["/usr/bin/nsenter".to_owned()];
    words.extend(kinds.iter().map(|kind| {
        let file = if *kind == "mount" { "mnt" } else { kind };
        format!("--{kind}=/proc/{pid}/ns/{file}")
    }));
    words
}

/// Connects the network namespaces of two processes.
pub(super) fn connect(host: u32, outside: u32) {
    configure(host, &CABLES.replace("OUTSIDE", &outside.to_string()));
    configure(outside, OUTSIDE);
    configure(host, HOST);
}

pub(super) fn configure(pid: u32, commands: &str) {
    let words = enter(pid, &["net"]);
    succeed(Command::new(&words[0]).args(&words[1..]).args(["--", "ip", "-batch", "-"]), commands);
}

/// Puts files over those of the machine's, in the mount namespace of a process. A link is followed.
pub(super) fn cover(host: u32, files: &[(&Path, &str)]) {
    for (file, path) in files {
        let words = enter(host, &["mount"]);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["--", "mount", "--no-mtab", "--bind"]).arg(file).arg(path);
        succeed(&mut command, "");
    }
}
