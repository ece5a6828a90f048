//! Verifies the signature and the claims of a JWT.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use serde::Deserialize;
use serde_json::Value;
use toolgate_policy::CallerFacts;

use crate::service::AuthenticatedClient;

pub(super) struct TokenRequirements<'r> {
    pub(super) issuer: &'r str,
    pub(super) audiences: &'r [String],
    pub(super) scopes: &'r [String],
}

/// The holder of a valid token.
pub(super) struct TokenIdentity {
    pub(super) caller: AuthenticatedClient,
    pub(super) has_scopes: bool,
    /// The remaining lifetime by the clock of the issuer.
    pub(super) lifetime: Duration,
    /// The Unix time from which on the token is refused, including the leeway.
    pub(super) until: u64,
}

/// Only algorithms with a public key. With an HMAC algorithm, the public key would be the secret.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];
/// The seconds by which the clocks of the issuer and the gateway may differ.
const LEEWAY: u64 = 60;
/// The maximum length of `sub` and the client id together.
const MAX_NAME_BYTES: usize = 1_024;

#[derive(Deserialize)]
struct TokenClaims {
    iss: String,
    sub: Option<String>,
    exp: f64,
    client_id: Option<String>,
    azp: Option<String>,
    scope: Option<Value>,
    scp: Option<Value>,
    groups: Option<Value>,
    cnf: Option<Value>,
}

/// Reads the header. The error is a reason for the log.
pub(super) fn header(token: &str) -> Result<Header, &'static str> {
    let header = jsonwebtoken::decode_header(token)
        .map_err(|_| "it is not a JWT with a known signature algorithm")?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err("its algorithm does not use a public key");
    }
    if header.crit.is_some() {
        return Err("it has critical extensions");
    }
    // RFC 9068 requires `at+jwt`; many issuers write `JWT`. Other types are not access tokens.
    let kind = header.typ.as_deref().unwrap_or("jwt").to_ascii_lowercase();
    if !["jwt", "at+jwt", "application/at+jwt"].contains(&&*kind) {
        return Err("its type is not that of an access token");
    }
    Ok(header)
}

/// Verifies a token. The error is a reason for the log.
pub(super) fn verify(
    token: &str,
    header: &Header,
    key: &DecodingKey,
    requirements: &TokenRequirements<'_>,
) -> Result<TokenIdentity, &'static str> {
    use jsonwebtoken::errors::ErrorKind;

    super::signatures::install();
    let mut validation = Validation::new(header.alg);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.set_issuer(&[requirements.issuer]);
    validation.set_audience(requirements.audiences);
    let claims: TokenClaims = jsonwebtoken::decode(token, key, &validation)
        .map_err(|error| match error.kind() {
            ErrorKind::ExpiredSignature => "it has expired",
            ErrorKind::ImmatureSignature => "it is not valid yet",
            ErrorKind::InvalidAudience => "it has another audience",
            ErrorKind::InvalidIssuer => "it has another issuer",
            ErrorKind::InvalidSignature => "its signature is wrong",
            ErrorKind::MissingRequiredClaim(_) => "it lacks `exp`, `iss` or `aud`",
            _ => "it could not be decoded",
        })?
        .claims;
    if claims.cnf.is_some() {
        // Such a token is valid only with a proof of possession, which a bearer token does not carry.
        return Err("it is bound to a key");
    }
    let client = claims.client_id.or(claims.azp);
    let named = |name: &Option<String>| name.as_ref().is_some_and(|name| !name.is_empty());
    if !named(&claims.sub) && !named(&client) {
        return Err("it has neither a subject nor a client id");
    }
    let length =
        claims.sub.as_ref().map_or(0, String::len) + client.as_ref().map_or(0, String::len);
    if length > MAX_NAME_BYTES {
        return Err("the names in it are too long");
    }
    // `scope` is the claim of RFC 9068; some issuers use `scp`.
    let scopes: Vec<Arc<str>> =
        [claims.scope, claims.scp].iter().flat_map(|claim| names(claim.as_ref())).collect();
    let has_scopes =
        requirements.scopes.iter().all(|wanted| scopes.iter().any(|scope| **scope == **wanted));
    let facts = CallerFacts {
        issuer: Some(claims.iss.as_str().into()),
        subject: claims.sub.as_deref().map(Into::into),
        scopes,
        groups: names(claims.groups.as_ref()),
        ..CallerFacts::default()
    };
    // The identity is JSON, so that two different identities never have the same text.
    let identity = serde_json::json!([claims.iss, claims.sub, client]);
    Ok(TokenIdentity {
        caller: AuthenticatedClient::named(&format!("oauth {identity}")).with_facts(facts),
        has_scopes,
        lifetime: lifetime(claims.exp),
        until: until(claims.exp),
    })
}

/// The names in a claim: a text with blanks between them, or a list.
fn names(claim: Option<&Value>) -> Vec<Arc<str>> {
    match claim {
        Some(Value::String(text)) => text.split(' ').map(Into::into).collect(),
        Some(Value::Array(list)) => {
            list.iter().filter_map(|name| Some(name.as_str()?.into())).collect()
        }
        _ => Vec::new(),
    }
}

fn lifetime(expires: f64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    Duration::try_from_secs_f64(expires - now).unwrap_or_default()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values out of range saturate"
)]
fn until(expires: f64) -> u64 {
    (expires as u64).saturating_add(LEEWAY + 1)
}
