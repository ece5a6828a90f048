//! A token, and its hash.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::TokenError;

/// A token, as its holder has it: it is shown once and stored nowhere.
pub struct AccessToken(String);

/// The hash of a token.
///
/// One round of BLAKE3. Slow hashes protect passwords that people choose. Nobody can guess 256
/// random bits, however fast the hash is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenHash(blake3::Hash);

impl AccessToken {
    /// The beginning of every token, so that people and secret scanners recognise it.
    pub const PREFIX: &str = "tgt_";

    /// A new token: 256 bits of the system's random numbers.
    pub(super) fn generate() -> Result<Self, TokenError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(TokenError::Random)?;
        Ok(Self(format!("{}{}", Self::PREFIX, BASE64_URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// The token itself, for the one time that it is shown.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl TokenHash {
    /// The hash of what somebody presents. Hashes are compared in constant time.
    pub fn of(token: &str) -> Self {
        Self(blake3::hash(token.as_bytes()))
    }

    /// The beginning of the hash, which distinguishes tokens of the same name.
    pub fn short(&self) -> String {
        self.0.to_hex()[..16].to_owned()
    }
}

impl std::fmt::Debug for AccessToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AccessToken([secret])")
    }
}

impl std::fmt::Debug for TokenHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "TokenHash({}…)", self.short())
    }
}

impl TryFrom<String> for TokenHash {
    type Error = blake3::HexError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        blake3::Hash::from_hex(text).map(Self)
    }
}

impl From<TokenHash> for String {
    fn from(hash: TokenHash) -> Self {
        hash.0.to_hex().as_str().to_owned()
    }
}
