//! How much of a layer is taken. Whoever makes more of it makes it harder for the owner to read, and gains nothing.

/// Bounds of one snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Names that are looked at.
    pub(crate) entries: u64,
    /// Levels of directories.
    pub(crate) depth: usize,
    /// Bytes of a path.
    pub(crate) path: usize,
    /// Bytes of all paths together: they are held in memory.
    pub(crate) names: u64,
    /// Bytes of all files together.
    pub(crate) bytes: u64,
    /// Things that are named as left out.
    pub(crate) remarks: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 1_000_000, depth: 200, path: 3000, names: 128 << 20, bytes: 16 << 30, remarks: 1000 }
    }
}

/// Bytes of a difference that are shown; what is longer is listed and not shown.
pub(crate) const PATCH: u64 = 64 << 20;

/// Commits from inside.
pub(crate) const COMMITS: usize = 1000;

/// Bytes of a pack from inside.
pub(crate) const PACK: u64 = 2 << 30;
