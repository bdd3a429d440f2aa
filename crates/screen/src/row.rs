//! One line of cells. Cells after the last one that was written are not stored: most of most screens is empty, and
//! erasing a line must not take longer for a wider screen, as four bytes can ask for it.

use std::ops::Range;

use crate::cell::{Cell, Part};
use crate::style::{Colour, Style};

/// Combining marks that one cell keeps; those after them are dropped.
const MARKS: usize = 4;

/// The combining marks of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    column: u16,
    count: u8,
    characters: [char; MARKS],
}

/// A line. `columns` in its functions is the width of the screen, which the row does not store.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    cells: Vec<Cell>,
    /// In the order of columns.
    marks: Vec<Marks>,
    /// What each of the cells that are not stored is.
    rest: Cell,
    /// The text went on in the next line because this one was full.
    pub(crate) is_wrapped: bool,
}

impl Row {
    /// Whether two lines show the same, however many of their empty cells are stored.
    pub(crate) fn looks_like(&self, other: &Self, columns: usize) -> bool {
        self.is_wrapped == other.is_wrapped
            && self.marks == other.marks
            && (0..columns).all(|column| self.cell(column) == other.cell(column))
    }

    /// A line of the same cell everywhere.
    pub(crate) fn of(rest: Cell) -> Self {
        Self { cells: Vec::new(), marks: Vec::new(), rest, is_wrapped: false }
    }

    pub(crate) fn cell(&self, column: usize) -> Cell {
        self.cells.get(column).copied().unwrap_or(self.rest)
    }

    /// The combining marks on a cell.
    pub(crate) fn marks(&self, column: usize) -> &[char] {
        match self.find(column) {
            Ok(index) => self
                .marks
                .get(index)
                .map_or(&[], |marks| marks.characters.get(..usize::from(marks.count)).unwrap_or_default()),
            Err(_) => &[],
        }
    }

    /// The column after the last cell that shows anything.
    pub(crate) fn end(&self, columns: usize) -> usize {
        if !self.rest.is_default() {
            return columns;
        }
        self.cells.iter().rposition(|cell| !cell.is_default()).map_or(0, |last| last + 1)
    }

    /// Puts a character, which is `Part::Left` where it is wide.
    pub(crate) fn put(&mut self, column: usize, cell: Cell, columns: usize) {
        let width = if cell.part == Part::Left { 2 } else { 1 };
        self.make_room(column..column + width, columns);
        if let Some(place) = self.cells.get_mut(column) {
            *place = cell;
        }
        if width == 2
            && let Some(place) = self.cells.get_mut(column + 1)
        {
            *place = Cell::new(' ', cell.style, Part::Right);
        }
    }

    /// Puts printable ASCII that fits.
    pub(crate) fn put_ascii(&mut self, column: usize, text: &[u8], style: Style, columns: usize) {
        let range = column..column + text.len();
        self.make_room(range.clone(), columns);
        if let Some(places) = self.cells.get_mut(range) {
            for (place, byte) in places.iter_mut().zip(text) {
                *place = Cell::new(char::from(*byte), style, Part::Whole);
            }
        }
    }

    /// Adds a combining mark to a cell.
    pub(crate) fn mark(&mut self, column: usize, mark: char, columns: usize) {
        self.extend(column + 1, columns);
        let Some(cell) = self.cells.get_mut(column) else { return };
        cell.is_marked = true;
        match self.find(column) {
            Ok(index) => {
                if let Some(marks) = self.marks.get_mut(index)
                    && let Some(place) = marks.characters.get_mut(usize::from(marks.count))
                {
                    *place = mark;
                    marks.count += 1;
                }
            }
            Err(index) => {
                let mut characters = ['\0'; MARKS];
                characters[0] = mark;
                if self.marks.len() == self.marks.capacity() {
                    self.marks.reserve_exact(self.marks.len().max(2).min(columns - self.marks.len()));
                }
                self.marks.insert(index, Marks { column: narrow(column), count: 1, characters });
            }
        }
    }

    pub(crate) fn erase(&mut self, range: Range<usize>, background: Colour, columns: usize) {
        let erased = Cell::erased(background);
        if range.start >= range.end {
            return;
        }
        if range.end < columns {
            if range.start >= self.cells.len() && erased == self.rest {
                return;
            }
            self.make_room(range.clone(), columns);
            if let Some(places) = self.cells.get_mut(range) {
                places.fill(erased);
            }
            return;
        }
        self.split(range.start);
        self.forget_marks(range.start..columns);
        if erased != self.rest {
            self.extend(range.start, columns);
        }
        self.cells.truncate(range.start);
        self.rest = erased;
        self.is_wrapped = false;
    }

    /// Makes all cells of the line the same; its memory is kept for what is written next.
    pub(crate) fn fill(&mut self, cell: Cell) {
        self.cells.clear();
        self.marks.clear();
        self.rest = cell;
        self.is_wrapped = false;
    }

    /// Moves what is right of a column to the right; what leaves the screen is lost.
    pub(crate) fn insert(&mut self, column: usize, count: usize, background: Colour, columns: usize) {
        let count = count.min(columns - column);
        self.split(column);
        self.split(columns - count);
        self.forget_marks(columns - count..columns);
        self.is_wrapped = false;
        self.extend(column, columns);
        self.cells.truncate(columns - count);
        self.cells.reserve_exact(count);
        self.cells.splice(column..column, std::iter::repeat_n(Cell::erased(background), count));
        for marks in self.marks.iter_mut().filter(|marks| usize::from(marks.column) >= column) {
            marks.column += narrow(count);
        }
    }

    /// Takes cells out; what is right of them moves to the left.
    pub(crate) fn delete(&mut self, column: usize, count: usize, background: Colour, columns: usize) {
        let count = count.min(columns - column);
        self.split(column);
        self.split(column + count);
        self.forget_marks(column..column + count);
        self.is_wrapped = false;
        // The new cells on the right are not stored unless they differ from the others that are not.
        if self.rest != Cell::erased(background) {
            self.extend(columns, columns);
        }
        let end = (column + count).min(self.cells.len());
        if column < end {
            self.cells.drain(column..end);
        }
        self.rest = Cell::erased(background);
        for marks in self.marks.iter_mut().filter(|marks| usize::from(marks.column) >= column) {
            marks.column -= narrow(count);
        }
    }

    /// Gives the line another width.
    pub(crate) fn resize(&mut self, columns: usize) {
        self.split(columns);
        self.forget_marks(columns..usize::from(u16::MAX));
        self.cells.truncate(columns);
        self.cells.shrink_to_fit();
        self.marks.shrink_to_fit();
        self.is_wrapped = false;
    }

    /// Readies cells for being written: stored, without marks, and no half of a wide character left beside them.
    fn make_room(&mut self, range: Range<usize>, columns: usize) {
        self.split(range.start);
        self.split(range.end);
        self.forget_marks(range.clone());
        if range.end >= columns {
            self.is_wrapped = false;
        }
        self.extend(range.end, columns);
    }

    /// Breaks a wide character whose halves are left and right of this border into two spaces.
    fn split(&mut self, column: usize) {
        if self.cells.get(column).is_none_or(|cell| cell.part != Part::Right) {
            return;
        }
        let left = column.saturating_sub(1);
        self.forget_marks(left..column);
        for cell in self.cells.iter_mut().skip(left).take(2) {
            *cell = Cell::new(' ', cell.style, Part::Whole);
        }
    }

    fn forget_marks(&mut self, range: Range<usize>) {
        if !self.marks.is_empty() {
            self.marks.retain(|marks| !range.contains(&usize::from(marks.column)));
        }
    }

    fn find(&self, column: usize) -> Result<usize, usize> {
        self.marks.binary_search_by_key(&narrow(column), |marks| marks.column)
    }

    /// Stores at least so many cells. Grows by doubling as vectors do, but never past the width of the screen.
    fn extend(&mut self, length: usize, columns: usize) {
        let length = length.min(columns);
        if length <= self.cells.len() {
            return;
        }
        if length > self.cells.capacity() {
            let wanted = length.max(self.cells.capacity() * 2).clamp(16.min(columns), columns);
            self.cells.reserve_exact(wanted - self.cells.len());
        }
        self.cells.resize(length, self.rest);
    }
}

/// Columns are at most [`Size::LARGEST`](crate::Size::LARGEST), far below what this type holds.
fn narrow(column: usize) -> u16 {
    u16::try_from(column).unwrap_or(u16::MAX)
}
