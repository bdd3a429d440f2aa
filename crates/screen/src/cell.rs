//! One place on the screen.

use crate::style::{Colour, Style};

/// How much of a character is in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of a character of ordinary width.
    Whole,
    /// The left half of a wide one.
    Left,
    /// The right half of a wide one; the cell to the left has the character.
    Right,
}

/// A character and how it looks. Combining marks are kept by the row, because hardly any cell has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) character: char,
    pub(crate) style: Style,
    pub(crate) part: Part,
    pub(crate) is_marked: bool,
}

// Memory of a screen is this times its cells.
const _: () = assert!(size_of::<Cell>() == 20);

impl Cell {
    pub(crate) fn new(character: char, style: Style, part: Part) -> Self {
        Self { character, style, part, is_marked: false }
    }

    pub(crate) fn erased(background: Colour) -> Self {
        Self::new(' ', Style::erased(background), Part::Whole)
    }

    /// Nothing that a cleared screen does not show.
    pub(crate) fn is_default(&self) -> bool {
        self.character == ' ' && !self.is_marked && self.style == Style::default()
    }
}
