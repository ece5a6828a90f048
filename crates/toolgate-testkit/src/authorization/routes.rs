//! The endpoints: metadata, registration, login page, tokens, revocation.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{RawQuery, State as Shared},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use base64::{Engine as _, engine::general_purpose};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    AuthorizationFault as Fault, AuthorizationState,
    grants::{IssuedTokens, PendingAuthorization, Renewal, pairs},
};

/// The endpoints without the metadata.
pub(super) fn endpoints(state: &Arc<AuthorizationState>) -> Router {
    Router::new()
        .route("/register", post(register))
        .route("/authorize", get(authorize))
        .route("/token", post(token))
        .route("/revoke", post(revoke))
        .with_state(Arc::clone(state))
}

/// The metadata.
pub(super) fn metadata(state: &Arc<AuthorizationState>) -> Router {
    Router::new()
        .route("/.well-known/oauth-authorization-server", get(describe))
        .with_state(Arc::clone(state))
}

async fn describe(Shared(state): Shared<Arc<AuthorizationState>>) -> Json<Value> {
    state.record.lock().metadata_requests += 1;
    let (url, options) = (&state.url, &state.options);
    let mut described = json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": options.methods,
        "client_id_metadata_document_supported": options.reads_documents,
        "authorization_response_iss_parameter_supported": true,
    });
    if options.registers {
        described["registration_endpoint"] = json!(format!("{url}/register"));
    }
    if options.revokes {
        described["revocation_endpoint"] = json!(format!("{url}/revoke"));
    }
    match &options.fault {
        Some(Fault::OtherIssuer) => described["issuer"] = json!("https://issuer.example"),
        Some(Fault::NoPkce) => described["code_challenge_methods_supported"] = json!(["plain"]),
        Some(Fault::TokenEndpoint(other)) => described["token_endpoint"] = json!(other),
        Some(Fault::Page(other)) => described["authorization_endpoint"] = json!(other),
        _ => {}
    }
    Json(described)
}

async fn register(Shared(state): Shared<Arc<AuthorizationState>>, body: String) -> Response {
    let asked: Value = serde_json::from_str(&body).unwrap_or_default();
    state.record.lock().registrations.push(body);
    if !state.options.registers {
        return StatusCode::FORBIDDEN.into_response();
    }
    let with_secret = !state.options.methods.iter().any(|method| method == "none");
    let (id, secret) = state.grants.lock().register(with_secret);
    let mut answer = json!({ "client_id": id, "redirect_uris": asked["redirect_uris"] });
    if let Some(secret) = secret {
        answer["client_secret"] = json!(secret);
    }
    (StatusCode::CREATED, Json(answer)).into_response()
}

/// The login page. It agrees without asking anybody. The parameter `person` says who is at the browser.
async fn authorize(
    Shared(state): Shared<Arc<AuthorizationState>>,
    RawQuery(query): RawQuery,
) -> Response {
    let asked = pairs(query.unwrap_or_default().as_bytes());
    state.record.lock().authorizations.push(asked.clone());
    let field = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let client = field("client_id");
    let known = state.grants.lock().clients.contains_key(&client)
        || state.options.client.as_ref().is_some_and(|(id, _)| *id == client)
        || (state.options.reads_documents && client.starts_with("https://"));
    if !known || field("code_challenge_method") != "S256" || field("response_type") != "code" {
        return (StatusCode::BAD_REQUEST, "unknown client, or no PKCE").into_response();
    }
    let mut answer = vec![("state", field("state"))];
    if state.options.fault == Some(Fault::Denies) {
        answer.push(("error", "access_denied".to_owned()));
        answer.push(("error_description", "not today".to_owned()));
    } else {
        let asked = PendingAuthorization {
            client,
            redirect_uri: field("redirect_uri"),
            challenge: field("code_challenge"),
            resource: field("resource"),
            scopes: field("scope").split_whitespace().map(str::to_owned).collect(),
            person: field("person"),
        };
        answer.push(("code", state.grants.lock().code(asked)));
    }
    match state.options.fault {
        Some(Fault::NoIss) => {}
        Some(Fault::OtherIss) => answer.push(("iss", "https://issuer.example".to_owned())),
        // Without metadata there is no issuer to compare with.
        _ if state.options.discovery == super::Discovery::Endpoints => {}
        _ => answer.push(("iss", state.url.clone())),
    }
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(answer).finish();
    let location = format!("{}?{query}", field("redirect_uri"));
    (StatusCode::FOUND, [(header::LOCATION, location)]).into_response()
}

async fn token(
    Shared(state): Shared<Arc<AuthorizationState>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut form = pairs(&body);
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if let Some(authorization) = authorization {
        form.insert("authorization".to_owned(), authorization.to_owned());
    }
    state.record.lock().token_requests.push(form.clone());
    let Some(client) = client(&state, &form) else { return refused("invalid_client") };
    let field = |name: &str| form.get(name).cloned().unwrap_or_default();
    match field("grant_type").as_str() {
        "authorization_code" => {
            let mut grants = state.grants.lock();
            let Some(asked) = grants.redeem(&field("code")) else {
                return refused("invalid_grant");
            };
            let digest = Sha256::digest(field("code_verifier"));
            let challenge = general_purpose::URL_SAFE_NO_PAD.encode(digest);
            if asked.challenge != challenge
                || asked.client != client
                || asked.redirect_uri != field("redirect_uri")
                || asked.resource != field("resource")
            {
                return refused("invalid_grant");
            }
            given(&state, &grants.tokens(asked))
        }
        "refresh_token" => {
            if state.options.fault == Some(Fault::RenewsNothing) {
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
            let renewal = state.grants.lock().renew(&field("refresh_token"));
            let mut record = state.record.lock();
            match renewal {
                Renewal::Given(tokens) => {
                    record.renewals += 1;
                    given(&state, &tokens)
                }
                Renewal::Reused => {
                    record.reuses += 1;
                    refused("invalid_grant")
                }
                Renewal::Unknown => refused("invalid_grant"),
            }
        }
        "client_credentials" => {
            let asked = PendingAuthorization {
                person: client.clone(),
                client,
                redirect_uri: String::new(),
                challenge: String::new(),
                resource: field("resource"),
                scopes: field("scope").split_whitespace().map(str::to_owned).collect(),
            };
            given(&state, &state.grants.lock().tokens(asked))
        }
        TOKEN_EXCHANGE => {
            if let Some(wrong) = not_an_exchange(&body) {
                let wrong = json!({ "error": "invalid_request", "error_description": wrong });
                return (StatusCode::BAD_REQUEST, Json(wrong)).into_response();
            }
            let asked = PendingAuthorization {
                person: field("subject_token"),
                client,
                redirect_uri: String::new(),
                challenge: String::new(),
                resource: field("resource"),
                scopes: field("scope").split_whitespace().map(str::to_owned).collect(),
            };
            let tokens = state.grants.lock().tokens(asked);
            // Required by RFC 8693, section 2.2.1.
            Json(json!({
                "access_token": tokens.access,
                "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "token_type": "Bearer",
                "expires_in": state.options.lifetime,
            }))
            .into_response()
        }
        _ => refused("unsupported_grant_type"),
    }
}

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

fn values<'f>(form: &'f [(String, String)], name: &str) -> Vec<&'f str> {
    form.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
}

/// What is wrong with a request to exchange a token, by RFC 8693, section 2.1.
fn not_an_exchange(body: &[u8]) -> Option<String> {
    let all: Vec<(String, String)> = url::form_urlencoded::parse(body).into_owned().collect();
    let of = |name: &str| values(&all, name);
    // Only these may be repeated.
    let repeated = all
        .iter()
        .find(|(name, _)| !matches!(name.as_str(), "resource" | "audience") && of(name).len() > 1);
    if let Some((name, _)) = repeated {
        return Some(format!("{name} is repeated"));
    }
    let is_type = |value: &&str| value.starts_with("urn:ietf:params:oauth:token-type:");
    if !of("subject_token").iter().any(|token| !token.is_empty()) {
        return Some("subject_token is required".to_owned());
    }
    if !of("subject_token_type").iter().any(is_type) {
        return Some("subject_token_type is required, and is a URI".to_owned());
    }
    if !of("requested_token_type").iter().all(is_type) {
        return Some("requested_token_type is a URI".to_owned());
    }
    if of("actor_token").len() != of("actor_token_type").len() {
        return Some("actor_token and actor_token_type go together".to_owned());
    }
    let is_resource = |it: &&str| url::Url::parse(it).is_ok_and(|url| url.fragment().is_none());
    let (resources, audiences) = (of("resource"), of("audience"));
    if resources.len() + audiences.len() == 0 || !resources.iter().all(is_resource) {
        return Some("resource is an absolute URI without a fragment".to_owned());
    }
    None
}

async fn revoke(Shared(state): Shared<Arc<AuthorizationState>>, body: Bytes) -> StatusCode {
    let token = pairs(&body).remove("token").unwrap_or_default();
    state.grants.lock().revoke(&token);
    state.record.lock().revoked.push(token);
    StatusCode::OK
}

fn given(state: &AuthorizationState, tokens: &IssuedTokens) -> Response {
    let mut answer = json!({
        "access_token": tokens.access,
        "token_type": "Bearer",
        "expires_in": state.options.lifetime,
        "scope": tokens.scopes.join(" "),
        // Not part of OAuth, and as secret as the rest.
        "id_token": format!("id-{}", tokens.access),
    });
    if state.options.refreshes {
        answer["refresh_token"] = json!(tokens.refresh);
    }
    Json(answer).into_response()
}

fn refused(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response()
}

/// The client of a request, if it is authenticated by a supported method.
fn client(state: &AuthorizationState, form: &BTreeMap<String, String>) -> Option<String> {
    let offered = |method: &str| state.options.methods.iter().any(|offered| offered == method);
    let basic = form.get("authorization").and_then(|text| text.strip_prefix("Basic "));
    let (id, secret) = match basic {
        Some(basic) if offered("client_secret_basic") => {
            let pair = general_purpose::STANDARD.decode(basic).ok()?;
            let (id, secret) = std::str::from_utf8(&pair).ok()?.split_once(':')?;
            // Both halves are form-encoded.
            let decoded = |text: &str| pairs(format!("it={text}").as_bytes()).remove("it");
            (decoded(id)?, Some(decoded(secret)?))
        }
        Some(_) => return None,
        None => {
            let secret = form.get("client_secret").cloned();
            (form.get("client_id")?.clone(), secret.filter(|_| offered("client_secret_post")))
        }
    };
    let is_document = state.options.reads_documents && id.starts_with("https://");
    let known = match &state.options.client {
        Some((known, secret)) if *known == id => Some(Some(secret.clone())),
        _ => state.grants.lock().clients.get(&id).cloned(),
    };
    let known = known.or(is_document.then_some(None));
    (known? == secret).then_some(id)
}
