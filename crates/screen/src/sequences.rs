//! What control characters and sequences do to the terminal. Where terminals differ, xterm is followed.

use crate::cell::{Cell, Part};
use crate::charset::{Charset, Shift};
use crate::csi::Csi;
use crate::cursor::{Cursor, Region};
use crate::modes::{Switch, Turn};
use crate::page::Page;
use crate::sgr;
use crate::style::Style;
use crate::terminal::Terminal;
use crate::title::Kept;

/// How often a character is repeated at most. Programs repeat what fits in a line; eight bytes must not ask for more
/// work than thousands of them could.
const REPEATED: usize = 4096;

impl Terminal {
    pub(crate) fn control(&mut self, byte: u8) {
        self.last = None;
        match byte {
            0x08 => self.move_to_column(self.cursor.column.saturating_sub(1)),
            b'\t' => self.cursor.column = self.tabs.after(self.cursor.column),
            b'\n' | 0x0b | 0x0c => {
                self.line_feed();
                if self.modes.has(Switch::NewLine) {
                    self.move_to_column(0);
                }
            }
            b'\r' => self.move_to_column(0),
            0x0e => self.cursor.charsets.shift = Shift::Out,
            0x0f => self.cursor.charsets.shift = Shift::In,
            _ => {}
        }
    }

    pub(crate) fn escape(&mut self, intermediates: &[u8], last: u8) {
        self.last = None;
        match (intermediates, last) {
            ([], b'7') => self.save_cursor(),
            ([], b'8') => self.restore_cursor(),
            ([], b'=') => self.modes.turn(Switch::ApplicationKeypad, Turn::On),
            ([], b'>') => self.modes.turn(Switch::ApplicationKeypad, Turn::Off),
            ([], b'D') => self.line_feed(),
            ([], b'E') => {
                self.line_feed();
                self.move_to_column(0);
            }
            ([], b'H') => self.tabs.set(self.cursor.column),
            ([], b'M') => self.reverse_line_feed(),
            ([], b'c') => {
                let titles = std::mem::take(&mut self.titles);
                *self = Self::new(self.size);
                self.titles = titles;
            }
            ([b'('], name) => self.cursor.charsets.g0 = Charset::named(name),
            ([b')'], name) => self.cursor.charsets.g1 = Charset::named(name),
            ([b'#'], b'8') => self.fill_with_e(),
            _ => {}
        }
    }

    /// An OSC: of all commands only the title's is kept.
    pub(crate) fn command(&mut self, text: &[u8]) {
        self.last = None;
        if let [b'0' | b'2', b';', title @ ..] = text {
            self.titles.set(title);
        }
    }

    pub(crate) fn sequence(&mut self, csi: &Csi<'_>) {
        if !matches!(csi.last, b'm' | b'h' | b'l' | b'b') {
            self.last = None;
        }
        match (csi.prefix, csi.intermediates) {
            (None, []) => self.plain_sequence(csi),
            (Some(b'?'), []) => self.private_sequence(csi),
            (Some(b'<' | b'=' | b'>'), []) if csi.last == b'u' => self.page_mut().keyboard.read(csi),
            (Some(b'>'), []) if csi.last == b'm' => self.other_keys.read(csi),
            (None, [b' ']) if csi.last == b'q' && csi.number(0, 0) <= 6 => {
                self.modes.cursor_shape = csi.number(0, 0);
                self.modes.cursor_blink = None;
            }
            (None, [b'!']) if csi.last == b'p' => self.reset_softly(),
            _ => {}
        }
    }

    fn plain_sequence(&mut self, csi: &Csi<'_>) {
        let times = csi.times(0);
        let (row, column) = (self.cursor.row, self.cursor.column);
        match csi.last {
            b'A' => self.move_up(times),
            b'B' | b'e' => self.move_down(times),
            b'C' | b'a' => self.move_to_column(column + times),
            b'D' => self.move_to_column(column.saturating_sub(times)),
            b'E' => {
                self.move_down(times);
                self.move_to_column(0);
            }
            b'F' => {
                self.move_up(times);
                self.move_to_column(0);
            }
            b'G' | b'`' => self.move_to_column(times - 1),
            b'H' | b'f' => self.move_to(times - 1, csi.times(1) - 1),
            b'd' => self.move_to(times - 1, column),
            b'I' => (0..times.min(self.size.width())).for_each(|_| self.control(b'\t')),
            b'Z' => {
                for _ in 0..times.min(self.size.width()) {
                    self.move_to_column(self.tabs.before(self.cursor.column));
                }
            }
            b'J' => self.erase_screen(csi.number(0, 0)),
            b'K' => self.erase_line(csi.number(0, 0)),
            b'X' => {
                self.erase_cells(column, column + times);
                self.cursor.is_wrap_pending = false;
            }
            b'@' => self.insert_cells(times),
            b'P' => self.delete_cells(times),
            b'L' => self.shift_lines(row, Shove::Down, times),
            b'M' => self.shift_lines(row, Shove::Up, times),
            b'S' => self.scroll(Shove::Up, times),
            b'T' if csi.count() <= 1 => self.scroll(Shove::Down, times),
            b'b' => self.repeat(times),
            b'g' => match csi.number(0, 0) {
                0 => self.tabs.clear(column),
                3 => self.tabs.clear_all(),
                _ => {}
            },
            b'h' => self.turn_public(csi, Turn::On),
            b'l' => self.turn_public(csi, Turn::Off),
            b'm' => sgr::read(&mut self.cursor.style, csi),
            b'r' => self.set_region(csi),
            b's' if csi.count() == 0 => self.save_cursor(),
            b'u' if csi.count() == 0 => self.restore_cursor(),
            b't' => self.window(csi),
            _ => {}
        }
    }

    /// CSI t: of all that can be asked of a window, only keeping its title is answered.
    fn window(&mut self, csi: &Csi<'_>) {
        let Some(kept) = Kept::read(csi.number(1, 0)) else { return };
        match csi.number(0, 0) {
            22 => self.titles.push(kept),
            23 => self.titles.pop(kept),
            _ => {}
        }
    }

    fn private_sequence(&mut self, csi: &Csi<'_>) {
        match csi.last {
            b'h' => csi.groups().for_each(|group| self.turn_private(group, Turn::On)),
            b'l' => csi.groups().for_each(|group| self.turn_private(group, Turn::Off)),
            b'J' => self.erase_screen(csi.number(0, 0)),
            b'K' => self.erase_line(csi.number(0, 0)),
            _ => {}
        }
    }

    fn turn_public(&mut self, csi: &Csi<'_>, turn: Turn) {
        for switch in csi.groups().filter_map(|group| Switch::public(*group.first()?)) {
            self.modes.turn(switch, turn);
        }
    }

    fn turn_private(&mut self, group: &[u16], turn: Turn) {
        let [number] = group else { return };
        match (number, turn) {
            (6, _) => {
                self.cursor.is_in_region = turn == Turn::On;
                self.move_to(0, 0);
                self.last = None;
            }
            (47 | 1047, Turn::On) => self.show_alternate(),
            (1049, Turn::On) => {
                self.save_cursor();
                self.show_alternate();
                self.erase_screen(2);
            }
            (47 | 1047, Turn::Off) => self.show_primary(),
            (1049, Turn::Off) => {
                self.show_primary();
                self.restore_cursor();
            }
            (1048, Turn::On) => self.save_cursor(),
            (1048, Turn::Off) => self.restore_cursor(),
            _ => self.modes.turn_private(*number, turn),
        }
    }

    fn show_alternate(&mut self) {
        self.last = None;
        if self.alternate.is_none() {
            self.alternate = Some(Box::new(Page::new(self.size, self.cursor.style.background)));
        }
        self.end_line_if_pending();
    }

    fn show_primary(&mut self) {
        self.last = None;
        self.alternate = None;
        self.end_line_if_pending();
    }

    fn save_cursor(&mut self) {
        self.page_mut().saved = self.cursor;
        self.last = None;
    }

    fn restore_cursor(&mut self) {
        self.cursor = self.page().saved;
        self.last = None;
    }

    fn reset_softly(&mut self) {
        self.modes.reset_softly();
        self.region = Region::whole(self.size.height());
        self.page_mut().saved = Cursor::default();
        let (row, column) = (self.cursor.row, self.cursor.column);
        self.cursor = Cursor { row, column, ..Cursor::default() };
    }

    /// DECALN, with which the alignment of a picture tube was checked and terminals still are.
    fn fill_with_e(&mut self) {
        let rows = self.size.height();
        self.grid_mut().fill(0..rows, Cell::new('E', Style::default(), Part::Whole));
        self.region = Region::whole(rows);
        self.cursor.is_in_region = false;
        self.move_to(0, 0);
    }

    fn repeat(&mut self, times: usize) {
        let Some(character) = self.last else { return };
        let times = times.min(REPEATED);
        match u8::try_from(character) {
            Ok(byte) if byte.is_ascii() => self.print_ascii(&[byte; REPEATED][..times]),
            _ => (0..times).for_each(|_| self.print(character)),
        }
    }
}

/// Where lines go.
#[derive(Clone, Copy)]
pub(crate) enum Shove {
    Up,
    Down,
}
