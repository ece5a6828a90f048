//! The credentials of a login.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A login at the authorization server of one MCP server. Its `Debug` output shows nothing.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginCredentials {
    /// The only MCP endpoint that gets these tokens.
    pub(super) url: String,
    /// The issuer, if it is known.
    pub(super) issuer: Option<String>,
    /// The resource that the server named.
    pub(super) resource: String,
    pub(super) token_endpoint: String,
    pub(super) revocation_endpoint: Option<String>,
    pub(super) client: OauthClient,
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// In seconds since 1970; `None` if the authorization server did not say.
    pub(super) expires_at: Option<u64>,
    /// The granted scopes.
    pub(super) scopes: Vec<String>,
    /// The scopes that the server has asked for since. The next login requests them.
    #[serde(default)]
    pub(super) wanted_scopes: Vec<String>,
}

/// toolgate as a client of an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OauthClient {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// How the secret is sent.
    pub(super) method: ClientMethod,
}

/// How a client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ClientMethod {
    /// In the `Authorization` header; without a secret, not at all.
    Basic,
    /// In the body.
    Post,
}

/// Tokens are renewed this long before they expire, so that none expires during a request.
const MARGIN: u64 = 30;

impl LoginCredentials {
    /// Whether the access token stays valid for a while.
    pub(super) fn is_fresh(&self) -> bool {
        self.expires_at.is_none_or(|end| now() + MARGIN < end)
    }

    /// Whether the access token has expired by our clock.
    pub(super) fn is_expired(&self) -> bool {
        self.expires_at.is_some_and(|end| end <= now())
    }

    /// These credentials with the newly granted token.
    pub(super) fn renewed(self, granted: TokenGrant) -> Self {
        Self {
            expires_at: granted.lifetime().map(end_of),
            scopes: granted.scopes().unwrap_or(self.scopes),
            access_token: granted.access_token,
            // Without a new one, the old one stays valid.
            refresh_token: granted.refresh_token.or(self.refresh_token),
            ..self
        }
    }

    /// The values that must not be shown.
    pub(super) fn secrets(&self) -> impl Iterator<Item = String> {
        let secrets = [
            Some(self.access_token.clone()),
            self.refresh_token.clone(),
            self.client.secret.clone(),
        ];
        secrets.into_iter().flatten()
    }
}

/// The response of a token endpoint.
#[derive(Deserialize)]
pub(super) struct TokenGrant {
    pub(super) access_token: String,
    #[serde(default)]
    pub(super) refresh_token: Option<String>,
    /// A number. Some servers send it as a text.
    #[serde(default)]
    expires_in: Value,
    #[serde(default)]
    scope: Option<String>,
}

impl TokenGrant {
    /// How long the access token is valid, if the server says so.
    pub(super) fn lifetime(&self) -> Option<Duration> {
        let text = self.expires_in.as_str().and_then(|text| text.trim().parse().ok());
        self.expires_in.as_u64().or(text).map(Duration::from_secs)
    }

    /// The granted scopes, if they differ from the requested ones.
    pub(super) fn scopes(&self) -> Option<Vec<String>> {
        let scope = self.scope.as_deref()?;
        Some(scope.split_whitespace().map(str::to_owned).collect())
    }
}

/// The end of `lifetime` from now on.
fn end_of(lifetime: Duration) -> u64 {
    now().saturating_add(lifetime.as_secs())
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl fmt::Debug for LoginCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LoginCredentials")
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OauthClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OauthClient").field("id", &self.id).finish_non_exhaustive()
    }
}
