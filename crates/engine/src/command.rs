//! The command to run inside, with an environment built from nothing: no key or socket of the caller's is in
//! it unless the owner names it.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use policy::{Root, SandboxSpec, Timeout, Tools, User};
use wire::{Exec, WindowSize};

/// How long after SIGTERM a command that ran out of time gets SIGKILL.
const GRACE_MILLISECONDS: u64 = 2000;
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A command for a sandbox.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program and its arguments, which may be any bytes but NUL.
    pub argv: Vec<OsString>,
    /// A terminal of this size, or three pipes.
    pub terminal: Option<WindowSize>,
    /// How long it may take.
    pub timeout: Option<Timeout>,
}

impl Command {
    /// The command as init takes it, in the sandbox of `spec`.
    #[must_use]
    pub fn exec(&self, spec: &SandboxSpec) -> Exec {
        let environment = environment(spec, self.terminal.is_some());
        let user = user(spec);
        Exec {
            argv: self.argv.iter().map(|argument| argument.as_bytes().to_vec().into()).collect(),
            environment: environment
                .into_iter()
                .map(|(name, value)| format!("{name}={value}").into_bytes().into())
                .collect(),
            workdir: spec.workdir.to_string().into_bytes().into(),
            uid: user.uid,
            gid: user.gid,
            terminal: self.terminal,
            timeout_ms: self.timeout.map_or(0, Timeout::milliseconds),
            grace_ms: GRACE_MILLISECONDS,
            detached: false,
            last: false,
            terminal_name: String::new(),
        }
    }
}

fn environment(spec: &SandboxSpec, on_terminal: bool) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::from(
        [("HOME", "/home/agent"), ("LANG", "C.UTF-8"), ("PATH", SYSTEM_PATH), ("USER", "agent")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    if on_terminal {
        // What the terminal can do is no secret, and programs draw by it.
        let terminal = env::var("TERM").unwrap_or_else(|_| "xterm-256color".to_owned());
        variables.insert("TERM".to_owned(), terminal);
    }
    if let (Root::Host(Tools::Owner), Some(home)) = (&spec.root, env::var_os("HOME").map(PathBuf::from)) {
        let mut path = jail::tool_path(&home, &env::var("PATH").unwrap_or_default());
        path.push(SYSTEM_PATH.to_owned());
        variables.insert("PATH".to_owned(), path.join(":"));
        let found = jail::tool_environment(&home);
        variables.extend(found.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    if spec.backend.has_own_kernel() {
        variables.extend(told_to_git());
    }
    inherit_weakened(&mut variables);
    let given = spec.environment.iter();
    variables.extend(given.map(|variable| (variable.name().to_owned(), variable.value().to_owned())));
    variables
}

/// What git is told on a kernel of the sandbox's own. It reads an index with many threads, which such a kernel is slower at
/// than at one after the other; and it lists every directory anew, for which such a kernel asks for each file in it.
fn told_to_git() -> impl Iterator<Item = (String, String)> {
    const SETTINGS: [(&str, &str); 2] = [("core.preloadIndex", "false"), ("core.untrackedCache", "true")];
    let named = |name: String, value: &str| (format!("GIT_CONFIG_{name}"), value.to_owned());
    let settings = SETTINGS.iter().enumerate().flat_map(move |(number, (key, value))| {
        [named(format!("KEY_{number}"), key), named(format!("VALUE_{number}"), value)]
    });
    settings.chain([named("COUNT".to_owned(), &SETTINGS.len().to_string())])
}

/// Where `program` is in the caller's own PATH, for the hint when it is not inside.
#[must_use]
pub fn find_outside(program: &OsStr) -> Option<PathBuf> {
    let is_executable = |path: &Path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program)).filter(|path| is_executable(path));
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|path| is_executable(path))
}

/// For the negative control of the environment's wall: everything of the caller's.
#[cfg(feature = "weaken")]
fn inherit_weakened(variables: &mut BTreeMap<String, String>) {
    if !jail::Weaken::current().keeps(policy::Wall::Environment) {
        variables.extend(env::vars());
    }
}

/// For the negative control of the agent's own wall: root inside.
#[cfg(feature = "weaken")]
fn user(spec: &SandboxSpec) -> User {
    let keeps = jail::Weaken::current().keeps(policy::Wall::NonRoot);
    if keeps { spec.user } else { User { uid: 0, gid: 0 } }
}

#[cfg(not(feature = "weaken"))]
const fn user(spec: &SandboxSpec) -> User {
    spec.user
}

#[cfg(not(feature = "weaken"))]
const fn inherit_weakened(_variables: &mut BTreeMap<String, String>) {}
