//! How large a screen is. A window's size comes from a viewer, so anything may be asked for.

/// Rows and columns of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Lines from top to bottom.
    pub rows: u16,
    /// Cells of a line.
    pub columns: u16,
}

impl Size {
    /// The largest screen that is kept; what is larger is cut to it.
    pub const LARGEST: Self = Self { rows: 500, columns: 1000 };

    /// The nearest size that a screen can have.
    #[must_use]
    pub fn clamped(self) -> Self {
        Self {
            rows: self.rows.clamp(1, Self::LARGEST.rows),
            columns: self.columns.clamp(1, Self::LARGEST.columns),
        }
    }

    pub(crate) fn height(self) -> usize {
        usize::from(self.rows)
    }

    pub(crate) fn width(self) -> usize {
        usize::from(self.columns)
    }
}
