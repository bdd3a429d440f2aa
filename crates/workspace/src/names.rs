//! Names that some file system takes for one of git's own: by their case, by what Windows and macOS leave out of a name, or
//! by a short form. git refuses them, and so does everything here: a name that went on would make git refuse all others
//! with it, or be a repository on somebody else's machine.

/// Whether git would refuse a name: one that some file system takes for `.git`, or a link called `.gitmodules`.
pub(crate) fn is_refused(name: &[u8], is_link: bool) -> bool {
    // What follows a backslash is a name of its own, for Windows.
    let mut parts = name.split(|byte| *byte == b'\\');
    parts.any(|part| is_repository(part) || (is_link && is_modules(part)))
}

/// Whether some file system takes a name for `.git`.
pub(crate) fn is_repository(name: &[u8]) -> bool {
    let seen = without_ignored(name);
    let short = windows(&seen);
    seen == b".git" || short == b".git" || short == b"git~1"
}

/// Whether some file system takes a name for `.gitmodules`.
fn is_modules(name: &[u8]) -> bool {
    let seen = without_ignored(name);
    let short = windows(&seen);
    seen == b".gitmodules" || short == b".gitmodules" || is_short_modules(short)
}

/// A short form of `.gitmodules`: `gitmod~1`, or the beginning of `gi7eba` with a number.
fn is_short_modules(name: &[u8]) -> bool {
    let Some(tilde) = name.iter().position(|byte| *byte == b'~') else { return false };
    let (begin, number) = (name.get(..tilde).unwrap_or_default(), name.get(tilde + 1..).unwrap_or_default());
    let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    is_number && (begin == b"gitmod" || b"gi7eba".starts_with(begin))
}

/// A name as Windows knows it: up to a colon, without dots and spaces at its end.
fn windows(name: &[u8]) -> &[u8] {
    let end = name.iter().position(|byte| *byte == b':').unwrap_or(name.len());
    let name = name.get(..end).unwrap_or_default();
    let end = name.iter().rposition(|byte| !matches!(byte, b' ' | b'.')).map_or(0, |last| last + 1);
    name.get(..end).unwrap_or_default()
}

/// A name in small letters, without characters that macOS does not see in one.
fn without_ignored(name: &[u8]) -> Vec<u8> {
    let mut seen = Vec::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars().filter(|character| !is_ignored(*character)) {
            let mut bytes = [0; 4];
            seen.extend_from_slice(character.to_ascii_lowercase().encode_utf8(&mut bytes).as_bytes());
        }
        seen.extend_from_slice(chunk.invalid());
    }
    seen
}

/// Those that HFS+ leaves out of names.
const fn is_ignored(character: char) -> bool {
    matches!(character,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_pass_for_a_repository_are_refused() {
        for name in [
            ".git",
            ".GIT",
            ".git. .",
            "git~1",
            ".git::$INDEX",
            "GIT~1 ",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".gi\u{202e}T",
            ".git\u{200c}",
            "a\\.git",
            "a\\b\\git~1",
            ".git\\hooks",
        ] {
            assert!(is_refused(name.as_bytes(), false), "{name:?}");
        }
        for name in
            [".gitignore", ".github", "git", ".gitmodules", "git~2", "a.git", "\u{200c}", "\\", ":", "ä"]
        {
            assert!(!is_refused(name.as_bytes(), false), "{name:?}");
        }
        for name in
            [".gitmodules", ".GITMODULES ", "gitmod~1", "GI7EBA~1", "gi~12345", "~1234567", ".gitmodules:x"]
        {
            assert!(is_refused(name.as_bytes(), true), "{name:?}");
        }
        assert!(!is_refused(b".gitattributes", true) && !is_refused(b"backup~", true));
    }

    /// Whether git takes a name into an index, with every protection on.
    fn is_taken(names: &[(Vec<u8>, bool)]) -> bool {
        let place = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let mut command = Command::new("git");
            command.args(["-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"]).args(words);
            command.current_dir(place.path()).env("HOME", place.path());
            command
        };
        assert!(git(&["init", "-q"]).status().unwrap().success());
        let mut lines = Vec::new();
        for (name, is_link) in names {
            let mode = if *is_link { "120000" } else { "100644" };
            lines.extend_from_slice(format!("{mode} {}\t", "1".repeat(40)).as_bytes());
            lines.extend_from_slice(name);
            lines.push(0);
        }
        let mut command = git(&["update-index", "-z", "--replace", "--index-info"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), &lines).unwrap();
        let output = child.wait_with_output().unwrap();
        // What it refuses it leaves out, and says so.
        output.status.success() && output.stderr.is_empty()
    }

    #[test]
    fn git_says_what_it_refuses() {
        assert!(is_taken(&[(b"plain".to_vec(), false)]));
        for (name, is_link) in [(".g\u{200c}it", false), ("a\\.git", false), ("gi~12345", true)] {
            assert!(!is_taken(&[(name.as_bytes().to_vec(), is_link)]), "{name:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn git_takes_whatever_goes_on(names in prop::collection::vec(
            (prop::collection::vec(prop::sample::select(vec![
                ".git", "git", "GIT", ".", "..", " ", "~1", "~", "1", "234567", ":", "\\", "modules", "mod",
                "gi7eba", "gi7", "\u{200c}", "\u{feff}", "a", "hooks", "ä", "\n",
            ]), 1..5), any::<bool>()), 1..40)) {
            let names: Vec<(Vec<u8>, bool)> = names
                .into_iter()
                .map(|(parts, is_link)| (parts.concat().into_bytes(), is_link))
                .filter(|(name, is_link)| {
                    !matches!(name.as_slice(), b"." | b"..") && !is_refused(name, *is_link)
                })
                .collect();
            prop_assert!(is_taken(&names), "{names:?}");
        }
    }
}
