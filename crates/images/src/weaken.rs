//! What stands between a stranger's image and the host, taken away one by one for the negative controls of the tests. The
//! shipped program is built without the feature `weaken`: there everything stands, and this module is a constant.

/// Something that keeps a stranger's image where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Nothing is opened through a link while a layer is unpacked.
    Beneath,
    /// The process that unpacks can write to one directory alone.
    Confined,
    /// A layer becomes no more than so many times as large as it came.
    Size,
    /// Passwords are for the registry, and for whom it names where nobody listens.
    Secrets,
}

impl Guard {
    /// What it is called where it is taken away.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Beneath => "image-beneath",
            Self::Confined => "image-confined",
            Self::Size => "image-size",
            Self::Secrets => "image-secrets",
        }
    }

    /// Whether it stands: always.
    #[cfg(not(feature = "weaken"))]
    #[must_use]
    pub const fn stands(self) -> bool {
        true
    }

    /// Whether it stands, as the variable AGENTBOX_WEAKEN does not name it.
    #[cfg(feature = "weaken")]
    #[must_use]
    pub fn stands(self) -> bool {
        use std::sync::LazyLock;
        static NAMES: LazyLock<String> =
            LazyLock::new(|| std::env::var("AGENTBOX_WEAKEN").unwrap_or_default());
        !NAMES.split(',').any(|name| name == self.name())
    }
}
