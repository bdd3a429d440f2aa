//! Hostile text as a terminal may show it: nothing in it acts, reverses or hides.

/// Characters that change how others are shown, or are not shown themselves.
#[must_use]
pub const fn is_unseen(character: char) -> bool {
    is_bidi(character)
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Characters that reverse what follows.
pub(crate) const fn is_bidi(character: char) -> bool {
    matches!(character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Bytes for a terminal: controls and unseen characters as `\u{…}`, what is not UTF-8 as `\x…`; a tab stays.
#[must_use]
pub fn inert(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\t' => shown.push('\t'),
                character if character.is_control() || is_unseen(character) => {
                    shown.extend(character.escape_unicode());
                }
                character => shown.push(character),
            }
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}

/// A name for a person: as [`inert`], on one line.
#[must_use]
pub fn inert_name(bytes: &[u8]) -> String {
    inert(bytes).replace('\t', "\\t")
}

/// A name for programs, without loss: a backslash is doubled, and a byte that is not UTF-8 is `\x` and two digits.
#[must_use]
pub fn exact_name(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_a_terminal() {
        assert_eq!(inert(b"a\x1b[2J\tb\xff\r"), "a\\u{1b}[2J\tb\\xff\\u{d}");
        assert_eq!(inert("x\u{202e}y\u{200b}z\u{9b}".as_bytes()), "x\\u{202e}y\\u{200b}z\\u{9b}");
        assert_eq!(inert("größe 日本".as_bytes()), "größe 日本");
        assert_eq!(inert_name(b"a\nb\tc"), "a\\u{a}b\\tc");
        assert_eq!(exact_name(b"a\\b\xfe\n"), "a\\\\b\\xfe\n");
    }
}
