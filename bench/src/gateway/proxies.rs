//! The peers: proxies that an agent can be told to ask, each on the host of the network with what its package configures,
//! except that nothing is cached and every port may be asked for. Whoever is not installed here takes no part.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use super::process::Process;

/// The first process of a namespace, with which everything in it ends: so nobody is left whom a proxy has started.
const KEEP: &str = "\"$@\" >/dev/null & read line";

/// Who takes part, where installed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Proxy {
    Squid,
    Tinyproxy,
    Mitmproxy,
}

impl Proxy {
    pub(super) const ALL: [Self; 3] = [Self::Squid, Self::Tinyproxy, Self::Mitmproxy];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Squid => "squid",
            Self::Tinyproxy => "tinyproxy",
            Self::Mitmproxy => "mitmproxy",
        }
    }

    pub(super) fn address(self) -> SocketAddr {
        let port = match self {
            Self::Squid => 3128,
            Self::Tinyproxy => 8888,
            Self::Mitmproxy => 8081,
        };
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// Starts it behind these words; `files` is a directory for what it writes.
    pub(super) fn start(self, prefix: &[String], files: &Path) -> Result<Process> {
        let directory = files.join(self.name());
        fs::create_dir_all(&directory)?;
        let argv = self.argv(&directory)?;
        if !argv[0].exists() {
            bail!("'{}' is not installed", argv[0].display());
        }
        let mut command = Command::new(&prefix[0]);
        command.args(&prefix[1..]).args(["unshare", "--pid", "--fork", "--kill-child", "--"]);
        command.args(["sh", "-c", KEEP, "sh"]).args(argv).stderr(Stdio::null());
        Process::start(&mut command)
    }

    /// Its command line, once its configuration is written.
    fn argv(self, directory: &Path) -> Result<Vec<PathBuf>> {
        let file = directory.join("configuration");
        let place = directory.display();
        let address = self.address();
        match self {
            Self::Squid => {
                // It reads its configuration as root, and writes as the user of its package.
                let text = format!(
                    "http_port {address}\nhttp_access allow all\ncache deny all\npid_filename none\n\
                     access_log daemon:{place}/access.log squid\ncache_log {place}/cache.log\n\
                     coredump_dir {place}\npinger_enable off\nshutdown_lifetime 0 seconds\n"
                );
                fs::write(&file, text)?;
                fs::set_permissions(directory, fs::Permissions::from_mode(0o777))?;
                Ok(["/usr/sbin/squid".into(), "-N".into(), "-f".into(), file].into())
            }
            Self::Tinyproxy => {
                // It tells its stdout what it does: every line in a file would be brought to the disk first.
                let text = format!(
                    "Listen {}\nPort {}\nTimeout 600\nMaxClients 100\nLogLevel Info\n\
                     Allow 127.0.0.1\nViaProxyName \"tinyproxy\"\n",
                    address.ip(),
                    address.port()
                );
                fs::write(&file, text)?;
                Ok(["/usr/bin/tinyproxy".into(), "-d".into(), "-c".into(), file].into())
            }
            Self::Mitmproxy => {
                // Tunnels are left alone: reading what is in them takes it much longer still.
                let options = [
                    "--quiet".to_owned(),
                    format!("--listen-host={}", address.ip()),
                    format!("--listen-port={}", address.port()),
                    format!("--set=confdir={place}"),
                    "--ignore-hosts=.*".to_owned(),
                ];
                let program = crate::directory()?.join("mitmdump");
                Ok([program].into_iter().chain(options.map(PathBuf::from)).collect())
            }
        }
    }
}
