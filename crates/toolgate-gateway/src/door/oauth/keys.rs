//! The public keys of an issuer.

use std::{sync::Arc, time::Instant};

use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, Jwk, PublicKeyUse},
};
use parking_lot::Mutex;
use serde_json::Value;
use url::Url;

use super::{
    fetch::{Document, Fetcher},
    schedule::Schedule,
};

/// Where keys are.
#[derive(Debug)]
pub(super) enum KeySource {
    /// At an address.
    At(Url),
    /// Where the metadata of this issuer says.
    Discovered(String),
}

/// Why there is no key for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The issuer has none of that name and kind.
    Unknown,
    /// The issuer cannot be asked.
    Unavailable,
}

/// The keys, kept as long as the issuer says, and longer where it cannot be asked.
#[derive(Debug)]
pub(super) struct Keys {
    fetcher: Fetcher,
    source: KeySource,
    kept: Mutex<Kept>,
    /// One fetches, the others wait for it.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Kept {
    keys: Vec<Jwk>,
    schedule: Schedule,
}

/// How many keys are kept. Issuers have two or three.
const KEYS: usize = 100;

impl Keys {
    pub(super) fn new(fetcher: Fetcher, source: KeySource) -> Self {
        let (kept, fetching) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { fetcher, source, kept, fetching }
    }

    /// The key of this name for this algorithm. A name that is not known makes us ask the issuer
    /// again, at most once a minute.
    pub(super) async fn find(
        self: &Arc<Self>,
        key_id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, NoKey> {
        if let Some(key) = self.known(key_id, algorithm) {
            let now = Instant::now();
            let schedule = self.kept.lock().schedule;
            if schedule.is_stale(now) && !schedule.must_wait(now) {
                // Nobody waits for what is only to be fresher.
                let keys = Arc::clone(self);
                tokio::spawn(async move { keys.refresh().await });
            }
            return Ok(key);
        }
        self.refresh().await;
        match self.known(key_id, algorithm) {
            Some(key) => Ok(key),
            None if self.kept.lock().schedule.is_trusted(Instant::now()) => Err(NoKey::Unknown),
            None => Err(NoKey::Unavailable),
        }
    }

    fn known(&self, key_id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let kept = self.kept.lock();
        if !kept.schedule.is_trusted(Instant::now()) {
            return None;
        }
        let mut fitting = kept.keys.iter().filter(|key| {
            fits(key, algorithm) && key_id.is_none_or(|id| key.common.key_id.as_deref() == Some(id))
        });
        let key = fitting.next()?;
        // A token that names no key is understood where there is only one that it can mean.
        if key_id.is_none() && fitting.next().is_some() {
            return None;
        }
        DecodingKey::from_jwk(key).ok()
    }

    async fn refresh(&self) {
        let _fetching = self.fetching.lock().await;
        let now = Instant::now();
        {
            let mut kept = self.kept.lock();
            if kept.schedule.must_wait(now) {
                return;
            }
            kept.schedule.try_now(now);
        }
        match self.fetch().await {
            Ok((keys, lifetime)) => {
                let mut kept = self.kept.lock();
                kept.keys = keys;
                kept.schedule.succeed(Instant::now(), lifetime);
            }
            Err(reason) => {
                tracing::warn!(reason, "the keys of the authorisation server cannot be had");
            }
        }
    }

    async fn fetch(&self) -> Result<(Vec<Jwk>, Option<std::time::Duration>), String> {
        let url = match &self.source {
            KeySource::At(url) => url.clone(),
            KeySource::Discovered(issuer) => self.discover(issuer).await?,
        };
        let Document { value, lifetime } = self.fetcher.json(url).await?;
        let Some(Value::Array(keys)) = value.get("keys") else {
            return Err("the answer has no `keys`".to_owned());
        };
        // One key that is not understood does not cost the others.
        let keys: Vec<Jwk> = keys
            .iter()
            .filter_map(|key| serde_json::from_value(key.clone()).ok())
            .take(KEYS)
            .collect();
        if keys.is_empty() {
            return Err("the answer has no key that can be used".to_owned());
        }
        Ok((keys, lifetime))
    }

    /// Where the issuer's metadata says that its keys are: RFC 8414, then `OpenID` Connect.
    async fn discover(&self, issuer: &str) -> Result<Url, String> {
        let base = self.fetcher.allowed(issuer).ok_or("the issuer's address is not allowed")?;
        let path = base.path().trim_end_matches('/').to_owned();
        let mut reason = String::new();
        for place in [
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("{path}/.well-known/openid-configuration"),
        ] {
            let mut url = base.clone();
            url.set_path(&place);
            match self.fetcher.json(url).await {
                Ok(document) => return self.keys_of(issuer, &document.value),
                Err(error) => reason = error,
            }
        }
        Err(format!("its metadata: {reason}"))
    }

    fn keys_of(&self, issuer: &str, metadata: &Value) -> Result<Url, String> {
        if metadata.get("issuer").and_then(Value::as_str) != Some(issuer) {
            return Err("its metadata is that of another issuer".to_owned());
        }
        let address = metadata.get("jwks_uri").and_then(Value::as_str).unwrap_or_default();
        let url = self.fetcher.allowed(address);
        url.ok_or_else(|| "its metadata has no `jwks_uri` that may be asked".to_owned())
    }
}

/// Whether a key is a public one, for signatures, of the kind that the algorithm needs.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    use jsonwebtoken::AlgorithmFamily::{Ec, Ed, Hmac, Rsa};

    let kind = match (&key.algorithm, algorithm.family()) {
        (AlgorithmParameters::RSA(_), Rsa)
        | (AlgorithmParameters::EllipticCurve(_), Ec)
        | (AlgorithmParameters::OctetKeyPair(_), Ed) => true,
        (_, Hmac | Rsa | Ec | Ed) => false,
    };
    let purpose = matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature));
    let named = key.common.key_algorithm.is_none_or(|named| named == algorithm.into());
    kind && purpose && named
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolgate_testkit::{Issuer, IssuerFault, SigningKey};

    use super::*;

    fn keys_of(issuer: &Issuer) -> Arc<Keys> {
        let source = KeySource::Discovered(issuer.url().to_owned());
        Arc::new(Keys::new(Fetcher::new(issuer.url()).unwrap(), source))
    }

    /// Makes the last attempt, and the last success, a while ago.
    fn age(keys: &Keys, seconds: u64) {
        let then = Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        let mut kept = keys.kept.lock();
        kept.schedule.try_now(then);
        kept.schedule.succeed(then, Some(Duration::from_mins(5)));
    }

    async fn finds(keys: &Arc<Keys>, id: &str) -> Result<(), NoKey> {
        keys.find(Some(id), Algorithm::ES256).await.map(|_| ())
    }

    #[tokio::test]
    async fn a_new_key_is_found_after_a_minute() {
        let issuer = Issuer::start().await.unwrap();
        let keys = keys_of(&issuer);
        assert_eq!(finds(&keys, "first").await, Ok(()));
        issuer.replace_keys(vec![SigningKey::generate("second", "ES256").unwrap()]);
        assert_eq!(finds(&keys, "second").await, Err(NoKey::Unknown));
        assert_eq!(issuer.requests(), 1);
        age(&keys, 61);
        assert_eq!(finds(&keys, "second").await, Ok(()));
        assert_eq!(finds(&keys, "first").await, Err(NoKey::Unknown), "withdrawn");
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
        assert_eq!(finds(&keys, "second").await, Err(NoKey::Unknown));
        assert_eq!(finds(&keys, "first").await, Ok(()), "after an attempt that failed");
        age(&keys, 24 * 60 * 60);
        assert_eq!(finds(&keys, "first").await, Err(NoKey::Unavailable), "but not for ever");
    }
}
