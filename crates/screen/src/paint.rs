//! Draws the lines of a screen onto an empty one.

use crate::cell::{Cell, Part};
use crate::grid::Grid;
use crate::row::Row;
use crate::sgr;
use crate::style::Style;
use crate::writer::Writer;

/// From so many empty cells on it is shorter to move than to write spaces.
const WORTH_MOVING: usize = 5;

/// Draws all lines. The viewer's screen is cleared, wraps, has the usual characters and no style set.
pub(crate) fn write(grid: &Grid, columns: usize, writer: &mut Writer) {
    let mut brush = Brush { style: Style::default(), columns };
    let mut follows = false;
    for (index, row) in grid.rows().enumerate() {
        brush.row(index, row, follows, writer);
        follows = row.is_wrapped;
    }
    if brush.style != Style::default() {
        sgr::write(&Style::default(), writer);
    }
}

/// Writes one character with its marks, in its style.
pub(crate) fn write_cell(row: &Row, column: usize, writer: &mut Writer) {
    writer.character(row.cell(column).character);
    row.marks(column).iter().for_each(|mark| writer.character(*mark));
}

/// Goes on from a pending wrap at the end of a line to what follows it, so that the lines are one text again.
pub(crate) fn write_following(grid: &Grid, row: usize, columns: usize, writer: &mut Writer) {
    for (line, next) in grid.rows().zip(grid.rows().skip(1)).skip(row) {
        if !line.is_wrapped {
            return;
        }
        let first = next.cell(0);
        sgr::write(&first.style, writer);
        write_cell(next, 0, writer);
        let width = if first.part == Part::Left { 2 } else { 1 };
        // Where one character is a whole line, this one was written to again as well.
        if width < columns {
            return;
        }
    }
}

struct Brush {
    style: Style,
    columns: usize,
}

impl Brush {
    /// A line that follows from the one before begins where the terminal wraps to by itself, so that the viewer's
    /// terminal knows both for one line of text, too.
    fn row(&mut self, index: usize, row: &Row, follows: bool, writer: &mut Writer) {
        let end = if row.is_wrapped { self.columns } else { row.end(self.columns).max(usize::from(follows)) };
        if end == 0 {
            return;
        }
        if !follows {
            writer.move_to(index, 0);
        }
        let mut column = 0;
        let mut is_lost = false;
        while column < end {
            let cell = row.cell(column);
            let empty = (column..end).take_while(|column| row.cell(*column).is_default()).count();
            let must_write = (follows && column == 0) || (row.is_wrapped && column + empty == self.columns);
            if empty >= WORTH_MOVING && !must_write {
                writer.move_right(empty);
                column += empty;
                continue;
            }
            if is_lost {
                writer.move_to_column(column);
            }
            if cell.style != self.style {
                sgr::write(&cell.style, writer);
                self.style = cell.style;
            }
            write_cell(row, column, writer);
            is_lost = is_disputed(&cell);
            column += if cell.part == Part::Left { 2 } else { 1 };
        }
    }
}

/// Whether terminals disagree on how wide this is, so that the next character must be placed.
fn is_disputed(cell: &Cell) -> bool {
    let is_symbol =
        matches!(cell.character, '\u{2600}'..='\u{27bf}' | '\u{e000}'..='\u{f8ff}' | '\u{1f000}'..);
    cell.is_marked || is_symbol
}
