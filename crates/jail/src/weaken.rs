//! Walls taken away one by one, for the negative controls of the tests. The shipped program is built without
//! the feature `weaken`: there every wall stands, and this module is a constant.

use policy::Wall;

/// Which walls a test took away.
#[derive(Clone, Debug, Default)]
pub struct Weaken {
    #[cfg(feature = "weaken")]
    walls: Vec<Wall>,
}

impl Weaken {
    /// No wall is taken away.
    #[must_use]
    pub const fn nothing() -> Self {
        Self {
            #[cfg(feature = "weaken")]
            walls: Vec::new(),
        }
    }

    /// The walls named in the variable AGENTBOX_WEAKEN, separated by commas.
    #[cfg(feature = "weaken")]
    #[must_use]
    pub fn from_environment() -> Self {
        let names = std::env::var("AGENTBOX_WEAKEN").unwrap_or_default();
        let named = |wall: &&Wall| names.split(',').any(|name| name == wall.name());
        Self { walls: Wall::ALL.iter().filter(named).copied().collect() }
    }

    /// Whether `wall` stands.
    #[cfg(feature = "weaken")]
    #[must_use]
    pub fn keeps(&self, wall: Wall) -> bool {
        !self.walls.contains(&wall)
    }

    /// Whether `wall` stands: always.
    #[cfg(not(feature = "weaken"))]
    #[must_use]
    pub const fn keeps(&self, _wall: Wall) -> bool {
        true
    }
}
