//! The terminal that a program sees: both screens, the cursor and everything that has been switched. This file writes
//! characters; what sequences do is in `sequences`.

use unicode_width::UnicodeWidthChar as _;

use crate::cell::{Cell, Part};
use crate::charset::Charset;
use crate::cursor::{Cursor, Region};
use crate::grid::Grid;
use crate::keyboard::OtherKeys;
use crate::modes::{Modes, Switch};
use crate::page::Page;
use crate::row::Row;
use crate::size::Size;
use crate::tabs::TabStops;
use crate::title::Titles;

/// Everything that decides what a viewer sees and what typing does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Terminal {
    pub(crate) size: Size,
    pub(crate) primary: Page,
    /// There while it is shown. Leaving it forgets it: programs clear it when they come back.
    pub(crate) alternate: Option<Box<Page>>,
    pub(crate) cursor: Cursor,
    pub(crate) region: Region,
    pub(crate) modes: Modes,
    pub(crate) other_keys: OtherKeys,
    pub(crate) tabs: TabStops,
    pub(crate) titles: Titles,
    /// The character that CSI b repeats: the one just written, if nothing came after it.
    pub(crate) last: Option<char>,
}

impl Terminal {
    pub(crate) fn new(size: Size) -> Self {
        Self {
            size,
            primary: Page::new(size, crate::style::Colour::Default),
            alternate: None,
            cursor: Cursor::default(),
            region: Region::whole(size.height()),
            modes: Modes::default(),
            other_keys: OtherKeys::default(),
            tabs: TabStops::new(size.width()),
            titles: Titles::default(),
            last: None,
        }
    }

    /// The screen that is shown.
    pub(crate) fn page(&self) -> &Page {
        self.alternate.as_deref().unwrap_or(&self.primary)
    }

    pub(crate) fn page_mut(&mut self) -> &mut Page {
        self.alternate.as_deref_mut().unwrap_or(&mut self.primary)
    }

    pub(crate) fn grid_mut(&mut self) -> &mut Grid {
        &mut self.page_mut().grid
    }

    pub(crate) fn row_mut(&mut self) -> Option<&mut Row> {
        let row = self.cursor.row;
        self.grid_mut().row_mut(row)
    }

    pub(crate) fn print(&mut self, character: char) {
        let character = self.cursor.charsets.current().translate(character);
        match character.width() {
            // Control characters of eight bits: terminals that read UTF-8 disagree on them.
            None => {}
            Some(0) => self.print_mark(character),
            Some(1) => self.print_cell(character, Part::Whole),
            Some(_) => self.print_cell(character, Part::Left),
        }
    }

    pub(crate) fn print_ascii(&mut self, mut text: &[u8]) {
        if self.cursor.charsets.current() != Charset::Ascii || self.modes.has(Switch::Insert) {
            return text.iter().for_each(|byte| self.print(char::from(*byte)));
        }
        while let Some(last) = text.last() {
            self.wrap_if_pending();
            let (column, style, columns) = (self.cursor.column, self.cursor.style, self.size.width());
            let (now, later) = text.split_at(text.len().min(columns - column));
            if let Some(row) = self.row_mut() {
                row.put_ascii(column, now, style, columns);
            }
            self.advance(now.len());
            self.last = Some(char::from(*last));
            text = later;
            if !self.modes.has(Switch::Wrap) && !text.is_empty() {
                // All of the rest is written over the last column.
                text = text.get(text.len() - 1..).unwrap_or_default();
            }
        }
    }

    fn print_cell(&mut self, character: char, part: Part) {
        let width = if part == Part::Left { 2 } else { 1 };
        let columns = self.size.width();
        let has_no_place = self.cursor.column + width > columns && !self.modes.has(Switch::Wrap);
        if width > columns || has_no_place {
            return;
        }
        self.wrap_if_pending();
        if self.cursor.column + width > columns {
            self.wrap();
        }
        let (column, style) = (self.cursor.column, self.cursor.style);
        let is_inserted = self.modes.has(Switch::Insert);
        if let Some(row) = self.row_mut() {
            if is_inserted {
                row.insert(column, width, style.background, columns);
            }
            row.put(column, Cell::new(character, style, part), columns);
        }
        self.advance(width);
        self.last = Some(character);
    }

    /// A mark goes onto the character before the cursor; without one it is nothing.
    fn print_mark(&mut self, mark: char) {
        let columns = self.size.width();
        let Some(column) = self.column_before() else { return };
        if let Some(row) = self.row_mut() {
            row.mark(column, mark, columns);
        }
    }

    /// Where the character before the cursor begins.
    pub(crate) fn column_before(&self) -> Option<usize> {
        column_before(&self.cursor, self.page().grid.row(self.cursor.row)?)
    }

    fn advance(&mut self, width: usize) {
        let last = self.size.width() - 1;
        self.cursor.is_wrap_pending = self.cursor.column + width > last;
        self.cursor.column = (self.cursor.column + width).min(last);
    }

    fn wrap_if_pending(&mut self) {
        if self.cursor.is_wrap_pending && self.modes.has(Switch::Wrap) {
            self.wrap();
        }
        // Where there is no wrapping, the last column is written again.
        self.cursor.is_wrap_pending = false;
    }

    /// Goes on in the next line, and remembers that the text does.
    fn wrap(&mut self) {
        let before = self.cursor.row;
        let has_next = before != self.size.height() - 1;
        let is_scrolling = before == self.region.bottom;
        if has_next && !is_scrolling {
            self.set_wrapped(before);
        }
        self.line_feed();
        if is_scrolling && before > self.region.top {
            self.set_wrapped(before - 1);
        }
        self.cursor.column = 0;
    }

    /// The cursor has come to the end of another line by other ways than writing. Whatever is written next decides
    /// how that line goes on.
    pub(crate) fn end_line_if_pending(&mut self) {
        if self.cursor.is_wrap_pending
            && let Some(row) = self.row_mut()
        {
            row.is_wrapped = false;
        }
    }

    fn set_wrapped(&mut self, row: usize) {
        if let Some(row) = self.grid_mut().row_mut(row) {
            row.is_wrapped = true;
        }
    }

    /// One line down, scrolling at the end of the region.
    pub(crate) fn line_feed(&mut self) {
        if self.cursor.row == self.region.bottom {
            let (region, background) = (self.region, self.cursor.style.background);
            self.grid_mut().scroll_up(region, 1, background);
        } else if self.cursor.row + 1 < self.size.height() {
            self.cursor.row += 1;
        }
        self.cursor.is_wrap_pending = false;
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&mut self, size: Size) {
        if size == self.size {
            return;
        }
        let row = self.cursor.row;
        let excess = self.grid_mut().resize(size, row);
        let fit = |cursor: &mut Cursor, excess: usize| {
            cursor.row = cursor.row.saturating_sub(excess).min(size.height() - 1);
            cursor.column = cursor.column.min(size.width() - 1);
            cursor.is_wrap_pending = false;
        };
        fit(&mut self.cursor, excess);
        fit(&mut self.page_mut().saved, excess);
        if self.alternate.is_some() {
            let excess = self.primary.grid.resize(size, self.primary.saved.row);
            fit(&mut self.primary.saved, excess);
        }
        self.tabs.resize(size.width());
        self.region = Region::whole(size.height());
        self.size = size;
        self.last = None;
    }
}

/// Where the character before a cursor begins, if there is one in its line.
pub(crate) fn column_before(cursor: &Cursor, row: &Row) -> Option<usize> {
    let column = if cursor.is_wrap_pending { cursor.column } else { cursor.column.checked_sub(1)? };
    Some(if row.cell(column).part == Part::Right { column.saturating_sub(1) } else { column })
}
