//! What a runtime says when it does not do its work. It is a program of the owner's, but what it repeats may come from
//! inside: so it is cut off, made one line, and only ever shown to a person.

use std::fs::File;
use std::io::Read as _;
use std::time::Duration;

/// How long a runtime may take until init is heard of. A machine that does other things at the same time is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How much of its words is shown.
const MOST: usize = 2048;

/// Why there is no sandbox, as far as its runtime says.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct RuntimeWords(String);

impl RuntimeWords {
    /// What one that runs no more has said, if anything.
    pub(crate) fn last(complaints: &mut File) -> Option<String> {
        Some(Self::heard(Some(complaints), "").0).filter(|words| !words.is_empty())
    }

    /// What it has complained of by now; the last of it, as the reason stands at the end.
    pub(crate) fn heard(complaints: Option<&mut File>, otherwise: &str) -> Self {
        let mut bytes = Vec::new();
        if let Some(file) = complaints {
            // It does not wait: what is not there yet is not the reason.
            let _ = file.take(1 << 16).read_to_end(&mut bytes);
        }
        let text = String::from_utf8_lossy(&bytes);
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut line: String = words.join(" ").chars().filter(|letter| !letter.is_control()).collect();
        let length = line.chars().count();
        if length > MOST {
            line = format!("… {}", line.chars().skip(length - MOST).collect::<String>());
        }
        Self(if line.is_empty() { otherwise.to_owned() } else { line })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_end_of_long_words_is_shown_on_one_line() {
        let (mut ours, mut theirs) = jail::complaints().unwrap();
        assert_eq!(RuntimeWords::heard(Some(&mut ours), "silence").to_string(), "silence");
        theirs.write_all(b"first\n\x1b[31msecond\t third\n").unwrap();
        assert_eq!(RuntimeWords::heard(Some(&mut ours), "silence").to_string(), "first [31msecond third");
        theirs.write_all(&[b'x'; 5000]).unwrap();
        let long = RuntimeWords::heard(Some(&mut ours), "silence").to_string();
        assert!(long.starts_with("… x") && long.chars().count() == MOST + 2, "{}", long.len());
    }
}
