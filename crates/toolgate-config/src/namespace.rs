//! Sets of servers that are served apart.

use toolgate_policy::PolicySettings;

use crate::choice::choice;
use crate::{DeferredMode, ToolSearch, ToolSearchMode};

/// Some of the servers, served at a path of their own: an entry of the `namespaces` key.
#[derive(Debug, Clone, PartialEq)]
pub struct Namespace {
    /// What the path ends with: 1 to 64 lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// Its servers, each of them a server of the file.
    pub servers: Vec<String>,
    /// Whether its servers are served nowhere else but in namespaces that name them.
    pub exclusive: bool,
    /// When tools are deferred and how they are found: what the file says for all, where the
    /// namespace does not say otherwise.
    pub tool_search: ToolSearch,
    /// Who may call what in it: the policy of the file, the servers included, with the rules and labels
    /// of the namespace after it, and in its place what else the namespace says.
    pub policy: PolicySettings,
}

/// What a session lists, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExposureMode {
    /// The meta-tools once a threshold of `toolSearch` is passed, else every tool.
    Auto,
    /// Every tool.
    Direct,
    /// The meta-tools, in the style of `toolSearch.deferred`.
    Deferred,
    /// The meta-tools, in a list that never changes.
    Stable,
    /// The meta-tools, in a list that found tools are added to.
    Dynamic,
    /// Search, details and scripts.
    Code,
}

choice!(
    ExposureMode,
    "auto" => Auto,
    "direct" => Direct,
    "deferred" => Deferred,
    "stable" => Stable,
    "dynamic" => Dynamic,
    "code" => Code,
);

impl ExposureMode {
    /// Writes the mode into the settings that it stands for.
    pub fn apply(self, search: &mut ToolSearch) {
        search.enabled = match self {
            Self::Auto => ToolSearchMode::Auto,
            Self::Direct => ToolSearchMode::Off,
            Self::Code => ToolSearchMode::Code,
            Self::Deferred | Self::Stable | Self::Dynamic => ToolSearchMode::On,
        };
        match self {
            Self::Stable => search.deferred = DeferredMode::Stable,
            Self::Dynamic => search.deferred = DeferredMode::Dynamic,
            _ => {}
        }
    }
}
