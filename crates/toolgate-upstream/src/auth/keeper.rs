//! Where credentials are kept is somebody else's business.

use std::{any::Any, collections::HashMap, fmt, sync::Arc};

use parking_lot::Mutex;
use thiserror::Error;

/// Keeps credentials under a name. Called from threads that may block; what it is given is secret.
pub trait CredentialStore: Send + Sync + fmt::Debug {
    /// What is kept under `name`.
    fn load(&self, name: &str) -> Result<Option<String>, CredentialStoreError>;

    /// Keeps `secret` under `name`, in place of what was there.
    fn save(&self, name: &str, secret: &str) -> Result<(), CredentialStoreError>;

    /// Forgets what is kept under `name`.
    fn forget(&self, name: &str) -> Result<(), CredentialStoreError>;

    /// Waits until nobody else, in whatever process, renews what is kept under `name`. A refresh
    /// token that is used twice ends the login at many authorization servers.
    fn lock(&self, name: &str) -> Result<CredentialLock, CredentialStoreError>;
}

/// Nobody else renews while this is held.
pub struct CredentialLock(
    #[expect(dead_code, reason = "it is held, not used")] Box<dyn Any + Send>,
);

/// LoginCredentials cannot be kept, or read. Servers that need none are not concerned.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct CredentialStoreError(pub String);

impl CredentialLock {
    /// Held until `guard` is dropped.
    pub fn new(guard: impl Any + Send) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for CredentialLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CredentialLock")
    }
}

/// Keeps credentials for as long as the process runs.
#[derive(Clone, Default)]
pub struct MemoryCredentialStore {
    kept: Arc<Mutex<HashMap<String, String>>>,
}

impl fmt::Debug for MemoryCredentialStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MemoryCredentialStore({} entries)", self.kept.lock().len())
    }
}

impl CredentialStore for MemoryCredentialStore {
    fn load(&self, name: &str) -> Result<Option<String>, CredentialStoreError> {
        Ok(self.kept.lock().get(name).cloned())
    }

    fn save(&self, name: &str, secret: &str) -> Result<(), CredentialStoreError> {
        self.kept.lock().insert(name.to_owned(), secret.to_owned());
        Ok(())
    }

    fn forget(&self, name: &str) -> Result<(), CredentialStoreError> {
        self.kept.lock().remove(name);
        Ok(())
    }

    fn lock(&self, _name: &str) -> Result<CredentialLock, CredentialStoreError> {
        // One process, one authorizer: its own lock is enough.
        Ok(CredentialLock::new(()))
    }
}
