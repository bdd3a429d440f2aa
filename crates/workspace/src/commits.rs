//! The agent's own commits. Where its repository stands is read as data; its objects come as a pack that somebody else
//! read from it, behind walls. The pack is checked by git into a store that holds nothing else, before anything is
//! believed about it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write as _};
use std::process::Stdio;

use crate::base::Base;
use crate::change;
use crate::error::ReviewError;
use crate::git::{Git, GitError, Said};
use crate::layer::Directory;
use crate::limits;
use crate::nested;
use crate::record::{Files, Recorded};
use crate::store::{Store, write_whole};

/// A few bytes of a pack can say that an object has any length: what would not fit into so much memory is refused.
const LARGEST_OBJECT: &str = "1g";

/// The commit that was taken last.
const TIP: &str = "tip";

/// A commit from inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: String,
    /// Who it says has made it; hostile.
    pub author: Vec<u8>,
    /// The first line of its message; hostile.
    pub subject: Vec<u8>,
}

/// Where the repository inside stands, if it is not where it began: a commit that has not been taken yet.
pub fn waiting_tip(files: &Files) -> Result<Option<String>, ReviewError> {
    let store = Store::open(files)?;
    let Some(tip) = tip_inside(files, &store.recorded) else { return Ok(None) };
    Ok(Some(tip).filter(|tip| accepted(&store).as_ref() != Some(tip)))
}

/// Where the repository inside stands, if it is not where it began. Nobody is waited for.
pub(crate) fn tip_inside(files: &Files, recorded: &Recorded) -> Option<String> {
    let repository = recorded.repository.as_ref()?;
    let length = if repository.object_format == "sha256" { 64 } else { 40 };
    let tip = nested::tip(&Directory::top(&files.upper()).ok()?, length)?;
    Some(tip).filter(|tip| repository.head.commit.as_ref() != Some(tip))
}

/// The commit that was taken, where the repository inside still stands at it.
pub(crate) fn accepted(store: &Store) -> Option<String> {
    let taken = fs::read_to_string(store.own(TIP)).ok()?.trim().to_owned();
    tip_inside(&store.files, &store.recorded).filter(|tip| *tip == taken)
}

/// Takes the commits of a pack that has all up to `tip` that the base has not.
pub fn accept_pack(files: &Files, pack: &mut dyn Read, tip: &str) -> Result<(), ReviewError> {
    let store = Store::open(files)?;
    Base::of(&store)?;
    if tip_inside(files, &store.recorded).as_deref() != Some(tip) {
        return Err(ReviewError::Commits("they are not those that the repository inside stands at"));
    }
    let (old, new) = (store.quarantine(), store.own("quarantine.new"));
    let failed = ReviewError::file(&new);
    for stale in [&new, &old] {
        match fs::remove_dir_all(stale) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    fs::create_dir_all(new.join("pack")).map_err(failed)?;
    let git = store.git()?.with_objects(&[store.files.git().join("objects")]).storing_in(&new);
    let taken = index(&git, pack).and_then(|()| check(&store, &git, tip));
    if let Err(error) = taken {
        let _ = fs::remove_dir_all(&new);
        return Err(error);
    }
    fs::rename(&new, &old).map_err(failed)?;
    write_whole(&store.own(TIP), format!("{tip}\n").as_bytes()).map_err(failed)
}

/// Has git read the pack, and check each object and that none is missing.
fn index(git: &Git, pack: &mut dyn Read) -> Result<(), ReviewError> {
    let most = format!("--max-input-size={}", limits::PACK);
    let words = ["index-pack", "--strict", "--fix-thin", "--stdin", &most];
    // What git only warns of in the history of others is refused of an enemy.
    let git = git.clone().set("transfer.fsckObjects=true").variable("GIT_ALLOC_LIMIT", LARGEST_OBJECT);
    let mut command = git.command(words);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(GitError::Run)?;
    let read = child.stdin.take().map_or(Ok(0), |mut stdin| {
        let copied = io::copy(&mut pack.take(limits::PACK + 1), &mut stdin);
        stdin.flush().and(copied)
    });
    let output = child.wait_with_output().map_err(GitError::Run)?;
    match (read, output.status.success()) {
        (Ok(_), true) => Ok(()),
        (Ok(count), _) if count > limits::PACK => {
            Err(ReviewError::TooMuch { what: "bytes of commits", most: limits::PACK })
        }
        (_, false) => {
            let source = Said::from_bytes(&output.stderr);
            Err(GitError::Failed { what: "index-pack".to_owned(), source }.into())
        }
        (Err(error), true) => Err(GitError::Run(error).into()),
    }
}

fn check(store: &Store, git: &Git, tip: &str) -> Result<(), ReviewError> {
    if git.line(["cat-file", "-t", tip])? != "commit" {
        return Err(ReviewError::Commits("what the repository inside stands at is no commit"));
    }
    if let Some(base) = store.base_commit()
        && git.run(["merge-base", "--is-ancestor", base, tip]).is_err()
    {
        return Err(ReviewError::Commits("they do not follow the commit that everything began with"));
    }
    if list(store, git, tip)?.len() > limits::COMMITS {
        return Err(ReviewError::TooMuch { what: "commits", most: limits::COMMITS as u64 });
    }
    Ok(())
}

/// The commits up to `tip`, the oldest first.
pub(crate) fn list(store: &Store, git: &Git, tip: &str) -> Result<Vec<Commit>, ReviewError> {
    let most = format!("--max-count={}", limits::COMMITS + 1);
    let mut words = vec![
        "log",
        "--no-mailmap",
        "--no-show-signature",
        "--encoding=",
        "--reverse",
        "--topo-order",
        "--format=tformat:%H%x00%an <%ae>%x00%s%x00",
        &most,
        tip,
    ];
    words.extend(store.base_commit().into_iter().flat_map(|base| ["--not", base]));
    Ok(read_list(&git.run(words)?))
}

/// Reads three fields for each commit, each ended by a NUL.
pub(crate) fn read_list(printed: &[u8]) -> Vec<Commit> {
    let fields: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
    let commits = fields.chunks_exact(3).filter_map(|fields| {
        let [id, author, subject] = fields else { return None };
        let id = String::from_utf8_lossy(id).trim().to_owned();
        Some(Commit { id, author: author.to_vec(), subject: subject.to_vec() })
    });
    commits.collect()
}

/// Paths that the agent has committed and the base does not have: git tracks them now, ignored or not.
pub(crate) fn also_known(store: &Store, base: &Base) -> Result<BTreeSet<Vec<u8>>, ReviewError> {
    let Some(tip) = accepted(store) else { return Ok(BTreeSet::new()) };
    let tree = format!("{tip}^{{tree}}");
    let words =
        ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", &base.tree, &tree];
    let printed = store.git()?.run(words)?;
    Ok(printed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
}

/// What each of them changed, and whether that was more than is read.
pub(crate) fn differences(
    git: &Git,
    commits: &[Commit],
) -> Result<(Vec<(String, change::Difference)>, bool), ReviewError> {
    let ids: Vec<String> = commits.iter().map(|commit| commit.id.clone()).collect();
    if ids.is_empty() { Ok((Vec::new(), false)) } else { change::of_commits(git, &ids) }
}
