//! What a registry wants before it answers, as it says in `WWW-Authenticate`.

/// How it wants to know who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// By name and password.
    Basic,
    /// By a token from somebody.
    Bearer {
        /// Whom to ask for it.
        realm: String,
        /// Whom it is for.
        service: Option<String>,
        /// What it is for.
        scope: Option<String>,
    },
}

/// No header of this kind is longer.
const LONGEST: usize = 4096;
/// As many are looked at.
const MOST: usize = 8;

impl Challenge {
    /// The one that is best answered: a token is for one repository and some minutes, a password for everything.
    pub(super) fn choose<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut all: Vec<Self> = headers.take(MOST).filter_map(Self::parse).collect();
        let bearer = all.iter().position(|challenge| matches!(challenge, Self::Bearer { .. }));
        (!all.is_empty()).then(|| all.swap_remove(bearer.unwrap_or(0)))
    }

    pub(super) fn parse(header: &str) -> Option<Self> {
        let header = header.get(..header.len().min(LONGEST))?.trim();
        let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service, mut scope) = (None, None, None);
        let mut rest = rest;
        while let Some((name, value, after)) = parameter(rest) {
            match name.to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                "scope" => scope = Some(value),
                _ => {}
            }
            rest = after;
        }
        let is_address = |realm: &String| realm.starts_with("https://") || realm.starts_with("http://");
        let realm = realm.filter(is_address).filter(|realm| !realm.contains(char::is_control))?;
        Some(Self::Bearer { realm, service, scope })
    }
}

/// The first `name="value"`, and what comes after it.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let text = text.trim_start_matches([' ', ',']);
    let (name, rest) = text.split_once('=')?;
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find(',').unwrap_or(rest.len());
        return Some((name.trim(), rest[..end].trim().to_owned(), &rest[end..]));
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((name.trim(), value, &quoted[at + 1..])),
            '\\' => value.push(letters.next()?.1),
            letter if letter.is_control() => return None,
            letter => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| {
            let text = |text: &str| text.to_owned();
            Some(Challenge::Bearer { realm: text(realm), service: service.map(text), scope: scope.map(text) })
        };
        for (header, expected) in [
            ("Basic realm=\"x\"", Some(Challenge::Basic)),
            (
                "Bearer realm=\"https://a/t\",service=\"s\",scope=\"repository:x:pull,push\"",
                bearer("https://a/t", Some("s"), Some("repository:x:pull,push")),
            ),
            ("bearer realm=\"https://a\\\"b\"", bearer("https://a\"b", None, None)),
            ("Bearer realm=https://a, service=s", bearer("https://a", Some("s"), None)),
            ("Bearer realm=\"file:///etc/passwd\"", None),
            ("Bearer service=\"s\"", None),
            ("Bearer realm=https://a\0b", None),
            ("Bearer realm=\"https://a\\\0b\"", None),
            ("Bearer realm=\"https://a", None),
            ("Digest realm=\"x\"", None),
            ("", None),
        ] {
            assert_eq!(Challenge::parse(header), expected, "{header}");
        }
        let both = ["Basic realm=\"x\"", "Bearer realm=\"https://a\""];
        assert_eq!(Challenge::choose(both.into_iter()), bearer("https://a", None, None));
        assert_eq!(Challenge::choose(both.into_iter().take(1)), Some(Challenge::Basic));
        assert_eq!(Challenge::choose(["Negotiate"].into_iter()), None);
    }
}
