//! The record of decisions and calls.

use schemars::JsonSchema;
use serde::Serialize;

/// How decisions and calls are recorded: the `audit` key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditLogging {
    /// Whether they are recorded.
    pub enabled: bool,
    /// Whether arguments are kept as they are, with secrets taken out, and not by their hash alone.
    pub arguments: bool,
    /// Whether a call is refused that cannot be recorded.
    pub required: bool,
}

impl Default for AuditLogging {
    fn default() -> Self {
        Self { enabled: true, arguments: false, required: false }
    }
}
