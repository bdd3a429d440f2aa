//! Has git make a tree of another one and of what differs, in one process that is told all of it on its stdin: no index is
//! read for that and no tree of files is written. It starts nothing and converts nothing; every name is one that git takes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::process::{Child, ChildStdin, Stdio};

use crate::error::ReviewError;
use crate::git::{Git, GitError, Said};
use crate::quote;
use crate::target::Entry;

/// The mode of what is not there.
const GONE: &str = "000000";

/// The ref of ours that git gives to what it has made; nobody reads it.
const LOOK: &str = "refs/agentbox/look";
/// What is larger is not compressed against others, nor held in memory.
const LARGE: &str = "core.bigFileThreshold=8m";

/// As much is told at once.
const AT_ONCE: usize = 64 << 10;

/// A tree that is being made; one that is not finished is forgotten.
pub(crate) struct Import {
    child: Option<Child>,
    stdin: Option<BufWriter<ChildStdin>>,
    /// Why nothing more can be told; what git has said about it comes first.
    broken: Option<io::Error>,
}

impl Import {
    /// Begins with a tree, or with nothing.
    pub(crate) fn begin(git: &Git, tree: Option<&str>) -> Result<Self, ReviewError> {
        // One that was killed may have left it; nobody else is at it now.
        let _ = fs::remove_file(git.directory().join(format!("{LOOK}.lock")));
        let git = git.clone().set(LARGE);
        let mut command = git.command(["fast-import", "--quiet", "--done", "--force"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(GitError::Run)?;
        let stdin = child.stdin.take().map(|stdin| BufWriter::with_capacity(AT_ONCE, stdin));
        let mut import = Self { child: Some(child), stdin, broken: None };
        import.tell(format!("commit {LOOK}\ncommitter a <a> 0 +0000\ndata 0\n").as_bytes());
        if let Some(tree) = tree {
            import.tell(format!("M 040000 {tree} \"\"\n").as_bytes());
        }
        Ok(import)
    }

    fn tell(&mut self, bytes: &[u8]) {
        if let (Some(stdin), None) = (&mut self.stdin, &self.broken) {
            self.broken = stdin.write_all(bytes).err();
        }
    }

    /// A path, with all below it, is gone.
    pub(crate) fn remove(&mut self, path: &[u8]) {
        self.tell(b"D ");
        self.tell(&quote::quoted(path));
        self.tell(b"\n");
    }

    /// A path is an object that is there already, or a commit of another repository's.
    pub(crate) fn put(&mut self, path: &[u8], mode: &str, object: &str) {
        self.tell(format!("M {mode} {object} ").as_bytes());
        self.tell(&quote::quoted(path));
        self.tell(b"\n");
    }

    /// The same of many: first everything goes that goes.
    pub(crate) fn with(mut self, entries: &[Entry]) -> Self {
        for (path, ..) in entries.iter().filter(|(_, mode, _)| mode == GONE) {
            self.remove(path);
        }
        for (path, mode, object) in entries.iter().filter(|(_, mode, _)| mode != GONE) {
            self.put(path, mode, object);
        }
        self
    }

    /// A path is a new object with this content.
    pub(crate) fn write(&mut self, path: &[u8], mode: &str, content: &[u8]) {
        self.begin_data(path, mode, content.len() as u64);
        self.tell(content);
        self.tell(b"\n");
    }

    /// The same of a file of ours, which nobody changes.
    pub(crate) fn write_file(&mut self, path: &[u8], mode: &str, file: &File) -> io::Result<()> {
        let length = file.metadata()?.len();
        self.begin_data(path, mode, length);
        if let (Some(stdin), None) = (&mut self.stdin, &self.broken) {
            self.broken = match io::copy(&mut file.take(length), stdin) {
                Ok(copied) if copied == length => None,
                Ok(_) => Some(io::ErrorKind::UnexpectedEof.into()),
                Err(error) => Some(error),
            };
        }
        self.tell(b"\n");
        Ok(())
    }

    fn begin_data(&mut self, path: &[u8], mode: &str, length: u64) {
        self.put(path, mode, "inline");
        self.tell(format!("data {length}\n").as_bytes());
    }

    /// The tree.
    pub(crate) fn finish(mut self) -> Result<String, ReviewError> {
        self.tell(b"ls \"\"\ndone\n");
        let flushed = self.stdin.take().map_or(Ok(()), |mut stdin| stdin.flush());
        let written = self.broken.take().map_or(flushed, Err);
        let child = self.child.take().ok_or_else(|| GitError::Run(io::ErrorKind::BrokenPipe.into()))?;
        let output = child.wait_with_output().map_err(GitError::Run)?;
        if !output.status.success() {
            let (what, source) = ("fast-import".to_owned(), Said::from_bytes(&output.stderr));
            return Err(GitError::Failed { what, source }.into());
        }
        written.map_err(GitError::Run)?;
        named_tree(&output.stdout).ok_or_else(|| GitError::Run(io::ErrorKind::InvalidData.into()).into())
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// `040000 tree <object>\t`.
fn named_tree(printed: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(printed).ok()?;
    let object = text.strip_prefix("040000 tree ")?.split('\t').next()?;
    let is_object = matches!(object.len(), 40 | 64) && object.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_object.then(|| object.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_tree_is_read_and_nothing_else() {
        let object = "9ebc2716d0cab6de13c4246b01887da9b5833c33";
        assert_eq!(named_tree(format!("040000 tree {object}\t\n").as_bytes()).as_deref(), Some(object));
        assert_eq!(named_tree(b"missing \n"), None);
        assert_eq!(named_tree(b"040000 tree --evil\t\n"), None);
    }
}
