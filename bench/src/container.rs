//! Containers of others that stay, to compare an exec with. One that does not start here takes no part.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::contender::make_bundle;
use crate::sandbox::{quiet, succeed};

/// Long enough for every measurement.
const SLEEP: [&str; 2] = ["/bin/sleep", "3600"];

/// One that runs; removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) name: &'static str,
    id: String,
}

impl Container {
    /// One of everyone who starts here.
    pub(crate) fn all(bundles: &Path) -> Vec<Self> {
        let mut all = Vec::new();
        for name in ["runc", "crun", "docker"] {
            let container = Self { name, id: format!("agentbox-bench-{}", std::process::id()) };
            match container.start(&bundles.join(name)) {
                Ok(()) => all.push(container),
                Err(_) => eprintln!("note: {name} does not start here"),
            }
        }
        all
    }

    fn start(&self, bundle: &Path) -> Result<()> {
        make_bundle(bundle, &SLEEP)?;
        let mut start = Command::new(self.name);
        if self.name == "docker" {
            start.args(["run", "--detach", "--network", "none", "--name", &self.id]);
            start.args(["--volume", "/usr:/usr:ro", &self.image(&bundle.join("rootfs"))?]).args(SLEEP);
        } else {
            start.args(["run", "--detach", "--bundle"]).arg(bundle).arg(&self.id);
        }
        succeed(&mut start)?;
        succeed(&mut self.exec()).map(drop)
    }

    /// An image with nothing in it but where the host's /usr goes.
    fn image(&self, root: &Path) -> Result<String> {
        let path = root.with_extension("tar");
        succeed(Command::new("tar").arg("-C").arg(root).arg("-cf").arg(&path).arg("."))?;
        let imported = Command::new(self.name)
            .args(["import", "-", &self.id])
            .stdin(Stdio::from(File::open(&path)?))
            .output()
            .context("docker import")?;
        if !imported.status.success() {
            bail!("docker import: {}", String::from_utf8_lossy(&imported.stderr));
        }
        Ok(self.id.clone())
    }

    /// /bin/true in it.
    pub(crate) fn exec(&self) -> Command {
        let mut command = Command::new(self.name);
        command.args(["exec", &self.id, "/bin/true"]);
        command
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let ends: &[&[&str]] = match self.name {
            "docker" => &[&["rm", "--force"], &["rmi", "--force"]],
            _ => &[&["delete", "--force"]],
        };
        for end in ends {
            let _ = quiet(Command::new(self.name).args(*end).arg(&self.id).process_group(0)).status();
        }
    }
}
