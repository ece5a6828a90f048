//! The public keys of an OAuth issuer (JWKS).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, Jwk, PublicKeyUse},
};
use parking_lot::Mutex;
use reqwest::{header::CACHE_CONTROL, redirect::Policy};
use serde_json::Value;
use thiserror::Error;
use toolgate_http::is_loopback;
use url::Url;

use super::IssuerError;

/// Why there is no key for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyError {
    /// The issuer has no key with that id and type.
    Unknown,
    /// The keys could not be fetched.
    Unavailable,
}

/// The cached keys. They are used as long as the issuer allows, and longer while it is unreachable.
#[derive(Debug)]
pub(super) struct IssuerKeys {
    fetcher: DocumentFetcher,
    issuer: String,
    /// The address of the keys. Without it, the metadata of the issuer names the address.
    url: Option<Url>,
    cache: Mutex<KeyCache>,
    /// One task fetches; the others wait for it.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct KeyCache {
    keys: Vec<Jwk>,
    schedule: RefreshSchedule,
}

/// When the keys were last fetched, and how long they are valid.
#[derive(Debug, Default, Clone, Copy)]
struct RefreshSchedule {
    tried: Option<Instant>,
    fetched: Option<Instant>,
    lifetime: Duration,
}

/// Fetches documents over https, or over http from the loopback interface if the issuer is there too.
/// Redirects are not followed; size and time are limited.
#[derive(Debug)]
pub(super) struct DocumentFetcher {
    client: reqwest::Client,
    is_local: bool,
}

/// Why a document could not be fetched. For a log: it contains nothing of what was received.
#[derive(Debug, Error)]
enum FetchError {
    #[error("{}", .0)]
    Http(reqwest::Error),
    #[error("the response was {0}")]
    Status(u16),
    #[error("the response has more than {MAX_DOCUMENT_BYTES} bytes")]
    TooLarge,
    #[error("the response is not JSON")]
    NotJson,
    #[error("the response has no usable `keys`")]
    NoKeys,
    #[error("the address of the issuer is not allowed")]
    IssuerAddress,
    #[error("the metadata is that of another issuer")]
    OtherIssuer,
    #[error("the metadata has no `jwks_uri` with an allowed address")]
    KeysAddress,
    #[error("the metadata could not be read: {0}")]
    Metadata(Box<FetchError>),
}

/// Issuers have two or three keys.
const MAX_KEYS: usize = 100;
const MAX_DOCUMENT_BYTES: usize = 256 * 1024;
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// The minimum time between two attempts to fetch.
const RETRY_INTERVAL: Duration = Duration::from_mins(1);
/// The same before the first success.
const FIRST_RETRY_INTERVAL: Duration = Duration::from_secs(5);
const DEFAULT_LIFETIME: Duration = Duration::from_mins(10);
/// How long keys are used while no newer ones are available.
const MAX_AGE: Duration = Duration::from_hours(24);

impl IssuerKeys {
    pub(super) fn new(fetcher: DocumentFetcher, issuer: String, url: Option<Url>) -> Self {
        let (cache, fetching) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { fetcher, issuer, url, cache, fetching }
    }

    /// The key with this id for this algorithm. An unknown id causes a fetch, at most once a minute.
    pub(super) async fn find(
        self: &Arc<Self>,
        key_id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, KeyError> {
        if let Some(key) = self.cached(key_id, algorithm) {
            let now = Instant::now();
            let schedule = self.cache.lock().schedule;
            if schedule.is_stale(now) && !schedule.must_wait(now) {
                // The cached key is valid, so the request does not wait for newer ones.
                let keys = Arc::clone(self);
                tokio::spawn(async move { keys.refresh().await });
            }
            return Ok(key);
        }
        self.refresh().await;
        match self.cached(key_id, algorithm) {
            Some(key) => Ok(key),
            None if self.cache.lock().schedule.is_trusted(Instant::now()) => Err(KeyError::Unknown),
            None => Err(KeyError::Unavailable),
        }
    }

    fn cached(&self, key_id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let cache = self.cache.lock();
        if !cache.schedule.is_trusted(Instant::now()) {
            return None;
        }
        let mut matching = cache.keys.iter().filter(|key| {
            fits(key, algorithm) && key_id.is_none_or(|id| key.common.key_id.as_deref() == Some(id))
        });
        let key = matching.next()?;
        // A token without a key id is accepted only if exactly one key is possible.
        if key_id.is_none() && matching.next().is_some() {
            return None;
        }
        DecodingKey::from_jwk(key).ok()
    }

    async fn refresh(&self) {
        let _fetching = self.fetching.lock().await;
        let now = Instant::now();
        {
            let mut cache = self.cache.lock();
            if cache.schedule.must_wait(now) {
                return;
            }
            cache.schedule.tried = Some(now);
        }
        match self.fetch().await {
            Ok((keys, lifetime)) => {
                let mut cache = self.cache.lock();
                cache.keys = keys;
                cache.schedule.succeed(Instant::now(), lifetime);
            }
            Err(error) => {
                tracing::warn!(%error, "the keys of the authorization server could not be fetched");
            }
        }
    }

    async fn fetch(&self) -> Result<(Vec<Jwk>, Option<Duration>), FetchError> {
        let url = match &self.url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let (document, lifetime) = self.fetcher.json(url).await?;
        let listed = document.get("keys").and_then(Value::as_array).into_iter().flatten();
        // A key that cannot be parsed does not affect the others.
        let keys: Vec<Jwk> = listed
            .filter_map(|key| serde_json::from_value(key.clone()).ok())
            .take(MAX_KEYS)
            .collect();
        if keys.is_empty() { Err(FetchError::NoKeys) } else { Ok((keys, lifetime)) }
    }

    /// The address of the keys in the issuer's metadata: RFC 8414, then `OpenID` Connect.
    async fn discover(&self) -> Result<Url, FetchError> {
        let base = self.fetcher.allowed(&self.issuer).ok_or(FetchError::IssuerAddress)?;
        let path = base.path().trim_end_matches('/').to_owned();
        let fetch = |path: &str| {
            let mut url = base.clone();
            url.set_path(path);
            self.fetcher.json(url)
        };
        let mut fetched = fetch(&format!("/.well-known/oauth-authorization-server{path}")).await;
        if fetched.is_err() {
            fetched = fetch(&format!("{path}/.well-known/openid-configuration")).await;
        }
        let (metadata, _) = fetched.map_err(|error| FetchError::Metadata(Box::new(error)))?;
        if metadata.get("issuer").and_then(Value::as_str) != Some(&self.issuer) {
            return Err(FetchError::OtherIssuer);
        }
        let address = metadata.get("jwks_uri").and_then(Value::as_str).unwrap_or_default();
        self.fetcher.allowed(address).ok_or(FetchError::KeysAddress)
    }
}

/// Whether a key is a public signature key of the type that the algorithm needs.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    use jsonwebtoken::AlgorithmFamily::{Ec, Ed, Hmac, Rsa};

    let has_type = match (&key.algorithm, algorithm.family()) {
        (AlgorithmParameters::RSA(_), Rsa)
        | (AlgorithmParameters::EllipticCurve(_), Ec)
        | (AlgorithmParameters::OctetKeyPair(_), Ed) => true,
        (_, Hmac | Rsa | Ec | Ed) => false,
    };
    let is_for_signatures =
        matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature));
    let has_algorithm = key.common.key_algorithm.is_none_or(|named| named == algorithm.into());
    has_type && is_for_signatures && has_algorithm
}

impl RefreshSchedule {
    /// Records a successful fetch; `lifetime` is what the response says.
    fn succeed(&mut self, now: Instant, lifetime: Option<Duration>) {
        self.fetched = Some(now);
        self.lifetime = lifetime.unwrap_or(DEFAULT_LIFETIME).clamp(RETRY_INTERVAL, MAX_AGE);
    }

    /// Whether newer keys should be fetched.
    fn is_stale(&self, now: Instant) -> bool {
        self.age(now).is_none_or(|age| age >= self.lifetime)
    }

    /// Whether there are keys that may still be used.
    fn is_trusted(&self, now: Instant) -> bool {
        self.age(now).is_some_and(|age| age < MAX_AGE)
    }

    /// Whether it is too early for another attempt.
    fn must_wait(&self, now: Instant) -> bool {
        let interval = if self.fetched.is_some() { RETRY_INTERVAL } else { FIRST_RETRY_INTERVAL };
        self.tried.is_some_and(|tried| now.saturating_duration_since(tried) < interval)
    }

    fn age(&self, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.fetched?))
    }
}

impl DocumentFetcher {
    /// A fetcher for the documents of this issuer.
    pub(super) fn new(issuer: &str) -> Result<Self, IssuerError> {
        let url = Url::parse(issuer).map_err(|_| IssuerError::Address("issuer"))?;
        let client = toolgate_http::client_builder()
            .redirect(Policy::none())
            .timeout(FETCH_TIMEOUT)
            .connect_timeout(FETCH_TIMEOUT / 2)
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(IssuerError::HttpClient)?;
        let fetcher = Self { client, is_local: is_loopback(&url) };
        fetcher.allowed(issuer).ok_or(IssuerError::Address("issuer"))?;
        Ok(fetcher)
    }

    /// The URL, if it may be contacted.
    pub(super) fn allowed(&self, address: &str) -> Option<Url> {
        let url = Url::parse(address).ok()?;
        let is_plain = url.username().is_empty() && url.password().is_none() && url.has_host();
        let is_protected = match url.scheme() {
            "https" => !is_loopback(&url) || self.is_local,
            "http" => is_loopback(&url) && self.is_local,
            _ => false,
        };
        (is_plain && is_protected).then_some(url)
    }

    /// Fetches a JSON document. Also returns how long it may be cached.
    async fn json(&self, url: Url) -> Result<(Value, Option<Duration>), FetchError> {
        let failed = |error: reqwest::Error| FetchError::Http(error.without_url());
        let request = self.client.get(url).header("accept", "application/json");
        let response = request.send().await.map_err(failed)?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let control = response.headers().get(CACHE_CONTROL).and_then(|value| value.to_str().ok());
        let lifetime = control.and_then(cache_lifetime);
        let body = toolgate_http::bounded_body(response, MAX_DOCUMENT_BYTES).await;
        let bytes = body.map_err(failed)?.ok_or(FetchError::TooLarge)?;
        Ok((serde_json::from_slice(&bytes).map_err(|_| FetchError::NotJson)?, lifetime))
    }
}

/// How long `Cache-Control` allows a document to be cached.
fn cache_lifetime(control: &str) -> Option<Duration> {
    let mut seconds = None;
    for directive in control.split(',').map(str::trim) {
        if directive.eq_ignore_ascii_case("no-store") || directive.eq_ignore_ascii_case("no-cache")
        {
            return Some(Duration::ZERO);
        }
        if let Some((name, value)) = directive.split_once('=')
            && name.eq_ignore_ascii_case("max-age")
        {
            seconds = value.trim_matches('"').parse::<u64>().ok();
        }
    }
    seconds.map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use toolgate_testkit::{Issuer, IssuerFault, SigningKey};

    use super::*;

    fn keys_of(issuer: &Issuer) -> Arc<IssuerKeys> {
        let fetcher = DocumentFetcher::new(issuer.url()).unwrap();
        Arc::new(IssuerKeys::new(fetcher, issuer.url().to_owned(), None))
    }

    /// Makes the last attempt, and the last success, a while ago.
    fn age(keys: &IssuerKeys, seconds: u64) {
        let then = Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        let mut cache = keys.cache.lock();
        cache.schedule.tried = Some(then);
        cache.schedule.succeed(then, Some(Duration::from_mins(5)));
    }

    async fn finds(keys: &Arc<IssuerKeys>, id: &str) -> Result<(), KeyError> {
        keys.find(Some(id), Algorithm::ES256).await.map(|_| ())
    }

    #[tokio::test]
    async fn a_new_key_is_found_after_a_minute() {
        let issuer = Issuer::start().await.unwrap();
        let keys = keys_of(&issuer);
        assert_eq!(finds(&keys, "first").await, Ok(()));
        issuer.replace_keys(vec![SigningKey::generate("second", "ES256").unwrap()]);
        assert_eq!(finds(&keys, "second").await, Err(KeyError::Unknown));
        assert_eq!(issuer.requests(), 1);
        age(&keys, 61);
        assert_eq!(finds(&keys, "second").await, Ok(()));
        assert_eq!(finds(&keys, "first").await, Err(KeyError::Unknown), "withdrawn");
        assert_eq!(issuer.requests(), 2);
    }

    #[tokio::test]
    async fn old_keys_are_used_while_others_are_fetched_and_kept_when_there_are_none() {
        let issuer = Issuer::start().await.unwrap();
        let keys = keys_of(&issuer);
        assert_eq!(finds(&keys, "first").await, Ok(()));
        issuer.fault(Some(IssuerFault::Status(500)));
        age(&keys, 600);
        for _ in 0..5 {
            assert_eq!(finds(&keys, "first").await, Ok(()));
        }
        assert_eq!(finds(&keys, "second").await, Err(KeyError::Unknown));
        assert_eq!(finds(&keys, "first").await, Ok(()), "after an attempt that failed");
        age(&keys, 24 * 60 * 60);
        assert_eq!(finds(&keys, "first").await, Err(KeyError::Unavailable), "but not for ever");
    }

    #[test]
    fn only_protected_addresses_are_contacted() {
        let public = DocumentFetcher::new("https://idp.example/").unwrap();
        assert!(
            public.allowed("https://keys.example/jwks").is_some(),
            "keys may be on another host"
        );
        for wrong in [
            "http://idp.example/jwks",
            "http://127.0.0.1/jwks",
            "https://localhost/jwks",
            "https://user@idp.example/",
            "file:///etc/passwd",
            "idp.example",
        ] {
            assert!(public.allowed(wrong).is_none(), "{wrong}");
        }
        let local = DocumentFetcher::new("http://127.0.0.1:9").unwrap();
        assert!(local.allowed("http://[::1]:9/jwks").is_some());
        assert!(local.allowed("http://idp.example/jwks").is_none());
        assert!(DocumentFetcher::new("http://idp.example").is_err());
    }

    #[test]
    fn lifetimes_are_parsed() {
        let seconds = |text| cache_lifetime(text).map(|lifetime| lifetime.as_secs());
        assert_eq!(seconds("public, max-age=300, must-revalidate"), Some(300));
        assert_eq!(seconds("Max-Age=\"5\""), Some(5));
        assert_eq!(seconds("max-age=300, no-cache"), Some(0));
        assert_eq!(seconds("max-age=-1"), None);
        assert_eq!(seconds("private"), None);
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn attempts_are_a_minute_apart_once_there_are_keys() {
        let (mut schedule, start) = (RefreshSchedule::default(), Instant::now());
        assert!(schedule.is_stale(start) && !schedule.is_trusted(start));
        assert!(!schedule.must_wait(start));
        schedule.tried = Some(start);
        assert!(schedule.must_wait(start + SECOND * 4));
        assert!(!schedule.must_wait(start + SECOND * 5), "there are no keys yet");
        schedule.succeed(start, None);
        assert!(schedule.must_wait(start + SECOND * 59));
        assert!(!schedule.must_wait(start + SECOND * 60));
    }

    #[test]
    fn lifetimes_are_clamped() {
        let start = Instant::now();
        let stale_after = |lifetime: Option<Duration>| {
            let mut schedule = RefreshSchedule::default();
            schedule.succeed(start, lifetime);
            let fresh = |seconds: &u32| schedule.is_stale(start + SECOND * *seconds);
            [59, 60, 599, 600, 3_600, 86_400, 90_000].into_iter().find(fresh).unwrap()
        };
        assert_eq!(stale_after(None), 600);
        assert_eq!(stale_after(Some(Duration::ZERO)), 60);
        assert_eq!(stale_after(Some(SECOND * 3_600)), 3_600);
        assert_eq!(stale_after(Some(SECOND * 1_000_000)), 86_400);
    }

    #[test]
    fn old_keys_are_used_for_a_day() {
        let (mut schedule, start) = (RefreshSchedule::default(), Instant::now());
        schedule.succeed(start, Some(SECOND * 60));
        let later = start + SECOND * 86_399;
        assert!(schedule.is_stale(later) && schedule.is_trusted(later));
        assert!(!schedule.is_trusted(later + SECOND));
    }
}
