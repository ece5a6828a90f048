//! The interface to the storage of credentials.

use std::{any::Any, fmt};

use thiserror::Error;

/// Stores credentials under a name. Called from threads that may block. The values are secret.
pub trait CredentialStore: Send + Sync + fmt::Debug {
    /// The secret under `name`.
    fn load(&self, name: &str) -> Result<Option<String>, CredentialStoreError>;

    /// Stores `secret` under `name`, in place of an earlier one.
    fn save(&self, name: &str, secret: &str) -> Result<(), CredentialStoreError>;

    /// Deletes the secret under `name`.
    fn forget(&self, name: &str) -> Result<(), CredentialStoreError>;

    /// Waits until no other process renews the secret under `name`. Many authorization servers end a
    /// login whose refresh token is used twice.
    fn lock(&self, name: &str) -> Result<CredentialLock, CredentialStoreError>;
}

/// No other process renews while this is held.
pub struct CredentialLock(
    #[expect(dead_code, reason = "it is held, not used")] Box<dyn Any + Send>,
);

/// Credentials cannot be stored or read. Servers without a login are not affected.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct CredentialStoreError(pub String);

impl CredentialLock {
    /// A lock that is held until `guard` is dropped.
    pub fn new(guard: impl Any + Send) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for CredentialLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CredentialLock")
    }
}
