//! The key of the vault, and where it is.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    VaultError,
    keychain::{self, KeychainError},
};
use crate::files;

/// The configured source of the key.
#[derive(Clone, Default)]
pub enum VaultKey {
    /// From the system's keychain; without a keychain, from a file beside the vault.
    #[default]
    Keychain,
    /// From a file beside the vault.
    File,
    /// This one: a random text of at least 32 characters.
    Given(String),
}

/// Where the key of a vault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum KeyLocation {
    Keychain,
    File,
    Given,
}

/// The key.
#[derive(Clone)]
pub(super) struct Key([u8; 32]);

/// Encrypts what is not in the vault, with a key that was given.
#[derive(Clone)]
pub struct SecretSeal(Key);

impl SecretSeal {
    /// With this key; `None` if it was not given, so that no other machine has it.
    pub fn of(key: &VaultKey) -> Result<Option<Self>, VaultError> {
        match key {
            VaultKey::Given(text) => Ok(Some(Self(given(text)?))),
            VaultKey::Keychain | VaultKey::File => Ok(None),
        }
    }

    /// Stands for a name that must not be stored.
    pub fn label(&self, name: &str) -> String {
        self.0.label(name)
    }

    /// Encrypts a text, which is good under its label alone.
    pub fn seal(&self, label: &str, text: &str) -> Result<String, VaultError> {
        self.0.seal(label, text)
    }

    /// Decrypts a text.
    pub fn open(&self, label: &str, sealed: &str) -> Result<String, VaultError> {
        self.0.open(label, sealed)
    }
}

impl VaultKey {
    /// The least number of characters of a key that is given.
    pub const SHORTEST: usize = 32;

    /// The key of a vault that is there.
    pub(super) fn existing(&self, folder: &Path, holder: KeyLocation) -> Result<Key, VaultError> {
        match (self, holder) {
            (Self::Given(text), _) => given(text),
            (_, KeyLocation::Keychain) => keychain::read()?.map(Key).ok_or(VaultError::OtherKey),
            (_, KeyLocation::File) => read_file(folder)?.ok_or(VaultError::OtherKey),
            (_, KeyLocation::Given) => Err(VaultError::OtherKey),
        }
    }

    /// The key of an existing vault, or a new key if it is lost. The old secrets are then lost, but
    /// new ones can be stored.
    pub(super) fn existing_or_new(
        &self,
        folder: &Path,
        holder: KeyLocation,
    ) -> Result<(Key, KeyLocation), VaultError> {
        match self.existing(folder, holder) {
            Ok(key) if matches!(self, Self::Given(_)) => Ok((key, KeyLocation::Given)),
            Ok(key) => Ok((key, holder)),
            Err(VaultError::OtherKey) => self.new_key(folder),
            Err(error) => Err(error),
        }
    }

    /// The key for a new vault. A key of an earlier vault is reused.
    pub(super) fn new_key(&self, folder: &Path) -> Result<(Key, KeyLocation), VaultError> {
        if let Self::Given(text) = self {
            return Ok((given(text)?, KeyLocation::Given));
        }
        if matches!(self, Self::Keychain)
            && let Ok(key) = keychain_key()
        {
            return Ok((key, KeyLocation::Keychain));
        }
        if let Some(key) = read_file(folder)? {
            return Ok((key, KeyLocation::File));
        }
        let key = Key::random()?;
        let text = blake3::Hash::from_bytes(key.0).to_hex().to_string();
        files::replace(&path(folder), text.as_bytes())?;
        Ok((key, KeyLocation::File))
    }
}

impl Key {
    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn random() -> Result<Self, VaultError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| VaultError::Crypto)?;
        Ok(Self(bytes))
    }
}

fn keychain_key() -> Result<Key, VaultError> {
    if let Some(bytes) = keychain::read()? {
        return Ok(Key(bytes));
    }
    let key = Key::random()?;
    keychain::write(&key.0)?;
    // Reads the key back before anything depends on it.
    match keychain::read()? {
        Some(bytes) if bytes == key.0 => Ok(key),
        _ => Err(KeychainError::Forgot.into()),
    }
}

/// The text is random, so it needs no slow key derivation.
fn given(text: &str) -> Result<Key, VaultError> {
    if text.chars().count() < VaultKey::SHORTEST {
        return Err(VaultError::ShortKey);
    }
    Ok(Key(blake3::derive_key("toolgate 2026-11-16 vault key", text.as_bytes())))
}

fn path(folder: &Path) -> PathBuf {
    folder.join("vault.key")
}

fn read_file(folder: &Path) -> Result<Option<Key>, VaultError> {
    let path = path(folder);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(VaultError::File { path, source }),
    };
    Ok(parse(&text).map(Key))
}

/// 64 hexadecimal digits.
pub(super) fn parse(text: &str) -> Option<[u8; 32]> {
    blake3::Hash::from_hex(text.trim()).ok().map(|hash| *hash.as_bytes())
}

impl fmt::Debug for SecretSeal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretSeal")
    }
}

impl fmt::Debug for VaultKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Keychain => "Keychain",
            Self::File => "File",
            Self::Given(_) => "Given(…)",
        })
    }
}
