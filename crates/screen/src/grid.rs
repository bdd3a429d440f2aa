//! The lines of one screen: what moves, appears and disappears as whole lines.

use crate::cursor::Region;
use crate::row::Row;
use crate::size::Size;
use crate::style::Colour;

/// All lines, as many as the screen has rows.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    rows: Vec<Row>,
    columns: usize,
}

impl PartialEq for Grid {
    fn eq(&self, other: &Self) -> bool {
        self.columns == other.columns
            && self.rows.len() == other.rows.len()
            && self.rows.iter().zip(&other.rows).all(|(left, right)| left.looks_like(right, self.columns))
    }
}

impl Grid {
    pub(crate) fn new(size: Size, background: Colour) -> Self {
        Self { rows: vec![Row::erased(background); size.height()], columns: size.width() }
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn row(&self, row: usize) -> Option<&Row> {
        self.rows.get(row)
    }

    pub(crate) fn row_mut(&mut self, row: usize) -> Option<&mut Row> {
        self.rows.get_mut(row)
    }

    /// Lines move up; the topmost are lost and empty ones appear at the bottom.
    pub(crate) fn scroll_up(&mut self, region: Region, count: usize, background: Colour) {
        let Some(rows) = self.rows.get_mut(region.top..=region.bottom) else { return };
        let count = count.min(rows.len());
        rows.rotate_left(count);
        let kept = rows.len() - count;
        rows.iter_mut().skip(kept).for_each(|row| row.clear(background));
        self.end_at_the_last();
    }

    /// Lines move down; the lowest are lost and empty ones appear at the top.
    pub(crate) fn scroll_down(&mut self, region: Region, count: usize, background: Colour) {
        let Some(rows) = self.rows.get_mut(region.top..=region.bottom) else { return };
        let count = count.min(rows.len());
        rows.rotate_right(count);
        rows.iter_mut().take(count).for_each(|row| row.clear(background));
        self.end_at_the_last();
    }

    /// Makes lines empty.
    pub(crate) fn clear(&mut self, rows: std::ops::Range<usize>, background: Colour) {
        self.rows.get_mut(rows).into_iter().flatten().for_each(|row| row.clear(background));
    }

    /// Gives the screen another size and returns how many lines have left at the top: where lines must go, those
    /// below the cursor go first, as terminals do it.
    pub(crate) fn resize(&mut self, size: Size, cursor_row: usize) -> usize {
        let excess = (cursor_row + 1).saturating_sub(size.height());
        self.rows.drain(..excess);
        self.rows.resize_with(size.height(), Row::default);
        self.rows.shrink_to_fit();
        if size.width() != self.columns {
            self.columns = size.width();
            self.rows.iter_mut().for_each(|row| row.resize(size.width()));
        }
        self.end_at_the_last();
        excess
    }

    /// There is no line for the last one to go on in.
    fn end_at_the_last(&mut self) {
        if let Some(last) = self.rows.last_mut() {
            last.is_wrapped = false;
        }
    }
}
