//! Asks git what it would ignore: one process for all questions of a snapshot, answered one after the other, in a tree of
//! ours that holds the rules.

use std::io::{BufRead as _, Write as _};
use std::path::Path;

use crate::asking::Asking;
use crate::git::{Git, GitError};

/// As many bytes are asked at once, or as many as fit into the pipe, so that neither side waits for the other: somebody
/// inside can use up what a user may have in pipes, and then new ones are small.
const AT_ONCE: usize = 32 << 10;

/// What is around a path in a question.
const AROUND: usize = 3;

/// A process that answers.
pub(crate) struct Ignore {
    git: Asking,
}

impl Ignore {
    /// Starts it with the rules below `tree`.
    pub(crate) fn start(git: &Git, tree: &Path) -> Result<Self, GitError> {
        // Whether a path is in the index is known already, and does not have to be read again.
        let words = ["check-ignore", "-z", "-v", "-n", "--no-index", "--stdin"];
        // This one command does not take paths literally, and says so; a dot in front makes any path one.
        let git = git.clone().on(tree).variable("GIT_LITERAL_PATHSPECS", "0");
        Ok(Self { git: Asking::start(git.command(words))? })
    }

    /// Which of them it would ignore, in their order.
    pub(crate) fn ask(&mut self, paths: &[&[u8]]) -> Result<Vec<bool>, GitError> {
        let mut ignored = Vec::with_capacity(paths.len());
        let room = rustix::pipe::fcntl_getpipe_size(&self.git.questions);
        let at_once = AT_ONCE.min(room.map_err(|errno| GitError::Run(errno.into()))?);
        let mut rest = paths;
        while !rest.is_empty() {
            let mut asked = Vec::new();
            let mut count = 0;
            for path in rest {
                if count > 0 && asked.len() + path.len() + AROUND > at_once {
                    break;
                }
                asked.extend_from_slice(b"./");
                asked.extend_from_slice(path);
                asked.push(0);
                count += 1;
            }
            self.git
                .questions
                .write_all(&asked)
                .and_then(|()| self.git.questions.flush())
                .map_err(GitError::Run)?;
            for _ in 0..count {
                ignored.push(self.answer().map_err(GitError::Run)?);
            }
            rest = rest.get(count..).unwrap_or_default();
        }
        Ok(ignored)
    }

    /// One answer: the file of the rule, its line, the rule, and the path again.
    fn answer(&mut self) -> std::io::Result<bool> {
        let mut fields: [Vec<u8>; 4] = Default::default();
        for field in &mut fields {
            self.git.answers.read_until(0, field)?;
            if field.pop() != Some(0) {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let [source, _, rule, _] = fields;
        Ok(!source.is_empty() && rule.first() != Some(&b'!'))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn small_pipes_are_no_hindrance() {
        let place = tempfile::tempdir().unwrap();
        let init = std::process::Command::new("git").args(["init", "-q"]).current_dir(place.path()).status();
        assert!(init.unwrap().success());
        std::fs::write(place.path().join(".gitignore"), "*.log\n").unwrap();
        let git = Git::new(&place.path().join(".git")).unwrap();
        let mut ignore = Ignore::start(&git, place.path()).unwrap();
        for end in [
            rustix::fd::AsFd::as_fd(&ignore.git.questions),
            rustix::fd::AsFd::as_fd(ignore.git.answers.get_ref()),
        ] {
            rustix::pipe::fcntl_setpipe_size(end, 4096).unwrap();
        }
        let names: Vec<String> =
            (0..5000).map(|number| format!("a-name-of-some-length-{number}.log")).collect();
        let (done, waited) = mpsc::channel();
        std::thread::spawn(move || {
            let paths: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
            let answers = ignore.ask(&paths).unwrap();
            done.send(answers.len() == paths.len() && answers.iter().all(|ignored| *ignored)).unwrap();
        });
        assert_eq!(waited.recv_timeout(Duration::from_secs(60)), Ok(true));
    }
}
