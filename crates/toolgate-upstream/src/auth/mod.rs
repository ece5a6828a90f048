//! Logins at servers: OAuth 2.1 as MCP uses it.
//!
//! An [`Authorizer`] gives the HTTP client of one server its access token. It renews the token before it
//! expires or when the server refuses it, and reports when a person has to log in.
//! [`Authorizer::begin`] starts a login.
//!
//! rmcp finds out where to log in (RFC 9728, RFC 8414, `OpenID` Connect, the endpoints of 2025-03-26),
//! registers toolgate, chooses scopes, and exchanges the code. It checks PKCE, `state`, `resource` and
//! `iss`. These parts are our own:
//!
//! - **the HTTP client** (`guard`): a server names the URLs to contact, and must not make toolgate
//!   contact addresses inside of a private network;
//! - **renewal and revocation** (`renew`): rmcp does not store the secret of a registered client and the
//!   resource. It reads the metadata again, so that a changed server could name another endpoint for
//!   the refresh token. toolgate sends the refresh token only to the endpoint of the login;
//! - **the stored login** ([`LoginCredentials`]): bound to the server's name and URL, and to the issuer.
//!
//! Where each caller has their own login, [`CallerLogins`] has an [`Authorizer`] for each of them, and
//! [`PendingLogins`] has the logins that wait for a browser.
//!
//! > **Invariant:** tokens, codes and client secrets are in no `Debug`, log or error.

mod authorizer;
mod callback;
mod callers;
mod credentials;
mod error;
mod guard;
mod login;
mod machine;
mod pending;
mod renew;

pub use authorizer::{AuthorizationSettings, Authorizer, LoginEvent, LoginState};
pub use callback::CallbackListener;
pub(crate) use callers::NoLogin;
pub use callers::{CallerLoginSettings, CallerLogins};
pub use credentials::LoginCredentials;
pub use error::LoginError;
pub use login::{Login, LogoutOutcome};
pub use machine::{ACCESS_TOKEN_TYPE, SubjectToken, TokenSource};
pub use pending::{CALLBACK, LOGIN_PATH, PendingLogin, PendingLogins};
