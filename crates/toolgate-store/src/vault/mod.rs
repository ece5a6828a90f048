//! Stores the secrets of logins.
//!
//! One file contains all secrets, each encrypted with AES-256-GCM. The key is in another location:
//!
//! - in the system's keychain, if there is one. Then the file alone, in a backup or on a stolen disk,
//!   is useless, also for other users of the machine;
//! - in a variable ([`VaultKey::Given`]), for machines without a person;
//! - in a file beside the vault, which only its owner can read. That protects against somebody who gets
//!   only one of the two files, and against programs that search for secrets. It does **not** protect
//!   against somebody who can read all files of this user.
//!
//! Nothing protects against a program that runs as the same user and asks the same keychain.
//!
//! The logins of callers are in files of their own beside it, encrypted with the same key.
//!
//! Only the key is in the keychain, not each secret, because keychains limit the size of an entry
//! (Windows: 2,560 bytes, less than many tokens) and ask the person for every entry.

mod key;
mod keychain;
mod logins;

use std::{
    collections::BTreeMap,
    fmt, io,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::key::{Key, KeyLocation};
pub use self::{
    key::{SecretSeal, VaultKey},
    keychain::KeychainError,
};
use crate::{StoreError, files, lock::Lock};

/// Far more than any number of logins.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// How long the renewal of a secret may take: a few requests.
const RENEWAL_TIMEOUT: Duration = Duration::from_mins(1);

/// Stores secrets under names, for all processes that use one folder.
#[derive(Clone)]
pub struct Vault {
    folder: PathBuf,
    key: VaultKey,
    /// The key, once it was read for a login of a caller: keychains are slow, and there may be many logins.
    known_key: Arc<OnceLock<Key>>,
}

/// No other process renews a secret while this is held.
#[derive(Debug)]
pub struct VaultLock {
    _lock: Lock,
}

/// A secret cannot be stored or read. The stored secrets did not change.
#[derive(Debug, Error)]
pub enum VaultError {
    /// A file cannot be read or written.
    #[error("cannot use {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no vault, or one of a newer version. The next secret that is stored replaces it.
    #[error("{path} is damaged")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The stored secrets were encrypted with another key. New secrets can be stored and read.
    #[error("the stored secrets were encrypted with another key")]
    OtherKey,
    /// The key that was given is too short to protect anything.
    #[error("the key must have at least {} characters", VaultKey::SHORTEST)]
    ShortKey,
    /// The keychain does not return the key.
    #[error("the keychain of the system does not give the key: {0}")]
    Keychain(#[from] KeychainError),
    /// There is no randomness, or no memory.
    #[error("the system has no randomness")]
    Crypto,
}

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VaultFile {
    version: u32,
    /// Where the key is.
    #[serde(default)]
    key_in: Option<KeyLocation>,
    /// By the keyed hash of the name.
    entries: BTreeMap<String, String>,
}

const VERSION: u32 = 1;

impl Vault {
    pub(crate) fn new(folder: PathBuf, key: VaultKey) -> Self {
        Self { folder, key, known_key: Arc::default() }
    }

    /// The secret under `name`.
    pub fn load(&self, name: &str) -> Result<Option<String>, VaultError> {
        let content = self.read()?;
        // Without it there is nothing to find, and no key to make.
        let Some(holder) = content.key_in.filter(|_| !content.entries.is_empty()) else {
            return Ok(None);
        };
        let key = self.key.existing(&self.folder, holder)?;
        let label = key.label(name);
        if let Some(sealed) = content.entries.get(&label) {
            return key.open(&label, sealed).map(Some);
        }
        // With another key every name has another label.
        let is_ours = content.entries.iter().any(|(label, sealed)| key.open(label, sealed).is_ok());
        if is_ours { Ok(None) } else { Err(VaultError::OtherKey) }
    }

    /// Stores `secret` under `name`.
    pub fn save(&self, name: &str, secret: &str) -> Result<(), VaultError> {
        self.change(|key, entries| {
            let label = key.label(name);
            let sealed = key.seal(&label, secret)?;
            entries.insert(label, sealed);
            Ok(())
        })
    }

    /// Removes the secret under `name`.
    pub fn forget(&self, name: &str) -> Result<(), VaultError> {
        if !self.path().exists() {
            return Ok(());
        }
        self.change(|key, entries| {
            entries.remove(&key.label(name));
            Ok(())
        })
    }

    /// Waits until no other process renews the secret under `name`.
    pub fn lock(&self, name: &str) -> Result<VaultLock, VaultError> {
        let path =
            self.folder.join(format!("{}.lock", &blake3::hash(name.as_bytes()).to_hex()[..16]));
        Ok(VaultLock { _lock: Lock::take_within(&path, RENEWAL_TIMEOUT)? })
    }

    fn change(
        &self,
        change: impl FnOnce(&Key, &mut BTreeMap<String, String>) -> Result<(), VaultError>,
    ) -> Result<(), VaultError> {
        let _lock = Lock::take(&self.folder.join("vault.lock"))?;
        let mut content = match self.read() {
            Err(VaultError::Damaged { .. }) => VaultFile::default(),
            content => content?,
        };
        let (key, holder) = match content.key_in {
            Some(holder) => self.key.existing_or_new(&self.folder, holder)?,
            None => self.key.new_key(&self.folder)?,
        };
        content.version = VERSION;
        content.key_in = Some(holder);
        change(&key, &mut content.entries)?;
        let text = serde_json::to_vec_pretty(&content).map_err(|_| VaultError::Crypto)?;
        Ok(files::replace(&self.path(), &text)?)
    }

    fn read(&self) -> Result<VaultFile, VaultError> {
        let path = self.path();
        let bytes = match files::read_bounded(&path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => {
                return match error.kind() {
                    io::ErrorKind::NotFound => Ok(VaultFile::default()),
                    io::ErrorKind::FileTooLarge => Err(VaultError::Damaged { path }),
                    _ => Err(VaultError::File { path, source: error }),
                };
            }
        };
        let content = serde_json::from_slice(&bytes).ok();
        let content = content.filter(|content: &VaultFile| content.version == VERSION);
        content.ok_or(VaultError::Damaged { path })
    }

    fn path(&self) -> PathBuf {
        self.folder.join("vault.json")
    }
}

impl Key {
    /// The hash of a name in the file, because names contain URLs.
    fn label(&self, name: &str) -> String {
        blake3::keyed_hash(self.bytes(), name.as_bytes()).to_hex()[..32].to_owned()
    }

    /// A secret is good under its own label alone.
    fn seal(&self, label: &str, secret: &str) -> Result<String, VaultError> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| VaultError::Crypto)?;
        let mut sealed = secret.as_bytes().to_vec();
        // Random nonces are unique enough: a vault has far fewer secrets than 2^32.
        let unique = Nonce::assume_unique_for_key(nonce);
        self.cipher()?
            .seal_in_place_append_tag(unique, Aad::from(label), &mut sealed)
            .map_err(|_| VaultError::Crypto)?;
        let mut whole = nonce.to_vec();
        whole.extend_from_slice(&sealed);
        Ok(STANDARD.encode(whole))
    }

    fn open(&self, label: &str, sealed: &str) -> Result<String, VaultError> {
        let whole = STANDARD.decode(sealed).map_err(|_| VaultError::OtherKey)?;
        let (nonce, body) = whole.split_at_checked(NONCE_LEN).ok_or(VaultError::OtherKey)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultError::OtherKey)?;
        let mut body = body.to_vec();
        let opened = self.cipher()?.open_in_place(nonce, Aad::from(label), &mut body);
        let opened = opened.map_err(|_| VaultError::OtherKey)?;
        String::from_utf8(opened.to_vec()).map_err(|_| VaultError::OtherKey)
    }

    fn cipher(&self) -> Result<LessSafeKey, VaultError> {
        let key = UnboundKey::new(&AES_256_GCM, self.bytes()).map_err(|_| VaultError::Crypto)?;
        Ok(LessSafeKey::new(key))
    }
}

impl From<StoreError> for VaultError {
    fn from(StoreError { path, source }: StoreError) -> Self {
        Self::File { path, source }
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Vault").field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
