//! Walls of init's own taken away one by one, for the negative controls of the tests. The shipped program is built
//! without the feature `weaken`: there every wall stands, and this module is a constant.

/// A wall that init puts around each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wall {
    /// No capability in any set.
    Capabilities,
    /// No descriptor but the three streams.
    Descriptors,
    /// No privilege by executing a file.
    NoNewPrivileges,
}

/// Which walls a test took away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weaken {
    #[cfg(feature = "weaken")]
    walls: Vec<Wall>,
}

#[cfg(feature = "weaken")]
impl Weaken {
    /// Takes away the wall of this name, the one that reports have for it. Others are not init's.
    pub(crate) fn take_away(&mut self, name: &std::ffi::OsStr) {
        match name.to_str() {
            Some("capabilities") => self.walls.push(Wall::Capabilities),
            Some("descriptors") => self.walls.push(Wall::Descriptors),
            Some("no-new-privileges") => self.walls.push(Wall::NoNewPrivileges),
            _ => {}
        }
    }

    /// Whether `wall` stands.
    pub(crate) fn keeps(&self, wall: Wall) -> bool {
        !self.walls.contains(&wall)
    }
}

#[cfg(not(feature = "weaken"))]
impl Weaken {
    /// Whether `wall` stands: always.
    #[expect(clippy::unused_self, reason = "with the feature it is asked")]
    pub(crate) const fn keeps(&self, _wall: Wall) -> bool {
        true
    }
}
