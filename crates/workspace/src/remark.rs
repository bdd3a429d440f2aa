//! What is in a layer and does not come back, and why: the owner is told, so that nothing is lost unseen.

/// Something that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Where, below the workspace.
    pub path: Vec<u8>,
    /// Why.
    pub why: Why,
}

/// Why something was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A pipe, a socket or a device.
    Special,
    /// A name that git refuses.
    Name,
    /// A path that is too long.
    Long,
    /// It cannot be read.
    Closed,
    /// A repository of the owner's that is no part of this one.
    Repository,
    /// Files of a submodule; only the commit that it stands at comes back.
    Submodule,
}

impl Why {
    /// A stable word for programs.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Special => "special",
            Self::Name => "name",
            Self::Long => "long",
            Self::Closed => "closed",
            Self::Repository => "repository",
            Self::Submodule => "submodule",
        }
    }

    /// The reason for a person.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Special => "a pipe, a socket or a device",
            Self::Name => "git refuses its name",
            Self::Long => "its path is too long",
            Self::Closed => "it cannot be read",
            Self::Repository => "it is a repository of its own",
            Self::Submodule => "only the commit of a submodule comes back, not its files",
        }
    }
}
