//! What may be asked of a host by plain HTTP, where a rule says that: methods, and a path. A path has several spellings;
//! one that a server could read as another path is refused, not guessed.

use std::fmt;
use std::str::FromStr;

/// The longest path that is looked at.
const LONGEST: usize = 8192;

/// The longest method.
const LONGEST_METHOD: usize = 32;

/// What may be asked: these methods, all where there are none, on this path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRule {
    /// The methods.
    pub methods: Vec<Method>,
    /// The path.
    pub path: PathRule,
}

/// A method, in capitals as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method(String);

/// Which paths: one, or with a `*` at the end all that begin so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathRule {
    /// This one.
    One(HttpPath),
    /// All that begin with this, which ends with a slash.
    Below(HttpPath),
}

/// A path in its one spelling, without what follows a `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPath(String);

/// Why a text says nothing about HTTP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpRuleError {
    /// The method is none.
    #[error("'{0}' is not a method in capitals, as GET")]
    Method(String),
    /// The path is none, or has several meanings.
    #[error("'{0}' is not a path that means the same to everybody")]
    Path(String),
    /// A star in the middle.
    #[error("'{0}' has a * that is not at its end, behind a /")]
    Star(String),
}

impl HttpRule {
    /// Whether this may be asked.
    #[must_use]
    pub fn allows(&self, method: &Method, path: &HttpPath) -> bool {
        let has_method = self.methods.is_empty() || self.methods.contains(method);
        has_method
            && match &self.path {
                PathRule::One(own) => own == path,
                PathRule::Below(start) => path.0.starts_with(&start.0),
            }
    }
}

impl Method {
    /// The method.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Method {
    type Err = HttpRuleError;

    fn from_str(text: &str) -> Result<Self, HttpRuleError> {
        let is_method = (1..=LONGEST_METHOD).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        is_method
            .then(|| Self(text.to_owned()))
            .ok_or_else(|| HttpRuleError::Method(text.escape_debug().to_string()))
    }
}

impl FromStr for PathRule {
    type Err = HttpRuleError;

    fn from_str(text: &str) -> Result<Self, HttpRuleError> {
        let star = || HttpRuleError::Star(text.escape_debug().to_string());
        // What is asked of a path is not looked at, so that a rule cannot be about it.
        if text.contains('?') {
            return Err(HttpRuleError::Path(text.escape_debug().to_string()));
        }
        match text.strip_suffix('*') {
            Some(start) if !start.ends_with('/') || start.contains('*') => Err(star()),
            Some(start) => Ok(Self::Below(start.parse()?)),
            None if text.contains('*') => Err(star()),
            None => Ok(Self::One(text.parse()?)),
        }
    }
}

impl FromStr for HttpPath {
    type Err = HttpRuleError;

    fn from_str(text: &str) -> Result<Self, HttpRuleError> {
        canonical(text).map(Self).ok_or_else(|| HttpRuleError::Path(text.escape_debug().to_string()))
    }
}

/// The one spelling of a path: what needs no escape has none, the others have capitals. None where a server could see a
/// separator, a step up or the end of the text that another does not.
fn canonical(text: &str) -> Option<String> {
    let path = text.split_once('?').map_or(text, |(path, _)| path);
    if !path.starts_with('/') || path.len() > LONGEST {
        return None;
    }
    let mut spelled = String::with_capacity(path.len());
    let mut meant = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let (byte, was_escaped) = match byte {
            b'%' => (hexadecimal(bytes.next()?)? << 4 | hexadecimal(bytes.next()?)?, true),
            byte => (byte, false),
        };
        meant.push(byte);
        match byte {
            b'/' if !was_escaped => spelled.push('/'),
            // Separators to somebody, or the beginning of another escape.
            b'/' | b'\\' | b'%' | 0..=0x1f | 0x7f => return None,
            b';' if was_escaped => return None,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => spelled.push(byte.into()),
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'+' | b',' | b';' | b'=' | b':' | b'@' | b'*'
                if !was_escaped =>
            {
                spelled.push(byte.into());
            }
            _ if was_escaped => spelled.push_str(&format!("%{byte:02X}")),
            _ => return None,
        }
    }
    // A letter that is longer than it has to be is another one to whoever does not look.
    std::str::from_utf8(&meant).ok()?;
    // What stands behind a semicolon is a parameter to some, so that `..;` is a step up.
    let is_step = |part: &str| matches!(part.split(';').next(), Some("." | ".."));
    let mut parts = spelled.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        if is_step(part) || (part.is_empty() && parts.peek().is_some()) {
            return None;
        }
    }
    Some(spelled)
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

impl fmt::Display for HttpPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for PathRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(path) => path.fmt(formatter),
            Self::Below(start) => write!(formatter, "{start}*"),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_spelling_of_each_path() {
        for (text, path) in [
            ("/", "/"),
            ("/a/b?c=../..", "/a/b"),
            ("/%61%2Db", "/a-b"),
            ("/a%20b", "/a%20b"),
            ("/%c3%bc", "/%C3%BC"),
            ("/a;v=1", "/a;v=1"),
            ("/a/", "/a/"),
            ("/...", "/..."),
            ("/%2a", "/%2A"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(path), "{text}");
        }
    }

    #[test]
    fn paths_with_two_meanings_are_refused() {
        for text in [
            "",
            "a",
            "*",
            "http://x/",
            "/..",
            "/a/../b",
            "/a/./b",
            "/%2e%2e/a",
            "/%2E./a",
            "/..;/a",
            "/.;x/a",
            "/a%2fb",
            "/a%5cb",
            "/a\\b",
            "/a//b",
            "//a",
            "/a%00",
            "/a\0",
            "/a%0d%0a",
            "/a b",
            "/a%",
            "/a%4",
            "/a%zz",
            "/ü",
            "/a#b",
            "/%7f",
            "/\u{7f}",
            "/a/%252e%252e/b",
            "/a/..%3B/b",
            "/%c0%ae%c0%ae/",
            "/%ff",
        ] {
            assert_eq!(canonical(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_rule_means_what_it_says() {
        let rule = HttpRule { methods: vec!["GET".parse().unwrap()], path: "/simple/*".parse().unwrap() };
        let allows = |method: &str, path: &str| rule.allows(&method.parse().unwrap(), &path.parse().unwrap());
        assert!(allows("GET", "/simple/requests/"));
        assert!(allows("GET", "/simple/"));
        assert!(!allows("GET", "/simple"));
        assert!(!allows("GET", "/simplex"));
        assert!(!allows("POST", "/simple/requests/"));
        for text in ["/a*", "/*/b", "/**", "*", "/x?a=/*", "/x?a", "/?*"] {
            assert!(text.parse::<PathRule>().is_err(), "{text}");
        }
        for text in ["", "get", "G T", "GET\r\n"] {
            assert!(text.parse::<Method>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_path_is_its_own_spelling(text in "/[ -~]{0,30}") {
            if let Some(path) = canonical(&text) {
                prop_assert_eq!(canonical(&path), Some(path.clone()));
                prop_assert!(!path.split('/').any(|part| part == ".."));
            }
        }
    }
}
