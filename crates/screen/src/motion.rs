//! Moving the cursor, erasing and scrolling. Positions are cut to the screen here, whatever was asked for.

use crate::cell::Cell;
use crate::csi::Csi;
use crate::cursor::Region;
use crate::sequences::Shove;
use crate::terminal::Terminal;

impl Terminal {
    /// To a place, counted from the region's top where the cursor is bound to it.
    pub(crate) fn move_to(&mut self, row: usize, column: usize) {
        let (first, last) = if self.cursor.is_in_region {
            (self.region.top, self.region.bottom)
        } else {
            (0, self.size.height() - 1)
        };
        self.cursor.row = row.saturating_add(first).min(last);
        self.move_to_column(column);
    }

    pub(crate) fn move_to_column(&mut self, column: usize) {
        self.cursor.column = column.min(self.size.width() - 1);
        self.cursor.is_wrap_pending = false;
    }

    /// Up, but not out of the region.
    pub(crate) fn move_up(&mut self, count: usize) {
        let first = if self.cursor.row >= self.region.top { self.region.top } else { 0 };
        self.cursor.row = self.cursor.row.saturating_sub(count).max(first);
        self.cursor.is_wrap_pending = false;
    }

    /// Down, but not out of the region.
    pub(crate) fn move_down(&mut self, count: usize) {
        let last =
            if self.cursor.row <= self.region.bottom { self.region.bottom } else { self.size.height() - 1 };
        self.cursor.row = (self.cursor.row + count).min(last);
        self.cursor.is_wrap_pending = false;
    }

    pub(crate) fn reverse_line_feed(&mut self) {
        if self.cursor.row == self.region.top {
            self.scroll(Shove::Down, 1);
        } else {
            self.cursor.row = self.cursor.row.saturating_sub(1);
        }
        self.cursor.is_wrap_pending = false;
    }

    pub(crate) fn scroll(&mut self, shove: Shove, count: usize) {
        let region = self.region;
        self.shove(region, shove, count);
        self.end_line_if_pending();
    }

    /// Lines are inserted or deleted at the cursor if it is in the region.
    pub(crate) fn shift_lines(&mut self, row: usize, shove: Shove, count: usize) {
        if self.region.contains(row) {
            self.shove(Region { top: row, ..self.region }, shove, count);
            self.move_to_column(0);
        }
    }

    fn shove(&mut self, region: Region, shove: Shove, count: usize) {
        let background = self.cursor.style.background;
        match shove {
            Shove::Up => self.grid_mut().scroll_up(region, count, background),
            Shove::Down => self.grid_mut().scroll_down(region, count, background),
        }
    }

    /// CSI J: from the cursor, to the cursor, or all.
    pub(crate) fn erase_screen(&mut self, what: u16) {
        let (row, rows) = (self.cursor.row, self.size.height());
        let erased = Cell::erased(self.cursor.style.background);
        match what {
            0 => {
                self.erase_line(0);
                self.grid_mut().fill(row + 1..rows, erased);
            }
            1 => {
                self.erase_line(1);
                self.grid_mut().fill(0..row, erased);
            }
            2 => self.grid_mut().fill(0..rows, erased),
            _ => {}
        }
    }

    /// CSI K: from the cursor, to the cursor, or all. A cursor whose wrap is pending is behind the last column and
    /// stays there, as in all terminals but xterm and Linux's.
    pub(crate) fn erase_line(&mut self, what: u16) {
        let (column, columns) = (self.cursor.column, self.size.width());
        match what {
            0 if self.cursor.is_wrap_pending => {}
            0 => self.erase_cells(column, columns),
            1 => self.erase_cells(0, column + 1),
            2 => self.erase_cells(0, columns),
            _ => {}
        }
    }

    pub(crate) fn erase_cells(&mut self, start: usize, end: usize) {
        let (columns, background) = (self.size.width(), self.cursor.style.background);
        if let Some(row) = self.row_mut() {
            row.erase(start..end.min(columns), background, columns);
        }
    }

    pub(crate) fn insert_cells(&mut self, count: usize) {
        let (column, columns) = (self.cursor.column, self.size.width());
        let background = self.cursor.style.background;
        if let Some(row) = self.row_mut() {
            row.insert(column, count, background, columns);
        }
        self.cursor.is_wrap_pending = false;
    }

    pub(crate) fn delete_cells(&mut self, count: usize) {
        let (column, columns) = (self.cursor.column, self.size.width());
        let background = self.cursor.style.background;
        if let Some(row) = self.row_mut() {
            row.delete(column, count, background, columns);
        }
        self.cursor.is_wrap_pending = false;
    }

    /// CSI r. A region of a single line is none.
    pub(crate) fn set_region(&mut self, csi: &Csi<'_>) {
        let rows = self.size.height();
        let top = csi.times(0) - 1;
        let bottom = match csi.number(1, 0) {
            0 => rows,
            number => usize::from(number).min(rows),
        } - 1;
        if top >= bottom && rows > 1 || top > bottom {
            return;
        }
        self.region = Region { top, bottom };
        // A saved cursor that is bound to the region stays in it.
        let both = [Some(&mut self.primary), self.alternate.as_deref_mut()];
        for saved in both.into_iter().flatten().map(|page| &mut page.saved).filter(|saved| saved.is_in_region)
        {
            saved.row = saved.row.clamp(top, bottom);
        }
        self.move_to(0, 0);
    }
}
