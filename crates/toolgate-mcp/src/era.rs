//! The two eras of the protocol.

use serde::{Deserialize, Serialize};

use crate::versions;

/// The lifecycle of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// `initialize` opens the connection; up to protocol version 2025-11-25.
    Legacy,
    /// Each request carries version and capabilities; from protocol version 2026-07-28 on.
    Modern,
}

impl Era {
    /// The era of a protocol version. Versions are dates, which compare as text.
    pub fn of_version(version: &str) -> Self {
        if version >= versions::MODERN { Self::Modern } else { Self::Legacy }
    }
}
