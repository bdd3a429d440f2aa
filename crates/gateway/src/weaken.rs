//! Walls taken away one by one, for the negative controls of the tests. The shipped program is built without the feature
//! `weaken`: there every wall stands, and this module is a constant.

use policy::Wall;

/// Which walls a test took away.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weaken {
    #[cfg(feature = "weaken")]
    names: String,
}

#[cfg(feature = "weaken")]
impl Weaken {
    /// Those that are named in the variable AGENTBOX_WEAKEN, separated by commas.
    pub(crate) fn here() -> Self {
        Self { names: std::env::var("AGENTBOX_WEAKEN").unwrap_or_default() }
    }

    pub(crate) fn keeps(&self, wall: Wall) -> bool {
        !self.names.split(',').any(|name| name == wall.name())
    }
}

#[cfg(not(feature = "weaken"))]
#[expect(clippy::unused_self, reason = "with the feature it is asked")]
impl Weaken {
    pub(crate) const fn here() -> Self {
        Self {}
    }

    pub(crate) const fn keeps(&self, _wall: Wall) -> bool {
        true
    }
}
