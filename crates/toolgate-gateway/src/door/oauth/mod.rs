//! OAuth 2.1, as a resource server: tokens that an authorisation server has signed for us.
//!
//! We are told of one issuer. Its public keys are fetched, kept and fetched again as it says; a token
//! has to be signed by one of them, for us, now, and with the scopes that we ask for. Tokens are never
//! handed on: what a server further up is told comes from the configuration alone.

mod claims;
mod fetch;
mod keys;
mod resource;
mod schedule;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;

use self::{
    claims::Requirements,
    fetch::Fetcher,
    keys::{KeySource, Keys, NoKey},
    resource::Resource,
};
use crate::caller::Caller;

/// An authorisation server, and what we ask of its tokens.
#[derive(Debug, Clone)]
pub struct IssuerSettings {
    /// As it is in `iss`.
    pub issuer: String,
    /// The URL under which clients reach us.
    pub resource: String,
    /// What has to be in `aud`. Without it, the resource, or the URL of the namespace that is asked.
    pub audience: Option<String>,
    /// Where the public keys are. Without it the issuer's metadata says so.
    pub jwks_url: Option<String>,
    /// Scopes that a token has to have, all of them.
    pub required_scopes: Vec<String>,
}

/// Why tokens of an issuer cannot be taken. A door without it works.
#[derive(Debug, Error)]
pub enum IssuerError {
    /// One of the addresses is none, or one that anybody on the way could answer for.
    #[error("`{0}` has to be an https URL, or one of this machine")]
    Address(&'static str),
    /// No HTTP client could be made.
    #[error("the keys of the issuer cannot be fetched: {0}")]
    Client(String),
}

/// What is known of a token.
#[derive(Debug, Clone)]
pub(super) enum Verdict {
    /// It is good until this second, and says who this is.
    Known(Caller, u64),
    /// It is good, but has not all of the scopes.
    Scope,
    /// It is not.
    Wrong,
    /// Nobody can say at the moment.
    Unavailable,
}

/// An issuer whose tokens are taken.
#[derive(Debug)]
pub(super) struct Issuer {
    settings: IssuerSettings,
    resource: Resource,
    keys: Arc<Keys>,
    /// Tokens that were found good, by their hashes and where they were presented.
    remembered: Mutex<HashMap<[u8; 32], Remembered>>,
}

#[derive(Debug)]
struct Remembered {
    verdict: Verdict,
    until: Instant,
}

/// How long a token is good without another look at it: a key that was withdrawn counts so long.
const MEMORY: Duration = Duration::from_mins(1);
/// How many tokens are remembered.
const TOKENS: usize = 10_000;

impl Issuer {
    pub(super) fn new(settings: IssuerSettings) -> Result<Self, IssuerError> {
        let resource = Resource::new(&settings.resource)?;
        let fetcher = Fetcher::new(&settings.issuer)?;
        let source = match &settings.jwks_url {
            Some(url) => {
                KeySource::At(fetcher.allowed(url).ok_or(IssuerError::Address("jwksUrl"))?)
            }
            None => KeySource::Discovered(settings.issuer.clone()),
        };
        let keys = Arc::new(Keys::new(fetcher, source));
        Ok(Self { settings, resource, keys, remembered: Mutex::default() })
    }

    /// What was found of a token a moment ago, if it was good.
    pub(super) fn remembered(&self, token: &str, place: &str) -> Option<Verdict> {
        let remembered = self.remembered.lock();
        let found = remembered.get(&mark(token, place))?;
        (Instant::now() < found.until).then(|| found.verdict.clone())
    }

    /// Checks a token.
    pub(super) async fn judge(&self, token: &str, place: &str) -> Verdict {
        let refused = |reason: &'static str| {
            // What is wrong is for whoever runs this; the token itself is for nobody.
            tracing::info!(reason, "a signed token was refused");
            Verdict::Wrong
        };
        let header = match claims::header(token) {
            Ok(header) => header,
            Err(reason) => return refused(reason),
        };
        let key = match self.keys.find(header.key_id.as_deref(), header.algorithm).await {
            Ok(key) => key,
            Err(NoKey::Unknown) => return refused("it is signed with a key that is not known"),
            Err(NoKey::Unavailable) => return Verdict::Unavailable,
        };
        let audiences = match &self.settings.audience {
            Some(audience) => vec![audience.clone()],
            None => self.resource.audiences(place),
        };
        let requirements = Requirements {
            issuer: &self.settings.issuer,
            audiences: &audiences,
            scopes: &self.settings.required_scopes,
        };
        let (verdict, lifetime) = match claims::verify(token, &header, &key, &requirements) {
            Ok(identity) if identity.has_scopes => {
                (Verdict::Known(identity.caller, identity.until), identity.lifetime)
            }
            Ok(identity) => (Verdict::Scope, identity.lifetime),
            Err(reason) => return refused(reason),
        };
        self.remember(token, place, &verdict, lifetime);
        verdict
    }

    /// The protected resource metadata of RFC 9728 for a path below its well-known one.
    pub(super) fn metadata(&self, path: &str, places: &[&str]) -> Option<Value> {
        self.resource.metadata(path, places, &self.settings.issuer, &self.settings.required_scopes)
    }

    /// Where that document is for a place.
    pub(super) fn metadata_url(&self, place: &str) -> String {
        self.resource.metadata_url(place)
    }

    /// The host of the resource, with its port where that is not the usual one.
    pub(super) fn host(&self) -> String {
        self.resource.host()
    }

    pub(super) fn scopes(&self) -> &[String] {
        &self.settings.required_scopes
    }

    fn remember(&self, token: &str, place: &str, verdict: &Verdict, lifetime: Duration) {
        let now = Instant::now();
        let mut remembered = self.remembered.lock();
        if remembered.len() >= TOKENS {
            remembered.retain(|_, found| now < found.until);
        }
        if remembered.len() < TOKENS {
            let until = now + lifetime.min(MEMORY);
            remembered.insert(mark(token, place), Remembered { verdict: verdict.clone(), until });
        }
    }
}

/// The token itself is not kept.
fn mark(token: &str, place: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(place.len() as u64).to_le_bytes());
    hasher.update(place.as_bytes());
    hasher.update(token.as_bytes());
    *hasher.finalize().as_bytes()
}
