//! What a screen takes, counted at the allocator: the bound that is promised must hold for the worst that can be fed.

use screen::{Screen, Size};

use crate::sys::held_by_this_thread;

const USUAL: Size = Size { rows: 24, columns: 80 };
const LARGE: Size = Size { rows: 60, columns: 200 };

/// Bytes that a screen holds after having been fed.
fn taken(size: Size, feed: impl FnOnce(&mut Screen)) -> usize {
    let before = held_by_this_thread();
    let mut screen = Box::new(Screen::new(size));
    feed(&mut screen);
    let taken = held_by_this_thread() - before;
    drop(screen);
    assert_eq!(held_by_this_thread(), before, "something is left");
    usize::try_from(taken).unwrap()
}

/// What the documentation of `Screen::new` promises: 40 bytes a cell on each of two screens, and a few KiB.
fn bound(size: Size) -> usize {
    let (rows, columns) = (usize::from(size.rows), usize::from(size.columns));
    2 * rows * (columns * 40 + 72) + 16 * 1024
}

fn text(screen: &mut Screen) {
    for _ in 0..200 {
        screen.feed(&[b"0123456789".repeat(30).as_slice(), b"\r\n"].concat());
    }
}

fn everything(screen: &mut Screen) {
    let columns = usize::from(screen.size().columns);
    let line = "\x1b[38;2;1;2;3mx\u{301}\u{302}\u{303}\u{304}\u{305}".repeat(columns);
    for _ in 0..12 {
        screen.feed(format!("\x1b]2;{}\x07\x1b[22t", "t".repeat(5000)).as_bytes());
    }
    for switch in ["", "\x1b[?1049h"] {
        screen.feed(switch.as_bytes());
        (0..screen.size().rows).for_each(|_| screen.feed(line.as_bytes()));
    }
    screen.feed(&b"\x1b[>1u".repeat(100));
    screen.feed(b"\x1b]2;");
    screen.feed(&b"t".repeat(100_000));
}

#[test]
fn memory_is_what_is_promised() {
    for size in [USUAL, LARGE] {
        let empty = taken(size, |_| {});
        let prompt = taken(size, |screen| screen.feed(b"user@host:~/directory$ ls\r\nfile another\r\n$ "));
        let full = taken(size, text);
        let worst = taken(size, everything);
        println!("{size:?}: empty {empty}, a prompt {prompt}, full of text {full}, worst {worst}");
        assert!(empty < 8 * 1024 + usize::from(size.rows) * 100);
        assert!(full <= bound(size) / 3);
        assert!(worst <= bound(size), "{worst} is more than {}", bound(size));
    }
    assert!(bound(USUAL) <= 176 * 1024);
}

/// What a viewer is sent is bounded, too, however dear each cell is.
#[test]
fn what_is_sent_is_what_is_promised() {
    let mut screen = Screen::new(USUAL);
    for switch in ["", "\x1b[?1049h"] {
        screen.feed(switch.as_bytes());
        for number in 0..u32::from(USUAL.rows) * u32::from(USUAL.columns) {
            let red = 100 + number % 150;
            screen.feed(format!("\x1b[1;2;3;5;7;8;9;53;38;2;{red};255;255;48;2;{red};255;255m").as_bytes());
            screen.feed(
                "\x1b[4:5m\x1b[58:2::255:255:255m\u{1f000}\u{e0100}\u{e0101}\u{e0102}\u{e0103}".as_bytes(),
            );
        }
    }
    let cells = 2 * usize::from(USUAL.rows) * usize::from(USUAL.columns);
    let sent = screen.restore().len();
    assert!(sent > 40 * cells && sent <= 110 * cells + 16 * 1024, "{sent} bytes for {cells} cells");
}

/// What a screen once needed is given back or used again, whatever is written.
#[test]
fn memory_does_not_grow() {
    let once = taken(USUAL, everything);
    let often = taken(USUAL, |screen| {
        for _ in 0..20 {
            everything(screen);
            screen.resize(LARGE);
            everything(screen);
            screen.resize(USUAL);
        }
        screen.feed(b"\x1b\\\x1b[?1049l");
        everything(screen);
    });
    assert!(often <= bound(USUAL), "{once} once, {often} after many times");
}
