//! Where and how the next character is written; also what ESC 7 saves.

use crate::charset::Charsets;
use crate::style::Style;

/// A cursor. Row and column are always on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) row: usize,
    pub(crate) column: usize,
    /// A character was written in the last column: the next one goes to the next line first.
    pub(crate) is_wrap_pending: bool,
    /// Rows are counted from the scroll region's top, and the cursor does not leave the region.
    pub(crate) is_in_region: bool,
    pub(crate) style: Style,
    pub(crate) charsets: Charsets,
}

/// The lines that scroll, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) top: usize,
    pub(crate) bottom: usize,
}

impl Region {
    pub(crate) fn whole(rows: usize) -> Self {
        Self { top: 0, bottom: rows - 1 }
    }

    pub(crate) fn rows(self) -> usize {
        self.bottom + 1 - self.top
    }

    pub(crate) fn contains(self, row: usize) -> bool {
        (self.top..=self.bottom).contains(&row)
    }
}
