//! Commits from inside, where the tree itself was worked on: they become a branch as they are. All else that was done is
//! in the owner's tree already, and their checkout and index are not touched.

use crate::base::Base;
use crate::branch::{self, Branched, Committer};
use crate::commits;
use crate::error::ReviewError;
use crate::git::Git;
use crate::inert::inert_name;
use crate::record::Files;
use crate::review::{self, mark_applied};
use crate::store::Store;
use crate::target::{Order, Risky};

/// Takes the commits as a branch. All or nothing.
pub fn apply_commits(files: &Files, order: &Order, branch: &str) -> Result<Branched, ReviewError> {
    branch::check_name(branch)?;
    let store = Store::open(files)?;
    Base::of(&store)?;
    let Some(repository) = &store.recorded.repository else {
        return Err(ReviewError::NoRepository(store.recorded.owner.clone()));
    };
    let tip = commits::accepted(&store).ok_or(ReviewError::NoCommits)?;
    if let Some(shown) = order.tree.as_ref().filter(|tree| !tip.starts_with(tree.as_str())) {
        return Err(ReviewError::Changed { shown: shown.clone(), now: tip });
    }
    let git = store.git()?;
    if order.risky == Risky::Refused {
        let told = review::risky_commits(&store, &git)?;
        if !told.is_empty() {
            return Err(ReviewError::Risky(told));
        }
    }
    let name = format!("refs/heads/{branch}");
    let owners = Git::new(&repository.git_dir)?.writing_as(branch::writer(&repository.common_dir));
    let owners = Committer::of(&store)?.sign(owners);
    if owners.run(["rev-parse", "--verify", "--quiet", &name]).is_ok() {
        return Err(ReviewError::BranchExists(inert_name(branch.as_bytes())));
    }
    branch::send(&store, repository, &owners, &tip)?;
    branch::set(&owners, branch, &tip, &order.id)?;
    mark_applied(&store, &tip)?;
    let count = commits::list(&store, &git, &tip)?.len();
    let tree = git.line(["rev-parse", &format!("{tip}^{{tree}}")])?;
    Ok(Branched { branch: branch.to_owned(), commit: tip, tree, count })
}
