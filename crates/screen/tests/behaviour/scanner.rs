//! Reads what a viewer is sent as a suspicious terminal would: only sequences of this list, and nothing else that is
//! not a character. The list is written here a second time on purpose.

/// What may be said, with `#` for a number below 65536 and `…` for numbers with separators between them.
const ALLOWED: &[&str] = &[
    "[#;#H", "[#G", "[#C", "[…m", "[#;#r", "[r", "[H", "[2J", "[3g", "[# q", "[4h", "[4l", "[20h", "[20l",
    "[2l", "[12h", "[22;2t", "[23;2t", "[<16u", "[=#;1u", "[>#u", "[>4;#m", "[?1h", "[?1l", "[?5h", "[?5l",
    "[?6h", "[?6l", "[?7h", "[?7l", "[?9h", "[?9l", "[?25h", "[?25l", "[?69l", "[?1000h", "[?1000l",
    "[?1002h", "[?1002l", "[?1003h", "[?1003l", "[?1004h", "[?1004l", "[?1005h", "[?1005l", "[?1006h",
    "[?1006l", "[?1007h", "[?1007l", "[?1015h", "[?1015l", "[?1016h", "[?1016l", "[?1049h", "[?1049l",
    "[?2004h", "[?2004l", "[?2026l", "[?2031h", "[?2031l", "\\", "7", "H", "=", ">", "%G", "(0", "(A", "(B",
    ")0", "8", ")A", ")B", "[?12h", "[?12l", "[22;0t", "[22;1t", "[23;0t", "[23;1t",
];

/// Panics at the first thing that is not on the list.
#[track_caller]
pub(crate) fn check(bytes: &[u8]) {
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            0x1b => match sequence(after) {
                Taken::Whole(length) => rest = &after[length..],
                Taken::Unfinished => return,
            },
            b'\r' | b'\n' | 0x0e | 0x0f | 0x18 => rest = after,
            0..0x20 | 0x7f => panic!("control character {byte:#x} in {}", excerpt(rest)),
            _ => {
                let end = rest.iter().position(|byte| *byte < 0x20 || *byte == 0x7f).unwrap_or(rest.len());
                let (text, after) = rest.split_at(end);
                check_text(text, after.is_empty());
                rest = after;
            }
        }
    }
}

/// Characters without C1 controls; only the last one of all may be unfinished.
#[track_caller]
fn check_text(text: &[u8], is_last: bool) {
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) if is_last && error.error_len().is_none() => {
            std::str::from_utf8(&text[..error.valid_up_to()]).unwrap()
        }
        Err(_) => panic!("not UTF-8: {}", excerpt(text)),
    };
    assert!(!text.chars().any(char::is_control), "a control character in {text:?}");
}

enum Taken {
    Whole(usize),
    /// What the rest of the stream goes on with; it must be the last thing.
    Unfinished,
}

#[track_caller]
fn sequence(after: &[u8]) -> Taken {
    match after.first() {
        Some(b']') => command(after),
        Some(b'[') => {
            let Some(end) = after.iter().skip(1).position(|byte| (0x40..0x7f).contains(byte)) else {
                assert!(after[1..].iter().all(|byte| (0x20..0x40).contains(byte)), "{}", excerpt(after));
                return Taken::Unfinished;
            };
            let text = std::str::from_utf8(&after[..end + 2]).unwrap();
            assert!(is_allowed(text), "not on the list: ESC {text:?}");
            Taken::Whole(end + 2)
        }
        Some(b'^') => {
            assert!(matches!(after, [b'^'] | [b'^', 0x1b]), "{}", excerpt(after));
            Taken::Unfinished
        }
        None => Taken::Unfinished,
        Some(_) => {
            let Some(end) = after.iter().position(|byte| !(0x20..0x30).contains(byte)) else {
                return Taken::Unfinished;
            };
            let text = std::str::from_utf8(&after[..=end]).unwrap();
            assert!(is_allowed(text), "not on the list: ESC {text:?}");
            Taken::Whole(end + 1)
        }
    }
}

/// A title, or an unfinished command at the very end.
#[track_caller]
fn command(after: &[u8]) -> Taken {
    let end = after.iter().position(|byte| *byte < 0x20 || *byte == 0x7f);
    let text = &after[1..end.unwrap_or(after.len())];
    let is_title = matches!(text, [b'0'..=b'2', b';', ..]);
    match end.map(|end| &after[end..]) {
        Some([0x1b, b'\\', ..]) => {
            assert!(text.starts_with(b"2;"), "not a title: {}", excerpt(after));
            check_text(text, false);
            Taken::Whole(text.len() + 3)
        }
        None | Some([0x1b]) => {
            let is_number = text.len() <= 4 && text.iter().all(u8::is_ascii_digit);
            assert!(is_title || is_number || text == b"9999;", "{}", excerpt(after));
            check_text(text, true);
            Taken::Unfinished
        }
        Some(_) => panic!("a control character in a title: {}", excerpt(after)),
    }
}

fn is_allowed(sequence: &str) -> bool {
    ALLOWED.iter().any(|allowed| matches(allowed, sequence))
}

fn matches(pattern: &str, sequence: &str) -> bool {
    let Some(place) = pattern.find(['#', '…']) else { return pattern == sequence };
    let (start, rest) = pattern.split_at(place);
    let Some(sequence) = sequence.strip_prefix(start) else { return false };
    let is_list = rest.starts_with('…');
    let is_number =
        |character: char| character.is_ascii_digit() || (is_list && matches!(character, ';' | ':'));
    let end = sequence.find(|character| !is_number(character)).unwrap_or(sequence.len());
    let is_small = is_list || sequence[..end].parse::<u16>().is_ok();
    is_small && matches(rest.trim_start_matches(['#', '…']), &sequence[end..])
}

fn excerpt(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(60)].escape_ascii().to_string()
}

#[test]
fn the_scanner_finds_what_it_should() {
    let bad: [&[u8]; 14] = [
        b"\x1b[6n",
        b"\x1b[c",
        b"\x1b[>c",
        b"\x1b]52;c;aGk=\x07",
        b"\x1b]52;c;aG",
        b"\x1b]8;;http://x\x1b\\",
        b"\x1bP+q\x1b\\",
        b"\x1b_x\x1b\\",
        b"\x1b]2;a\x07",
        b"\x1bc",
        b"\x1b[?996n",
        b"\xc2\x9b6n",
        b"a\x05",
        b"\xff.",
    ];
    for bytes in bad {
        assert!(std::panic::catch_unwind(|| check(bytes)).is_err(), "{}", bytes.escape_ascii());
    }
    check("\x1b[1;2Hé\x1b[0;38;5;200m\x1b[58:2::1:2:3m\x1b]2;a title\x1b\\\x1b[3".as_bytes());
}
