//! `diff`, `apply` and `discard`: what waits in a workspace under review, and what was done in one that was worked on
//! directly.

mod aftermath;
mod choose;
mod json;
mod pager;
mod show;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};
use std::process::ExitCode;

use engine::{Applied, Destination, Engine, EngineError};
use policy::SandboxId;
use serde_json::json;
use workspace::{Both, Commits, Order, ReviewError, Risky, Selection, exact_name, inert_name};

use crate::arguments::{Apply, Diff, Discard};
use crate::failure::Failure;
use crate::output::{id_text, print};
use crate::record::Form;
use crate::sandboxes::each;
use crate::stay::in_runtime;

pub(crate) use aftermath::{conclude, tell_of_the_end};

/// Where a merge has left something to do.
const UNRESOLVED: u8 = 1;

pub(crate) fn diff(diff: &Diff) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&diff.sandbox)?;
    let (review, unfetched) = engine.review(&id, &paths(&diff.paths)?)?;
    if let Some(error) = &unfetched {
        let _ = writeln!(io::stderr(), "warning: {error}; what they made of the files is shown");
    }
    if diff.json {
        let mut value = json::review(&review);
        value["problem"] = json!(unfetched.map(|error| error.to_string()));
        return print(&json::line(&value));
    }
    let colour = pager::colour();
    let text = match (diff.stat, diff.name_only) {
        (_, true) => show::names(&review),
        (true, _) => show::head(&review, colour) + &show::stat(&review),
        _ => show::head(&review, colour) + &show::lines(&review, colour),
    };
    pager::print(&text)
}

pub(crate) fn apply(apply: &Apply) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    let id = engine.find(&apply.sandbox)?;
    let paths = paths(&apply.paths)?;
    let mut order = Order {
        id: id.to_string(),
        selection: if paths.is_empty() { Selection::All } else { Selection::Paths(paths.clone()) },
        tree: apply.tree.clone(),
        risky: if apply.refuse_risky { Risky::Refused } else { Risky::Taken },
        commits: if apply.squash { Commits::Squashed } else { Commits::Kept },
    };
    let has_repository = engine.has_repository(&id)?;
    let is_direct = engine.is_direct(&id);
    if is_direct && (apply.worktree || apply.patch) {
        return Err(EngineError::from(ReviewError::Direct).into());
    }
    let destination = if is_direct {
        Destination::Branch(apply.branch.clone())
    } else if apply.worktree || (!has_repository && apply.branch.is_none()) {
        Destination::Worktree(if apply.three_way { Both::Merged } else { Both::Refused })
    } else {
        Destination::Branch(apply.branch.clone())
    };
    if !has_repository && !is_direct && !apply.worktree && apply.branch.is_none() {
        let _ = writeln!(io::stderr(), "there is no repository: the changes go into the directory itself");
    }
    if apply.patch {
        let (tree, changes) = engine.choices(&id, &paths)?;
        let pieces = choose::pieces(&changes)?;
        if pieces.is_empty() {
            let _ = writeln!(io::stderr(), "nothing was chosen, nothing is applied");
            return Ok(ExitCode::SUCCESS);
        }
        order.selection = Selection::Pieces(pieces);
        // What is chosen from has just been shown.
        order.tree = order.tree.or(Some(tree));
    }
    let applied = in_runtime(async { Ok(engine.apply(&id, &order, &destination).await?) })?;
    tell(&applied, Form::of(apply.json))
}

fn tell(applied: &Applied, form: Form) -> Result<ExitCode, Failure> {
    let names = |paths: &[Vec<u8>]| paths.iter().map(|path| exact_name(path)).collect::<Vec<_>>();
    match applied {
        Applied::Branch(made) if form == Form::Program => print(&json::line(&json!({
            "branch": made.branch, "commit": made.commit, "tree": made.tree, "commits": made.count,
        }))),
        Applied::Branch(made) => {
            print(&format!("{} {}\n", made.branch, made.commit))?;
            let commits = if made.count == 1 { "commit" } else { "commits" };
            let _ = writeln!(
                io::stderr(),
                "{} {commits} on a new branch; take it with `git merge {}`",
                made.count,
                made.branch
            );
            Ok(ExitCode::SUCCESS)
        }
        Applied::Worktree(brought) => {
            if form == Form::Program {
                print(&json::line(&json!({
                    "files": brought.count,
                    "conflicts": names(&brought.conflicts),
                    "submodules": names(&brought.submodules),
                })))?;
            } else {
                print(&format!("{} changed in your directory\n", count(brought.count)))?;
            }
            for path in &brought.submodules {
                let path = inert_name(path);
                let _ =
                    writeln!(io::stderr(), "left alone  {path}: a submodule; a branch has its new commit");
            }
            for path in &brought.conflicts {
                let _ = writeln!(io::stderr(), "conflict    {}", inert_name(path));
            }
            if brought.conflicts.is_empty() {
                return Ok(ExitCode::SUCCESS);
            }
            let _ = writeln!(io::stderr(), "hint: resolve what is marked, and look for NAME.agentbox");
            Ok(ExitCode::from(UNRESOLVED))
        }
    }
}

fn count(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

pub(crate) fn discard(discard: &Discard) -> Result<ExitCode, Failure> {
    let engine = Engine::open()?;
    each(&engine, &discard.sandboxes, |id: &SandboxId| {
        engine.discard(id)?;
        print(&id_text(id, Form::of(discard.json)))
    })
}

/// Paths from the top of the workspace, without dots.
fn paths(texts: &[OsString]) -> Result<Vec<Vec<u8>>, Failure> {
    let plain = |text: &OsString| {
        let mut parts = Vec::new();
        for part in Path::new(text).components() {
            match part {
                Component::CurDir => {}
                Component::Normal(part) => parts.push(part.as_bytes()),
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    let shown = inert_name(text.as_bytes());
                    return Err(Failure::new(format!("'{shown}' is not below the workspace")).hint(
                        "write paths from the top of the workspace, as `agentbox diff --name-only` does",
                    ));
                }
            }
        }
        Ok(parts.join(&b'/'))
    };
    texts.iter().map(plain).collect()
}
