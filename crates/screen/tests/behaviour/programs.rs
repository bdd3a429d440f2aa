//! Real programs, cut at many places.

use screen::Size;

use crate::cuts::{DIRT, Dice, check_other, check_own};
use crate::recording::{Run, record};

/// Places at which each program's output is cut.
const CUTS: usize = 80;

/// Runs a program and cuts what it wrote. A text must have been written, or the program did not do its part.
fn check_program(argv: &[&str], keys: &[&str], expected: &[&str]) {
    for (size, term) in [
        (Size { rows: 24, columns: 80 }, "xterm-256color"),
        (Size { rows: 37, columns: 101 }, "tmux-256color"),
    ] {
        let Some(stream) = record(&Run { argv, keys, size, term }) else { return };
        let text = String::from_utf8_lossy(&stream).into_owned();
        for expected in expected {
            assert!(
                text.contains(expected),
                "{argv:?} did not write {expected:?} but {}",
                stream.escape_ascii()
            );
        }
        let mut dice = Dice::new(u64::try_from(stream.len()).unwrap());
        for number in 0..CUTS {
            let at = dice.below(stream.len() + 1);
            let state_before = if number % 2 == 0 { b"".as_slice() } else { DIRT };
            check_own(&stream, at, size, state_before);
            check_other(&stream, at, size, state_before);
        }
        println!("{}: {} bytes as {term}", argv[0], stream.len());
    }
}

#[test]
fn bash_with_editing() {
    check_program(
        &["bash", "--norc"],
        &[
            "echo one two three\r",
            "echo a long line that is edited in the middle\x01\x1bf\x1bf inserted\x05 and at the end\x17\x17\r",
            "printf 'wide 漢字 and e\\xcc\\x81 \\033[1;38;5;208mcolour\\033[0m'\r",
            "\x12ech",
            "\x07",
            "\x15for i in $(seq 40); do echo line $i; done\r",
            "exit\r",
        ],
        &["inserted", "漢字", "line 40"],
    );
}

#[test]
fn vim_edits_splits_selects_and_quits() {
    check_program(
        &["vim", "-u", "NONE", "-N"],
        &[
            ":set nu title mouse=a ruler showcmd laststatus=2\r",
            "ihello world\rsecond line with 漢字\rthird\x1b",
            ":syntax on\r:vsplit\r:split\r",
            "ggvjj",
            "\x1b:set hlsearch\r/line\r",
            "yyp10p",
            "\x06\x02:terminal\r",
            "exit\r",
            ":help\r",
            ":qa!\r",
        ],
        &["hello", "\x1b[?1049h", "\x1b[?1049l"],
    );
}

#[test]
fn nano_writes() {
    check_program(
        &["nano", "-m"],
        &["some text\rand more\r", "\x0b\x15\x15", "\x17more\r", "\x18n"],
        &["GNU nano"],
    );
}

#[test]
fn less_on_colours() {
    let script = "for i in $(seq 200); do printf '\\033[%dm%d\\033[0m \\033[48;2;9;%d;200mx\\033[0m\\n' \
                  $((30 + i % 8)) $i $i; done | less -R";
    check_program(&["sh", "-c", script], &[" ", "b", "/77\r", "G", "g", "&9\r", "q"], &["200"]);
}

#[test]
fn top_refreshes() {
    check_program(&["top", "-d", "0.2"], &["z", "x", "1", "?", "\x1b", "q"], &["PID"]);
}

#[test]
fn htop_with_its_mouse() {
    check_program(&["htop", "-d", "2"], &["t", "\x1bOP", "q", "/x\x1b", "\x1b[<0;10;10M", "q"], &["1000h"]);
}

#[test]
fn tmux_within() {
    // It takes keys that come at once for pasted text.
    let split = ["\x02", "%", "\x02", "\"", "seq 50\r", "\x02", "[", "\x1b[A\x1b[A", "q", "\x02", "d"];
    check_program(
        &["tmux", "-L", "agentbox-screen-test", "-f", "/dev/null", "new-session", "bash --norc"],
        &[["ls -la --color /\r"].as_slice(), &split].concat(),
        &["\x1b[?1049h", "detached"],
    );
}

#[test]
fn coloured_ls() {
    check_program(&["ls", "--color=always", "-la", "/etc"], &[], &["passwd"]);
}

#[test]
fn python_at_its_prompt() {
    check_program(
        &["python3", "-q"],
        &["print('x' * 200)\r", "for i in range(3):\r    print(i)\r\r", "1 +\x1b[D\x1b[D2\r", "exit()\r"],
        &["xxxxxxxx"],
    );
}

#[test]
fn midnight_commander() {
    check_program(
        &["mc", "-u"],
        &["\t", "\x1b[B\x1b[B", "\x1b9", "\x1b\x1b", "\x0f", "\x0f", "\x1b0\r"],
        &["?1002h"],
    );
}
