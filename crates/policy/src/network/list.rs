//! Lists of rules, as people keep them: one a line, blank lines and what follows a `#` left out.

use super::{Rule, RuleError};

/// The largest list that is read.
const LARGEST: usize = 1 << 20;

/// Why a text is no list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// A line of it.
    #[error("line {line}: {source}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        source: RuleError,
    },
    /// More than anybody writes.
    #[error("a list of {0} bytes is longer than the {LARGEST} that are read")]
    TooLong(usize),
    /// Bytes of something else.
    #[error("line {0} is not text")]
    NotText(usize),
}

/// Reads a list. One bad line is an error: what its owner meant by it is not known.
pub fn parse_allowlist(bytes: &[u8]) -> Result<Vec<Rule>, ListError> {
    if bytes.len() > LARGEST {
        return Err(ListError::TooLong(bytes.len()));
    }
    // A mark that some editors begin a file with.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut rules = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line_number = index + 1;
        let line = std::str::from_utf8(line).map_err(|_| ListError::NotText(line_number))?;
        let rule = line.split('#').next().unwrap_or_default().trim_ascii();
        if !rule.is_empty() {
            let rule = rule.parse().map_err(|source| ListError::Line { line: line_number, source })?;
            rules.push(rule);
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_as_people_write_it() {
        let text =
            b"\xef\xbb\xbf# sources\r\nexample.com  # the site\n\n*.example.org:443\n\tdb.example:5432\n";
        let rules = parse_allowlist(text).unwrap();
        let shown: Vec<String> = rules.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["example.com", "*.example.org:443", "db.example:5432"]);
        assert_eq!(parse_allowlist(b""), Ok(vec![]));
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = parse_allowlist(b"a.example\n\nb..example\n").unwrap_err();
        assert!(error.to_string().starts_with("line 3: "), "{error}");
        assert_eq!(parse_allowlist(b"a\n\xff\n"), Err(ListError::NotText(2)));
        assert_eq!(parse_allowlist(&vec![b'#'; LARGEST + 1]), Err(ListError::TooLong(LARGEST + 1)));
    }

    proptest! {
        #[test]
        fn no_list_is_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_allowlist(&bytes);
        }
    }
}
