//! What a signed token says, and whether it is so.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;
use serde_json::Value;

use crate::caller::Caller;

/// What can be known of a token before its signature is checked.
pub(super) struct Header {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
}

/// What a token has to be.
pub(super) struct Requirements<'r> {
    pub(super) issuer: &'r str,
    pub(super) audiences: &'r [String],
    pub(super) scopes: &'r [String],
}

/// Who holds a good token.
pub(super) struct Identity {
    pub(super) caller: Caller,
    pub(super) has_scopes: bool,
    /// How long the token is good from now on, by its own clock.
    pub(super) lifetime: Duration,
    /// The second from which on it is refused, clocks that differ considered.
    pub(super) until: u64,
}

/// Algorithms with a public key. Those with a shared secret would make our public key the secret.
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
/// By how many seconds the clocks of issuer and gateway may differ.
const LEEWAY: u64 = 60;
/// The longest name of a person or a program.
const LONGEST_NAME: usize = 1_024;

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: Option<String>,
    exp: f64,
    client_id: Option<String>,
    azp: Option<String>,
    scope: Option<Value>,
    scp: Option<Value>,
    cnf: Option<Value>,
}

/// Reads a header. The error is the reason, for a log.
pub(super) fn header(token: &str) -> Result<Header, &'static str> {
    let header = jsonwebtoken::decode_header(token)
        .map_err(|_| "it is no JWT that is signed with an algorithm we know")?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err("its algorithm has no public key");
    }
    if header.crit.is_some() {
        return Err("it has critical extensions");
    }
    // RFC 9068 has `at+jwt`; many issuers have `JWT`. Others are for other purposes.
    let kind = header.typ.as_deref().unwrap_or("jwt").to_ascii_lowercase();
    if !["jwt", "at+jwt", "application/at+jwt"].contains(&&*kind) {
        return Err("it is no access token by its type");
    }
    Ok(Header { algorithm: header.alg, key_id: header.kid })
}

/// Checks all of a token. The error is the reason, for a log.
pub(super) fn verify(
    token: &str,
    header: &Header,
    key: &DecodingKey,
    requirements: &Requirements<'_>,
) -> Result<Identity, &'static str> {
    use jsonwebtoken::errors::ErrorKind;

    let mut validation = Validation::new(header.algorithm);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.set_issuer(&[requirements.issuer]);
    validation.set_audience(requirements.audiences);
    let claims: Claims = jsonwebtoken::decode(token, key, &validation)
        .map_err(|error| match error.kind() {
            ErrorKind::ExpiredSignature => "its time is over",
            ErrorKind::ImmatureSignature => "its time has not come",
            ErrorKind::InvalidAudience => "it is for somebody else",
            ErrorKind::InvalidIssuer => "it is of another issuer",
            ErrorKind::InvalidSignature => "its signature is wrong",
            ErrorKind::MissingRequiredClaim(_) => "it lacks `exp`, `iss` or `aud`",
            _ => "it cannot be read",
        })?
        .claims;
    if claims.cnf.is_some() {
        // It is worth something only together with a proof, which a bearer does not give.
        return Err("it is bound to a key");
    }
    let client = claims.client_id.or(claims.azp);
    let named = |name: &Option<String>| name.as_ref().is_some_and(|name| !name.is_empty());
    if !named(&claims.sub) && !named(&client) {
        return Err("it names nobody");
    }
    let length =
        claims.sub.as_ref().map_or(0, String::len) + client.as_ref().map_or(0, String::len);
    if length > LONGEST_NAME {
        return Err("the names in it are too long");
    }
    let scopes = Scopes { scope: claims.scope, scp: claims.scp };
    // As JSON, so that no two identities look alike.
    let identity = serde_json::json!([claims.iss, claims.sub, client]);
    Ok(Identity {
        caller: Caller::named(&format!("oauth {identity}")),
        has_scopes: requirements.scopes.iter().all(|scope| scopes.have(scope)),
        lifetime: lifetime(claims.exp),
        until: until(claims.exp),
    })
}

/// `scope` as RFC 9068 has it, and `scp` as some issuers do.
struct Scopes {
    scope: Option<Value>,
    scp: Option<Value>,
}

impl Scopes {
    fn have(&self, wanted: &str) -> bool {
        [&self.scope, &self.scp].into_iter().flatten().any(|scopes| match scopes {
            Value::String(text) => text.split(' ').any(|scope| scope == wanted),
            Value::Array(list) => list.iter().any(|scope| scope.as_str() == Some(wanted)),
            _ => false,
        })
    }
}

fn lifetime(expires: f64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    Duration::try_from_secs_f64(expires - now).unwrap_or_default()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is out of range becomes the nearest that is in it"
)]
fn until(expires: f64) -> u64 {
    (expires as u64).saturating_add(LEEWAY + 1)
}
