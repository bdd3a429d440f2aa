//! Brings together what the owner and the agent have made of the same files: by git, in our own store, as trees. Nothing
//! of either is lost: what cannot be put into one file stays the owner's, with the agent's beside it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

use crate::branch::Committer;
use crate::error::ReviewError;
use crate::git::{GitError, Said};
use crate::store::Store;

/// A tree of both.
pub(crate) struct Merged {
    pub(crate) tree: String,
    /// Files that have marks in them, or could not be merged.
    pub(crate) conflicts: Vec<Vec<u8>>,
    /// The agent's versions of files that stay the owner's: path, mode and blob.
    pub(crate) beside: Vec<(Vec<u8>, String, String)>,
}

/// Merges two trees that began with `base`.
pub(crate) fn merge(store: &Store, base: &str, yours: &str, agents: &str) -> Result<Merged, ReviewError> {
    let git = Committer::of(store)?.sign(store.git()?);
    let commit = |tree: &str, parent: Option<&str>| {
        git.line(
            ["commit-tree", "-m", "merge", tree]
                .into_iter()
                .chain(parent.into_iter().flat_map(|it| ["-p", it])),
        )
    };
    let root = commit(base, None)?;
    // The names are what stands at the marks.
    for (name, tree) in [("yours", yours), ("agent", agents)] {
        let path = store.files.git().join("refs/heads").join(name);
        let text = format!("{}\n", commit(tree, Some(&root))?);
        fs::write(&path, text).map_err(ReviewError::file(&path))?;
    }
    let words = ["merge-tree", "--write-tree", "-z", "--no-messages", "yours", "agent"];
    let mut command = git.clone().set("merge.conflictStyle=merge").command(words);
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().map_err(GitError::Run)?;
    // One that ends with 1 has merged with conflicts.
    if !matches!(output.status.code(), Some(0 | 1)) || output.stdout.is_empty() {
        let source = Said::from_bytes(&output.stderr);
        return Err(GitError::Failed { what: "merge-tree".to_owned(), source }.into());
    }
    let mut fields = output.stdout.split(|byte| *byte == 0);
    let tree = String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
    let stages = parse(fields);
    let beside = beside(store, &tree, &stages)?;
    Ok(Merged { tree, conflicts: stages.into_keys().collect(), beside })
}

/// The versions of a file that could not be merged: the owner's and the agent's.
type Stages = BTreeMap<Vec<u8>, [Option<(String, String)>; 2]>;

/// `100644 <object> 2\tpath`.
fn parse<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Stages {
    let mut found = Stages::new();
    for field in fields {
        let Some(tab) = field.iter().position(|byte| *byte == b'\t') else { continue };
        let head = String::from_utf8_lossy(field.get(..tab).unwrap_or_default()).into_owned();
        let words: Vec<&str> = head.split(' ').collect();
        let [mode, object, stage] = words.as_slice() else { continue };
        let versions = found.entry(field.get(tab + 1..).unwrap_or_default().to_vec()).or_default();
        let version = Some(((*mode).to_owned(), (*object).to_owned()));
        match (*stage, versions) {
            ("2", [yours, _]) => *yours = version,
            ("3", [_, agents]) => *agents = version,
            _ => {}
        }
    }
    found
}

/// Where the tree has the owner's version and nothing of the agent's, the agent's goes beside it.
fn beside(store: &Store, tree: &str, stages: &Stages) -> Result<Vec<(Vec<u8>, String, String)>, ReviewError> {
    if stages.is_empty() {
        return Ok(Vec::new());
    }
    let printed = store.git()?.run(["ls-tree", "-r", "-z", tree])?;
    let mut now = BTreeMap::new();
    for line in printed.split(|byte| *byte == 0) {
        let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
        let head = String::from_utf8_lossy(line.get(..tab).unwrap_or_default()).into_owned();
        let object = head.rsplit(' ').next().unwrap_or_default().to_owned();
        now.insert(line.get(tab + 1..).unwrap_or_default().to_vec(), object);
    }
    let mut found = Vec::new();
    for (path, versions) in stages {
        if let [Some(yours), Some((mode, object))] = versions
            && now.get(path) == Some(&yours.1)
            && object != &yours.1
        {
            let mut name = [path.as_slice(), b".agentbox"].concat();
            while now.contains_key(&name) {
                name.push(b'+');
            }
            found.push((name, mode.clone(), object.clone()));
        }
    }
    Ok(found)
}
