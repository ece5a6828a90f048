//! What can go wrong with a login.

use rmcp::transport::auth::AuthError;
use thiserror::Error;
use toolgate_store::LoginStoreError;

/// Why a login or a logout failed. The stored login did not change.
#[derive(Debug, Error)]
pub enum LoginError {
    /// The server's URL cannot be used.
    #[error("the server's `url` is not a URL")]
    NoUrl,
    /// The server requires no login and has no metadata.
    #[error("the server requires no login")]
    NotAsked,
    /// The metadata of the server, or of its authorization server, could not be read.
    #[error("toolgate cannot find out where to log in: {0}")]
    Discovery(String),
    /// The authorization server does not register toolgate as a client.
    #[error("the authorization server does not register toolgate as a client: {0}")]
    Registration(String),
    /// The person or the authorization server refused.
    #[error("the login was refused: {0}")]
    Refused(String),
    /// The redirect does not belong to this login.
    #[error("the redirect does not belong to this login: {0}")]
    Foreign(String),
    /// The authorization server did not exchange the code for a token.
    #[error("the authorization server issued no token: {0}")]
    Exchange(String),
    /// The browser was not redirected in time.
    #[error("the login was not completed in the browser in time")]
    TimedOut,
    /// The port for the redirect is not available.
    #[error("cannot listen on 127.0.0.1: {0}")]
    Listen(std::io::Error),
    /// The credentials cannot be stored or read.
    #[error(transparent)]
    Store(#[from] LoginStoreError),
    /// Too many logins wait for a browser.
    #[error("too many logins wait for a browser")]
    TooMany,
    /// The system has no randomness.
    #[error("the system has no randomness")]
    NoRandomness,
    /// There is no HTTP client.
    #[error("no HTTP client: {0}")]
    Client(String),
}

/// How many characters of a foreign text are shown.
const SHOWN: usize = 300;

/// The text of an authorization server, shortened.
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
