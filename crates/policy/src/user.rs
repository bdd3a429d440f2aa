//! Who runs inside: `agent` unless told otherwise, never root.

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
    /// Root has no place inside a native sandbox.
    #[error("root is not to be had inside a native sandbox")]
    Root,
    /// Neither `agent` nor a number.
    #[error("'{0}' is not a user: 'agent', a user id, or UID:GID, from 1 to {LAST_MAPPED_ID}")]
    Malformed(String),
}

impl User {
    /// The user that everything runs as unless told otherwise.
    pub const AGENT: Self = Self { uid: AGENT_UID, gid: AGENT_GID };
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
            "root" => return Err(UserError::Root),
            _ => {}
        }
        let (uid, gid) = text.split_once(':').unwrap_or((text, text));
        let number = |part: &str| match part.parse::<u32>() {
            Ok(0) => Err(UserError::Root),
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
            assert_eq!(text.parse::<User>(), Err(UserError::Root), "{text}");
        }
        for text in ["", ":", "1:", "-1", "+1", "65535", "bob", "1:2:3"] {
            assert!(matches!(text.parse::<User>(), Err(UserError::Malformed(_))), "{text:?}");
        }
    }
}
