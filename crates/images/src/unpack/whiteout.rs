//! How a layer says what it takes away from those below it: by files with names that begin with `.wh.`.

use archive::Name;

use super::LayerError;

const PREFIX: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// What is taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whiteout {
    /// Everything that is below the directory of this entry.
    All,
    /// One name in it.
    One(Vec<u8>),
    /// Nothing: a note of a file system's that made such layers once.
    Nothing,
}

impl Whiteout {
    /// What the entry of this name takes away; none where it is an ordinary one.
    pub(super) fn of(name: &Name) -> Result<Option<Self>, LayerError> {
        // A name between the slashes that begins so would be a directory of nobody's.
        let (directory, last) = name.split();
        let wrong = || LayerError::Whiteout(name.as_bytes().iter().take(256).copied().collect());
        if directory.split(|byte| *byte == b'/').any(|part| part.starts_with(PREFIX)) {
            return Err(wrong());
        }
        let Some(rest) = last.strip_prefix(PREFIX) else { return Ok(None) };
        Ok(Some(match rest {
            _ if last == OPAQUE => Self::All,
            b"" | b"." | b".." => return Err(wrong()),
            rest if rest.starts_with(PREFIX) => Self::Nothing,
            rest => Self::One(rest.to_vec()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unpack::LIMITS;

    fn of(text: &[u8]) -> Result<Option<Whiteout>, String> {
        Whiteout::of(&Name::parse(text, &LIMITS).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn whiteouts_are_told() {
        assert_eq!(of(b"a/b"), Ok(None));
        assert_eq!(of(b"a/.wh.b"), Ok(Some(Whiteout::One(b"b".to_vec()))));
        assert_eq!(of(b".wh..wh..opq"), Ok(Some(Whiteout::All)));
        assert_eq!(of(b"a/.wh..wh.plnk"), Ok(Some(Whiteout::Nothing)));
        for text in [&b"a/.wh."[..], b".wh..", b".wh...", b".wh.a/b", b"x/.wh..wh..opq/y"] {
            assert!(of(text).is_err(), "{}", text.escape_ascii());
        }
    }
}
