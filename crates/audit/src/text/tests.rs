//! Any bytes come back, and nothing that a terminal acts on or an eye does not see comes through.

use proptest::prelude::*;

use super::*;

#[test]
fn what_can_be_read_stays_readable() {
    for (bytes, text) in [
        (&b"ls -la /work"[..], "ls -la /work"),
        ("größe 漢字 🦀".as_bytes(), "größe 漢字 🦀"),
        (b"a\\b\"c'd", "a\\\\b\"c'd"),
        (b"\n\r\t\0\x1b[2J\x7f", "\\n\\r\\t\\x00\\x1b[2J\\x7f"),
        (b"\xff\xc3\x28\xe2\x82", "\\xff\\xc3(\\xe2\\x82"),
        ("\u{9b}31m".as_bytes(), "\\u{9b}31m"),
        (
            "a\u{202e}b\u{2066}c\u{200b}\u{feff}\u{ad}".as_bytes(),
            "a\\u{202e}b\\u{2066}c\\u{200b}\\u{feff}\\u{ad}",
        ),
        ("\u{e0041}\u{fe0f}\u{301}\u{2028}\u{a0}".as_bytes(), "\\u{e0041}\\u{fe0f}\\u{301}\\u{2028}\\u{a0}"),
        ("\u{3164}\u{2800}\u{e000}\u{10ffff}".as_bytes(), "\\u{3164}\\u{2800}\\u{e000}\\u{10ffff}"),
    ] {
        assert_eq!(Text::new(bytes).as_str(), text);
        assert_eq!(Text::new(bytes).bytes(), bytes);
    }
}

#[test]
fn a_long_text_says_how_much_is_missing() {
    let text = Text::new([b'a'; TEXT_LIMIT + 17]);
    assert_eq!(text.as_str(), format!("{}\\[17 bytes more]", "a".repeat(TEXT_LIMIT)));
    assert_eq!((text.bytes().len(), text.missing()), (TEXT_LIMIT, 17));
    assert_eq!(Text::new([b'a'; TEXT_LIMIT]).missing(), 0);
    // A character is not cut in two.
    let text = Text::within("aé".as_bytes(), 2);
    assert_eq!((text.as_str(), text.missing()), ("a\\[2 bytes more]", 2));
    // A text that looks like the mark is none.
    let text = Text::new("\\[9 bytes more]");
    assert_eq!((text.missing(), text.bytes()), (0, b"\\[9 bytes more]".to_vec()));
}

#[test]
fn a_wrong_escape_is_refused() {
    for wrong in [
        "\\",
        "\\q",
        "\\x1",
        "\\x+1",
        "\\xg0",
        "\\u{}",
        "\\u{d800}",
        "\\u{1234567}",
        "\\u{+41}",
        "\\u{41",
        "\\[0 bytes more]",
        "\\[+1 bytes more]",
        "\\[1 bytes more]x",
        "\\[]",
        "\\x1é",
    ] {
        assert!(wrong.parse::<Text>().is_err(), "{wrong:?}");
    }
}

#[test]
fn what_somebody_else_left_raw_is_escaped() {
    let text: Text = "a\u{1b}]0;x\u{7}\u{202e}".parse().unwrap();
    assert_eq!(text.as_str(), "a\\x1b]0;x\\x07\\u{202e}");
}

/// Bytes as hostile programs choose them: any, and often what is special.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let special = prop_oneof![
        Just(b"\\".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"\x1b[31m".to_vec()),
        Just("\u{202e}".as_bytes().to_vec()),
        Just(b"\\[5 bytes more]".to_vec()),
        Just(b"\\u{41}".to_vec()),
        any::<char>().prop_map(|character| character.to_string().into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(special, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_survive(bytes in hostile()) {
        let Fit { text, cost, missing } = Text::fit(&bytes, usize::MAX);
        prop_assert_eq!((text.bytes(), missing), (bytes, 0));
        let json = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(json.len(), cost + 2);
        prop_assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), text);
    }

    #[test]
    fn nothing_that_acts_comes_through(bytes in hostile()) {
        let json = serde_json::to_string(&Text::new(&bytes)).unwrap();
        prop_assert!(json.chars().all(|c| c == ' ' || c.is_ascii_graphic() || !c.is_ascii() && is_visible(c)));
    }

    #[test]
    fn a_cut_loses_the_end_only(bytes in hostile(), room in 0_usize..100) {
        let Fit { text, cost, missing } = Text::fit(&bytes, room);
        let kept = text.bytes();
        prop_assert_eq!(text.missing(), missing as u64);
        prop_assert!(cost <= room);
        prop_assert!(bytes.starts_with(&kept));
        prop_assert_eq!(kept.len() as u64 + text.missing(), bytes.len() as u64);
        let mark = if missing > 0 { format!("\\[{missing} bytes more]").len() + 1 } else { 0 };
        prop_assert_eq!(serde_json::to_string(&text).unwrap().len(), cost + mark + 2);
        // It is cut where it has to be: the next character would not have fitted.
        prop_assert!(missing == 0 || cost + 11 > room);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = text.parse::<Text>();
    }
}
