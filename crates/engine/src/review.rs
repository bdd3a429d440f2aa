//! Sandboxes that work on a directory of the owner's under review: the directory is looked at, made ready and handed to
//! the keeper, and the base is recorded beside the start by a process of its own.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use handover::LayeredOrder;
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
        let Workspace::Review(given) = &spec.workspace else { return Ok(None) };
        let owner = Owner::look_at(given, &self.directories.own())?;
        spec.workspace = Workspace::Review(owner.path().to_owned());
        Ok(Some(owner))
    }

    /// Makes the owner's directory ready, in the directory of a new sandbox.
    pub(crate) fn prepare(
        &self,
        kept: &Kept,
        id: &SandboxId,
        owner: Option<&Owner>,
    ) -> Result<Outliving, EngineError> {
        let directory = kept.directory().to_owned();
        let Some(owner) = owner else { return Ok(Outliving { directory, layered: None }) };
        let configuration = Configuration::read()?;
        let set =
            |setting: Option<crate::Setting<Vec<String>>>| setting.map(|it| it.value).unwrap_or_default();
        let hidden = SecretList::new(&set(configuration.workspace_hide), &set(configuration.workspace_show));
        let prepared = workspace::prepare(&Files::of(&directory), id, owner, &hidden)?;
        Ok(Outliving { directory, layered: Some(layered(owner.path(), prepared)) })
    }

    /// What was made ready when the sandbox was made.
    pub(crate) fn prepared(&self, kept: &Kept, spec: &SandboxSpec) -> Result<Outliving, EngineError> {
        let directory = kept.directory().to_owned();
        let Workspace::Review(owner) = &spec.workspace else {
            return Ok(Outliving { directory, layered: None });
        };
        let prepared = workspace::prepared(&Files::of(&directory))
            .map_err(|source| EngineError::Damaged { id: spec.id.to_string(), source })?;
        Ok(Outliving { directory, layered: Some(layered(owner, prepared)) })
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

    /// The one place where it is decided what stays of a sandbox whose only command has ended: one that changed nothing
    /// in the tree under review need not stay. Whether it stays.
    pub fn settle(&self, id: &SandboxId) -> Result<bool, EngineError> {
        let kept = self.kept(id);
        // What cannot be told is kept.
        let has_changes = workspace::has_changes(&Files::of(kept.directory())).unwrap_or(true);
        if !has_changes {
            self.remove(id)?;
        }
        Ok(has_changes)
    }
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

fn layered(owner: &Path, prepared: Prepared) -> LayeredOrder {
    LayeredOrder {
        owner: owner.to_owned(),
        stores: prepared.stores,
        covered: prepared.covered.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
    }
}
