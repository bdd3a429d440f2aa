//! What differs between two trees, file by file and line by line, as git tells it.

mod absent;

use std::io::Read as _;
use std::process::Stdio;

use crate::error::ReviewError;
use crate::git::{Git, GitError, Said, feed};
use crate::limits;
use crate::patch;
use crate::quote;

/// How a file was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// Its content or its mode is another.
    Modified,
    /// It has another name.
    Renamed,
    /// It is something else now: a link, a file or a submodule.
    Retyped,
}

impl Status {
    /// A stable word for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Deleted => "deleted",
            Self::Modified => "modified",
            Self::Renamed => "renamed",
            Self::Retyped => "retyped",
        }
    }
}

/// One changed file.
#[derive(Clone, Debug)]
pub struct Change {
    /// Where it is now, or was.
    pub path: Vec<u8>,
    /// Where it was, if it has another name now.
    pub old_path: Option<Vec<u8>>,
    /// How.
    pub status: Status,
    /// As git writes it; `000000` where there was none.
    pub old_mode: String,
    /// The same now.
    pub mode: String,
    /// Lines; none for a binary file.
    pub added: Option<u64>,
    /// The same of lines that are gone.
    pub removed: Option<u64>,
    /// The lines, in pieces.
    pub hunks: Vec<Hunk>,
    pub(crate) old_object: String,
    pub(crate) object: String,
    /// Whether not all of its lines are here: there were too many before them, or what it was is not known.
    pub(crate) is_unread: bool,
}

impl Change {
    /// Whether it is not made of lines.
    #[must_use]
    pub const fn is_binary(&self) -> bool {
        self.added.is_none()
    }

    /// The lines that are new.
    pub(crate) fn added_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.hunks.iter().flat_map(|hunk| &hunk.lines).filter_map(|line| line.strip_prefix(b"+"))
    }
}

/// A piece of a changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The first line before, and how many.
    pub old: (u64, u64),
    /// The same after.
    pub new: (u64, u64),
    /// Each begins with a space, `+`, `-`, or `\` where the line before has no end.
    pub lines: Vec<Vec<u8>>,
}

/// All that differs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Difference {
    pub(crate) changes: Vec<Change>,
    /// Whether some lines are not there because there were too many.
    pub(crate) is_cut: bool,
}

/// Whether a file under another name is shown as that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renames {
    Found,
    Ignored,
}

/// Compares two trees.
pub(crate) fn between(git: &Git, old: &str, new: &str, renames: Renames) -> Result<Difference, ReviewError> {
    if old == new {
        return Ok(Difference::default());
    }
    match compare(git, old, new, renames) {
        Err(error @ ReviewError::Git(GitError::Failed { .. })) => {
            absent::between(git, old, new, renames)?.ok_or(error)
        }
        compared => compared,
    }
}

fn compare(git: &Git, old: &str, new: &str, renames: Renames) -> Result<Difference, ReviewError> {
    let renames = if renames == Renames::Found { "-M" } else { "--no-renames" };
    let (printed, is_cut) = printed(git, &["--numstat", "-p", renames, old, new], Vec::new())?;
    let (mut difference, _) = parse(&printed).ok_or_else(|| unreadable(is_cut))?;
    if is_cut {
        difference.is_cut = true;
        // The last of which there is something is where it was cut.
        let last = difference.changes.iter_mut().rfind(|change| !change.is_unread);
        last.into_iter().for_each(|change| change.is_unread = true);
    }
    Ok(difference)
}

/// The same without any lines: which files differ, each under its own name.
pub(crate) fn names(git: &Git, old: &str, new: &str) -> Result<Vec<Change>, ReviewError> {
    if old == new {
        return Ok(Vec::new());
    }
    let (printed, is_cut) = printed(git, &["--no-renames", old, new], Vec::new())?;
    let (changes, _) = raws(&printed).filter(|_| !is_cut).ok_or_else(|| unreadable(is_cut))?;
    Ok(changes)
}

/// What each of some commits changed, by its id, and whether there was more than was read. Those of which nothing is there
/// changed nothing, or came too late.
pub(crate) fn of_commits(
    git: &Git,
    commits: &[String],
) -> Result<(Vec<(String, Difference)>, bool), ReviewError> {
    let mut input = commits.join("\n").into_bytes();
    input.push(b'\n');
    let words = ["--numstat", "-p", "-M", "--diff-merges=first-parent", "--stdin"];
    let (printed, is_cut) = printed(git, &words, input)?;
    let (mut rest, mut found) = (printed.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (id, after) = patch::line(rest);
        let id = String::from_utf8_lossy(id).into_owned();
        if !commits.contains(&id) {
            break;
        }
        match parse(after) {
            Some((difference, after)) => {
                found.push((id, difference));
                rest = after;
            }
            None if is_cut => break,
            None => return Err(unreadable(false)),
        }
    }
    Ok((found, is_cut))
}

/// Runs git for a difference of which only so much is read.
fn printed(git: &Git, words: &[&str], input: Vec<u8>) -> Result<(Vec<u8>, bool), ReviewError> {
    const WORDS: [&str; 9] = [
        "diff-tree",
        "-r",
        "--root",
        "--raw",
        "--no-abbrev",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--submodule=short",
    ];
    let git = git.clone().set("core.quotePath=true").set("core.bigFileThreshold=8m");
    let mut command = git.command(WORDS.iter().chain(words));
    let run = GitError::Run;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(run)?;
    let writer = feed(&mut child, input);
    let mut text = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(limits::PATCH).read_to_end(&mut text).map_err(run)?;
    }
    let is_cut = text.len() as u64 == limits::PATCH;
    if is_cut {
        let _ = child.kill();
    }
    let output = child.wait_with_output().map_err(run)?;
    drop(writer.map(std::thread::JoinHandle::join));
    if !is_cut && !output.status.success() {
        let source = Said::from_bytes(&output.stderr);
        return Err(GitError::Failed { what: "diff-tree".to_owned(), source }.into());
    }
    Ok((text, is_cut))
}

fn unreadable(is_cut: bool) -> ReviewError {
    if is_cut {
        return ReviewError::TooMuch { what: "bytes of names", most: limits::PATCH };
    }
    ReviewError::Git(GitError::Run(std::io::ErrorKind::InvalidData.into()))
}

/// Reads a line for each file.
fn raws(printed: &[u8]) -> Option<(Vec<Change>, &[u8])> {
    let mut rest = printed;
    let mut changes = Vec::new();
    while let Some(line) = rest.strip_prefix(b":") {
        let (line, after) = patch::line(line);
        changes.push(raw(line)?);
        rest = after;
    }
    Some((changes, rest))
}

/// Reads what was printed: a line for each file, then the numbers of each, then the lines of each, in one order.
pub(crate) fn parse(printed: &[u8]) -> Option<(Difference, &[u8])> {
    let (mut changes, mut rest) = raws(printed)?;
    for change in &mut changes {
        let (line, after) = patch::line(rest);
        let mut words = line.split(|byte| *byte == b'\t');
        change.added = number(words.next()?);
        change.removed = number(words.next()?);
        rest = after;
    }
    rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    for change in &mut changes {
        // What has become something else is told as a file that is gone and a new one.
        let sections = if change.status == Status::Retyped { 2 } else { 1 };
        for _ in 0..sections {
            match patch::section(rest) {
                Some((hunks, after)) => {
                    change.hunks.extend(hunks);
                    rest = after;
                }
                None => change.is_unread = true,
            }
        }
    }
    let is_cut = changes.iter().any(|change| change.is_unread);
    Some((Difference { changes, is_cut }, rest))
}

/// `100644 100644 <object> <object> M\tpath[\tpath]`.
fn raw(line: &[u8]) -> Option<Change> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let head = std::str::from_utf8(line.get(..tab)?).ok()?;
    let mut words = head.split(' ');
    let (old_mode, mode) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (old_object, object) = (words.next()?.to_owned(), words.next()?.to_owned());
    let status = match words.next()?.bytes().next()? {
        b'A' => Status::Added,
        b'D' => Status::Deleted,
        b'R' => Status::Renamed,
        b'T' => Status::Retyped,
        _ => Status::Modified,
    };
    let (first, rest) = quote::name(line.get(tab + 1..)?, b'\t')?;
    let (path, old_path) = match status {
        Status::Renamed => (quote::name(rest, b'\t')?.0, Some(first)),
        _ => (first, None),
    };
    let hunks = Vec::new();
    Some(Change {
        path,
        old_path,
        status,
        old_mode,
        mode,
        added: None,
        removed: None,
        hunks,
        old_object,
        object,
        is_unread: false,
    })
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
