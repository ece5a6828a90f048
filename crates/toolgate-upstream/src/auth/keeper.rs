//! Where credentials are kept is somebody else's business.

use std::{any::Any, collections::HashMap, fmt, sync::Arc};

use parking_lot::Mutex;
use thiserror::Error;

/// Keeps credentials under a name. Called from threads that may block; what it is given is secret.
pub trait CredentialKeeper: Send + Sync + fmt::Debug {
    /// What is kept under `name`.
    fn load(&self, name: &str) -> Result<Option<String>, KeeperError>;

    /// Keeps `secret` under `name`, in place of what was there.
    fn save(&self, name: &str, secret: &str) -> Result<(), KeeperError>;

    /// Forgets what is kept under `name`.
    fn forget(&self, name: &str) -> Result<(), KeeperError>;

    /// Waits until nobody else, in whatever process, renews what is kept under `name`. A refresh
    /// token that is used twice ends the login at many authorization servers.
    fn lock(&self, name: &str) -> Result<KeeperLock, KeeperError>;
}

/// Nobody else renews while this is held.
pub struct KeeperLock(#[expect(dead_code, reason = "it is held, not used")] Box<dyn Any + Send>);

/// Credentials cannot be kept, or read. Servers that need none are not concerned.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct KeeperError(pub String);

impl KeeperLock {
    /// Held until `guard` is dropped.
    pub fn new(guard: impl Any + Send) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for KeeperLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeeperLock")
    }
}

/// Keeps credentials for as long as the process runs.
#[derive(Clone, Default)]
pub struct MemoryKeeper {
    kept: Arc<Mutex<HashMap<String, String>>>,
}

impl fmt::Debug for MemoryKeeper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MemoryKeeper({} entries)", self.kept.lock().len())
    }
}

impl CredentialKeeper for MemoryKeeper {
    fn load(&self, name: &str) -> Result<Option<String>, KeeperError> {
        Ok(self.kept.lock().get(name).cloned())
    }

    fn save(&self, name: &str, secret: &str) -> Result<(), KeeperError> {
        self.kept.lock().insert(name.to_owned(), secret.to_owned());
        Ok(())
    }

    fn forget(&self, name: &str) -> Result<(), KeeperError> {
        self.kept.lock().remove(name);
        Ok(())
    }

    fn lock(&self, _name: &str) -> Result<KeeperLock, KeeperError> {
        // One process, one authorizer: its own lock is enough.
        Ok(KeeperLock::new(()))
    }
}
