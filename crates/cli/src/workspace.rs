//! What is said of a workspace that is a directory of the owner's.

use std::fs;
use std::io::Write as _;

use engine::Settled;
use policy::{SandboxId, Workspace};

use crate::failure::escape;

/// Says where the tree is not: tools that have noted down its own path would miss it.
pub(crate) fn say_where(workspace: &Workspace) {
    let Some(given) = workspace.directory() else { return };
    let Ok(path) = fs::canonicalize(given) else { return };
    if !jail::shows_at_its_own_path(&path) {
        let path = escape(&path.display().to_string());
        let said = format!("left out  {path}: inside, the workspace is at /workspace alone\n");
        let _ = std::io::stderr().write_all(said.as_bytes());
    }
}

/// Says what a command has left, and what can be done with it.
pub(crate) fn say_what_is_left(id: &SandboxId, settled: Settled) {
    let said = match settled {
        Settled::Gone => return,
        Settled::Ignored => {
            format!("nothing to take: only what git ignores was written; `agentbox rm {id}` forgets it\n")
        }
        Settled::Waiting => {
            format!("changes wait: `agentbox diff {id}` shows them, `agentbox apply {id}` takes them\n")
        }
    };
    let _ = std::io::stderr().write_all(said.as_bytes());
}
