//! The keys by which a person leaves a terminal that goes on.

use std::str::FromStr;

/// A sequence of keys, as the bytes that a terminal sends for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DetachKeys(Vec<u8>);

/// Finds the keys in what is typed. Keys that may be the beginning of the sequence are held back until the next.
#[derive(Debug)]
pub(crate) struct Watch {
    keys: DetachKeys,
    matched: usize,
}

impl Default for DetachKeys {
    fn default() -> Self {
        // Ctrl-P, Ctrl-Q, as people know it.
        Self(vec![0x10, 0x11])
    }
}

impl FromStr for DetachKeys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let key = |name: &str| match name.strip_prefix("ctrl-").map_or(name.as_bytes(), str::as_bytes) {
            [key @ (b'a'..=b'z' | b'@' | b'[' | b'\\' | b']' | b'^' | b'_')] if name.starts_with("ctrl-") => {
                Some(key.to_ascii_uppercase() & 0x1f)
            }
            [key] if key.is_ascii_graphic() && !name.starts_with("ctrl-") => Some(*key),
            _ => None,
        };
        let keys: Option<Vec<u8>> = text.split(',').map(key).collect();
        match keys {
            Some(keys) if keys.len() <= 8 => Ok(Self(keys)),
            _ => Err("keys are single characters or ctrl-a to ctrl-z, separated by commas".to_owned()),
        }
    }
}

impl Watch {
    pub(crate) const fn new(keys: DetachKeys) -> Self {
        Self { keys, matched: 0 }
    }

    /// What of `typed` is for the command, and whether the keys were completed.
    pub(crate) fn look_at(&mut self, typed: &[u8]) -> (Vec<u8>, bool) {
        let mut passed = Vec::with_capacity(typed.len());
        for byte in typed {
            if self.keys.0[self.matched] != *byte {
                passed.extend_from_slice(&self.keys.0[..self.matched]);
                self.matched = 0;
            }
            if self.keys.0[self.matched] == *byte {
                self.matched += 1;
            } else {
                passed.push(*byte);
            }
            if self.matched == self.keys.0.len() {
                self.matched = 0;
                return (passed, true);
            }
        }
        (passed, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &str, pieces: &[&[u8]]) -> (Vec<u8>, bool) {
        let mut watch = Watch::new(keys.parse().unwrap());
        let mut all = Vec::new();
        for piece in pieces {
            let (passed, left) = watch.look_at(piece);
            all.extend(passed);
            if left {
                return (all, true);
            }
        }
        (all, false)
    }

    #[test]
    fn keys_are_found_wherever_they_are_cut() {
        assert_eq!(typed("ctrl-p,ctrl-q", &[b"ab\x10\x11cd"]), (b"ab".to_vec(), true));
        assert_eq!(typed("ctrl-p,ctrl-q", &[b"ab\x10", b"\x11cd"]), (b"ab".to_vec(), true));
        assert_eq!(typed("ctrl-p,ctrl-q", &[b"\x10x\x10\x10", b"\x11"]), (b"\x10x\x10".to_vec(), true));
        assert_eq!(typed("ctrl-p,ctrl-q", &[b"\x10x"]), (b"\x10x".to_vec(), false));
        assert_eq!(typed("d", &[b"abc"]), (b"abc".to_vec(), false));
    }

    #[test]
    fn what_are_no_keys_is_refused() {
        for text in ["", "ctrl-", "ctrl-1", "ab", "a,,b", "ctrl-é", "a,b,c,d,e,f,g,h,i"] {
            assert!(text.parse::<DetachKeys>().is_err(), "{text}");
        }
        assert_eq!("ctrl-p,ctrl-q".parse(), Ok(DetachKeys::default()));
        assert_eq!("ctrl-[,x".parse(), Ok(DetachKeys(vec![0x1b, b'x'])));
    }
}
