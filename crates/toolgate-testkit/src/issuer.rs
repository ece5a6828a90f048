//! An authorization server for resource servers: metadata, public keys, signed tokens.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256,
    RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::TestkitError;

/// How an issuer misbehaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerFault {
    /// Every request gets this status.
    Status(u16),
    /// The metadata names another issuer.
    OtherIssuer,
    /// The metadata names this URL for the keys.
    KeysAt(String),
    /// Requests for the keys are redirected.
    Redirect(String),
    /// This is sent instead of the keys.
    Keys(Value),
    /// The keys are followed by this many blanks.
    Padding(usize),
}

/// A key that signs tokens.
#[derive(Clone)]
pub struct SigningKey {
    id: String,
    algorithm: String,
    secret: Arc<SecretKey>,
}

enum SecretKey {
    Rsa(Box<RsaKeyPair>, &'static dyn RsaEncoding),
    Ecdsa(EcdsaKeyPair, &'static str),
    Ed25519(Ed25519KeyPair),
}

/// `ring` makes no RSA keys: all keys for RSA are this one, which was made for tests.
const RSA_KEY: &str = include_str!("issuer_rsa_key.txt");

/// An issuer on loopback. Dropping it stops it.
#[derive(Debug)]
pub struct Issuer {
    site: Arc<IssuerSite>,
    server: JoinHandle<std::io::Result<()>>,
}

#[derive(Debug)]
struct IssuerSite {
    url: String,
    keys: Mutex<Vec<SigningKey>>,
    fault: Mutex<Option<IssuerFault>>,
    requests: AtomicUsize,
}

impl SigningKey {
    /// A new key for an algorithm, named as in JWTs.
    pub fn generate(id: &str, algorithm: &str) -> Result<Self, TestkitError> {
        let secret = Arc::new(secret(algorithm)?);
        Ok(Self { id: id.to_owned(), algorithm: algorithm.to_owned(), secret })
    }

    /// The name of the algorithm in JWTs.
    pub fn algorithm(&self) -> String {
        self.algorithm.clone()
    }

    /// The public key, as in a key set.
    pub fn public(&self) -> Result<Value, TestkitError> {
        let part = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let mut jwk = match &*self.secret {
            SecretKey::Rsa(pair, _) => {
                let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "n": part(&public.n), "e": part(&public.e) })
            }
            SecretKey::Ecdsa(pair, curve) => {
                // The uncompressed point: a byte 4, then both coordinates.
                let point = pair.public_key().as_ref().get(1..).unwrap_or_default();
                let (x, y) = point.split_at(point.len() / 2);
                json!({ "kty": "EC", "crv": curve, "x": part(x), "y": part(y) })
            }
            SecretKey::Ed25519(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": part(pair.public_key().as_ref()) })
            }
        };
        jwk["alg"] = json!(self.algorithm);
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        Ok(jwk)
    }

    /// A token with this header and these claims, valid or not.
    pub fn sign(&self, header: &Value, claims: &Value) -> Result<String, TestkitError> {
        let message = unsigned(header, claims);
        let random = SystemRandom::new();
        let signature = match &*self.secret {
            SecretKey::Rsa(pair, padding) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(*padding, &random, message.as_bytes(), &mut signature)
                    .map_err(|_| failed())?;
                signature
            }
            SecretKey::Ecdsa(pair, _) => {
                let signature = pair.sign(&random, message.as_bytes()).map_err(|_| failed())?;
                signature.as_ref().to_vec()
            }
            SecretKey::Ed25519(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
        };
        let signature = BASE64_URL_SAFE_NO_PAD.encode(signature);
        Ok(format!("{message}.{signature}"))
    }
}

impl Issuer {
    /// Starts one with a key `first` of the algorithm ES256.
    pub async fn start() -> Result<Self, TestkitError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let site = Arc::new(IssuerSite {
            url: format!("http://{}", listener.local_addr()?),
            keys: Mutex::new(vec![SigningKey::generate("first", "ES256")?]),
            fault: Mutex::default(),
            requests: AtomicUsize::new(0),
        });
        let router = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/keys", get(keys))
            .with_state(Arc::clone(&site));
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { site, server })
    }

    /// Its identifier, which is also its base URL.
    pub fn url(&self) -> &str {
        &self.site.url
    }

    /// The URL of its keys.
    pub fn keys_url(&self) -> String {
        format!("{}/keys", self.site.url)
    }

    /// The number of requests for its keys.
    pub fn requests(&self) -> usize {
        self.site.requests.load(Ordering::SeqCst)
    }

    /// Sets or removes a fault.
    pub fn fault(&self, fault: Option<IssuerFault>) {
        *self.site.fault.lock() = fault;
    }

    /// Replaces its keys.
    pub fn replace_keys(&self, keys: Vec<SigningKey>) {
        *self.site.keys.lock() = keys;
    }

    /// Its first key.
    pub fn key(&self) -> Option<SigningKey> {
        self.site.keys.lock().first().cloned()
    }

    /// The claims of a valid token of `ada` for an audience, good for ten minutes.
    pub fn claims(&self, audience: &str) -> Value {
        let now = now();
        json!({
            "iss": self.url(), "sub": "ada", "aud": audience, "client_id": "editor",
            "iat": now, "nbf": now, "exp": now + 600, "scope": "tools:read tools:call",
        })
    }

    /// A token that is signed with its first key.
    pub fn sign(&self, claims: &Value) -> Result<String, TestkitError> {
        let key = self.key().ok_or_else(failed)?;
        let header = json!({ "typ": "at+jwt", "alg": key.algorithm(), "kid": key.id });
        key.sign(&header, claims)
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SigningKey({})", self.id)
    }
}

fn secret(algorithm: &str) -> Result<SecretKey, TestkitError> {
    let padding: &'static dyn RsaEncoding = match algorithm {
        "ES256" => return ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256"),
        "ES384" => return ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING, "P-384"),
        "EdDSA" => {
            let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
            let document = document.map_err(|_| failed())?;
            let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).map_err(|_| failed())?;
            return Ok(SecretKey::Ed25519(pair));
        }
        "RS256" => &RSA_PKCS1_SHA256,
        "RS384" => &RSA_PKCS1_SHA384,
        "RS512" => &RSA_PKCS1_SHA512,
        "PS256" => &RSA_PSS_SHA256,
        "PS384" => &RSA_PSS_SHA384,
        "PS512" => &RSA_PSS_SHA512,
        _ => return Err(failed()),
    };
    let document = BASE64_STANDARD.decode(RSA_KEY.trim()).map_err(|_| failed())?;
    let pair = RsaKeyPair::from_der(&document).map_err(|_| failed())?;
    Ok(SecretKey::Rsa(Box::new(pair), padding))
}

fn ecdsa(
    algorithm: &'static ring::signature::EcdsaSigningAlgorithm,
    curve: &'static str,
) -> Result<SecretKey, TestkitError> {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| failed())?;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random);
    Ok(SecretKey::Ecdsa(pair.map_err(|_| failed())?, curve))
}

fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn failed() -> TestkitError {
    std::io::Error::other("the key cannot do this").into()
}

async fn metadata(State(site): State<Arc<IssuerSite>>) -> Response {
    let fault = site.fault.lock().clone();
    let (mut issuer, mut keys) = (site.url.clone(), format!("{}/keys", site.url));
    match fault {
        Some(IssuerFault::Status(code)) => return status(code),
        Some(IssuerFault::OtherIssuer) => issuer.push_str("/other"),
        Some(IssuerFault::KeysAt(elsewhere)) => keys = elsewhere,
        _ => {}
    }
    let endpoint = |name: &str| format!("{}/{name}", site.url);
    let document = json!({
        "issuer": issuer, "jwks_uri": keys, "response_types_supported": ["code"],
        "authorization_endpoint": endpoint("authorize"), "token_endpoint": endpoint("token"),
    });
    document.to_string().into_response()
}

async fn keys(State(site): State<Arc<IssuerSite>>) -> Response {
    site.requests.fetch_add(1, Ordering::SeqCst);
    let fault = site.fault.lock().clone();
    let public: Vec<Value> = site.keys.lock().iter().filter_map(|key| key.public().ok()).collect();
    let text = match fault {
        Some(IssuerFault::Status(code)) => return status(code),
        Some(IssuerFault::Redirect(to)) => {
            return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response();
        }
        Some(IssuerFault::Keys(keys)) => keys.to_string(),
        Some(IssuerFault::Padding(bytes)) => {
            json!({ "keys": public }).to_string() + &" ".repeat(bytes)
        }
        _ => json!({ "keys": public }).to_string(),
    };
    ([(header::CACHE_CONTROL, "max-age=300")], text).into_response()
}

fn status(code: u16) -> Response {
    StatusCode::from_u16(code).unwrap_or(StatusCode::IM_A_TEAPOT).into_response()
}
