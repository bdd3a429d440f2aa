//! How long a sandbox lives, where it would not end by itself.

use serde::{Deserialize, Serialize};

use crate::Timeout;

/// When a sandbox is ended although nobody has asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Life {
    /// So long after it was started.
    pub lifetime: Option<Timeout>,
    /// When nobody has used it for so long.
    pub idle_timeout: Option<Timeout>,
}
