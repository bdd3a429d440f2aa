//! A repository out there at `git.test`, by HTTPS and by ssh, and the keys of whoever may come by ssh.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::succeed;
use crate::Caller;

/// Nothing of the machine's own settings takes part.
const SERVER: &str = "\
HostKey DIRECTORY/host
AuthorizedKeysFile DIRECTORY/keys/id.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
LogLevel ERROR
";

/// Whose the repository is, and with it the processes that serve it: a real sshd needs nothing of root's then.
const OWNER: Caller = Caller::Single;

/// A repository that can be cloned from and pushed to.
#[derive(Debug)]
pub struct Repository {
    directory: PathBuf,
}

impl Repository {
    /// Makes one with a commit on `main`, in the directory that `repository.py` serves from.
    pub(super) fn make(internet: &Path) -> Self {
        let directory = internet.join("git");
        fs::create_dir(&directory).unwrap();
        fs::create_dir(directory.join("keys")).unwrap();
        let repository = Self { directory };
        let key = |path: &str| {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(repository.path(path));
            succeed(&mut command, "");
        };
        key("host");
        key("keys/id");
        let host = fs::read_to_string(repository.path("host.pub")).unwrap();
        fs::write(repository.path("keys/known_hosts"), format!("git.test {host}")).unwrap();
        let settings = SERVER.replace("DIRECTORY", &repository.directory.display().to_string());
        fs::write(repository.path("sshd_config"), settings).unwrap();
        fs::write(repository.path("log"), "").unwrap();
        repository.git(&["init", "-q", "--bare", "-b", "main"], "");
        repository.git(&["config", "http.receivepack", "true"], "");
        let commit = "commit refs/heads/main\ncommitter world <world@git.test> 0 +0000\ndata 5\nfirst\n\
                      M 644 inline README\ndata 6\nhello\n\n";
        repository.git(&["fast-import", "--quiet"], commit);
        // Whoever is called for must be able to read it, inside as well.
        let id = fs::Permissions::from_mode(0o644);
        fs::set_permissions(repository.path("keys/id"), id).unwrap();
        let owner = format!("{}:{}", OWNER.uid(), OWNER.gid());
        succeed(Command::new("chown").args(["-R", &owner]).arg(&repository.directory), "");
        repository
    }

    /// Where it is by HTTPS.
    #[must_use]
    pub fn https(&self) -> String {
        "https://git.test/repo.git".to_owned()
    }

    /// Where it is by ssh.
    #[must_use]
    pub fn ssh(&self) -> String {
        format!("ssh://{}@git.test{}", OWNER.user(), self.path("repo.git").display())
    }

    /// A directory with the key `id`, with which its owner may come by ssh, and the `known_hosts` of a client.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.path("keys")
    }

    /// What is said first of the last commit of a branch; nothing if there is no such branch.
    #[must_use]
    pub fn last(&self, branch: &str) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "safe.directory=*", "--git-dir"]).arg(self.path("repo.git"));
        let output = command.args(["log", "-1", "--format=%s", branch, "--"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// What its servers complained about.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn git(&self, words: &[&str], stdin: &str) {
        let mut command = Command::new("git");
        succeed(command.arg("--git-dir").arg(self.path("repo.git")).args(words), stdin);
    }
}
