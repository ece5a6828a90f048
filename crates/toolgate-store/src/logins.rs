//! The stored logins of callers at servers.

use std::{any::Any, fmt, sync::Arc};

use thiserror::Error;

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

    /// Deletes a login.
    fn forget(&self, key: &LoginKey) -> Result<(), LoginStoreError>;

    /// The logins of callers, with their secrets. The login that all callers share is not among them.
    fn list(&self) -> Result<Vec<(LoginKey, String)>, LoginStoreError>;

    /// Waits until no other process renews a login. Many authorization servers end a login whose refresh
    /// token is used twice.
    fn lock(&self, key: &LoginKey) -> Result<LoginLock, LoginStoreError>;
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

impl fmt::Debug for LoginLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LoginLock")
    }
}
