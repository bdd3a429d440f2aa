//! The lines of one screen: what moves, appears and disappears as whole lines.

use std::collections::VecDeque;
use std::ops::Range;

use crate::cell::Cell;
use crate::cursor::Region;
use crate::row::Row;
use crate::size::Size;
use crate::style::Colour;

/// All lines, as many as the screen has rows, in a ring: a screen that scrolls as a whole moves no lines in memory.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    rows: VecDeque<Row>,
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
        Self {
            rows: VecDeque::from(vec![Row::of(Cell::erased(background)); size.height()]),
            columns: size.width(),
        }
    }

    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &Row> + ExactSizeIterator {
        self.rows.iter()
    }

    pub(crate) fn row(&self, row: usize) -> Option<&Row> {
        self.rows.get(row)
    }

    pub(crate) fn row_mut(&mut self, row: usize) -> Option<&mut Row> {
        self.rows.get_mut(row)
    }

    /// Lines move up; the topmost are lost and empty ones appear at the bottom.
    pub(crate) fn scroll_up(&mut self, region: Region, count: usize, background: Colour) {
        let count = count.min(region.rows());
        if region == Region::whole(self.rows.len()) {
            self.rows.rotate_left(count);
        } else if let Some(rows) = self.rows.make_contiguous().get_mut(region.top..=region.bottom) {
            rows.rotate_left(count);
        }
        self.fill(region.bottom + 1 - count..region.bottom + 1, Cell::erased(background));
        self.end_at_the_last();
    }

    /// Lines move down; the lowest are lost and empty ones appear at the top.
    pub(crate) fn scroll_down(&mut self, region: Region, count: usize, background: Colour) {
        let count = count.min(region.rows());
        if region == Region::whole(self.rows.len()) {
            self.rows.rotate_right(count);
        } else if let Some(rows) = self.rows.make_contiguous().get_mut(region.top..=region.bottom) {
            rows.rotate_right(count);
        }
        self.fill(region.top..region.top + count, Cell::erased(background));
        self.end_at_the_last();
    }

    /// Makes all cells of lines the same.
    pub(crate) fn fill(&mut self, rows: Range<usize>, cell: Cell) {
        self.rows.iter_mut().skip(rows.start).take(rows.len()).for_each(|row| row.fill(cell));
    }

    /// Gives the screen another size and returns how many lines have left at the top: where lines must go, those
    /// below the cursor go first, as terminals do it.
    pub(crate) fn resize(&mut self, size: Size, cursor_row: usize) -> usize {
        let excess = (cursor_row + 1).saturating_sub(size.height());
        self.rows.drain(..excess);
        self.rows.resize_with(size.height(), || Row::of(Cell::erased(Colour::Default)));
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
        if let Some(last) = self.rows.back_mut() {
            last.is_wrapped = false;
        }
    }
}
