//! One of the two screens of a terminal, with what each of them has for itself.

use crate::cursor::Cursor;
use crate::grid::Grid;
use crate::keyboard::KeyboardStack;
use crate::size::Size;
use crate::style::Colour;

/// A screen, its saved cursor and its keyboard.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Page {
    pub(crate) grid: Grid,
    pub(crate) saved: Cursor,
    pub(crate) keyboard: KeyboardStack,
}

impl Page {
    pub(crate) fn new(size: Size, background: Colour) -> Self {
        Self {
            grid: Grid::new(size, background),
            saved: Cursor::default(),
            keyboard: KeyboardStack::default(),
        }
    }
}
