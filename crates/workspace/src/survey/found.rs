//! What a walk over the owner's tree has found.

/// What was found, as bytes of paths relative to the tree.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Files whose name may hold a secret, or that are in a directory that does.
    pub(crate) secrets: Vec<Vec<u8>>,
    /// Such directories.
    pub(crate) secret_directories: Vec<Vec<u8>>,
    /// Directories in which there is a `.git`, beside the tree itself.
    pub(crate) repositories: Vec<Vec<u8>>,
    /// Directories that are what a `.git` is, under another name.
    pub(crate) bare: Vec<Vec<u8>>,
    /// Sockets, pipes and devices.
    pub(crate) special: Vec<Vec<u8>>,
    /// Directories that cannot be looked into.
    pub(crate) closed: Vec<Vec<u8>>,
    pub(super) entries: usize,
}

impl Found {
    pub(super) fn add(&mut self, other: Self) {
        self.secrets.extend(other.secrets);
        self.secret_directories.extend(other.secret_directories);
        self.repositories.extend(other.repositories);
        self.bare.extend(other.bare);
        self.special.extend(other.special);
        self.closed.extend(other.closed);
        for list in [&mut self.secrets, &mut self.secret_directories, &mut self.repositories] {
            list.sort();
        }
    }
}
