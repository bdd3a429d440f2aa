//! Sandboxes that work on a directory of the owner's: the directory is looked at, made ready and handed to the keeper. Under
//! review the base is recorded beside the start by a process of its own, and before it where the directory itself is
//! worked on.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use handover::{TreeOrder, Way};
use policy::{SandboxId, SandboxSpec, Workspace};
use workspace::{Files, Owner, Prepared, SecretList};

use crate::configuration::Configuration;
use crate::error::EngineError;
use crate::kept::Kept;
use crate::spawn::own_command;
use crate::start::{Engine, Outliving};

/// The word that our own program is started with to record what a tree was at the start.
pub const RECORD_BASE: &str = "record-base";

impl Engine {
    /// Looks at the owner's directory, where there is one, and writes down where it really is.
    pub(crate) fn look_at_workspace(&self, spec: &mut SandboxSpec) -> Result<Option<Owner>, EngineError> {
        let Some(given) = spec.workspace.directory() else { return Ok(None) };
        let owner = Owner::look_at(given, &self.directories.own())?;
        spec.workspace = spec.workspace.at(owner.path());
        Ok(Some(owner))
    }

    /// Makes the owner's directory ready, in the directory of a new sandbox.
    pub(crate) fn prepare(
        &self,
        kept: &Kept,
        spec: &SandboxSpec,
        owner: Option<&Owner>,
    ) -> Result<Outliving, EngineError> {
        let directory = kept.directory().to_owned();
        let Some(owner) = owner else { return Ok(Outliving { directory, tree: None }) };
        let (files, hidden) = (Files::of(&directory), hidden()?);
        let tree = if let Workspace::Direct(_) = spec.workspace {
            let prepared = workspace::prepare_direct(&files, &spec.id, owner, &hidden)?;
            // Not beside the start: nobody could tell afterwards what it was.
            workspace::record_base(&files)?;
            direct(owner.path(), prepared)
        } else {
            layered(owner.path(), workspace::prepare(&files, &spec.id, owner, &hidden)?)
        };
        Ok(Outliving { directory, tree: Some(tree) })
    }

    /// What was made ready when the sandbox was made. A tree that is itself inside is looked at anew: what is there by
    /// now has to be covered.
    pub(crate) fn prepared(&self, kept: &Kept, spec: &SandboxSpec) -> Result<Outliving, EngineError> {
        let directory = kept.directory().to_owned();
        let files = Files::of(&directory);
        let tree = match &spec.workspace {
            Workspace::Empty => None,
            Workspace::Review(owner) => {
                let prepared = workspace::prepared(&files)
                    .map_err(|source| EngineError::Damaged { id: spec.id.to_string(), source })?;
                Some(layered(owner, prepared))
            }
            Workspace::Direct(owner) => {
                let owner = Owner::look_at(owner, &self.directories.own())?;
                let prepared = workspace::prepare_direct(&files, &spec.id, &owner, &hidden()?)?;
                workspace::record_base(&files)?;
                Some(direct(owner.path(), prepared))
            }
        };
        Ok(Outliving { directory, tree })
    }

    /// Has the base recorded by a process that outlives this one. Where it cannot be started, whoever needs the base
    /// first records it.
    pub(crate) fn record_base_beside(&self, kept: &Kept) {
        let Ok(mut command) = own_command(RECORD_BASE) else { return };
        command.arg(kept.directory()).stdin(Stdio::null());
        // Where the owner's own settings for git are: how files are compared, and what is ignored.
        for name in ["HOME", "XDG_CONFIG_HOME"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        if let Ok(mut child) = command.spawn() {
            // A command that stays would keep it as a zombie.
            std::thread::spawn(move || child.wait());
        }
    }

    /// The one place where it is decided what stays of a sandbox whose only command has ended: one that wrote nothing to the
    /// tree under review need not stay.
    pub fn settle(&self, id: &SandboxId) -> Result<Settled, EngineError> {
        let files = Files::of(self.kept(id).directory());
        // What cannot be told is kept.
        if !workspace::has_changes(&files).unwrap_or(true) {
            self.remove(id)?;
            return Ok(Settled::Gone);
        }
        // The base may still be being recorded, which is waited for here.
        let waits = workspace::record_base(&files).and_then(|()| workspace::waits(&files));
        Ok(if matches!(waits, Ok(Some(false))) { Settled::Ignored } else { Settled::Waiting })
    }
}

/// What a sandbox is whose only command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Nothing was written, and it is gone.
    Gone,
    /// Only what git does not look at was written.
    Ignored,
    /// Changes wait.
    Waiting,
}

/// The whole life of the process that records the base: `arguments` are those after its word.
#[must_use]
pub fn record_base(mut arguments: impl Iterator<Item = impl AsRef<OsStr>>) -> ExitCode {
    // Away from the caller's terminal: a Ctrl-C there is not for it.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"agentbox-base");
    let Some(directory) = arguments.next() else { return ExitCode::FAILURE };
    record(&Files::of(Path::new(directory.as_ref())))
}

/// Where the base is recorded.
fn record(files: &Files) -> ExitCode {
    match workspace::record_base(files) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever needs it first tries again, and is told why.
        Err(_) => ExitCode::FAILURE,
    }
}

/// What the owner wants hidden.
fn hidden() -> Result<SecretList, EngineError> {
    let configuration = Configuration::read()?;
    let set = |setting: Option<crate::Setting<Vec<String>>>| setting.map(|it| it.value).unwrap_or_default();
    Ok(SecretList::new(&set(configuration.workspace_hide), &set(configuration.workspace_show)))
}

fn layered(owner: &Path, prepared: Prepared) -> TreeOrder {
    let Prepared { stores, covered, .. } = prepared;
    TreeOrder { owner: owner.to_owned(), stores, covered: shown(&covered), way: Way::Layered }
}

fn direct(owner: &Path, prepared: Prepared) -> TreeOrder {
    let Prepared { stores, covered, covers } = prepared;
    TreeOrder { owner: owner.to_owned(), stores, covered: shown(&covered), way: Way::Direct(covers) }
}

fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}
