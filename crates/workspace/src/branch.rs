//! Takes changes as a new branch of the owner's repository. Their checkout and their index are not touched; objects are
//! added, and then one ref is made, which is there or not.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Stdio;

use failpoint::Point;

use crate::commits;
use crate::error::ReviewError;
use crate::git::{Git, GitError, Said};
use crate::preferences::Preferences;
use crate::record::{Files, Repository};
use crate::review::mark_applied;
use crate::store::Store;
use crate::target::{Commits, Order, Selection, Target};

/// What became of an apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branched {
    /// The branch.
    pub branch: String,
    /// Its last commit.
    pub commit: String,
    /// The tree of that.
    pub tree: String,
    /// How many commits are new.
    pub count: usize,
}

/// Takes the changes as a branch. All or nothing.
pub fn apply_to_branch(files: &Files, order: &Order, branch: &str) -> Result<Branched, ReviewError> {
    check_name(branch)?;
    let target = Target::of(files, order)?;
    let store = &target.store;
    let Some(repository) = &store.recorded.repository else {
        return Err(ReviewError::NoRepository(store.recorded.owner.clone()));
    };
    let name = format!("refs/heads/{branch}");
    let committer = Committer::of(store)?;
    let owners = committer.sign(Git::new(&repository.git_dir)?).writing_as(writer(&repository.common_dir));
    if owners.run(["rev-parse", "--verify", "--quiet", &name]).is_ok() {
        return Err(ReviewError::BranchExists(branch.to_owned()));
    }
    let (tip, count) = commit(&target, order, &committer)?;
    send(store, repository, &owners, &tip)?;
    failpoint::pass(Point::ReviewObjectsStored);
    set(&owners, branch, &tip, &order.id)?;
    if matches!(order.selection, Selection::All) {
        mark_applied(store, &target.snapshot.tree)?;
    }
    Ok(Branched { branch: branch.to_owned(), commit: tip, tree: target.tree, count })
}

/// Makes the ref, which is there then or not.
pub(crate) fn set(owners: &Git, branch: &str, tip: &str, id: &str) -> Result<(), ReviewError> {
    let name = format!("refs/heads/{branch}");
    let none = "0".repeat(tip.len());
    let message = format!("agentbox: apply {id}");
    owners
        .run(["update-ref", "--create-reflog", "-m", &message, "--no-deref", &name, tip, &none])
        .map_err(|error| unusable(owners, branch, &name, error))?;
    Ok(())
}

/// Refuses what cannot be the name of a branch.
pub(crate) fn check_name(branch: &str) -> Result<(), ReviewError> {
    if is_branch(branch) {
        return Ok(());
    }
    Err(ReviewError::BadBranch(crate::inert::inert_name(branch.as_bytes())))
}

/// Why a ref could not be made.
fn unusable(owners: &Git, branch: &str, name: &str, error: GitError) -> ReviewError {
    if owners.run(["rev-parse", "--verify", "--quiet", name]).is_ok() {
        return ReviewError::BranchExists(branch.to_owned());
    }
    // Another branch has the name of a directory that this one needs, or the other way round.
    let parts: Vec<&str> = branch.split('/').collect();
    let is_taken = (1..parts.len()).any(|count| {
        let above = format!("refs/heads/{}", parts.get(..count).unwrap_or_default().join("/"));
        owners.run(["rev-parse", "--verify", "--quiet", &above]).is_ok()
    });
    if is_taken { ReviewError::BadBranch(branch.to_owned()) } else { error.into() }
}

/// Makes the commits in our own store: the last one, and how many there are.
fn commit(target: &Target, order: &Order, committer: &Committer) -> Result<(String, usize), ReviewError> {
    let (store, base) = (&target.store, &target.base);
    let git = committer.sign(store.git()?);
    let make = |tree: &str, parent: Option<&str>, subject: &str| {
        let message = format!("{subject}\n\nAgentbox: {}\n", order.id);
        let words = ["commit-tree", tree].into_iter().chain(parent.into_iter().flat_map(|it| ["-p", it]));
        let printed = git.run_with(words, message.into_bytes())?;
        Ok::<String, GitError>(String::from_utf8_lossy(&printed).trim().to_owned())
    };
    let is_whole = matches!(order.selection, Selection::All) && order.commits == Commits::Kept;
    if let Some(tip) = commits::accepted(store).filter(|_| is_whole) {
        let count = commits::list(store, &git, &tip)?.len();
        if git.line(["rev-parse", &format!("{tip}^{{tree}}")])? == target.tree {
            return Ok((tip, count));
        }
        let last = make(&target.tree, Some(&tip), "Uncommitted changes of an agent")?;
        return Ok((last, count + 1));
    }
    let mut parent = store.base_commit().map(str::to_owned);
    let mut count = 1;
    let began_with = match &parent {
        Some(commit) => git.line(["rev-parse", &format!("{commit}^{{tree}}")])?,
        None => String::new(),
    };
    if began_with != base.tree && !base.listing.entries().is_empty() {
        // The owner's own work at the start comes first, so that the agent's stands alone.
        parent = Some(make(&base.tree, parent.as_deref(), "Uncommitted work when the sandbox began")?);
        count += 1;
    }
    Ok((make(&target.tree, parent.as_deref(), "Changes of an agent")?, count))
}

/// Adds what the owner's repository lacks as one pack.
pub(crate) fn send(
    store: &Store,
    repository: &Repository,
    owners: &Git,
    tip: &str,
) -> Result<(), ReviewError> {
    let run = GitError::Run;
    let words = ["pack-objects", "-q", "--revs", "--thin", "--stdout", "--delta-base-offset"];
    let mut packing = store.git()?.command(words);
    packing.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut packing = packing.spawn().map_err(run)?;
    let mut wanted = format!("{tip}\n");
    if let Some(base) = &repository.head.commit {
        wanted.push_str(&format!("^{base}\n"));
    }
    let writer = crate::git::feed(&mut packing, wanted.into_bytes());
    let mut taking = owners.command(["index-pack", "--stdin", "--fix-thin"]);
    taking.stdin(packing.stdout.take().map_or_else(Stdio::null, Stdio::from)).stderr(Stdio::piped());
    let taken = taking.spawn().and_then(std::process::Child::wait_with_output);
    // Only now: while this side of the pipe is open, the other does not see its end.
    drop(taking);
    let packed = packing.wait_with_output().map_err(run)?;
    drop(writer.map(std::thread::JoinHandle::join));
    let taken = taken.map_err(run)?;
    for (what, output) in [("pack-objects", packed), ("index-pack", taken)] {
        if !output.status.success() {
            let source = Said::from_bytes(&output.stderr);
            return Err(GitError::Failed { what: what.to_owned(), source }.into());
        }
    }
    Ok(())
}

/// Whose files root writes in somebody's repository: theirs. Anybody else writes their own.
pub(crate) fn writer(directory: &Path) -> Option<(u32, u32)> {
    let metadata = fs::metadata(directory).ok()?;
    let is_foreign = rustix::process::geteuid().is_root() && metadata.uid() != 0;
    is_foreign.then(|| (metadata.uid(), metadata.gid()))
}

/// Who makes commits of ours: the owner.
pub(crate) struct Committer {
    name: String,
    mail: String,
}

impl Committer {
    pub(crate) fn of(store: &Store) -> Result<Self, ReviewError> {
        let preferences = Preferences::read(&store.recorded)?;
        let name = preferences.name.unwrap_or_else(|| "agentbox".to_owned());
        Ok(Self { name, mail: preferences.mail.unwrap_or_else(|| "agentbox@localhost".to_owned()) })
    }

    /// git that commits as them.
    pub(crate) fn sign(&self, git: Git) -> Git {
        git.variable("GIT_AUTHOR_NAME", &self.name)
            .variable("GIT_AUTHOR_EMAIL", &self.mail)
            .variable("GIT_COMMITTER_NAME", &self.name)
            .variable("GIT_COMMITTER_EMAIL", &self.mail)
    }
}

/// Whether git takes a name for a branch.
fn is_branch(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let is_odd = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    name.split('/').all(is_part)
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(is_odd)
        && name != "@"
        && name != "HEAD"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_branches_are_what_git_takes() {
        for name in ["agentbox/box", "a", "agentbox/0123456789ab", "größe"] {
            assert!(is_branch(name), "{name}");
        }
        for name in
            ["", "-a", "a..b", "a/", "/a", "a b", ".a", "a/.b", "a.lock", "a^", "a@{1}", "HEAD", "a\u{7}"]
        {
            assert!(!is_branch(name), "{name}");
        }
    }
}
