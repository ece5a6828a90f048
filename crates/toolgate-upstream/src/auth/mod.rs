//! Logins at servers: OAuth 2.1 as MCP uses it.
//!
//! An [`Authorizer`] gives the HTTP client of one server its access token. It renews the token before it
//! expires or when the server refuses it, and reports when a person has to log in.
//! [`Authorizer::begin`] starts a login.
//!
//! rmcp finds out where to log in (RFC 9728, RFC 8414, `OpenID` Connect, the endpoints of 2025-03-26),
//! registers us, chooses scopes, and exchanges the code with PKCE, `state`, `resource` and `iss`
//! checked. What is our own, and why:
//!
//! - **the HTTP client** (`guard`): a server names the URLs to contact, and must not make toolgate
//!   contact addresses inside of a private network;
//! - **renewal and revocation** (`renew`): rmcp forgets the secret of a registered client and the
//!   resource with the process, and asks for metadata anew, so that whoever answers for the server
//!   later could name another place for the refresh token. Here it goes where the login was, only;
//! - **what is stored** ([`LoginCredentials`]): bound to the server's name and URL, and to the issuer.
//!
//! > **Invariant:** tokens, codes and client secrets are in no `Debug`, log or error.

mod authorizer;
mod callback;
mod credential_store;
mod credentials;
mod error;
mod guard;
mod login;
mod renew;

pub use authorizer::{AuthorizationSettings, Authorizer, LoginState};
pub use callback::CallbackListener;
pub use credential_store::{CredentialLock, CredentialStore, CredentialStoreError};
pub use credentials::LoginCredentials;
pub use error::LoginError;
pub use login::{Login, LogoutOutcome};
