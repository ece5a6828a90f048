//! Access control: who may connect to an HTTP endpoint.
//!
//! Two kinds of credentials are accepted, both sent as `Authorization: Bearer …`: access tokens that
//! `toolgate token` created, and tokens that an OAuth authorization server signed. A wrong credential is
//! refused even where none is required. Otherwise a client with a revoked token would silently act as
//! the local user.
//!
//! > **Invariant:** a credential never leaves this module. It reaches no log and no MCP server.

mod claims;
mod failures;
mod keys;
mod oauth;
mod signatures;
mod tokens;

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use serde_json::Value;
use toolgate_policy::CallerFacts;
use toolgate_store::{AccessToken, AccessTokens, TokenHash};

use self::{
    failures::FailureLimiter,
    oauth::{OauthIssuer, TokenVerdict},
    tokens::TokenTable,
};
use crate::{http::HttpError, service::AuthenticatedClient};

pub(crate) use oauth::WELL_KNOWN;
pub use oauth::{IssuerError, IssuerSettings};

/// Decides who may connect.
#[derive(Debug)]
pub struct AccessControl {
    requirement: CredentialRequirement,
    tokens: Option<TokenTable>,
    issuer: Option<OauthIssuer>,
    failures: FailureLimiter,
}

/// Whether clients without credentials may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialRequirement {
    /// They may, as [`AuthenticatedClient::local`]. For addresses that only this machine reaches.
    Optional,
    /// They may not.
    Required,
}

/// A client that may connect.
#[derive(Debug)]
pub(crate) struct GrantedAccess {
    pub(crate) caller: AuthenticatedClient,
    pub(crate) pass: AccessPass,
}

/// A person who may administer the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Administrator {
    /// The subject of the token.
    pub name: String,
    /// Until when, as Unix time in seconds.
    pub expires: u64,
}

/// For how long access is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessPass {
    Unlimited,
    /// While this access token exists and has not expired.
    Token(TokenHash),
    /// Until this Unix time in seconds.
    Until(u64),
}

/// The content of the `Authorization` header.
#[derive(PartialEq, Eq)]
enum PresentedCredentials<'h> {
    None,
    Bearer(&'h str),
    /// Another scheme, two headers, or characters that no token has.
    Unreadable,
}

/// How often the validity of a token is checked while a stream is open.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Longer values of the header are not read.
const MAX_CREDENTIAL_BYTES: usize = 16 * 1024;

impl AccessControl {
    /// Accepts no credentials yet.
    pub fn new(requirement: CredentialRequirement) -> Self {
        Self { requirement, tokens: None, issuer: None, failures: FailureLimiter::default() }
    }

    /// Accepts these access tokens. Tokens that are created or revoked later are noticed.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Arc<dyn AccessTokens>) -> Self {
        self.tokens = Some(TokenTable::new(tokens));
        self
    }

    /// Accepts tokens of an OAuth authorization server. Credentials become required.
    pub fn with_issuer(mut self, settings: IssuerSettings) -> Result<Self, IssuerError> {
        self.issuer = Some(OauthIssuer::new(settings)?);
        self.requirement = CredentialRequirement::Required;
        Ok(self)
    }

    /// Authenticates the sender of a request to `path`.
    pub(crate) async fn authenticate(
        &self,
        headers: &HeaderMap,
        path: &str,
        peer: IpAddr,
    ) -> Result<GrantedAccess, HttpError> {
        let token = match read_credentials(headers) {
            PresentedCredentials::None if self.requirement == CredentialRequirement::Optional => {
                let caller = AuthenticatedClient::local();
                return Ok(GrantedAccess { caller, pass: AccessPass::Unlimited });
            }
            PresentedCredentials::None => {
                let message =
                    "this endpoint requires a token; send it as `Authorization: Bearer TOKEN`";
                return Err(HttpError::new(StatusCode::UNAUTHORIZED, message)
                    .with_challenge(self.challenge(path, None)));
            }
            PresentedCredentials::Unreadable => return Err(self.invalid_token(path, peer)),
            PresentedCredentials::Bearer(token) => token,
        };
        if token.starts_with(AccessToken::PREFIX) {
            let found = self.tokens.as_ref().map_or(Ok(None), |tokens| tokens.find(token, now()));
            let found = found.map_err(|_| {
                let message = "the access tokens cannot be read at the moment; try again later";
                HttpError::new(StatusCode::SERVICE_UNAVAILABLE, message)
            })?;
            let Some(record) = found else { return Err(self.invalid_token(path, peer)) };
            if !record.opens(namespace(path)) {
                let message = "this token is for another path";
                return Err(HttpError::new(StatusCode::FORBIDDEN, message));
            }
            let facts =
                CallerFacts { token: Some(record.name.as_str().into()), ..Default::default() };
            let caller = AuthenticatedClient::named(&record.caller());
            let caller = caller.with_facts(facts);
            return Ok(GrantedAccess { caller, pass: AccessPass::Token(record.hash) });
        }
        let Some(issuer) = &self.issuer else { return Err(self.invalid_token(path, peer)) };
        // A cached verdict is used before the limit on failures applies: behind a proxy all clients have
        // one address, and one client's failures must not lock out the others.
        let verdict = match issuer.cached(token, path) {
            Some(verdict) => verdict,
            None if self.failures.is_exceeded(peer, Instant::now()) => {
                return Err(too_many_failures());
            }
            None => issuer.verify(token, path).await,
        };
        match verdict {
            TokenVerdict::Valid(caller, end) => {
                Ok(GrantedAccess { caller, pass: AccessPass::Until(end) })
            }
            TokenVerdict::MissingScope => {
                let message = "this token does not have all of the scopes that are required here";
                Err(HttpError::new(StatusCode::FORBIDDEN, message)
                    .with_challenge(self.challenge(path, Some("insufficient_scope"))))
            }
            TokenVerdict::Invalid => Err(self.invalid_token(path, peer)),
            TokenVerdict::Unavailable => {
                let message =
                    "the keys of the authorization server are not available; try again later";
                Err(HttpError::new(StatusCode::SERVICE_UNAVAILABLE, message))
            }
        }
    }

    /// Whether nobody connects without a token.
    pub(crate) fn requires_credentials(&self) -> bool {
        self.requirement != CredentialRequirement::Optional
    }

    /// The client that a token identifies at one of these paths.
    pub(crate) async fn identify(
        &self,
        token: &str,
        paths: &[String],
        peer: IpAddr,
    ) -> Result<AuthenticatedClient, HttpError> {
        let refused = || self.invalid_token("/mcp", peer);
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().map_err(|_| refused())?);
        for path in paths {
            match self.authenticate(&headers, path, peer).await {
                Ok(access) => return Ok(access.caller),
                // The token may be for another path.
                Err(error) if error.status() == StatusCode::FORBIDDEN => {}
                Err(error) => return Err(error),
            }
        }
        Err(refused())
    }

    /// The person whom an OAuth token with this scope identifies; why it does not in words. Access tokens of toolgate are
    /// for clients, and identify no person.
    pub async fn administrator(
        &self,
        token: &str,
        scope: &str,
        peer: IpAddr,
    ) -> Result<Administrator, String> {
        let refused = || "This token is not valid here, or has expired.".to_owned();
        if token.len() > MAX_CREDENTIAL_BYTES || token.starts_with(AccessToken::PREFIX) {
            return Err(refused());
        }
        let mut headers = HeaderMap::new();
        let header = format!("Bearer {}", token.trim());
        headers.insert(AUTHORIZATION, header.parse().map_err(|_| refused())?);
        let access =
            self.authenticate(&headers, "/mcp", peer).await.map_err(|error| {
                match error.status() {
                    StatusCode::UNAUTHORIZED => refused(),
                    StatusCode::FORBIDDEN => {
                        "This token does not have all of the scopes that are required here."
                            .to_owned()
                    }
                    _ => "The token cannot be checked at the moment; try again later.".to_owned(),
                }
            })?;
        let facts = access.caller.facts();
        let (AccessPass::Until(expires), Some(subject)) = (access.pass, &facts.subject) else {
            return Err(refused());
        };
        if !facts.scopes.iter().any(|each| **each == *scope) {
            return Err("This token does not have the scope of administrators.".to_owned());
        }
        Ok(Administrator { name: subject.to_string(), expires })
    }

    /// Completes when the access is no longer valid.
    pub(crate) async fn expired(&self, pass: AccessPass) {
        loop {
            let wait = match (pass, &self.tokens) {
                (AccessPass::Token(hash), Some(tokens)) if tokens.contains(hash, now()) => {
                    RECHECK_INTERVAL
                }
                // A long sleep would miss changes of the system clock.
                (AccessPass::Until(end), _) if now() < end => {
                    RECHECK_INTERVAL.min(Duration::from_secs(end.saturating_sub(now())))
                }
                (AccessPass::Token(_), Some(_)) | (AccessPass::Until(_), _) => return,
                (AccessPass::Unlimited, _) | (AccessPass::Token(_), None) => {
                    std::future::pending().await
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// The OAuth protected resource metadata for a well-known path.
    pub(crate) fn resource_metadata(&self, path: &str, endpoints: &[String]) -> Option<Value> {
        self.issuer.as_ref()?.resource_metadata(path, endpoints)
    }

    /// The host name that clients use, where the configuration names it.
    pub(crate) fn public_host(&self) -> Option<&str> {
        self.issuer.as_ref().map(|issuer| issuer.resource.host.as_str())
    }

    /// Counts a failure. Every invalid token gets the same response, whatever is wrong with it.
    fn invalid_token(&self, path: &str, peer: IpAddr) -> HttpError {
        if self.failures.record(peer, Instant::now()) {
            return too_many_failures();
        }
        let message = "this token is not valid here: it is wrong, has expired or was revoked; ask for \
                       another one";
        HttpError::new(StatusCode::UNAUTHORIZED, message)
            .with_challenge(self.challenge(path, Some("invalid_token")))
    }

    /// The `WWW-Authenticate` header: RFC 6750, and RFC 9728 for the address of the metadata.
    fn challenge(&self, path: &str, error: Option<&str>) -> String {
        let mut parameters = Vec::new();
        parameters.extend(error.map(|error| format!("error=\"{error}\"")));
        match &self.issuer {
            Some(issuer) => {
                parameters
                    .push(format!("resource_metadata=\"{}\"", issuer.resource.metadata_url(path)));
                let scopes = &issuer.settings.required_scopes;
                if !scopes.is_empty() {
                    parameters.push(format!("scope=\"{}\"", scopes.join(" ")));
                }
            }
            None => parameters.push("realm=\"toolgate\"".to_owned()),
        }
        format!("Bearer {}", parameters.join(", "))
    }
}

fn too_many_failures() -> HttpError {
    let message = "too many invalid tokens came from this address; try again later";
    HttpError::new(StatusCode::TOO_MANY_REQUESTS, message).retry_after(60)
}

fn read_credentials(headers: &HeaderMap) -> PresentedCredentials<'_> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return PresentedCredentials::None };
    let text = value.to_str().ok().filter(|text| text.len() <= MAX_CREDENTIAL_BYTES);
    let parts = text.and_then(|text| text.split_once(' '));
    let (None, Some((scheme, token))) = (values.next(), parts) else {
        return PresentedCredentials::Unreadable;
    };
    let token = token.trim_matches(' ');
    // The characters of RFC 6750. JWTs and access tokens use some of them.
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.bytes().all(is_allowed) {
        PresentedCredentials::Bearer(token)
    } else {
        PresentedCredentials::Unreadable
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The name of the namespace at a path: `/mcp` is `default`, `/mcp/work` is `work`.
fn namespace(path: &str) -> &str {
    match path.strip_prefix("/mcp") {
        None => path,
        Some("") => "default",
        Some(rest) => rest.trim_start_matches('/'),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(values: &[&[u8]]) -> &'static str {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        match read_credentials(&headers) {
            PresentedCredentials::None => "nothing",
            PresentedCredentials::Bearer("tgt_a-b") => "bearer",
            PresentedCredentials::Bearer(_) => "another bearer",
            PresentedCredentials::Unreadable => "unreadable",
        }
    }

    #[test]
    fn only_bearer_tokens_are_read() {
        assert_eq!(read(&[]), "nothing");
        assert_eq!(read(&[b"Bearer tgt_a-b"]), "bearer");
        assert_eq!(read(&[b"bearer  tgt_a-b "]), "bearer");
        for wrong in [
            &b"Bearer"[..],
            b"Bearer ",
            b"tgt_a-b",
            b"Basic dGd0Om5v",
            b"Bearer a b",
            b"Bearer \xff",
            b"Bearer a,b",
        ] {
            assert_eq!(read(&[wrong]), "unreadable", "{wrong:?}");
        }
        assert_eq!(read(&[b"Bearer tgt_a-b", b"Bearer tgt_a-b"]), "unreadable");
        let long = [b"Bearer ".to_vec(), vec![b'a'; MAX_CREDENTIAL_BYTES]].concat();
        assert_eq!(read(&[&long]), "unreadable");
    }
}
