//! Environment variables that the owner passes in by name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One variable for the processes inside.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    name: String,
    value: String,
}

/// Why a text is no variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// A name that a shell or the kernel would not take.
    #[error("'{0}' is not the name of a variable: letters, digits and '_', not beginning with a digit")]
    Name(String),
    /// The value would be cut at the NUL.
    #[error("the value of '{0}' holds a NUL")]
    Nul(String),
    /// `--env NAME` where the caller has no such variable.
    #[error("'{0}' is not set here, so there is no value to pass on")]
    Unset(String),
    /// A line of a file that is none of comment, `NAME=value` and `NAME`.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from one.
        line: usize,
        /// What is wrong with it.
        problem: Box<EnvironmentError>,
    },
}

impl Variable {
    /// A variable from its parts.
    pub fn new(name: &str, value: &str) -> Result<Self, EnvironmentError> {
        let mut bytes = name.bytes();
        let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if !first || !bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(EnvironmentError::Name(name.escape_debug().to_string()));
        }
        if value.contains('\0') {
            return Err(EnvironmentError::Nul(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }

    /// Parses `NAME=value`, or `NAME` alone, whose value `lookup` finds in the caller's environment.
    pub fn parse(text: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        match text.split_once('=') {
            Some((name, value)) => Self::new(name, value),
            None => {
                Self::new(text, "")?;
                let value = lookup(text).ok_or_else(|| EnvironmentError::Unset(text.to_owned()))?;
                Self::new(text, &value)
            }
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value, which may be a secret.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// A value may be a key, so it is never printed.
impl fmt::Debug for Variable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}=…", self.name)
    }
}

/// Parses a file of variables: one a line, `#` comments, blank lines, values taken as they stand.
pub fn parse_environment_file(
    text: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Vec<Variable>, EnvironmentError> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_start()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(line, text)| {
            Variable::parse(text, &lookup)
                .map_err(|problem| EnvironmentError::Line { line, problem: Box::new(problem) })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Option<String> {
        (name == "TOKEN").then(|| "s3cret".to_owned())
    }

    #[test]
    fn variables() {
        assert_eq!(Variable::parse("A=b=c", caller), Variable::new("A", "b=c"));
        assert_eq!(Variable::parse("A=", caller), Variable::new("A", ""));
        assert_eq!(Variable::parse("TOKEN", caller), Variable::new("TOKEN", "s3cret"));
        assert!(matches!(Variable::parse("OTHER", caller), Err(EnvironmentError::Unset(_))));
        for text in ["", "=x", "1A=x", "A B=x", "A-B=x", "A\0=x"] {
            assert!(matches!(Variable::parse(text, caller), Err(EnvironmentError::Name(_))), "{text:?}");
        }
        assert!(matches!(Variable::parse("A=x\0y", caller), Err(EnvironmentError::Nul(_))));
    }

    #[test]
    fn debug_shows_no_value() {
        assert!(!format!("{:?}", Variable::new("TOKEN", "s3cret")).contains("s3cret"));
    }

    #[test]
    fn files() {
        let parsed = parse_environment_file("# keys\n\nA=1\n  B=two words # kept\nTOKEN\n", caller).unwrap();
        let names: Vec<_> = parsed.iter().map(|variable| (variable.name(), variable.value())).collect();
        assert_eq!(names, [("A", "1"), ("B", "two words # kept"), ("TOKEN", "s3cret")]);
        let error = parse_environment_file("A=1\nbad name\n", caller).unwrap_err();
        assert!(matches!(error, EnvironmentError::Line { line: 2, .. }));
    }
}
