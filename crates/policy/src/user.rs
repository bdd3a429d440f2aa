//! Who runs inside: `agent` unless told otherwise; root only where the kernel that it asks is the sandbox's own.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The user id that an agent has inside, whoever it is outside.
pub const AGENT_UID: u32 = 1000;
/// The group id that goes with it.
pub const AGENT_GID: u32 = 1000;
/// The highest id that a sandbox's id range maps; 65534 is `nobody`.
const LAST_MAPPED_ID: u32 = 65534;

/// A user inside a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// User id inside.
    pub uid: u32,
    /// Group id inside.
    pub gid: u32,
}

/// Why a text names no user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserError {
    /// Neither `agent` nor a number.
    #[error("'{0}' is not a user: 'agent', a user id, or UID:GID, up to {LAST_MAPPED_ID}")]
    Malformed(String),
}

impl User {
    /// The user that everything runs as unless told otherwise.
    pub const AGENT: Self = Self { uid: AGENT_UID, gid: AGENT_GID };
    /// Root inside, which is nobody outside.
    pub const ROOT: Self = Self { uid: 0, gid: 0 };

    /// Whether it is root, or of root's group.
    #[must_use]
    pub const fn is_root(self) -> bool {
        self.uid == 0 || self.gid == 0
    }
}

impl Default for User {
    fn default() -> Self {
        Self::AGENT
    }
}

impl FromStr for User {
    type Err = UserError;

    fn from_str(text: &str) -> Result<Self, UserError> {
        let malformed = || UserError::Malformed(text.escape_debug().to_string());
        match text {
            "agent" => return Ok(Self::AGENT),
            "root" => return Ok(Self::ROOT),
            _ => {}
        }
        let (uid, gid) = text.split_once(':').unwrap_or((text, text));
        let number = |part: &str| match part.parse::<u32>() {
            Ok(id) if id <= LAST_MAPPED_ID && !part.starts_with('+') => Ok(id),
            _ => Err(malformed()),
        };
        Ok(Self { uid: number(uid)?, gid: number(gid)? })
    }
}

impl fmt::Display for User {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.uid, self.gid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users() {
        assert_eq!("agent".parse(), Ok(User::AGENT));
        assert_eq!("33".parse(), Ok(User { uid: 33, gid: 33 }));
        assert_eq!("33:7".parse(), Ok(User { uid: 33, gid: 7 }));
        for text in ["root", "0", "0:5", "5:0"] {
            assert!(text.parse::<User>().unwrap().is_root(), "{text}");
        }
        assert!(!User::AGENT.is_root());
        for text in ["", ":", "1:", "-1", "+1", "65535", "bob", "1:2:3"] {
            assert!(matches!(text.parse::<User>(), Err(UserError::Malformed(_))), "{text:?}");
        }
    }
}
