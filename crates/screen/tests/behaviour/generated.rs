//! Streams that nobody would write, made at random from what could matter.

use proptest::prelude::*;
use screen::{Screen, Size};

use crate::cuts::{DIRT, check_own};
use crate::scanner;

/// Something that a stream can consist of.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![6 => 0u32..12, 2 => 0u32..120, 1 => Just(65535), 1 => Just(99_999_999)];
    let numbers = prop::collection::vec(number, 0..4)
        .prop_map(|numbers| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(";"));
    let last = prop::sample::select(b"@ABCDEFGHIJKLMPSTXZ`abdefghlmnpqrstu".to_vec());
    let csi = (numbers, last)
        .prop_map(|(numbers, last)| format!("\x1b[{numbers}{}", char::from(last)).into_bytes());
    let modes = prop::sample::select(vec![
        1u16, 5, 6, 7, 9, 25, 47, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1048, 1049, 2004,
        2031,
    ]);
    let mode = (modes, prop::sample::select(vec!['h', 'l']))
        .prop_map(|(mode, turn)| format!("\x1b[?{mode}{turn}").into_bytes());
    let sgr = prop::sample::select(vec![
        "0",
        "1",
        "2",
        "3",
        "4",
        "4:3",
        "5",
        "7",
        "8",
        "9",
        "21",
        "22",
        "24",
        "27",
        "31",
        "42",
        "95",
        "106",
        "38;5;77",
        "48;2;1;2;3",
        "58:5:4",
        "58:2::1:2:3",
        "53",
        "39",
        "49",
        "59",
    ])
    .prop_map(|numbers| format!("\x1b[{numbers}m").into_bytes());
    let text = prop::sample::select(vec![
        "a",
        "hello world",
        "漢",
        "字漢字漢",
        "e\u{301}",
        "\u{308}",
        "👩\u{200d}💻",
        "lqqk#~",
        "             ",
        "0123456789012345678901234567890123456789",
        "\u{9b}",
        "\u{fffd}",
        "ä",
    ])
    .prop_map(|text| text.as_bytes().to_vec());
    let other = prop::sample::select(vec![
        &b"\r"[..],
        b"\n",
        b"\t",
        b"\x08",
        b"\x0e",
        b"\x0f",
        b"\x1b7",
        b"\x1b8",
        b"\x1bD",
        b"\x1bE",
        b"\x1bM",
        b"\x1bH",
        b"\x1b=",
        b"\x1b>",
        b"\x1b(0",
        b"\x1b)0",
        b"\x1b(B",
        b"\x1b)A",
        b"\x1b#8",
        b"\x1b[4h",
        b"\x1b[4l",
        b"\x1b[20h",
        b"\x1b[20l",
        b"\x1b[!p",
        b"\x1b[3 q",
        b"\x1b[0 q",
        b"\x1b]2;title\x07",
        b"\x1b]0;\xc3\xbc\xff\x1b\\",
        b"\x1b[22;2t",
        b"\x1b[23;2t",
        b"\x1b]52;c;aGk=\x07",
        b"\x1b]8;;http://x\x07",
        b"\x1bPq#0\x1b\\",
        b"\x1b_a\x1b\\",
        b"\x1b",
        b"\x1b[",
        b"\x1b]",
        b"\x1bP",
        b"\x18",
        b"\xff",
        b"\xe6\xbc",
        b"\x1b[>5u",
        b"\x1b[<u",
        b"\x1b[=3;2u",
        b"\x1b[>4;2m",
        b"\x1b[6n",
        b"\x1b[c",
        b"\x1b]10;?\x07",
        b"\x1bc",
        b"\x1bX",
        b"\x1bk",
        b"\x1b(",
        b"\x7f",
    ])
    .prop_map(<[u8]>::to_vec);
    prop_oneof![6 => text, 5 => csi, 3 => mode, 3 => sgr, 5 => other, 1 => prop::collection::vec(any::<u8>(), 0..8)]
}

/// A stream that can be read when it is printed.
#[derive(Clone)]
struct Stream(Vec<u8>);

impl std::fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.0.escape_ascii())
    }
}

fn stream() -> impl Strategy<Value = Stream> {
    prop::collection::vec(piece(), 0..60).prop_map(|pieces| Stream(pieces.concat()))
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![
        (1u16..8, 1u16..30).prop_map(|(rows, columns)| Size { rows, columns }),
        Just(Size { rows: 1, columns: 1 }),
        Just(Size { rows: 24, columns: 80 }),
    ]
}

/// Cases of each kind.
const CASES: u32 = 1000;

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whoever comes late sees the same, whatever was written and wherever the cut is.
    #[test]
    fn late_viewers_see_the_same(stream in stream(), at in any::<prop::sample::Index>(), size in size()) {
        let at = at.index(stream.0.len() + 1);
        check_own(&stream.0, at, size, b"");
        check_own(&stream.0, at, size, DIRT);
    }

    /// A stream may come in pieces of any length.
    #[test]
    fn pieces_make_no_difference(stream in stream(), length in 1usize..7, size in size()) {
        let mut whole = Screen::new(size);
        whole.feed(&stream.0);
        let mut pieces = Screen::new(size);
        stream.0.chunks(length).for_each(|piece| pieces.feed(piece));
        prop_assert_eq!(whole.restore(), pieces.restore());
    }

    /// Windows change their size at any moment, and late viewers still see the same.
    #[test]
    fn sizes_change(pieces in prop::collection::vec((stream(), size()), 1..5)) {
        let mut early = Screen::new(Size { rows: 5, columns: 10 });
        for (stream, size) in pieces {
            early.feed(&stream.0);
            early.resize(size);
            let restored = early.restore();
            scanner::check(&restored);
            let mut late = Screen::new(size);
            late.feed(&restored);
            prop_assert!(early == late);
        }
    }

    /// Bytes without any sense.
    #[test]
    fn noise_is_survived(noise in prop::collection::vec(any::<u8>(), 0..2000), size in size()) {
        let mut screen = Screen::new(size);
        screen.feed(&noise);
        scanner::check(&screen.restore());
        scanner::check(&screen.leave());
    }
}
