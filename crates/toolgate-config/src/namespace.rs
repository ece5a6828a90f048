//! Sets of servers that are served apart.

use toolgate_policy::PolicySettings;

use crate::ToolSearch;
use crate::choice::choice;

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

/// What an agent is shown in a namespace, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamespaceMode {
    Auto,
    Direct,
    Deferred,
    Stable,
    Dynamic,
    Code,
}

choice!(
    NamespaceMode,
    "auto" => Auto,
    "direct" => Direct,
    "deferred" => Deferred,
    "stable" => Stable,
    "dynamic" => Dynamic,
    "code" => Code,
);
