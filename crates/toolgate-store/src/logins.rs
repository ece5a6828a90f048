//! The stored logins of callers at servers.

use std::{any::Any, fmt, sync::Arc};

use thiserror::Error;

use crate::Vault;

/// Names a login.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoginKey {
    /// The caller whose login it is; `None` for the login that all callers share.
    pub caller: Option<Arc<str>>,
    /// The server.
    pub server: Arc<str>,
    /// The URL of the server. Two configurations can have servers of one name at different URLs.
    pub url: Arc<str>,
}

/// Stores the secrets of logins. Called from threads that may block.
///
/// The embedded implementation is [`Vault`](crate::Vault).
pub trait Logins: Send + Sync + fmt::Debug {
    /// The secret of a login.
    fn load(&self, key: &LoginKey) -> Result<Option<String>, LoginStoreError>;

    /// Stores the secret of a login, in place of an earlier one.
    fn save(&self, key: &LoginKey, secret: &str) -> Result<(), LoginStoreError>;

    /// Stores a renewed secret. `false` if there is no login any more: somebody has revoked it meanwhile.
    fn replace(&self, key: &LoginKey, secret: &str) -> Result<bool, LoginStoreError>;

    /// Deletes a login.
    fn forget(&self, key: &LoginKey) -> Result<(), LoginStoreError>;

    /// The logins of callers, with their secrets. The login that all callers share is not among them.
    fn list(&self) -> Result<Vec<(LoginKey, String)>, LoginStoreError>;

    /// Waits until no other process renews a login. Many authorization servers end a login whose refresh
    /// token is used twice.
    fn lock(&self, key: &LoginKey) -> Result<LoginLock, LoginStoreError>;
}

/// Stores the logins that wait for a browser, so that any node can end them. Called from threads that may block. What is
/// secret is stored encrypted, or as a keyed hash.
pub trait WaitingLogins: Send + Sync + fmt::Debug {
    /// Adds a login. If one of the same key waits already, nothing is added, and that one is returned.
    fn add(&self, login: &WaitingLogin) -> Result<Option<WaitingLogin>, LoginStoreError>;

    /// The login that is open and fits.
    fn find(&self, which: WhichLogin<'_>) -> Result<Option<WaitingLogin>, LoginStoreError>;

    /// Notes the secret of the browser that may end a login. An earlier browser can no longer end it.
    fn admit(&self, id: &str, browser: &str) -> Result<(), LoginStoreError>;

    /// Whether a browser with this secret may end a login.
    fn is_admitted(&self, id: &str, browser: &str) -> Result<bool, LoginStoreError>;

    /// Takes a login in order to end it. `false` if somebody else has, or if it is not open.
    fn take(&self, id: &str) -> Result<bool, LoginStoreError>;

    /// Stores how a login has ended, and tells the other nodes.
    fn end(&self, id: &str, outcome: Result<(), &str>) -> Result<(), LoginStoreError>;

    /// How a login has ended.
    fn outcome(&self, id: &str) -> Result<LoginWait, LoginStoreError>;

    /// Calls `wake` when a login may have ended.
    fn on_end(&self, wake: Box<dyn Fn() + Send + Sync>);
}

/// A login that waits for a browser.
#[derive(Clone, PartialEq, Eq)]
pub struct WaitingLogin {
    /// Its id, which is in its link.
    pub id: String,
    /// Whose login it is, and where.
    pub key: LoginKey,
    /// What the browser returns with.
    pub state: String,
    /// Everything else that ends it.
    pub secret: String,
    /// Until when a person may end it, in milliseconds since 1970.
    pub expires: u64,
}

/// Names a login that waits.
#[derive(Clone, Copy)]
pub enum WhichLogin<'a> {
    /// By its id.
    Id(&'a str),
    /// By what the browser returned with.
    State(&'a str),
    /// By whose login it is.
    Key(&'a LoginKey),
}

/// What became of a login that waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginWait {
    /// It waits.
    Open,
    /// It has ended; an error says why there is no login.
    Ended(Result<(), String>),
    /// It is too old, or unknown.
    Gone,
}

/// Nobody else renews a login while this is held.
pub struct LoginLock(#[expect(dead_code, reason = "it is held, not used")] Box<dyn Any + Send>);

/// Logins cannot be stored or read. Servers without a login are not affected.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct LoginStoreError(pub String);

impl LoginKey {
    /// The login that all callers share.
    pub fn shared(server: &str, url: &str) -> Self {
        Self { caller: None, server: server.into(), url: url.into() }
    }

    /// The login of a caller at the same server.
    #[must_use]
    pub fn of(&self, caller: &str) -> Self {
        Self { caller: Some(caller.into()), ..self.clone() }
    }
}

impl LoginLock {
    /// A lock that is held until `guard` is dropped.
    pub fn new(guard: impl Any + Send) -> Self {
        Self(Box::new(guard))
    }
}

/// The logins of a node whose configuration gives no key that the other nodes have too. What all callers share is in the
/// vault of the node, where nobody but the node needs it.
#[derive(Debug)]
pub(crate) struct NodeLogins {
    pub(crate) vault: Vault,
    /// Why callers have no logins.
    pub(crate) reason: LoginStoreError,
}

impl NodeLogins {
    fn vault_of(&self, key: &LoginKey) -> Result<&dyn Logins, LoginStoreError> {
        match key.caller {
            Some(_) => Err(self.reason.clone()),
            None => Ok(&self.vault),
        }
    }
}

impl Logins for NodeLogins {
    fn load(&self, key: &LoginKey) -> Result<Option<String>, LoginStoreError> {
        self.vault_of(key)?.load(key)
    }

    fn save(&self, key: &LoginKey, secret: &str) -> Result<(), LoginStoreError> {
        self.vault_of(key)?.save(key, secret)
    }

    fn replace(&self, key: &LoginKey, secret: &str) -> Result<bool, LoginStoreError> {
        self.vault_of(key)?.replace(key, secret)
    }

    fn forget(&self, key: &LoginKey) -> Result<(), LoginStoreError> {
        self.vault_of(key)?.forget(key)
    }

    fn list(&self) -> Result<Vec<(LoginKey, String)>, LoginStoreError> {
        Err(self.reason.clone())
    }

    fn lock(&self, key: &LoginKey) -> Result<LoginLock, LoginStoreError> {
        self.vault_of(key)?.lock(key)
    }
}

impl fmt::Debug for WaitingLogin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WaitingLogin").field("key", &self.key).finish_non_exhaustive()
    }
}

impl fmt::Debug for WhichLogin<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Id(_) => "Id(…)",
            Self::State(_) => "State(…)",
            Self::Key(_) => "Key(…)",
        })
    }
}

impl fmt::Debug for LoginLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LoginLock")
    }
}
