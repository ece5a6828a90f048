//! What many nodes share: the same things as in a state folder, in one database.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    AccessTokens, AuditLimits, AuditLog, ChoiceStore, DefinitionStore, Journal, JournalError,
    Logins, Quotas, SecretSeal, ShapeStore, StoreError, StoreStamp, UsageLog, WaitingLogins,
};

/// Hands out the stores that are shared. What it does not have stays in the state folder of each node: caches, server
/// logs, and the vault, unless the nodes have one key.
pub trait SharedStore: fmt::Debug + Send + Sync {
    /// Runs, approvals, grants and tasks.
    fn journal(&self) -> Result<Arc<dyn Journal>, JournalError>;

    /// The audit log.
    fn audit(&self) -> Arc<dyn AuditLog>;

    /// Keeps this much of the audit log, and removes older lines.
    fn limit_audit(&self, limits: AuditLimits);

    /// The definitions of servers that a node has listed.
    fn definitions(&self) -> Arc<dyn DefinitionStore>;

    /// The approved definitions.
    fn pins(&self) -> Arc<dyn PinStore>;

    /// The policy that a person has saved for all nodes.
    fn policy(&self) -> Arc<dyn PolicyStore>;

    /// What is watched of this process.
    fn health(&self) -> NodeHealth;

    /// The access tokens of HTTP clients.
    fn access_tokens(&self) -> Arc<dyn AccessTokens>;

    /// The choices for the servers of a configuration, which `configuration` identifies.
    fn choices(&self, configuration: &str) -> Arc<dyn ChoiceStore>;

    /// Which query led to which call.
    fn usage(&self) -> Arc<dyn UsageLog>;

    /// The learned types of results.
    fn shapes(&self) -> Arc<dyn ShapeStore>;

    /// How many calls were made today.
    fn quotas(&self) -> Arc<dyn Quotas>;

    /// The logins at servers, encrypted with this.
    fn logins(&self, seal: SecretSeal) -> Arc<dyn Logins>;

    /// The logins that wait for a browser, encrypted with this.
    fn waiting_logins(&self, seal: SecretSeal) -> Arc<dyn WaitingLogins>;

    /// Which node runs a server that runs once.
    fn server_leases(&self) -> Arc<dyn ServerLeases>;

    /// What expires by itself.
    fn timed_values(&self) -> Arc<dyn TimedValues>;

    /// The id of this process among those that share the stores.
    fn node(&self) -> &str;

    /// The URL at which another node is reached; empty if it cannot be; `None` if it is dead. Waits for the database.
    fn node_url(&self, node: &str) -> Result<Option<String>, StoreError>;

    /// Whether the database answers. Waits for it.
    fn check(&self) -> Result<(), StoreError>;
}

/// What is watched of a node, without asking the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeHealth {
    /// How many nodes live, as far as this one knows.
    pub nodes: u64,
    /// Whether the database is known to be away.
    pub is_away: bool,
    /// Bytes of the audit log that wait for the database.
    pub waiting_bytes: u64,
}

/// The approved definitions, as one text that only its readers understand. Methods wait for the database.
pub trait PinStore: fmt::Debug + Send + Sync {
    /// Another one after each change. Does not wait.
    fn stamp(&self) -> Option<StoreStamp>;

    /// The text; `None` if nothing was ever stored.
    fn read(&self) -> Result<Option<String>, StoreError>;

    /// Replaces the text by what `change` makes of it, unless that is `None`. No other node changes it meanwhile.
    fn change(
        &self,
        change: &mut dyn FnMut(Option<&str>) -> Option<String>,
    ) -> Result<(), StoreError>;
}

/// The policy that was saved for all nodes, as one text that only its readers understand.
pub trait PolicyStore: fmt::Debug + Send + Sync {
    /// Another one after each change that this node has heard of. Does not wait.
    fn stamp(&self) -> StoreStamp;

    /// What is saved. Waits for the database.
    fn read(&self) -> Result<VersionedText, StoreError>;

    /// Saves another text in place of the one of the version `before`, or none. Returns the new version; `None` if
    /// somebody has saved another one meanwhile, and then nothing is changed. Waits for the database.
    fn replace(&self, before: u64, text: Option<&str>) -> Result<Option<u64>, StoreError>;

    /// Calls `wake` when this node has heard of a change.
    fn on_change(&self, wake: Box<dyn Fn() + Send + Sync>);
}

/// A text, and how often it was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionedText {
    /// 0 if it never was.
    pub version: u64,
    /// `None` if there is none.
    pub text: Option<String>,
}

/// Which node runs a server that runs once. A node has a server as long as the node lives.
pub trait ServerLeases: fmt::Debug + Send + Sync {
    /// The living node that has a server. If there is none, this node takes it, or another one if this process is no
    /// node that the others reach. `None` if there is no such node. Waits for the database.
    fn take(&self, server: &str, scope: &str) -> Result<Option<ServerHolder>, StoreError>;

    /// Whether a node has a server still, as far as the database says. Waits for it.
    fn has(&self, scope: &str, holder: &ServerHolder) -> Result<bool, StoreError>;

    /// Whether this node is sure that no other node believes it to be dead, for a while. Does not wait.
    fn is_sure(&self) -> bool;

    /// Another number after each change of a lease. Does not wait.
    fn changes(&self) -> u64;

    /// How long a node counts as alive after it was last heard of.
    fn lease(&self) -> Duration;
}

/// The node that has a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerHolder {
    /// The node.
    pub node: String,
    /// Where other nodes reach it.
    pub url: String,
    /// Counts how often the server has changed its node.
    pub epoch: u64,
    /// Whether it is this process.
    pub is_own: bool,
}

/// The kinds of [`TimedValues`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimedKind {
    /// A session of the legacy era, by the hash of its id.
    Session,
    /// A request that waits for its client, by the hash of its `requestState`. The content is the node that has it.
    Parked,
    /// A long output, by its id.
    Output,
}

/// A value that expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedValue {
    /// Who it belongs to. Nobody else gets it.
    pub owner: String,
    /// The value.
    pub content: String,
    /// When it expires, in milliseconds since 1970.
    pub expires: u64,
}

/// Values that other nodes may need, until they expire. Methods wait for the database.
pub trait TimedValues: fmt::Debug + Send + Sync {
    /// Stores a value in place of the one before.
    fn put(&self, kind: TimedKind, key: &str, value: &TimedValue) -> Result<(), StoreError>;

    /// The value, if it belongs to this owner and has not expired.
    fn get(&self, kind: TimedKind, key: &str, owner: &str) -> Result<Option<String>, StoreError>;

    /// Removes a value of this owner. `false` if there is none.
    fn remove(&self, kind: TimedKind, key: &str, owner: &str) -> Result<bool, StoreError>;

    /// Sends a message to all nodes, this one too. Those that nobody awaits are lost.
    fn send(&self, message: &NodeMessage) -> Result<(), StoreError>;

    /// Calls `receive` with every message of the nodes.
    fn on_message(&self, receive: Box<dyn Fn(&NodeMessage) + Send + Sync>);
}

/// A short message to all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeMessage {
    /// The subject.
    pub topic: String,
    /// Who it is for.
    pub key: String,
    /// What it says.
    pub content: String,
}

impl TimedKind {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Parked => "parked",
            Self::Output => "output",
        }
    }
}
