//! What can go wrong with a login.

use rmcp::transport::auth::AuthError;
use thiserror::Error;

use super::credential_store::CredentialStoreError;

/// Why there is no login, or no end of one. What was stored before is as it was.
#[derive(Debug, Error)]
pub enum LoginError {
    /// The server's URL cannot be used.
    #[error("the server's `url` is no URL")]
    NoUrl,
    /// The server did not say that it wants a login, and has no metadata.
    #[error("the server asks for no login")]
    NotAsked,
    /// The server, or what it points to, could not be asked where to log in.
    #[error("it could not be found out where to log in: {0}")]
    Discovery(String),
    /// The authorization server does not register toolgate as a client.
    #[error("the authorization server does not register us: {0}")]
    Registration(String),
    /// The person, or the authorization server, said no.
    #[error("the login was refused: {0}")]
    Refused(String),
    /// The browser came back with something that does not belong to this login.
    #[error("the answer does not belong to this login: {0}")]
    Foreign(String),
    /// The code was not taken for a token.
    #[error("no token was given: {0}")]
    Exchange(String),
    /// Nobody came back in time.
    #[error("nobody came back from the browser in time")]
    TimedOut,
    /// There is no place for the browser to come back to.
    #[error("cannot listen on 127.0.0.1: {0}")]
    Listen(std::io::Error),
    /// The credentials cannot be stored or read.
    #[error(transparent)]
    Store(#[from] CredentialStoreError),
    /// There is no HTTP client.
    #[error("no HTTP client: {0}")]
    Client(String),
}

/// The most that is shown of what others say.
const SHOWN: usize = 300;

/// What an authorization server said, cut to what can be read.
pub(super) fn shortened(text: &str) -> String {
    let calm = |character: char| if character.is_control() { ' ' } else { character };
    let mut short: String = text.chars().map(calm).take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// rmcp's error without its repeated prefixes.
pub(super) fn plain(error: &AuthError) -> String {
    shortened(&match error {
        AuthError::MetadataError(text)
        | AuthError::RegistrationFailed(text)
        | AuthError::AuthorizationFailed(text)
        | AuthError::TokenExchangeFailed(text) => text.clone(),
        other => other.to_string(),
    })
}
