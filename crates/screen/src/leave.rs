//! Puts a viewer's terminal back in order when it leaves.

use crate::restore::{CANCEL, NO_MOUSE, PLAIN_KEYBOARD, POP_TITLE, PRIMARY, TYPING};
use crate::tabs::TabStops;
use crate::terminal::Terminal;
use crate::writer::Writer;

/// Wraps, shows the cursor in the viewer's own shape, with ordinary keys, colours and lines that all scroll.
const ORDINARY: &str = "\x1b[?2026l\x1b[?6l\x1b[4l\x1b[20l\x1b[?7h\x1b[r\x1b[?1l\x1b[?5l\x1b[?1004l\x1b[?2004l\
                        \x1b[?2031l\x1b>\x1b(B\x1b)B\x0f\x1b[?12l\x1b[0 q\x1b[?25h\x1b[>4;0m\x1b[0m";

/// Writes everything.
pub(crate) fn write(terminal: &Terminal, writer: &mut Writer) {
    writer.text(CANCEL);
    writer.text(PLAIN_KEYBOARD);
    if terminal.alternate.is_some() {
        writer.text(PRIMARY);
        writer.text(PLAIN_KEYBOARD);
    }
    writer.text(NO_MOUSE);
    writer.text(TYPING);
    writer.text(ORDINARY);
    let columns = terminal.size.width();
    let usual = TabStops::new(columns);
    if terminal.tabs != usual {
        writer.text("\x1b[3g");
        for column in usual.columns() {
            writer.move_to_column(column);
            writer.text("\x1bH");
        }
    }
    for pushed in terminal.titles.beneath.iter().rev() {
        writer.numbers("\x1b[", &[23, pushed.kept as u16], "t");
    }
    writer.text(POP_TITLE);
    let used = terminal.primary.grid.rows().rposition(|row| row.end(columns) > 0);
    if let Some(last) = used {
        writer.move_to(last, 0);
        writer.text("\r\n");
    } else {
        writer.move_to(0, 0);
    }
}
