//! The token check in front of a protected server.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State as Shared},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::get,
};
use futures::{TryStreamExt as _, stream};
use serde_json::{Value, json};

use super::{AuthorizationFault as Fault, AuthorizationState, Discovery, routes};

const METADATA: &str = "/.well-known/oauth-protected-resource";

/// A protected server.
#[derive(Debug, Clone)]
struct ProtectedServer {
    state: Arc<AuthorizationState>,
    /// The URL of the server.
    resource: String,
}

/// Adds a token check to `router`.
pub(super) fn guarded(state: &Arc<AuthorizationState>, router: Router, resource: &str) -> Router {
    let guarded = ProtectedServer { state: Arc::clone(state), resource: resource.to_owned() };
    let router = router.layer(middleware::from_fn_with_state(guarded.clone(), check));
    if state.options.discovery == Discovery::Endpoints {
        return router.merge(routes::endpoints(state));
    }
    let described = Router::new()
        .route(&format!("{METADATA}{}", path(resource)), get(describe))
        .with_state(guarded);
    router.merge(described)
}

/// The part of a URL after its host.
fn path(url: &str) -> &str {
    url.splitn(4, '/').nth(3).map_or("", |rest| &url[url.len() - rest.len() - 1..])
}

fn origin(url: &str) -> &str {
    &url[..url.len() - path(url).len()]
}

/// Stands for the person who has logged in, in everything that a protected server sends.
pub const PERSON: &str = "PERSON-OF-THE-LOGIN";

fn token(headers: &HeaderMap) -> &str {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    value.and_then(|text| text.strip_prefix("Bearer ")).unwrap_or_default()
}

async fn describe(Shared(guarded): Shared<ProtectedServer>) -> Response {
    let ProtectedServer { state, resource } = guarded;
    state.record.lock().metadata_requests += 1;
    let mut described = json!({
        "resource": resource,
        "authorization_servers": [state.url],
        "scopes_supported": state.options.scopes,
    });
    match &state.options.fault {
        Some(Fault::OtherResource) => described["resource"] = json!("https://other.example/mcp"),
        Some(Fault::PointsTo(other)) => described["authorization_servers"] = json!([other]),
        Some(Fault::PointsToMany) => {
            let many = (0..1000).map(|number| format!("{}/{number}", origin(&resource)));
            described["authorization_servers"] = json!(many.collect::<Vec<_>>());
        }
        Some(Fault::RedirectsTo(other)) => {
            return (StatusCode::FOUND, [(header::LOCATION, other.clone())]).into_response();
        }
        Some(Fault::Endless) => {
            let piece = Bytes::from(" ".repeat(10_000));
            let endless = stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone()));
            let json = [(header::CONTENT_TYPE, "application/json")];
            return (json, Body::from_stream(endless)).into_response();
        }
        _ => {}
    }
    Json(described).into_response()
}

async fn check(Shared(guarded): Shared<ProtectedServer>, request: Request, next: Next) -> Response {
    const LIMIT: usize = 16 * 1024 * 1024;
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LIMIT).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(refusal) = guarded.judge(&head.headers, &message) {
        guarded.state.record.lock().refusals += 1;
        return refusal;
    }
    let person = guarded.person(&head.headers);
    let response = next.run(Request::from_parts(head, Body::from(body))).await;
    if person.is_empty() { response } else { addressed(response, &person) }
}

/// The response with the name of the person in place of [`PERSON`]. A stream of events that does not end stays
/// as it is.
fn addressed(response: Response, person: &str) -> Response {
    let (mut head, body) = response.into_parts();
    let name = person.to_owned();
    let body = body.into_data_stream().map_ok(move |piece| match std::str::from_utf8(&piece) {
        Ok(text) if text.contains(PERSON) => Bytes::from(text.replace(PERSON, &name)),
        _ => piece,
    });
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, Body::from_stream(body))
}

impl ProtectedServer {
    /// Who sends a request.
    fn person(&self, headers: &HeaderMap) -> String {
        let grants = self.state.grants.lock();
        grants.person(token(headers)).unwrap_or_default().to_owned()
    }

    fn judge(&self, headers: &HeaderMap, message: &Value) -> Option<Response> {
        let options = &self.state.options;
        let token = token(headers);
        let grants = self.state.grants.lock();
        let scopes = grants.scopes(token).filter(|_| options.fault != Some(Fault::AcceptsNothing));
        let Some(scopes) = scopes else {
            let scope = options.challenge_scope.as_deref();
            return Some(self.refusal(StatusCode::UNAUTHORIZED, "invalid_token", scope));
        };
        let (tool, needed) = options.step_up.as_ref()?;
        let calls = message["method"] == "tools/call" && message["params"]["name"] == **tool;
        (calls && !scopes.contains(needed))
            .then(|| self.refusal(StatusCode::FORBIDDEN, "insufficient_scope", Some(needed)))
    }

    fn refusal(&self, status: StatusCode, error: &str, scope: Option<&str>) -> Response {
        let mut challenge = format!("Bearer error=\"{error}\"");
        if let Some(scope) = scope {
            challenge = format!("{challenge}, scope=\"{scope}\"");
        }
        if self.state.options.discovery == Discovery::Challenge {
            let (origin, path) = (origin(&self.resource), path(&self.resource));
            challenge = format!("{challenge}, resource_metadata=\"{origin}{METADATA}{path}\"");
        }
        let challenge = HeaderValue::try_from(challenge).ok();
        let mut response = status.into_response();
        if let Some(challenge) = challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
