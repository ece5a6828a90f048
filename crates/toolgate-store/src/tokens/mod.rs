//! The access tokens of HTTP clients.
//!
//! Only the hash of a token is stored. Only commands change the file, under a lock and in one step.
//! A running gateway reads the file again when its [`FileStamp`] changes. The times of use are in a
//! separate file, so that a gateway never writes to the file that decides who may connect.

mod secret;

use std::{collections::BTreeMap, fmt, io, path::PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use secret::{AccessToken, TokenHash};

use crate::{StoreError, StoreStamp, files, files::FileStamp, lock::Lock};

/// How many tokens there may be.
pub const MAX_TOKENS: usize = 1_000;
/// What a person allows for later, such as a token, ends after so many days at most, if it ends.
pub const MAX_LIFETIME_DAYS: u32 = 3_650;
/// A larger file was not written by toolgate.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Which meaning the file has.
const VERSION: u32 = 1;
/// Uses are stored by the hour: that is enough to find a token that nobody needs.
const HOUR: u64 = 3_600;

/// The access tokens that were created and not revoked.
pub trait AccessTokens: fmt::Debug + Send + Sync {
    /// Creates a token. The returned secret is stored nowhere.
    fn create(
        &self,
        order: &TokenOrder,
        now: u64,
    ) -> Result<(TokenRecord, AccessToken), TokenError>;

    /// Revokes a token.
    fn revoke(&self, name: &str) -> Result<TokenRecord, TokenError>;

    /// All tokens, in the order of their creation.
    fn list(&self) -> Result<Vec<TokenRecord>, TokenError>;

    /// Changes whenever the tokens do; `None` if there are none.
    fn stamp(&self) -> Option<StoreStamp>;

    /// Notes that a token was used, by the hour.
    fn note_use(&self, hash: TokenHash, now: u64) -> Result<(), StoreError>;

    /// In which hour a token was last used, in seconds since 1970.
    fn last_use(&self, hash: TokenHash) -> Option<u64>;
}

/// The tokens of one folder.
#[derive(Debug, Clone)]
pub struct TokenFile {
    folder: PathBuf,
}

/// The properties of a new token.
#[derive(Debug, Clone, Default)]
pub struct TokenOrder {
    /// Its name. The default is a random name.
    pub name: Option<String>,
    /// When it ends, in seconds since 1970.
    pub expires: Option<u64>,
    /// The only namespaces that it is valid for; empty for all.
    pub namespaces: Vec<String>,
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenRecord {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The hash of the token that a client sends.
    pub hash: TokenHash,
    /// When it was created, in seconds since 1970.
    pub created: u64,
    /// When it expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// The only namespaces that it is valid for; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

/// Why tokens cannot be changed or listed. Existing tokens stay valid, unless the file cannot be read:
/// then none is.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The name has other characters than a name may have, or too many.
    #[error(
        "`{0}` cannot be the name of a token: 1 to 64 letters, digits, `-`, `_` and `.` can be"
    )]
    Name(String),
    /// The name is taken.
    #[error("there is a token `{0}` already")]
    Taken(String),
    /// No token has this name.
    #[error("there is no token `{0}`")]
    Unknown(String),
    /// The file is full.
    #[error("there are {MAX_TOKENS} tokens already")]
    TooMany,
    /// The file is there and cannot be read.
    #[error("cannot read {path}, so that no token is valid: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system gives no random numbers.
    #[error("the system provides no random numbers: {0}")]
    Random(getrandom::Error),
    /// The change could not be written.
    #[error(transparent)]
    Write(#[from] StoreError),
}

#[derive(Serialize, Deserialize)]
struct TokenList {
    version: u32,
    tokens: Vec<TokenRecord>,
}

impl TokenFile {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn uses(&self) -> BTreeMap<String, u64> {
        let text = files::read_bounded(&self.uses_path(), MAX_FILE_BYTES).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn replace(&self, tokens: Vec<TokenRecord>) -> Result<(), StoreError> {
        let path = self.path();
        let file = TokenList { version: VERSION, tokens };
        let text = serde_json::to_vec_pretty(&file)
            .map_err(|error| StoreError::new(&path, error.into()))?;
        files::replace(&path, &text)
    }

    fn lock(&self) -> Result<Lock, StoreError> {
        Lock::take(&self.folder.join("lock"))
    }

    fn path(&self) -> PathBuf {
        self.folder.join("tokens.json")
    }

    fn uses_path(&self) -> PathBuf {
        self.folder.join("uses.json")
    }
}

impl AccessTokens for TokenFile {
    fn create(
        &self,
        order: &TokenOrder,
        now: u64,
    ) -> Result<(TokenRecord, AccessToken), TokenError> {
        let (record, token) = order.token(now)?;
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        if tokens.iter().any(|token| token.name == record.name) {
            return Err(TokenError::Taken(record.name));
        }
        if tokens.len() >= MAX_TOKENS {
            return Err(TokenError::TooMany);
        }
        tokens.push(record.clone());
        self.replace(tokens)?;
        Ok((record, token))
    }

    fn revoke(&self, name: &str) -> Result<TokenRecord, TokenError> {
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        let Some(index) = tokens.iter().position(|token| token.name == name) else {
            return Err(TokenError::Unknown(name.chars().take(64).collect()));
        };
        let revoked = tokens.remove(index);
        self.replace(tokens)?;
        Ok(revoked)
    }

    fn list(&self) -> Result<Vec<TokenRecord>, TokenError> {
        let path = self.path();
        let unreadable = |reason: String| TokenError::Unreadable { path: path.clone(), reason };
        let text = match files::read_bounded(&path, MAX_FILE_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        let file: TokenList =
            serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
        if file.version != VERSION {
            return Err(unreadable("it was written by a later version of toolgate".to_owned()));
        }
        Ok(file.tokens)
    }

    fn stamp(&self) -> Option<StoreStamp> {
        FileStamp::of(&self.path()).map(StoreStamp::File)
    }

    fn note_use(&self, hash: TokenHash, now: u64) -> Result<(), StoreError> {
        let path = self.uses_path();
        let _lock = self.lock()?;
        let mut uses = self.uses();
        uses.insert(hash.short(), now - now % HOUR);
        if let Ok(tokens) = self.list() {
            uses.retain(|hash, _| tokens.iter().any(|token| token.hash.short() == *hash));
        }
        let text =
            serde_json::to_vec(&uses).map_err(|error| StoreError::new(&path, error.into()))?;
        files::replace(&path, &text)
    }

    fn last_use(&self, hash: TokenHash) -> Option<u64> {
        self.uses().get(&hash.short()).copied()
    }
}

impl TokenOrder {
    /// A new token with these properties, which is stored nowhere yet.
    pub fn token(&self, now: u64) -> Result<(TokenRecord, AccessToken), TokenError> {
        let token = AccessToken::generate()?;
        let hash = TokenHash::of(token.expose());
        let name = match &self.name {
            Some(name) => name.clone(),
            None => format!("token-{}", &hash.short()[..8]),
        };
        if !is_name(&name) {
            return Err(TokenError::Name(name.chars().take(64).collect()));
        }
        let (expires, namespaces) = (self.expires, self.namespaces.clone());
        Ok((TokenRecord { name, hash, created: now, expires, namespaces }, token))
    }
}

impl TokenRecord {
    /// The caller that clients with the token are. A new token of the same name is another caller.
    pub fn caller(&self) -> String {
        format!("token {} {}", self.name, self.hash.short())
    }

    /// Whether it is valid at this time.
    pub fn is_live(&self, now: u64) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    /// Whether it is valid for this namespace.
    pub fn opens(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|name| name == namespace)
    }
}

fn is_name(name: &str) -> bool {
    let fits = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    (1..=64).contains(&name.len()) && name.chars().all(fits)
}

#[cfg(test)]
mod tests;
