//! Agentbox and its peers, each as a command line that starts a sandbox for a command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::geteuid;
use serde_json::{Value, json};

use crate::container::Image;
use crate::mapped::{self, Mapping, Waiting};
use crate::sandbox::succeed;
use crate::{directory, interrupt};

/// A program that starts a sandbox for one command.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    argv: Vec<String>,
    /// An OCI runtime takes its command from a bundle, which is made for /bin/true.
    fixed_command: bool,
    /// The first id of the user's ranges, where it has to be given its ids.
    ids: Option<u32>,
    /// What docker starts it from, for as long as it may.
    _image: Option<Arc<Image>>,
}

impl Contender {
    pub(crate) fn agentbox() -> Result<Self> {
        let program = directory()?.join("agentbox").display().to_string();
        let argv = [program.as_str(), "run", "--"].map(str::to_owned).to_vec();
        Ok(Self { name: "agentbox", argv, fixed_command: false, ids: None, _image: None })
    }

    /// The same namespaces and a comparable root, as its manual page shows it.
    pub(crate) fn bubblewrap() -> Self {
        let mut argv: Vec<String> =
            ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"]
                .map(str::to_owned)
                .into();
        for (target, path) in [("usr/bin", "/bin"), ("usr/lib", "/lib"), ("usr/lib64", "/lib64")] {
            argv.extend(["--symlink", target, path].map(str::to_owned));
        }
        let rest = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/workspace", "--"];
        argv.extend(rest.map(str::to_owned));
        Self { name: "bwrap", argv, fixed_command: false, ids: None, _image: None }
    }

    /// bubblewrap with the ids that agentbox gives a user with subuids; none for other users.
    pub(crate) fn bubblewrap_with_ids() -> Option<Self> {
        let user = std::env::var("USER").ok()?;
        let ranges = fs::read_to_string("/etc/subuid").ok()?;
        let line = ranges.lines().find(|line| line.split(':').next() == Some(&user))?;
        let first = line.split(':').nth(1)?.parse().ok()?;
        Some(Self { name: "bwrap given the same ids", ids: Some(first), ..Self::bubblewrap() })
    }

    /// The same with options of its own.
    pub(crate) fn with(mut self, options: &[&str]) -> Self {
        self.argv.splice(1..1, options.iter().map(|option| (*option).to_owned()));
        self
    }

    /// An OCI runtime on a bundle of the host's /usr, with the same limits.
    pub(crate) fn oci(name: &'static str, bundles: &Path) -> Result<Self> {
        let bundle = bundles.join(name);
        make_bundle(&bundle, &["/bin/true"])?;
        let bundle = bundle.display().to_string();
        let argv = [name, "run", "--bundle", &bundle, "agentbox-bench"].map(str::to_owned).to_vec();
        Ok(Self { name, argv, fixed_command: true, ids: None, _image: None })
    }

    /// docker, whose engine somebody has started, on the same root.
    fn docker(bundles: &Path) -> Result<Self> {
        let bundle = bundles.join("docker");
        make_bundle(&bundle, &["/bin/true"])?;
        let image = Image::make(&bundle)?;
        let limits = ["docker", "run", "--rm", "--memory", "4g", "--pids-limit", "512"];
        let argv = limits.into_iter().chain(image.options()).map(str::to_owned).collect();
        Ok(Self { name: "docker", argv, fixed_command: false, ids: None, _image: Some(Arc::new(image)) })
    }

    /// The whole command line for `command` inside.
    pub(crate) fn command(&self, command: &[&str]) -> Command {
        let mut whole = Command::new(&self.argv[0]);
        whole.args(&self.argv[1..]);
        if !self.fixed_command {
            whole.args(command);
        }
        whole.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        whole
    }

    /// The same command many times at once, with pipes to it and from it.
    pub(crate) fn start_many(&self, command: &[&str], count: usize) -> Result<Vec<Child>> {
        let piped = |whole: &mut Command| {
            whole.stdin(Stdio::piped()).stdout(Stdio::piped());
        };
        let Some(first) = self.ids else {
            let start = |_| {
                let mut whole = self.command(command);
                piped(&mut whole);
                Ok(whole.spawn()?)
            };
            return (0..count).map(start).collect();
        };
        // All of them first, and then what they wait for.
        let waiting = (0..count).map(|_| Waiting::start(command, piped)).collect::<Result<Vec<_>>>()?;
        let mapping = waiting.into_iter().map(|one| one.map(first)).collect::<Result<Vec<_>>>()?;
        mapping.into_iter().map(Mapping::go).collect()
    }

    /// One full cycle of /bin/true.
    pub(crate) fn cycle(&self) -> Result<Duration> {
        if let Some(first) = self.ids {
            interrupt::check()?;
            return mapped::cycle(first);
        }
        succeed(&mut self.command(&["/bin/true"])).with_context(|| self.name.to_owned())
    }

    /// Whether it works here at all.
    pub(crate) fn starts(&self) -> bool {
        self.cycle().is_ok()
    }
}

/// Everyone who can take part in cycles of /bin/true on this machine, as this user.
pub(crate) fn for_cycles(bundles: &Path) -> Result<Vec<Contender>> {
    let mut contenders = vec![Contender::agentbox()?, Contender::bubblewrap()];
    contenders.extend(Contender::bubblewrap_with_ids());
    if geteuid().is_root() {
        let others = [
            ("runc", Contender::oci("runc", bundles)),
            ("crun", Contender::oci("crun", bundles)),
            ("docker", Contender::docker(bundles)),
        ];
        for (name, contender) in others {
            match contender {
                Ok(contender) if contender.starts() => contenders.push(contender),
                _ => eprintln!("note: {name} does not start here"),
            }
        }
    }
    for contender in &contenders {
        contender.cycle()?;
    }
    Ok(contenders)
}

/// A bundle of the host's /usr for one command.
pub(crate) fn make_bundle(bundle: &Path, command: &[&str]) -> Result<()> {
    let root = bundle.join("rootfs");
    for directory in ["usr", "proc", "dev", "sys", "tmp"] {
        fs::create_dir_all(root.join(directory))?;
    }
    for (target, path) in [("usr/bin", "bin"), ("usr/lib", "lib"), ("usr/lib64", "lib64")] {
        let link: PathBuf = root.join(path);
        if !link.exists() {
            std::os::unix::fs::symlink(target, link)?;
        }
    }
    let specification = Command::new("runc").args(["spec", "--bundle"]).arg(bundle).output()?;
    let path = bundle.join("config.json");
    if !specification.status.success() && !path.exists() {
        bail!("runc spec failed");
    }
    let mut config: Value = serde_json::from_slice(&fs::read(&path)?)?;
    config["process"]["terminal"] = json!(false);
    config["process"]["args"] = json!(command);
    let usr = json!({"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]});
    if let Some(mounts) = config["mounts"].as_array_mut() {
        mounts.push(usr);
    }
    config["linux"]["resources"]["memory"] = json!({"limit": 4_294_967_296_i64});
    config["linux"]["resources"]["pids"] = json!({"limit": 512});
    config["linux"]["resources"]["cpu"] = json!({"quota": 400_000, "period": 100_000});
    fs::write(path, serde_json::to_vec(&config)?)?;
    Ok(())
}
