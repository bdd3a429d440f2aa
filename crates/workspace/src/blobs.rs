//! The content of objects, asked of one git for all questions. Whatever is larger than somebody looks at is passed over.

use std::io::{self, BufRead as _, Read as _, Write as _};

use crate::asking::Asking;
use crate::git::{Git, GitError};

/// A git that answers; it is started by the first question.
pub(crate) struct Blobs<'git> {
    git: &'git Git,
    asked: Option<Asking>,
}

impl<'git> Blobs<'git> {
    pub(crate) const fn of(git: &'git Git) -> Self {
        Self { git, asked: None }
    }

    /// All of an object; none where it is larger than `most` or not there. The one of nothing is empty.
    pub(crate) fn read(&mut self, object: &str, most: u64) -> Result<Option<Vec<u8>>, GitError> {
        if object.bytes().all(|byte| byte == b'0') {
            return Ok(Some(Vec::new()));
        }
        if self.asked.is_none() {
            self.asked = Some(Asking::start(self.git.command(["cat-file", "--batch"]))?);
        }
        match &mut self.asked {
            Some(asked) => ask(asked, object, most).map_err(GitError::Run),
            None => Ok(None),
        }
    }
}

fn ask(asked: &mut Asking, object: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
    asked.questions.write_all(format!("{object}\n").as_bytes())?;
    let mut head = Vec::new();
    (&mut asked.answers).take(LONGEST_HEAD).read_until(b'\n', &mut head)?;
    let Some(length) = length(&head)? else { return Ok(None) };
    let mut content = (&mut asked.answers).take(length);
    let mut bytes = Vec::new();
    let read = if length > most {
        io::copy(&mut content, &mut io::sink())?
    } else {
        content.read_to_end(&mut bytes)? as u64
    };
    let mut end = [0];
    asked.answers.read_exact(&mut end)?;
    if read != length || end != *b"\n" {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok((length <= most).then_some(bytes))
}

/// No head of an answer is longer.
const LONGEST_HEAD: u64 = 200;

/// `<object> blob <length>` or `<object> missing`: how much follows.
fn length(head: &[u8]) -> io::Result<Option<u64>> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let text = std::str::from_utf8(head).ok().and_then(|text| text.strip_suffix('\n')).ok_or_else(invalid)?;
    let words: Vec<&str> = text.split(' ').collect();
    match words.as_slice() {
        [_, "missing"] => Ok(None),
        [_, _, length] => length.parse().map(Some).map_err(|_| invalid()),
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_how_much_follows() {
        assert_eq!(length(b"ab blob 12\n").unwrap(), Some(12));
        assert_eq!(length(b"ab missing\n").unwrap(), None);
        assert!(length(b"ab blob 12").is_err() && length(b"ab blob x\n").is_err() && length(b"\n").is_err());
    }
}
