//! How a person shows that they are there.

use serde::{Deserialize, Serialize};

/// How a person shows that they are there. The order is that of strictness.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// They answer at the terminal that the command opens itself.
    #[default]
    Terminal,
    /// They answer in a dialog on the desktop.
    Desktop,
    /// They answer at the terminal, and the system asks them for a password.
    Password,
}

impl Presence {
    /// Whether this is the default.
    pub fn is_terminal(&self) -> bool {
        *self == Self::Terminal
    }
}
