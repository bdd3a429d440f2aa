//! A configuration of docker's, as `docker login` leaves it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::Agentbox;

use crate::place::Place;

/// A directory of the caller's with `config.json` in it, and helpers beside.
pub(crate) struct Docker<'a> {
    place: &'a Place,
    directory: PathBuf,
}

impl<'a> Docker<'a> {
    pub(crate) fn new(place: &'a Place) -> Self {
        let directory = place.path("docker");
        fs::create_dir_all(&directory).unwrap();
        open(&directory, 0o755);
        Self { place, directory }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.directory.join("config.json")
    }

    pub(crate) fn write(&self, text: &str) {
        fs::write(self.file(), text).unwrap();
        open(&self.file(), 0o644);
    }

    /// What stands there after a login.
    #[expect(clippy::unused_self, reason = "it is docker that writes it so")]
    pub(crate) fn password(&self, host: &str, password: &str) -> String {
        let auth = STANDARD.encode(format!("me:{password}"));
        format!(r#"{{"auths":{{"{host}":{{"auth":"{auth}"}}}}}}"#)
    }

    /// A helper that knows one host.
    pub(crate) fn helper(&self, helper: &str, host: &str, user: &str, secret: &str) {
        let path = self.directory.join(format!("docker-credential-{helper}"));
        let script = format!(
            "#!/bin/sh\nread server\n[ \"$1 $server\" = \"get {host}\" ] || exit 1\n\
             echo '{{\"Username\":\"{user}\",\"Secret\":\"{secret}\"}}'\n"
        );
        fs::write(&path, script).unwrap();
        open(&path, 0o755);
    }

    /// A caller who has it.
    pub(crate) fn agentbox(&self) -> Agentbox {
        let path = format!("{}:/usr/bin:/bin", self.directory.display());
        let directory = self.directory.display().to_string();
        self.place.agentbox().env("DOCKER_CONFIG", &directory).env("PATH", &path)
    }
}

fn open(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
