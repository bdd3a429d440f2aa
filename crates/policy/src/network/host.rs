//! Names of hosts. There is one spelling of each: whoever asks, by DNS, TLS, HTTP or a rule, gets the same value or is
//! refused, so that the name decided on is the name resolved and the name dialled.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::kept_as_text;

/// The longest name that DNS carries, as text.
const LONGEST: usize = 253;

/// The longest label.
const LONGEST_LABEL: usize = 63;

/// A host by its name: lower case, without the dot at the end, never an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// Why a text is no name of a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing is there.
    #[error("a name is missing")]
    Empty,
    /// Longer than DNS carries.
    #[error("a name of {0} bytes is longer than the {LONGEST} that there can be")]
    TooLong(usize),
    /// Two dots in a row, or a label that DNS cannot carry.
    #[error("'{0}' has a part that is empty or longer than {LONGEST_LABEL} bytes")]
    Label(String),
    /// Letters outside of ASCII have several spellings.
    #[error("'{0}' is not written in ASCII; write the name as DNS has it (xn--…)")]
    NotAscii(String),
    /// A letter that no name of a host has.
    #[error("'{0}' holds {1:?}, which no name has")]
    Letter(String, char),
    /// What resolvers take for a number.
    #[error("'{0}' is a number and no name")]
    Number(String),
}

impl HostName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is below `suffix`, and not the same.
    #[must_use]
    pub fn is_below(&self, suffix: &Self) -> bool {
        self.0.strip_suffix(&suffix.0).is_some_and(|rest| rest.ends_with('.'))
    }
}

impl FromStr for HostName {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let shown = || text.escape_debug().to_string();
        if !text.is_ascii() {
            return Err(HostError::NotAscii(shown()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err(HostError::Empty);
        }
        if name.len() > LONGEST {
            return Err(HostError::TooLong(name.len()));
        }
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        if let Some(letter) = name.chars().find(|letter| !is_letter(*letter)) {
            return Err(HostError::Letter(shown(), letter));
        }
        let is_whole = |label: &str| {
            !label.is_empty()
                && label.len() <= LONGEST_LABEL
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if !name.split('.').all(is_whole) {
            return Err(HostError::Label(shown()));
        }
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err(HostError::Number(shown()));
        }
        Ok(Self(name.to_ascii_lowercase()))
    }
}

/// What the last part of an address can look like to a resolver: decimal, octal or hexadecimal.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|digit| digit.is_ascii_hexdigit()),
        None => label.bytes().all(|digit| digit.is_ascii_digit()),
    }
}

kept_as_text!(HostName, HostError);

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_spelling_of_each() {
        for (text, name) in [
            ("example.com", "example.com"),
            ("EXAMPLE.com.", "example.com"),
            ("a_b.example", "a_b.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("localhost", "localhost"),
            ("1.2.3.4x", "1.2.3.4x"),
            ("0xg", "0xg"),
        ] {
            assert_eq!(text.parse::<HostName>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in [
            "",
            ".",
            "..",
            "a..b",
            "example.com..",
            ".example.com",
            "-a.example",
            "a-.example",
            "a b",
            "a\0b",
            "a%00.example",
            "a@b",
            "a\\b",
            "a/b",
            "a:443",
            "[::1]",
            "1.2.3.4",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.01",
            "1.2.3.0x",
            "example.com\r\n",
            "+443",
            "ｅｘａｍｐｌｅ.com",
            "bücher.example",
            "example\u{3002}com",
            "fe80::1%eth0",
            "*.example.com",
        ] {
            assert!(text.parse::<HostName>().is_err(), "{text:?}");
        }
        assert!("a".repeat(64).parse::<HostName>().is_err());
        assert!(format!("{}a", "ab.".repeat(84)).parse::<HostName>().is_ok());
        assert!(format!("{}ab", "ab.".repeat(84)).parse::<HostName>().is_err());
    }

    #[test]
    fn below_means_below() {
        let name = |text: &str| text.parse::<HostName>().unwrap();
        assert!(name("a.example.com").is_below(&name("example.com")));
        assert!(name("a.b.example.com").is_below(&name("example.com")));
        assert!(!name("example.com").is_below(&name("example.com")));
        assert!(!name("badexample.com").is_below(&name("example.com")));
        assert!(!name("example.com.evil.example").is_below(&name("example.com")));
    }

    proptest! {
        #[test]
        fn a_name_is_its_own_spelling(text in "\\PC{0,40}|[a-zA-Z0-9._-]{1,40}") {
            if let Ok(name) = text.parse::<HostName>() {
                prop_assert_eq!(name.as_str().parse::<HostName>(), Ok(name.clone()));
                prop_assert_eq!(text.to_ascii_uppercase().parse::<HostName>(), Ok(name.clone()));
                prop_assert!(name.as_str().parse::<std::net::IpAddr>().is_err());
            }
        }
    }
}
