//! The pages on which callers log in at servers.
//!
//! The link of a login can reach somebody else, who would log in with their own account for the caller. So a
//! person shows first that they are the caller, by a token of the caller. Then the browser gets a cookie, and
//! only the browser with this cookie ends the login. A gateway that requires no token is reached from this
//! machine alone, and there is nothing to show.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{Path, Request as HttpRequest, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{Html, IntoResponse as _, Response},
};
use toolgate_broker::Caller;
use toolgate_upstream::{LOGIN_PATH, LoginError, PendingLogin};
use url::{Url, form_urlencoded};

use super::{HttpState, PeerConnection, method_not_allowed};
use crate::service::AuthenticatedClient;

/// The caller of a gateway that requires no token.
pub(super) const LOCAL: &str = "local";
/// How long a browser keeps the cookie, in seconds: as long as a login waits.
const COOKIE_SECONDS: u64 = 600;
/// How much of an id is in the name of its cookie, so that a browser can have several logins.
const COOKIE_ID: usize = 16;

/// The page that a link leads to.
pub(super) async fn open(
    State(server): State<Arc<HttpState>>,
    Path(id): Path<String>,
    method: Method,
) -> Response {
    if method != Method::GET {
        return method_not_allowed("GET, POST");
    }
    match server.logins.get(&id).await {
        Ok(Some(login)) if login.caller() == LOCAL => go_on(&server, &login).await,
        Ok(Some(login)) => form(&login, StatusCode::OK, ""),
        Ok(None) => gone(),
        Err(error) => unavailable(&error),
    }
}

/// Takes the token that a person shows.
pub(super) async fn show(
    State(server): State<Arc<HttpState>>,
    axum::Extension(connection): axum::Extension<Arc<PeerConnection>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    form_body: Bytes,
) -> Response {
    let login = match server.logins.get(&id).await {
        Ok(Some(login)) => login,
        Ok(None) => return gone(),
        Err(error) => return unavailable(&error),
    };
    // Another page could make the browser of somebody else send a token.
    if !is_own_page(&server, &headers) {
        return message(StatusCode::FORBIDDEN, "This form was not sent from its own page.");
    }
    let shown = form_urlencoded::parse(&form_body).find(|(name, _)| name == "token");
    let (token, peer) = (shown.map(|(_, token)| token), connection.address().ip());
    let token = token.as_deref().unwrap_or_default().trim();
    let client = server.access.identify(token, &server.endpoints.paths(), peer).await;
    match client {
        Ok(client) if *owner(&client) == *login.caller() => go_on(&server, &login).await,
        Ok(_) => form(&login, StatusCode::FORBIDDEN, "This token belongs to another caller."),
        Err(error) => form(&login, error.status(), "This token is not valid here."),
    }
}

/// Where the browser returns to.
pub(super) async fn callback(
    State(server): State<Arc<HttpState>>,
    request: HttpRequest,
) -> Response {
    if request.method() != Method::GET {
        return method_not_allowed("GET");
    }
    let query = request.uri().query().unwrap_or_default();
    let pages = server.logins.pages();
    let answer = pages.and_then(|pages| pages.join(&format!("{LOGIN_PATH}/?{query}")).ok());
    let Some(answer) = answer else { return gone() };
    let login = match server.logins.answered_by(&answer).await {
        Ok(Some(login)) => login,
        Ok(None) => return gone(),
        Err(error) => return unavailable(&error),
    };
    let cookie = cookie_of(request.headers(), &cookie_name(&login));
    let is_admitted = match cookie {
        Some(secret) => login.is_admitted(&secret).await,
        None => Ok(false),
    };
    if let Err(error) = &is_admitted {
        return unavailable(error);
    }
    if !matches!(is_admitted, Ok(true)) {
        let text =
            "This login was begun in another browser. Open the link yourself, in this browser.";
        return message(StatusCode::FORBIDDEN, text);
    }
    match login.finish(&answer).await {
        Ok(()) => {
            let text = format!("You are logged in at {}. You can close this page.", login.server());
            message(StatusCode::OK, &text)
        }
        Err(error) => message(StatusCode::BAD_REQUEST, &format!("You are not logged in: {error}.")),
    }
}

/// Whose logins a client has.
pub(super) fn owner(client: &AuthenticatedClient) -> Arc<str> {
    let caller = Caller::model(client.as_str()).with_facts(client.facts().clone());
    if client.is_local() { caller.login_owner() } else { caller.remote().login_owner() }
}

/// Sends the browser of the caller to the authorization server.
async fn go_on(server: &HttpState, login: &PendingLogin) -> Response {
    let secret = match login.admit_browser().await {
        Ok(secret) => secret,
        Err(error) => return unavailable(&error),
    };
    let pages = server.logins.pages();
    let is_secure = pages.as_ref().is_some_and(|pages| pages.scheme() == "https");
    let path = pages.as_ref().map(|pages| pages.path().trim_end_matches('/')).unwrap_or_default();
    let cookie = format!(
        "{}={secret}; Path={path}{LOGIN_PATH}; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{}",
        cookie_name(login),
        if is_secure { "; Secure" } else { "" }
    );
    let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, login.page().to_string())];
    guarded((StatusCode::SEE_OTHER, headers).into_response(), None)
}

/// The page on which a person shows that they are the caller.
fn form(login: &PendingLogin, status: StatusCode, problem: &str) -> Response {
    let (server, caller) = (escaped(login.server().as_str()), escaped(login.caller()));
    let place = escaped(login.page().host_str().unwrap_or_default());
    let problem = if problem.is_empty() { String::new() } else { format!("<p><b>{problem}</b>") };
    let body = format!(
        "<h1>Log in at {server}</h1><p>The caller <b>{caller}</b> of this gateway will use the account with which \
         you log in at {place}. Go on only if this is you, and if you have called {server} just now.{problem}\
         <form method=post><p><label>Your token for this gateway: <input type=password name=token required \
         autocomplete=off autofocus></label><p><button>Go on to {place}</button></form>"
    );
    guarded((status, Html(page(&body))).into_response(), Some(login.page()))
}

fn gone() -> Response {
    let text = "This link is not valid, or no longer. Call the tool again to get another one.";
    message(StatusCode::NOT_FOUND, text)
}

/// The page while the store of logins does not answer.
fn unavailable(error: &LoginError) -> Response {
    let text = format!("You cannot log in now: {error}. Open the link again later.");
    message(StatusCode::SERVICE_UNAVAILABLE, &text)
}

pub(super) fn message(status: StatusCode, text: &str) -> Response {
    html(status, &format!("<p>{}", escaped(text)))
}

/// A page whose forms lead to this gateway alone.
pub(super) fn html(status: StatusCode, body: &str) -> Response {
    guarded((status, Html(page(body))).into_response(), None)
}

fn page(body: &str) -> String {
    format!("<!doctype html><html lang=en><meta charset=utf-8><title>toolgate</title>{body}")
}

/// Adds the headers that keep other pages out. A form may lead to the page of the authorization server.
fn guarded(mut response: Response, target: Option<&Url>) -> Response {
    let target = target.map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; form-action 'self' {target}; frame-ancestors 'none'; base-uri 'none'"
    );
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy.as_str()),
        (header::X_FRAME_OPTIONS, "DENY"),
        // A page without a referrer would send its form without its origin.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Whether a form comes from a page of the gateway, as far as the browser says.
pub(super) fn is_own_page(server: &HttpState, headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let own = server.logins.pages().map(|pages| pages.origin().ascii_serialization());
    let is_own = |origin: &str| own.as_deref() == Some(origin);
    headers.get(header::ORIGIN).is_none_or(|_| text("origin").is_some_and(is_own))
        && text("sec-fetch-site").is_none_or(|site| site == "same-origin")
}

fn cookie_name(login: &PendingLogin) -> String {
    format!("toolgate_login_{}", login.id().chars().take(COOKIE_ID).collect::<String>())
}

fn cookie_of(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        all.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter if letter.is_control() => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}
