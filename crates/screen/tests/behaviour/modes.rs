//! Each kind of state by itself, with a clean and a dirty viewer, ours and alacritty's.

use screen::{Screen, Size};

use crate::alacritty::Viewer;
use crate::cuts::{DIRT, check_other, check_own};

const SMALL: Size = Size { rows: 6, columns: 20 };

/// Every cut of a stream.
#[track_caller]
fn check_all(stream: &[u8]) {
    for at in 0..=stream.len() {
        for state_before in [b"".as_slice(), DIRT] {
            check_own(stream, at, SMALL, state_before);
            check_other(stream, at, SMALL, state_before);
        }
    }
}

#[track_caller]
fn check_own_only(stream: &[u8]) {
    for at in 0..=stream.len() {
        for state_before in [b"".as_slice(), DIRT] {
            check_own(stream, at, SMALL, state_before);
        }
    }
}

#[test]
fn colours_and_attributes() {
    check_all(
        b"\x1b[31;42ma\x1b[91;102mb\x1b[38;5;200;48;5;17mc\x1b[38;2;1;2;3;48;2;4;5;6md\x1b[0;1;2;3mE\x1b[4mf\
          \x1b[4:3mg\x1b[4:2mh\x1b[58:2::9:8:7mi\x1b[58;5;3mj\x1b[0;5;7;8;9mk\x1b[22;23;24;25;27;28;29ml\x1b[0m.",
    );
    check_own_only(
        b"\x1b[53mover\x1b[55m \x1b[4:4mdotted\x1b[4:5mdashed\x1b[59mx\x1b[38:5:9my\x1b[48:2:1:2:3mz",
    );
}

#[test]
fn erasing_keeps_the_background() {
    check_all(
        b"text\x1b[44m\x1b[K\r\nmore\x1b[2;3H\x1b[1K\x1b[3;1H\x1b[2Kab\x1b[4X\x1b[5Gz\
          \x1b[4;1H\x1b[Jx\x1b[41m\n\n\n\n.",
    );
    check_all(b"0123456789\x1b[4G\x1b[43m\x1b[3@\x1b[2P\x1b[1;1H\x1b[L\x1b[2M.");
}

#[test]
fn wide_and_combining_characters() {
    check_all("漢字e\u{301}o\u{308}\u{323} 漢\x1b[2Dab\x1b[1;2Hx".as_bytes());
    // Alacritty leaves halves of wide characters when cells move.
    check_own_only("漢字e\u{301}漢\x1b[2D\x1b[Pab\x1b[1;2Hx\x1b[1;4H\x1b[@\x1b[1;2H\x1b[@".as_bytes());
    check_all("1234567890123456789漢next\x1b[1;19H漢e\u{301}".as_bytes());
    check_own_only("👩\u{200d}💻 ☂\u{fe0f}z\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}".as_bytes());
}

#[test]
fn pending_wrap_and_wrapped_lines() {
    check_all(b"12345678901234567890abc\r\n12345678901234567890\x1b[1mX\x1b7\x1b[H\x1b8Y");
    check_all("123456789012345678漢\x1b[31mab".as_bytes());
    // Alacritty still calls a line wrapped that has moved to where a wrap is pending.
    check_own_only(b"\x1b[2;1H1234567890123456789012345\x1b[1;1H12345678901234567890\x1b[Sz");
    check_all(b"\x1b[?7l12345678901234567890abcdef\x1b[?7h!?");
}

#[test]
fn regions_origin_and_insert() {
    check_all(
        b"a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[?6h\x1b[2;2HX\n\n\n\
          \x1bM\x1bM\x1bM.\x1b[2;2HY\x1b[4hin\x1b[2;2Hs\x1b[4l.",
    );
    // Alacritty does not move the cursor when origin mode ends, nor saves that mode.
    check_own_only(b"\x1b[2;5r\x1b[?6h\x1b[3;3H\x1b7\x1b[1;1Hq\x1b8w\x1b[?6l\x1b8x\x1b[2;3r\x1b8y\x1b[rz");
}

#[test]
fn alternate_screen_over_the_primary() {
    check_all(
        b"shell$ vim\r\n\x1b[1;33m\x1b[?1049h\x1b[Hin vim\x1b7\x1b[3;3H~\x1b8\x1b[?1049lback at the shell",
    );
    check_own_only(
        b"shell\x1b[?47halt\x1b[?47lback\x1b7\x1b[?1047hagain\x1b[?1048h\x1b[H\x1b[?1048l!\x1b[?1047l.\x1b8,",
    );
}

#[test]
fn what_typing_depends_on() {
    check_all(
        b"\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h\x1b[?1002h\x1b[?1006h\
          \x1b[5 q\x1b[?25lx\x1b[?1002l\x1b[?1006l\x1b>\x1b[?1l.",
    );
    check_own_only(b"\x1b[>1u\x1b[>5u\x1b[=3;2ux\x1b[?1049h\x1b[>7u\x1b[<u\x1b[?1049l\x1b[<5u\x1b[=8u.");
    check_own_only(
        b"\x1b[>4;2m\x1b[?9h\x1b[?1015h\x1b[?1016h\x1b[?1003h\x1b[?2031h\x1b[?5h\x1b[20hx\ny\x1b[>4m",
    );
}

#[test]
fn character_sets() {
    check_all(b"\x1b(0lqqk\x1b(Blqqk\x1b)0\x0elqk\x0flqk\x1b7\x1b(0q\x1b8q\x0eq");
    check_own_only(b"\x1b)0\x0f\x1b7\x0e\x1b8q\x0eq");
    check_all(b"\x1b(0\x1b7\x1b(B1234567890123456789q\x1b>.");
    check_own_only(b"\x1b(A#\x1b(B#\x1b(0\x1b[5bq\x1b[5b");
}

#[test]
fn tab_stops() {
    check_all(b"\ta\x1b[3g\x1b[5G\x1bH\x1b[9G\x1bH\r\tb\tc\x1b[Z\x1b[Zd\x1b[0g\r\te");
}

#[test]
fn titles_and_their_stack() {
    check_all("\x1b]2;one\x07a\x1b[22;2t\x1b]0;zwei ü\x1b\\b\x1b[23;2tc".as_bytes());
    check_own_only(
        b"\x1b]2;a\x07\x1b[22t\x1b]2;b\x07\x1b[22;0t\x1b]2;c\x07\x1b[23t\x1b[23t\x1b[23t\x1b[23tx",
    );
}

#[test]
fn repeated_characters() {
    check_all(b"a\x1b[3bb\x1b[1mc\x1b[30bd");
}

#[test]
fn a_viewer_comes_within_a_sequence() {
    check_all(
        "\x1b[1;31mé漢\x1b]2;tïtle\x1b\\x\x1bP1$qm\x1b\\y\x1b_apc\x1b\\z\x1b]52;c;aGk=\x07.".as_bytes(),
    );
    check_own_only(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\x1b]1337;\x18y\x1b#8\x1bkname\x1b\\.");
}

#[test]
fn sequences_that_are_none() {
    check_own_only(b"a\x1b[1<5mb\x1b[1 2mc\x1b[3?7hd\x1b[ 1me");
    let long = [b"a\x1b[".as_slice(), &b"1;".repeat(140), b"31mb"].concat();
    check_own_only(&long);
}

#[test]
fn resets() {
    check_own_only(b"\x1b[41m\x1b[?1049h\x1b[2;3r\x1b[?6h\x1b(0abc\x1bcdef\x1b[3;4r\x1b[1m\x1b[4h\x1b[!pghi");
}

/// What leaving must put back, seen from the outside.
#[test]
fn leaving_puts_a_terminal_in_order() {
    let mut screen = Screen::new(SMALL);
    screen.feed(b"$ vim\r\n");
    screen.feed(DIRT);
    let mut viewer = Viewer::new(SMALL);
    viewer.feed(b"\x1b]2;my own\x07");
    let untouched = viewer.facts();
    viewer.feed(&screen.restore());
    assert_ne!(viewer.facts(), untouched);
    viewer.feed(&screen.leave());
    let only = |facts: &[String], start: &str| {
        facts.iter().filter(|f| f.starts_with(start)).cloned().collect::<Vec<_>>()
    };
    let after = viewer.facts();
    for start in ["modes", "shape", "title", "charsets", "pen"] {
        assert_eq!(only(&after, start), only(&untouched, start));
    }
    assert!(after[0].contains('v'), "the shell's screen is there: {}", after[0]);
    assert_eq!(only(&after, "cursor"), ["cursor Point { line: Line(1), column: Column(0) } wrap false"]);
    viewer.feed(b"\x1b[6;1H\n\tx");
    let after = viewer.facts();
    assert!(after[5].starts_with("line 5: ||||||||x"), "a tab goes where it did before: {}", after[5]);
}

/// What the owner's terminal showed is in its history and not destroyed.
#[test]
fn restoring_keeps_what_was_there_in_the_history() {
    let mut viewer = Viewer::new(SMALL);
    viewer.feed(b"$ agentbox attach\r\nprecious");
    viewer.feed(&Screen::new(SMALL).restore());
    assert!(viewer.history().contains("precious"), "{:?}", viewer.history());
    let is_empty = |fact: &String| !fact.starts_with("line") || fact.ends_with("|".repeat(19).as_str());
    assert!(viewer.facts().iter().all(is_empty), "an empty screen is shown");
}

#[test]
fn sizes_are_cut_to_what_there_is() {
    assert_eq!(Screen::new(Size { rows: 0, columns: 0 }).size(), Size { rows: 1, columns: 1 });
    let mut screen = Screen::new(Size { rows: u16::MAX, columns: u16::MAX });
    assert_eq!(screen.size(), Size::LARGEST);
    screen.resize(Size { rows: 3, columns: 0 });
    assert_eq!(screen.size(), Size { rows: 3, columns: 1 });
}
