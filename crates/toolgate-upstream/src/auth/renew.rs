//! The token endpoint, after the login: renewal and revocation.

use http::{Request, header};
use serde::Deserialize;
use url::{Url, form_urlencoded};

use super::{
    credentials::{ClientMethod, LoginCredentials, OauthClient, TokenGrant},
    error::shortened,
    guard::{GuardedClient, Response},
};

/// Why there is no new token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RenewError {
    /// The refresh token is no longer valid: a person has to log in.
    Over,
    /// Another attempt may succeed.
    Failed(String),
}

/// Why a token was not revoked. It stays valid until it expires.
#[derive(Debug, thiserror::Error)]
pub(super) enum RevokeError {
    /// The endpoint refused it.
    #[error("HTTP {0}")]
    Status(u16),
    /// There was no answer.
    #[error("{0}")]
    NotSent(String),
}

/// The error response of a token endpoint.
#[derive(Debug, Deserialize)]
struct ErrorBody {
    error: String,
}

/// Gets a new access token for a refresh token.
pub(super) async fn renew(
    http: &GuardedClient,
    credentials: &LoginCredentials,
) -> Result<LoginCredentials, RenewError> {
    let refresh_token = credentials.refresh_token.as_deref().ok_or(RenewError::Over)?;
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh_token),
        ("resource", &credentials.resource),
    ];
    let granted =
        request_token(http, &credentials.token_endpoint, &credentials.client, &fields).await?;
    Ok(credentials.clone().renewed(granted))
}

/// Asks a token endpoint for a token.
pub(super) async fn request_token(
    http: &GuardedClient,
    endpoint: &str,
    client: &OauthClient,
    fields: &[(&str, &str)],
) -> Result<TokenGrant, RenewError> {
    let response = post(http, endpoint, client, fields).await?;
    if !response.status().is_success() {
        let error = serde_json::from_slice::<ErrorBody>(response.body()).map(|body| body.error);
        return Err(match error.as_deref() {
            // The registration of the client may have been deleted.
            Ok("invalid_grant" | "invalid_client" | "unauthorized_client") => RenewError::Over,
            Ok(error) => RenewError::Failed(shortened(error)),
            Err(_) => RenewError::Failed(format!("HTTP {}", response.status().as_u16())),
        });
    }
    // An error of serde could quote the body.
    serde_json::from_slice(response.body())
        .map_err(|_| RenewError::Failed("the answer cannot be read".to_owned()))
}

/// Revokes the tokens. The refresh token is the first: most servers then revoke the others too.
pub(super) async fn revoke(
    http: &GuardedClient,
    credentials: &LoginCredentials,
) -> Option<Result<(), RevokeError>> {
    let endpoint = credentials.revocation_endpoint.as_deref()?;
    let tokens = [
        credentials.refresh_token.as_deref().map(|token| ("refresh_token", token)),
        Some(("access_token", credentials.access_token.as_str())),
    ];
    for (kind, token) in tokens.into_iter().flatten() {
        let fields = [("token", token), ("token_type_hint", kind)];
        match post(http, endpoint, &credentials.client, &fields).await {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => return Some(Err(RevokeError::Status(response.status().as_u16()))),
            Err(RenewError::Failed(why)) => return Some(Err(RevokeError::NotSent(why))),
            Err(RenewError::Over) => {}
        }
    }
    Some(Ok(()))
}

async fn post(
    http: &GuardedClient,
    endpoint: &str,
    client: &OauthClient,
    fields: &[(&str, &str)],
) -> Result<Response, RenewError> {
    let request = request(endpoint, client, fields)
        .ok_or_else(|| RenewError::Failed("its address cannot be used".to_owned()))?;
    let sent = http.send(request).await;
    sent.map_err(|error| RenewError::Failed(shortened(&error.to_string())))
}

/// A form with the authentication of the client.
fn request(
    endpoint: &str,
    client: &OauthClient,
    fields: &[(&str, &str)],
) -> Option<Request<Vec<u8>>> {
    let url = Url::parse(endpoint).ok()?;
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields);
    let mut request = Request::post(url.as_str())
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json");
    match (&client.secret, client.method) {
        (Some(secret), ClientMethod::Basic) => {
            let mut value = basic(&client.id, secret)?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        (Some(secret), ClientMethod::Post) => {
            form.append_pair("client_id", &client.id).append_pair("client_secret", secret);
        }
        // A workload may have no id as a client.
        (None, _) if client.id.is_empty() => {}
        (None, _) => {
            form.append_pair("client_id", &client.id);
        }
    }
    request.body(form.finish().into_bytes()).ok()
}

/// `Basic` with both halves form-encoded first, as RFC 6749 requires.
fn basic(id: &str, secret: &str) -> Option<header::HeaderValue> {
    use base64::Engine as _;
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret));
    let pair = base64::engine::general_purpose::STANDARD.encode(pair);
    header::HeaderValue::from_str(&format!("Basic {pair}")).ok()
}
