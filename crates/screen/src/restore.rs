//! Brings a viewer's terminal from any state to a terminal's. Every sequence that is said stands in this file, in
//! `paint`, `sgr` or `parser`.
//!
//! The order matters. What some terminal might misread is said before the screen is cleared. Drawing needs wrapping
//! on and everything else that bends characters off. The scroll region and origin mode move the cursor, so that they
//! come before it is placed; and only what does not move it, nor ends a pending wrap, comes after.

use crate::charset::{Charset, Charsets, Shift};
use crate::cursor::Cursor;
use crate::keyboard::KeyboardStack;
use crate::modes::{Choice, Modes, Mouse, MouseEncoding, Switch, Turn};
use crate::page::Page;
use crate::row::Row;
use crate::style::Style;
use crate::terminal::{Terminal, column_before};
use crate::writer::Writer;
use crate::{paint, sgr};

/// Gives up whatever was unfinished. Cancelled first: a mere end would let a half of a command be obeyed.
pub(crate) const CANCEL: &str = "\x18\x1b\\";
/// Leaves the alternate screen, and takes away all that bends drawing: synchronised output, origin mode, insert mode,
/// line feeds that return, margins, the scroll region, styles, character sets.
const NEUTRAL: &str = "\x1b[?2026l\x1b[?1049l\x1b[?6l\x1b[4l\x1b[20l\x1b[?69l\x1b[r\x1b[0m\x1b%G\x1b(B\x1b)B\x0f\
                       \x1b[?7h\x1b[?25l";
/// No keys swallowed, no echo by the terminal itself.
pub(crate) const TYPING: &str = "\x1b[2l\x1b[12h";
/// No mouse in any of its ways.
pub(crate) const NO_MOUSE: &str =
    "\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l";
/// kitty's keyboard as it was before anything was pushed.
pub(crate) const PLAIN_KEYBOARD: &str = "\x1b[<16u";
/// Puts the title onto the viewer's stack, and takes it back.
pub(crate) const PUSH_TITLE: &str = "\x1b[22;2t";
pub(crate) const POP_TITLE: &str = "\x1b[23;2t";
/// Leaves the alternate screen, and shows it anew with the cursor saved.
pub(crate) const PRIMARY: &str = "\x1b[?1049l";
const ALTERNATE: &str = "\x1b[?1049h";
const HOME: &str = "\x1b[H";
const CLEAR: &str = "\x1b[2J";
const SAVE_CURSOR: &str = "\x1b7";
const RESTORE_CURSOR: &str = "\x1b8";

/// Writes everything.
pub(crate) fn write(terminal: &Terminal, writer: &mut Writer) {
    writer.text(CANCEL);
    writer.text(NEUTRAL);
    forget_alternate(writer);
    scroll_away(terminal.size.height(), writer);
    titles(terminal, writer);
    writer.text(TYPING);
    input_modes(&terminal.modes, writer);
    writer.numbers("\x1b[>4;", &[u16::from(terminal.other_keys.0)], "m");
    writer.numbers("\x1b[", &[terminal.modes.cursor_shape], " q");
    said(terminal.modes.cursor_blink, "\x1b[?12", writer);
    tab_stops(terminal, writer);
    page(terminal, &terminal.primary, writer);
    if let Some(alternate) = &terminal.alternate {
        // Showing the alternate screen saves the cursor of the primary one.
        writer.text(RESTORE_CURSOR);
        writer.text(ALTERNATE);
        writer.text("\x1b[?6l\x1b[0m\x1b(B\x1b)B\x0f");
        page(terminal, alternate, writer);
    }
    region(terminal, writer);
    live_cursor(terminal, writer);
    switch(&terminal.modes, Switch::Insert, "\x1b[4", writer);
    switch(&terminal.modes, Switch::NewLine, "\x1b[20", writer);
    switch(&terminal.modes, Switch::Wrap, "\x1b[?7", writer);
    switch(&terminal.modes, Switch::CursorVisible, "\x1b[?25", writer);
}

/// The alternate screen of a viewer's terminal may have a keyboard and a saved cursor from who used it last.
fn forget_alternate(writer: &mut Writer) {
    writer.text(ALTERNATE);
    writer.text(PLAIN_KEYBOARD);
    writer.text(HOME);
    writer.text(SAVE_CURSOR);
    writer.text(PRIMARY);
}

/// Moves what the viewer's terminal shows into its history, instead of destroying it.
fn scroll_away(rows: usize, writer: &mut Writer) {
    writer.move_to(rows - 1, 0);
    (0..rows).for_each(|_| writer.byte(b'\n'));
}

fn titles(terminal: &Terminal, writer: &mut Writer) {
    writer.text(PUSH_TITLE);
    for pushed in &terminal.titles.beneath {
        set_title(pushed.title.as_deref(), writer);
        writer.numbers("\x1b[", &[22, pushed.kept as u16], "t");
    }
    set_title(terminal.titles.current.as_deref(), writer);
}

fn set_title(title: Option<&str>, writer: &mut Writer) {
    if let Some(title) = title {
        writer.text("\x1b]2;");
        writer.text(title);
        writer.text("\x1b\\");
    }
}

fn input_modes(modes: &Modes, writer: &mut Writer) {
    let private = [
        (Switch::ApplicationCursor, "\x1b[?1"),
        (Switch::ReverseVideo, "\x1b[?5"),
        (Switch::FocusEvents, "\x1b[?1004"),
        (Switch::BracketedPaste, "\x1b[?2004"),
        (Switch::ThemeReports, "\x1b[?2031"),
    ];
    for (which, start) in private {
        switch(modes, which, start, writer);
    }
    writer.text(if modes.has(Switch::ApplicationKeypad) { "\x1b=" } else { "\x1b>" });
    said(modes.alternate_scroll, "\x1b[?1007", writer);
    writer.text(NO_MOUSE);
    choice(modes.encoding, &MouseEncoding::ALL, writer);
    choice(modes.mouse, &Mouse::ALL, writer);
}

fn choice<T: Copy + PartialEq>(choice: Choice<T>, all: &[(T, u16)], writer: &mut Writer) {
    for (said, turn) in [(choice.asked, "h"), (choice.ended, "l")] {
        if let Some((_, number)) = all.iter().find(|(one, _)| said == Some(*one)) {
            writer.numbers("\x1b[?", &[*number], turn);
        }
    }
}

fn switch(modes: &Modes, which: Switch, start: &str, writer: &mut Writer) {
    writer.text(start);
    writer.text(if modes.has(which) { "h" } else { "l" });
}

/// A mode of which nothing is said unless the program has.
fn said(turn: Option<Turn>, start: &str, writer: &mut Writer) {
    if let Some(turn) = turn {
        writer.text(start);
        writer.text(if turn == Turn::On { "h" } else { "l" });
    }
}

fn tab_stops(terminal: &Terminal, writer: &mut Writer) {
    writer.text("\x1b[3g");
    for column in terminal.tabs.columns() {
        writer.move_to_column(column);
        writer.text("\x1bH");
    }
}

/// One screen's keyboard, contents and saved cursor, which is saved while all lines scroll: that rows are counted
/// from the region's top is saved, too, and where it was then does not matter.
fn page(terminal: &Terminal, page: &Page, writer: &mut Writer) {
    keyboard(&page.keyboard, writer);
    writer.text("\x1b[0m");
    writer.text(HOME);
    writer.text(CLEAR);
    let columns = terminal.size.width();
    paint::write(&page.grid, columns, writer);
    cursor(page, &page.saved, 0, Before::Anything, writer);
    writer.text(SAVE_CURSOR);
    if page.saved.is_wrap_pending {
        // Its line was written to again, so that the viewer's terminal no longer knows that the next one follows.
        charsets(Charsets::default(), writer);
        paint::write_following(&page.grid, page.saved.row, columns, writer);
    }
}

fn keyboard(keyboard: &KeyboardStack, writer: &mut Writer) {
    writer.text(PLAIN_KEYBOARD);
    if let Some((first, pushed)) = keyboard.entries().split_first() {
        if *first != 0 {
            writer.numbers("\x1b[=", &[u16::from(*first), 1], "u");
        }
        for flags in pushed {
            writer.numbers("\x1b[>", &[u16::from(*flags)], "u");
        }
    }
}

fn region(terminal: &Terminal, writer: &mut Writer) {
    let number = |row: usize| u16::try_from(row + 1).unwrap_or(u16::MAX);
    let region = terminal.region;
    if region.bottom + 1 == terminal.size.height() && region.top == 0 {
        writer.text("\x1b[r");
    } else {
        writer.numbers("\x1b[", &[number(region.top), number(region.bottom)], "r");
    }
}

/// Places the cursor that is used. It can wait at the end of a line that goes on in the next one, but only by having
/// been restored to where it was saved, and so it is again: writing to that line would end it.
fn live_cursor(terminal: &Terminal, writer: &mut Writer) {
    let (page, live) = (terminal.page(), &terminal.cursor);
    if live.is_wrap_pending && page.grid.row(live.row).is_some_and(|row| row.is_wrapped) {
        writer.text(RESTORE_CURSOR);
        sgr::write(&live.style, writer);
        charsets(live.charsets, writer);
    } else {
        let before = terminal.last.map_or(Before::Anything, |_| Before::JustWritten);
        cursor(page, live, terminal.region.top, before, writer);
    }
}

/// What the cursor comes after.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Anything,
    /// The character before it was written last, and may be repeated by CSI b.
    JustWritten,
}

/// Places a cursor with all that belongs to it; `top` is the scroll region's. A pending wrap only comes from writing
/// the last character again.
fn cursor(page: &Page, cursor: &Cursor, top: usize, before: Before, writer: &mut Writer) {
    writer.text(if cursor.is_in_region { "\x1b[?6h" } else { "\x1b[?6l" });
    let top = if cursor.is_in_region { top } else { 0 };
    let row = cursor.row.saturating_sub(top);
    let again = page.grid.row(cursor.row).and_then(|line| Some((line, column_before(cursor, line)?)));
    match again {
        // What was just written was written in these character sets.
        Some((line, column)) if before == Before::JustWritten => {
            charsets(cursor.charsets, writer);
            writer.move_to(row, column);
            write_again(line, column, cursor.style, writer);
        }
        Some((line, column)) if cursor.is_wrap_pending => {
            charsets(Charsets::default(), writer);
            writer.move_to(row, column);
            write_again(line, column, cursor.style, writer);
            charsets(cursor.charsets, writer);
        }
        _ => {
            writer.move_to(row, cursor.column);
            sgr::write(&cursor.style, writer);
            charsets(cursor.charsets, writer);
        }
    }
}

fn write_again(line: &Row, column: usize, style: Style, writer: &mut Writer) {
    let own = line.cell(column).style;
    sgr::write(&own, writer);
    paint::write_cell(line, column, writer);
    if own != style {
        sgr::write(&style, writer);
    }
}

fn charsets(charsets: Charsets, writer: &mut Writer) {
    let designate = |start: &str, charset: Charset, writer: &mut Writer| {
        writer.text(start);
        writer.byte(charset.name());
    };
    designate("\x1b(", charsets.g0, writer);
    designate("\x1b)", charsets.g1, writer);
    writer.byte(match charsets.shift {
        Shift::In => 0x0f,
        Shift::Out => 0x0e,
    });
}
