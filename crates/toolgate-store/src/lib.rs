//! What toolgate stores on disk.
//!
//! - [`ChoiceStore`]: which servers people and models disabled, and the consents of people.
//! - [`DefinitionCache`]: the tool definitions of servers, so that a second start can search
//!   before any server has answered.
//! - [`PreparedCache`]: the analysed texts of definitions, so that a second start need not read them.
//! - [`ShapeStore`]: the learned types of results, if servers do not declare them.
//! - [`VectorCache`]: the vectors of an encoder, so that no text is encoded twice.
//! - [`ServerLog`]: the stderr of servers, bounded.
//! - [`UsageLog`]: which query led to which call, bounded.
//! - [`LiveFolder`]: what running gateways say of their sessions.
//! - [`AccessTokens`]: the access tokens of HTTP clients, as hashes.
//! - [`ChatStore`]: the chats of `toolgate chat`.
//! - [`Vault`]: the secrets of logins and the keys of models, encrypted. It implements [`Logins`].
//!
//! All of these except the access tokens can be lost without harm; after the loss of a vault, people
//! log in again. A file that cannot be read counts as missing. A failed write is an error that the
//! caller reports, but never a reason to stop.
//!
//! These must not be lost:
//!
//! - [`QuotaFile`]: how many calls were made today.
//! - [`Journal`]: runs with their calls and events, approvals, and grants.
//! - [`AuditLog`]: every decision and call, in a hash chain that shows missing lines.
//!
//! Several processes may use one folder. Cached definitions are replaced as whole files, log lines are
//! appended, and vectors, choices and the usage log are written under a lock.

mod audit;
mod chats;
mod choices;
mod components;
mod definitions;
mod files;
mod journal;
mod live;
mod lock;
mod logins;
mod logs;
mod pins;
mod prepared;
mod quotas;
mod savings;
mod sealed;
mod shapes;
mod shared;
mod timed;
mod tokens;
mod usage;
mod vault;
mod vectors;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use thiserror::Error;

use logins::NodeLogins;

pub use audit::{
    AuditError, AuditExtent, AuditFile, AuditFilter, AuditLimits, AuditLog, AuditPosition,
    AuditProblem, AuditRecord, NumberedRecord,
};
pub use chats::{ChatLock, ChatStore, MAX_CHAT_BYTES, MAX_CHATS, StoredChat};
pub use choices::{
    ChoiceFile, ChoiceStore, Choices, Consent, DamagedChoices, MAX_REQUESTS, ServerConsentRequest,
    SwitchedBy,
};
pub use components::{ComponentFolder, ComponentRecord, is_language_name};
pub use definitions::{
    CachedServer, DefinitionCache, DefinitionEntry, DefinitionStore, ServerKey, ServerMemory,
};
pub use files::{FileStamp, StoreStamp};
pub use journal::{
    AnsweredEntry, ApprovalState, Approvals, CallDecision, CallEnd, CalledEntry, EndedEntry,
    GrantRow, Journal, JournalError, JournalFile, LostCall, MOST_OPEN, NewCall, NewRun,
    PastCallRow, PastEvent, PersonWait, QuestionReference, Retention, RunCall, RunDetail,
    RunEntries, RunEntry, RunEntryKind, RunFilter, RunHistory, RunRetention, RunState, RunSummary,
    Runs, StoredApproval, TaskRow, Tasks, WRITABLE,
};
pub use live::{LiveFile, LiveFolder};
pub use logins::{
    LoginKey, LoginLock, LoginStoreError, LoginWait, Logins, WaitingLogin, WaitingLogins,
    WhichLogin,
};
pub use logs::{LogSource, MAX_LOG_BYTES, ServerLog, duration, named_time, utc};
pub use pins::PinText;
pub use prepared::{MAX_PREPARED_FILES, PreparedCache};
pub use quotas::{QuotaCount, QuotaError, QuotaFile, QuotaOutcome, QuotaRequest, Quotas};
pub use savings::{SavedTokens, SavingsFile};
pub use sealed::Sealed;
pub use shapes::{MAX_SHAPES_BYTES, ShapeFolder, ShapeStore};
pub use shared::{
    NodeHealth, NodeMessage, PinStore, PolicyStore, ServerHolder, ServerLeases, SharedStore,
    TimedKind, TimedValue, TimedValues, VersionedText,
};
pub use timed::LocalValues;
pub use tokens::{
    AccessToken, AccessTokens, MAX_LIFETIME_DAYS, MAX_TOKENS, TokenError, TokenFile, TokenHash,
    TokenOrder, TokenRecord,
};
pub use usage::{PastUse, UsageChange, UsageFile, UsageLog, UsagePosition, merged_uses};
pub use vault::{KeychainError, SecretSeal, Vault, VaultError, VaultKey, VaultLock};
pub use vectors::{MAX_ENCODERS, MAX_VECTOR_BYTES, VectorCache};
pub use writer::LogWriter;

/// The folder that everything is stored in, and what is shared with other nodes in its place.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    shared: Option<Arc<dyn SharedStore>>,
    /// What expires by itself, where nothing is shared.
    values: Arc<LocalValues>,
}

/// A file could not be written. Nothing that was there before is lost.
#[derive(Debug, Error)]
#[error("cannot write {path}: {source}")]
pub struct StoreError {
    path: PathBuf,
    source: std::io::Error,
}

impl Store {
    /// Uses `root`, which is made when something is first written.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), shared: None, values: Arc::default() }
    }

    /// The same folder, with the shared stores in place of its own.
    #[must_use]
    pub fn sharing(self, shared: Arc<dyn SharedStore>) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// What is shared with other nodes.
    pub fn shared(&self) -> Option<&Arc<dyn SharedStore>> {
        self.shared.as_ref()
    }

    /// The same folder alone.
    #[must_use]
    pub fn embedded(&self) -> Self {
        Self::new(&self.root)
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Writes something, to see whether anything can be written. Makes the folder.
    pub fn try_writing(&self) -> Result<(), StoreError> {
        let path = self.root.join("written");
        files::replace(&path, b"")?;
        // Another process may have been faster.
        let _ = std::fs::remove_file(&path);
        Ok(())
    }

    /// The cache of definitions.
    pub fn definitions(&self) -> DefinitionCache {
        let shared = self.shared.as_ref().map(|shared| shared.definitions());
        DefinitionCache::new(self.root.join("cache"), shared)
    }

    /// What the cache of definitions keeps, without reading on from one store to the other.
    pub fn definition_store(&self) -> Arc<dyn DefinitionStore> {
        match &self.shared {
            Some(shared) => shared.definitions(),
            None => Arc::new(self.definitions()),
        }
    }

    /// The approved definitions: those of the fleet, or those in this file.
    pub fn pins(&self, file: PinText) -> Arc<dyn PinStore> {
        match &self.shared {
            Some(shared) => shared.pins(),
            None => Arc::new(file),
        }
    }

    /// The analysed texts of definitions.
    pub fn prepared(&self) -> PreparedCache {
        PreparedCache::new(self.root.join("cache").join("index"))
    }

    /// The choices for the servers of a configuration, which `configuration` identifies.
    pub fn choices(&self, configuration: &str) -> Arc<dyn ChoiceStore> {
        if let Some(shared) = &self.shared {
            return shared.choices(configuration);
        }
        let name = format!("{}.json", files::slug(configuration));
        Arc::new(ChoiceFile::new(self.root.join("choices").join(name)))
    }

    /// The components that run scripts of further languages.
    pub fn components(&self) -> ComponentFolder {
        ComponentFolder::new(self.root.join("engines"))
    }

    /// A folder for downloads, which can be deleted.
    pub fn fetched(&self, what: &str) -> PathBuf {
        self.root.join("cache").join(what)
    }

    /// Which query led to which call.
    pub fn usage(&self) -> Arc<dyn UsageLog> {
        if let Some(shared) = &self.shared {
            return shared.usage();
        }
        Arc::new(UsageFile::new(self.root.join("usage").join("usage.jsonl")))
    }

    /// The access tokens of HTTP clients.
    pub fn access_tokens(&self) -> Arc<dyn AccessTokens> {
        if let Some(shared) = &self.shared {
            return shared.access_tokens();
        }
        Arc::new(TokenFile::new(self.root.join("access")))
    }

    /// The learned types of results.
    pub fn shapes(&self) -> Arc<dyn ShapeStore> {
        if let Some(shared) = &self.shared {
            return shared.shapes();
        }
        Arc::new(ShapeFolder::new(self.root.join("shapes")))
    }

    /// The cache of the vectors of an encoder, which `encoder` identifies.
    pub fn vectors(&self, encoder: &str) -> VectorCache {
        VectorCache::new(&self.root.join("cache").join("vectors"), encoder)
    }

    /// The journal of runs, which is made when it is first opened.
    pub fn journal(&self) -> Result<Arc<dyn Journal>, JournalError> {
        match &self.shared {
            Some(shared) => shared.journal(),
            None => Ok(Arc::new(JournalFile::open(&self.root.join("journal.db"))?)),
        }
    }

    /// How many calls were made today.
    pub fn quotas(&self) -> Arc<dyn Quotas> {
        if let Some(shared) = &self.shared {
            return shared.quotas();
        }
        Arc::new(QuotaFile::new(self.root.join("quotas.db")))
    }

    /// The log of all decisions and calls.
    pub fn audit(&self) -> Arc<dyn AuditLog> {
        match &self.shared {
            Some(shared) => shared.audit(),
            None => self.audit_within(AuditLimits::default()),
        }
    }

    /// The log of all decisions and calls, of which this much is stored in the folder.
    pub fn audit_within(&self, limits: AuditLimits) -> Arc<dyn AuditLog> {
        if let Some(shared) = &self.shared {
            shared.limit_audit(limits);
            return shared.audit();
        }
        let path = self.root.join("audit").join("audit.jsonl");
        Arc::new(AuditFile::new(path).with_limits(limits))
    }

    /// What expires by itself: sessions, requests that wait, outputs.
    pub fn timed_values(&self) -> Arc<dyn TimedValues> {
        match &self.shared {
            Some(shared) => shared.timed_values(),
            None => Arc::clone(&self.values) as Arc<dyn TimedValues>,
        }
    }

    /// The same, if there are other nodes that may need it.
    pub fn shared_values(&self) -> Option<Arc<dyn TimedValues>> {
        self.shared.as_ref().map(|shared| shared.timed_values())
    }

    /// The tokens that sessions did not have to read.
    pub fn savings(&self) -> SavingsFile {
        SavingsFile::new(self.root.join("savings.jsonl"))
    }

    /// What running gateways say of themselves.
    pub fn live(&self) -> LiveFolder {
        LiveFolder::new(self.root.join("live"))
    }

    /// The secrets of logins.
    pub fn vault(&self, key: VaultKey) -> Vault {
        Vault::new(self.root.join("vault"), key)
    }

    /// The logins at servers. Nodes share them if they have the same key, which only the environment can give them.
    pub fn logins(&self, key: &VaultKey) -> Arc<dyn Logins> {
        let vault = self.vault(key.clone());
        let Some(shared) = &self.shared else { return Arc::new(vault) };
        match Self::seal(key) {
            Ok(seal) => shared.logins(seal),
            Err(reason) => Arc::new(NodeLogins { vault, reason }),
        }
    }

    /// The logins that wait for a browser, if there are other nodes that may end them.
    pub fn waiting_logins(&self, key: &VaultKey) -> Option<Arc<dyn WaitingLogins>> {
        let shared = self.shared.as_ref()?;
        Some(shared.waiting_logins(Self::seal(key).ok()?))
    }

    /// What encrypts the logins of all nodes.
    fn seal(key: &VaultKey) -> Result<SecretSeal, LoginStoreError> {
        SecretSeal::of(key)?.ok_or_else(|| {
            let missing = "the nodes of a fleet need one key for the logins of callers; set TOOLGATE_VAULT_KEY or \
                           TOOLGATE_VAULT_KEY_COMMAND, the same for all";
            LoginStoreError(missing.to_owned())
        })
    }

    /// The stored chats.
    pub fn chats(&self) -> ChatStore {
        ChatStore::new(self.root.join("chats"))
    }

    /// The log of one server.
    pub fn log(&self, server: &str) -> ServerLog {
        ServerLog::new(self.root.join("logs").join(format!("{}.log", files::slug(server))))
    }
}

/// The time since 1970.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl StoreError {
    pub(crate) fn new(path: &Path, source: std::io::Error) -> Self {
        Self::of(path, source)
    }

    /// Something that `place` names could not be written.
    pub fn of(place: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self { path: place.into(), source }
    }
}
