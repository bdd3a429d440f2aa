//! Programs that try to take memory or time, or to reach a later viewer's terminal.

use std::time::{Duration, Instant};

use screen::{Screen, Size};

use crate::scanner;

const USUAL: Size = Size { rows: 24, columns: 80 };

/// Bytes of each attack, and the time for them on a machine with other things to do and code that is not optimised.
const ATTACK: usize = 10_000;
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn nothing_from_inside_reaches_a_later_viewer_but_text() {
    for secret in [
        "\x1b]52;c;c2VjcmV0\x07",
        "\x1b]8;;http://secret\x07x\x1b]8;;\x07",
        "\x1bPsecret\x1b\\",
        "\x1b[6n\x1b[c",
        "\x1b]2;a\u{9b}6n\u{85}b\x07",
        "\x1b]2;a\nb\rc\x07",
        "\x1b]52;c;secret",
        "\x1bPsecret",
        "\x1b_secret\x1b",
        "\x1b]4;1;?\x07",
        "\x1b[?1049;6n",
        "\x1b]2;un\u{9c}finished",
    ] {
        let mut screen = Screen::new(USUAL);
        screen.feed(secret.as_bytes());
        let restored = screen.restore();
        scanner::check(&restored);
        assert!(!String::from_utf8_lossy(&restored).contains("secret"), "{secret:?}");
    }
}

/// Megabytes of what never ends, and what comes after them is read again.
#[test]
fn unfinished_strings_take_no_memory() {
    for start in
        ["\x1b]2;", "\x1b]52;c;", "\x1bP", "\x1b_", "\x1b^", "\x1bX", "\x1b]", "\x1b[", "\x1b(", "\x1bk"]
    {
        let mut screen = Screen::new(USUAL);
        screen.feed(start.as_bytes());
        let filler = if start == "\x1b[" { b"1;".repeat(500_000) } else { b" ".repeat(1_000_000) };
        for _ in 0..8 {
            screen.feed(&filler);
        }
        let restored = screen.restore();
        scanner::check(&restored);
        assert!(restored.len() < 4096, "{start:?} left {} bytes", restored.len());
        let mut late = Screen::new(USUAL);
        late.feed(&restored);
        for screen in [&mut screen, &mut late] {
            screen.feed(b"m\x1b\\\x1b[Hback");
        }
        assert!(screen == late, "{start:?}");
        assert!(String::from_utf8_lossy(&screen.restore()).contains("back"), "{start:?}");
    }
}

/// A few bytes must not ask for much work. Each of these repeats a short sequence that is dear somewhere.
#[test]
fn short_sequences_take_short_time() {
    for size in [USUAL, Size::LARGEST] {
        for sequence in [
            "\x1b[41m\x1b[2J",
            "\x1b[65535S",
            "\x1b[65535T",
            "\x1b[65535L",
            "\x1b[65535M",
            "\x1b[65535@",
            "\x1b[65535P",
            "\x1b[65535X",
            "\x1b[65535I",
            "\x1b[65535Z",
            "\x1b[H\x1b[J",
            "\x1b[?1049h\x1b[?1049l",
            "\x1bc",
            "\n",
            "\x1bM",
            "\x1b[22t",
            "\x1b]2;t\x07",
            "e\u{301}",
            "\x1b[H\u{301}",
            "x\x1b[65535b",
            "\x1b#8",
            "漢\x1b[65535b",
        ] {
            let stream = sequence.repeat(ATTACK / sequence.len());
            let mut screen = Screen::new(size);
            let start = Instant::now();
            screen.feed(stream.as_bytes());
            let taken = start.elapsed();
            assert!(taken < PATIENCE, "{sequence:?} on {size:?}: {taken:?} for {} bytes", stream.len());
        }
    }
}

/// Twice the bytes take about twice the time.
#[test]
fn time_is_linear() {
    let taken = |megabytes: usize| {
        let mut screen = Screen::new(USUAL);
        let stream =
            b"\x1b[31mred\x1b[0m and a line of text\r\n\x1b]2;title\x07\x1b[5;5H\x1b[K".repeat(16_000);
        let start = Instant::now();
        (0..megabytes).for_each(|_| screen.feed(&stream));
        start.elapsed()
    };
    taken(1);
    let (short, long) = (taken(2), taken(8));
    assert!(long < short * 10, "{short:?} for two, {long:?} for eight");
}

#[test]
fn sizes_change_all_the_time() {
    let mut screen = Screen::new(USUAL);
    let mut state = 1u32;
    for _ in 0..2000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, _, rows, columns] = state.to_be_bytes();
        screen.resize(Size { rows: u16::from(rows), columns: u16::from(columns) * 3 });
        screen.feed("漢字 e\u{301}\x1b[41m\x1b[K\x1b[3;9r\x1b[?6h\x1b7\x1b[?1049h\r\n".as_bytes());
        if state.is_multiple_of(3) {
            screen.feed(b"\x1b[?1049l");
        }
    }
    scanner::check(&screen.restore());
}

#[test]
fn the_largest_screen_is_restored() {
    let mut screen = Screen::new(Size::LARGEST);
    for number in 0u32..100_000 {
        screen.feed(format!("\x1b[38;2;{};{};{}mx", number % 256, number % 255, number % 254).as_bytes());
    }
    let restored = screen.restore();
    scanner::check(&restored);
    let mut late = Screen::new(Size::LARGEST);
    late.feed(&restored);
    assert!(screen == late);
}
