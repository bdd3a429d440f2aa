//! An authority of the tests' own: certificates that no system knows, made by openssl.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// One that vouches for registries of tests.
pub(crate) struct Authority {
    directory: TempDir,
}

/// A certificate and its key.
pub(crate) struct Issued {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

impl Authority {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("agentbox-authority-").tempdir_in("/tmp").unwrap();
        // Those who are only told about it read its certificate.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let authority = Self { directory };
        let mut command = authority.openssl("req");
        command.arg("-x509").args(KEY).args(["-days", "2", "-subj", "/CN=agentbox tests", "-out", "ca.crt"]);
        succeed(command.args(["-keyout", "ca.key"]));
        authority
    }

    fn openssl(&self, what: &str) -> Command {
        let mut command = Command::new("openssl");
        command.arg(what).current_dir(self.directory.path());
        command
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.path("ca.crt")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A certificate for names, as in `IP:0.0.0.0,DNS:localhost`.
    pub(crate) fn issue(&self, what: &str, names: &str) -> Issued {
        let [key, request, certificate] = ["key", "csr", "crt"].map(|kind| format!("{what}.{kind}"));
        let extensions = format!("{what}.ext");
        fs::write(self.path(&extensions), format!("subjectAltName={names}\n")).unwrap();
        let mut command = self.openssl("req");
        command.args(KEY).args(["-subj", "/CN=agentbox test", "-keyout", &key, "-out", &request]);
        succeed(&mut command);
        let mut command = self.openssl("x509");
        command.args(["-req", "-in", &request, "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"]);
        succeed(command.args(["-days", "2", "-extfile", &extensions, "-out", &certificate]));
        let issued = Issued { certificate: self.path(&certificate), key: self.path(&key) };
        fs::set_permissions(&issued.key, fs::Permissions::from_mode(0o644)).unwrap();
        issued
    }
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
