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
    /// What docker needs.
    image: Option<Image>,
}

impl Container {
    /// One of everyone who starts here.
    pub(crate) fn all(bundles: &Path) -> Vec<Self> {
        let mut all = Vec::new();
        for name in ["runc", "crun", "docker"] {
            let id = format!("agentbox-bench-{}", std::process::id());
            let mut container = Self { name, id, image: None };
            match container.start(&bundles.join(name)) {
                Ok(()) => all.push(container),
                Err(_) => eprintln!("note: {name} does not start here"),
            }
        }
        all
    }

    fn start(&mut self, bundle: &Path) -> Result<()> {
        make_bundle(bundle, &SLEEP)?;
        let mut start = Command::new(self.name);
        if self.name == "docker" {
            let image = self.image.insert(Image::make(bundle)?);
            start.args(["run", "--detach", "--name", &self.id]).args(image.options()).args(SLEEP);
        } else {
            start.args(["run", "--detach", "--bundle"]).arg(bundle).arg(&self.id);
        }
        succeed(&mut start)?;
        succeed(&mut self.exec()).map(drop)
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
        let end = if self.name == "docker" { "rm" } else { "delete" };
        let _ = quiet(Command::new(self.name).args([end, "--force", &self.id]).process_group(0)).status();
    }
}

/// An image of docker's with nothing in it but where the host's /usr goes; removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Image(String);

impl Image {
    /// From the root of a bundle.
    pub(crate) fn make(bundle: &Path) -> Result<Self> {
        let (root, archive) = (bundle.join("rootfs"), bundle.join("rootfs.tar"));
        succeed(Command::new("tar").arg("-C").arg(root).arg("-cf").arg(&archive).arg("."))?;
        let image = Self(format!("agentbox-bench-{}", std::process::id()));
        let imported = Command::new("docker")
            .args(["import", "-", &image.0])
            .stdin(Stdio::from(File::open(&archive)?))
            .output()
            .context("docker import")?;
        if !imported.status.success() {
            bail!("docker import: {}", String::from_utf8_lossy(&imported.stderr));
        }
        Ok(image)
    }

    /// What `docker run` is told of it.
    pub(crate) fn options(&self) -> [&str; 5] {
        ["--network", "none", "--volume", "/usr:/usr:ro", &self.0]
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = quiet(Command::new("docker").args(["rmi", "--force", &self.0]).process_group(0)).status();
    }
}
