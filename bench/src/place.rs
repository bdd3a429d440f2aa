//! Where the sandboxes of one user are during a measurement: a state and a runtime directory of their own, and room for
//! files on the same file system. All of it goes in the end, and the sandboxes with it.
//!
//! Root's runtime directory is always below /run; `run.sh` mounts a fresh one there for us alone.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::directory;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// One user's place, made and removed by root.
#[derive(Debug)]
pub(crate) struct Place {
    caller: Caller,
    directory: PathBuf,
    /// What a login session gives it, in memory.
    runtime: PathBuf,
}

/// Who calls a program, and with which environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// Another user than the one who measures.
    user: Option<(u32, u32)>,
    /// The whole environment; none leaves it as it is.
    environment: Option<Vec<(&'static str, String)>>,
    /// The words before a program, where it runs somewhere else.
    prefix: Vec<String>,
}

impl Caller {
    /// A command of this caller's.
    pub(crate) fn command(&self, program: &str) -> Command {
        let words: Vec<&str> = self.prefix.iter().map(String::as_str).chain([program]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        if let Some(environment) = &self.environment {
            command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        }
        command
    }

    /// The same caller behind these words, which only root may use.
    pub(crate) fn behind(&self, prefix: Vec<String>) -> Self {
        Self { prefix, ..self.clone() }
    }

    /// Our own program, called so.
    pub(crate) fn agentbox(&self, arguments: &[&str]) -> Result<Command> {
        let program = directory()?.join("agentbox").display().to_string();
        let mut command = self.command(&program);
        command.args(arguments);
        Ok(command)
    }
}

impl Place {
    /// Makes the place of a user who is in /etc/passwd.
    pub(crate) fn make(user: &str) -> Result<Self> {
        let users = fs::read_to_string("/etc/passwd")?;
        let fields: Vec<&str> = users
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
            .find(|fields| fields.first() == Some(&user))
            .with_context(|| format!("there is no user '{user}'"))?;
        let (uid, gid) = (fields[2].parse()?, fields[3].parse()?);
        let here = directory()?;
        let (directory, runtime) = (here.join(user), here.join("run").join(user));
        let path = |name: &str| directory.join(name).display().to_string();
        let environment = vec![
            ("AGENTBOX_HOME", path("state")),
            ("HOME", fields[5].to_owned()),
            ("PATH", format!("{PATH}:{}", crate::gvisor::TOOLS)),
            ("TMPDIR", path("files")),
            ("USER", user.to_owned()),
            ("XDG_RUNTIME_DIR", runtime.display().to_string()),
        ];
        fs::create_dir_all(here.join("run"))?;
        for path in [directory.clone(), directory.join("files"), runtime.clone()] {
            DirBuilder::new().mode(0o700).create(&path)?;
            chown(&path, Some(uid), Some(gid))?;
        }
        let user = (uid != 0).then_some((uid, gid));
        let caller = Caller { user, environment: Some(environment), prefix: Vec::new() };
        Ok(Self { caller, directory, runtime })
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The state directory of this user's sandboxes.
    pub(crate) fn state(&self) -> PathBuf {
        self.directory.join("state")
    }

    fn remove(&self) -> Result<()> {
        let listed = self.caller.agentbox(&["ls", "--all", "--quiet"])?.process_group(0).output()?;
        let ids = String::from_utf8(listed.stdout)?;
        let ids: Vec<&str> = ids.lines().collect();
        if !ids.is_empty() {
            // Not in our own process group: who presses Ctrl-C twice must not keep it from its work.
            self.caller.agentbox(&["rm", "--force"])?.args(ids).process_group(0).output()?;
        }
        fs::remove_dir_all(&self.runtime)?;
        Ok(fs::remove_dir_all(&self.directory)?)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("warning: '{}' is left: {error:#}", self.directory.display());
        }
    }
}
