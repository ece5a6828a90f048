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
    /// How many megabytes a file of the record has before the next one begins.
    #[schemars(range(min = 1, max = 65_536))]
    pub max_megabytes: u64,
    /// How many such files are kept beside the one that is written; older ones are removed.
    #[schemars(range(min = 0, max = 10_000))]
    pub keep_files: u64,
}

impl Default for AuditLogging {
    fn default() -> Self {
        Self { enabled: true, arguments: false, required: false, max_megabytes: 64, keep_files: 15 }
    }
}
