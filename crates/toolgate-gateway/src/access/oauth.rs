//! OAuth 2.1 as a resource server: tokens that an authorization server signed for this gateway.
//!
//! There is one issuer. A token must be signed with one of its keys, be issued for this gateway, be valid
//! now and have the required scopes. Tokens are never passed on to MCP servers.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use thiserror::Error;
use url::Url;

use super::{
    claims::{self, TokenRequirements},
    keys::{DocumentFetcher, IssuerKeys, KeyError},
};
use crate::service::AuthenticatedClient;

/// An authorization server, and what its tokens must contain.
#[derive(Debug, Clone)]
pub struct IssuerSettings {
    /// The value of `iss`.
    pub issuer: String,
    /// The URL under which clients reach the gateway.
    pub resource: String,
    /// The required value of `aud`. Without it: the resource, or the URL of the requested namespace.
    pub audience: Option<String>,
    /// The URL of the public keys. Without it, the metadata of the issuer names it.
    pub jwks_url: Option<String>,
    /// Scopes that a token must have, all of them.
    pub required_scopes: Vec<String>,
}

/// Why the settings of an issuer cannot be used.
#[derive(Debug, Error)]
pub enum IssuerError {
    /// An address is not a URL, or its traffic could be changed on the way.
    #[error("`{0}` must be an https URL, or a URL of this machine")]
    Address(&'static str),
    /// The HTTP client could not be created.
    #[error("no HTTP client for the keys of the issuer: {0}")]
    HttpClient(reqwest::Error),
}

/// The result of checking a token.
#[derive(Debug, Clone)]
pub(super) enum TokenVerdict {
    /// The token is valid until this Unix time and identifies this client.
    Valid(AuthenticatedClient, u64),
    /// The token is valid, but a required scope is missing.
    MissingScope,
    Invalid,
    /// The keys to check it with are not available.
    Unavailable,
}

/// An issuer whose tokens are accepted.
#[derive(Debug)]
pub(super) struct OauthIssuer {
    pub(super) settings: IssuerSettings,
    pub(super) resource: ProtectedResource,
    keys: Arc<IssuerKeys>,
    /// Verdicts on tokens with a valid signature, by a hash of the token and the path.
    verdicts: Mutex<HashMap<[u8; 32], CachedVerdict>>,
}

#[derive(Debug)]
struct CachedVerdict {
    verdict: TokenVerdict,
    until: Instant,
}

/// The URLs of this gateway. Every namespace is a resource of its own (RFC 9728).
#[derive(Debug)]
pub(super) struct ProtectedResource {
    /// The configured URL, without a trailing slash.
    configured: String,
    origin: String,
    pub(super) host: String,
    /// The path that a proxy adds before the paths of the gateway; usually empty.
    prefix: String,
}

/// How long a verdict is cached. A withdrawn key is accepted for this long.
const VERDICT_LIFETIME: Duration = Duration::from_mins(1);
const MAX_VERDICTS: usize = 10_000;
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// The path of the default namespace.
const DEFAULT_PATH: &str = "/mcp";

impl OauthIssuer {
    pub(super) fn new(settings: IssuerSettings) -> Result<Self, IssuerError> {
        let resource = ProtectedResource::new(&settings.resource)?;
        let fetcher = DocumentFetcher::new(&settings.issuer)?;
        let url = settings.jwks_url.as_deref();
        let url = url.map(|url| fetcher.allowed(url).ok_or(IssuerError::Address("jwksUrl")));
        let keys = IssuerKeys::new(fetcher, settings.issuer.clone(), url.transpose()?);
        let keys = Arc::new(keys);
        Ok(Self { settings, resource, keys, verdicts: Mutex::default() })
    }

    /// A recent verdict on a token.
    pub(super) fn cached(&self, token: &str, path: &str) -> Option<TokenVerdict> {
        let verdicts = self.verdicts.lock();
        let cached = verdicts.get(&cache_key(token, path))?;
        (Instant::now() < cached.until).then(|| cached.verdict.clone())
    }

    /// Verifies a token for a request to `path`.
    pub(super) async fn verify(&self, token: &str, path: &str) -> TokenVerdict {
        let invalid = |reason: &'static str| {
            // The reason is for the operator. The client learns only that the token is not valid.
            tracing::info!(reason, "a signed token was refused");
            TokenVerdict::Invalid
        };
        let header = match claims::header(token) {
            Ok(header) => header,
            Err(reason) => return invalid(reason),
        };
        let key = match self.keys.find(header.kid.as_deref(), header.alg).await {
            Ok(key) => key,
            Err(KeyError::Unknown) => return invalid("it is signed with an unknown key"),
            Err(KeyError::Unavailable) => return TokenVerdict::Unavailable,
        };
        let audiences = match &self.settings.audience {
            Some(audience) => vec![audience.clone()],
            None => self.resource.audiences(path),
        };
        let requirements = TokenRequirements {
            issuer: &self.settings.issuer,
            audiences: &audiences,
            scopes: &self.settings.required_scopes,
        };
        let identity = match claims::verify(token, &header, &key, &requirements) {
            Ok(identity) => identity,
            Err(reason) => return invalid(reason),
        };
        let verdict = if identity.has_scopes {
            TokenVerdict::Valid(identity.caller, identity.until)
        } else {
            TokenVerdict::MissingScope
        };
        let now = Instant::now();
        let mut verdicts = self.verdicts.lock();
        if verdicts.len() >= MAX_VERDICTS {
            verdicts.retain(|_, cached| now < cached.until);
        }
        if verdicts.len() < MAX_VERDICTS {
            let until = now + identity.lifetime.min(VERDICT_LIFETIME);
            let cached = CachedVerdict { verdict: verdict.clone(), until };
            verdicts.insert(cache_key(token, path), cached);
        }
        verdict
    }

    /// The protected resource metadata of RFC 9728 for a path below [`WELL_KNOWN`].
    pub(super) fn resource_metadata(&self, path: &str, endpoints: &[String]) -> Option<Value> {
        let (issuer, scopes) = (&self.settings.issuer, &self.settings.required_scopes);
        self.resource.metadata(path, endpoints, issuer, scopes)
    }
}

/// The cache holds a hash and not the token itself.
fn cache_key(token: &str, path: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(path.len() as u64).to_le_bytes());
    hasher.update(path.as_bytes());
    hasher.update(token.as_bytes());
    *hasher.finalize().as_bytes()
}

impl ProtectedResource {
    fn new(configured: &str) -> Result<Self, IssuerError> {
        let url = Url::parse(configured).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some((url, host)) = url.as_ref().and_then(|url| Some((url, url.host_str()?))) else {
            return Err(IssuerError::Address("resource"));
        };
        let host = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let path = url.path().trim_end_matches('/');
        let prefix = path.strip_suffix(DEFAULT_PATH).unwrap_or(path).to_owned();
        let origin = format!("{}://{host}", url.scheme());
        let configured = configured.trim_end_matches('/').to_owned();
        Ok(Self { configured, origin, host, prefix })
    }

    /// The public URL of an endpoint.
    fn url(&self, path: &str) -> String {
        format!("{}{}{path}", self.origin, self.prefix)
    }

    /// The audiences that a token for an endpoint may have: the whole gateway, or that endpoint.
    fn audiences(&self, path: &str) -> Vec<String> {
        vec![self.configured.clone(), format!("{}/", self.configured), self.url(path)]
    }

    pub(super) fn metadata_url(&self, path: &str) -> String {
        format!("{}{WELL_KNOWN}{}{path}", self.origin, self.prefix)
    }

    /// The document for a path below [`WELL_KNOWN`], with or without the prefix of a proxy. The bare
    /// well-known path stands for the first endpoint.
    fn metadata(
        &self,
        path: &str,
        endpoints: &[String],
        issuer: &str,
        scopes: &[String],
    ) -> Option<Value> {
        let rest = path.strip_prefix(WELL_KNOWN)?.trim_end_matches('/');
        let is_requested = |endpoint: &&String| {
            rest == **endpoint || rest.strip_prefix(&self.prefix) == Some(endpoint.as_str())
        };
        let endpoint = match rest {
            "" => endpoints.first(),
            _ => endpoints.iter().find(is_requested),
        };
        let mut document = json!({
            "resource": self.url(endpoint?),
            "authorization_servers": [issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "toolgate",
        });
        if !scopes.is_empty() {
            document["scopes_supported"] = json!(scopes);
        }
        Some(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource_of(configured: &str, path: &str) -> Option<String> {
        let resource = ProtectedResource::new(configured).unwrap();
        let endpoints = ["/mcp".to_owned(), "/mcp/work".to_owned()];
        let document = resource.metadata(path, &endpoints, "https://idp.example", &[])?;
        Some(document["resource"].as_str().unwrap().to_owned())
    }

    #[test]
    fn every_namespace_is_a_resource() {
        let resource = |path: &str| resource_of("https://tools.example.com/mcp", path);
        let whole = Some("https://tools.example.com/mcp".to_owned());
        assert_eq!(resource("/.well-known/oauth-protected-resource"), whole);
        assert_eq!(resource("/.well-known/oauth-protected-resource/"), whole);
        assert_eq!(resource("/.well-known/oauth-protected-resource/mcp"), whole);
        let work = "https://tools.example.com/mcp/work";
        assert_eq!(
            resource("/.well-known/oauth-protected-resource/mcp/work").as_deref(),
            Some(work)
        );
        assert_eq!(resource("/.well-known/oauth-protected-resource/mcp/other"), None);
        assert_eq!(resource("/.well-known/oauth-protected-resources"), None);
        let bare = resource_of("https://t.example/", "/.well-known/oauth-protected-resource/mcp");
        assert_eq!(bare.as_deref(), Some("https://t.example/mcp"));
    }

    #[test]
    fn a_proxy_may_add_a_path_prefix() {
        let configured = "https://example.com:8443/tools/mcp";
        let resource = |path: &str| resource_of(configured, path);
        let expected = Some(configured.to_owned());
        assert_eq!(resource("/.well-known/oauth-protected-resource/tools/mcp"), expected);
        assert_eq!(resource("/.well-known/oauth-protected-resource/mcp"), expected);
        let resource = ProtectedResource::new(configured).unwrap();
        assert_eq!(
            resource.metadata_url("/mcp/work"),
            "https://example.com:8443/.well-known/oauth-protected-resource/tools/mcp/work"
        );
        assert_eq!(resource.host, "example.com:8443");
    }

    #[test]
    fn invalid_urls_are_refused() {
        for wrong in ["", "tools", "ftp://a.example", "data:x"] {
            assert!(ProtectedResource::new(wrong).is_err(), "{wrong}");
        }
    }
}
