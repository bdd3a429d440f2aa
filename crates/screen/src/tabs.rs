//! Tab stops.

/// Columns between stops that nobody has set.
const EVERY: usize = 8;

/// Which columns a tab stops at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TabStops(Vec<bool>);

impl TabStops {
    pub(crate) fn new(columns: usize) -> Self {
        let mut stops = Self(Vec::new());
        stops.resize(columns);
        stops
    }

    /// New columns have a stop every eight; the others keep theirs.
    pub(crate) fn resize(&mut self, columns: usize) {
        self.0.truncate(columns);
        self.0.reserve_exact(columns - self.0.len());
        self.0.extend((self.0.len()..columns).map(|column| column % EVERY == 0 && column > 0));
    }

    pub(crate) fn set(&mut self, column: usize) {
        if let Some(stop) = self.0.get_mut(column) {
            *stop = true;
        }
    }

    pub(crate) fn clear(&mut self, column: usize) {
        if let Some(stop) = self.0.get_mut(column) {
            *stop = false;
        }
    }

    pub(crate) fn clear_all(&mut self) {
        self.0.fill(false);
    }

    /// The next stop, or the last column.
    pub(crate) fn after(&self, column: usize) -> usize {
        let last = self.0.len() - 1;
        (column + 1..last).find(|column| self.is_stop(*column)).unwrap_or(last)
    }

    /// The stop before, or the first column.
    pub(crate) fn before(&self, column: usize) -> usize {
        (0..column).rev().find(|column| self.is_stop(*column)).unwrap_or(0)
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, is_stop)| **is_stop).map(|(column, _)| column)
    }

    fn is_stop(&self, column: usize) -> bool {
        self.0.get(column).copied().unwrap_or(false)
    }
}
