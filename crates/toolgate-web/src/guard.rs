//! Lets a request through, or refuses it, before any screen sees it.
//!
//! What a request must have grows with what it can do:
//!
//! | request | must have |
//! |---|---|
//! | all | a `Host` of this page, and no origin but that of the page |
//! | screens and streams | besides, the cookie, which a link of the terminal became, or the token of an administrator, and a sender that no server has started |
//! | those that change something | besides, an `Origin`, and the token of the form |
//!
//! The gateway checks `Host` and `Origin` too. Here the check is stricter: a page of another port of this machine is
//! another origin, though its site is the same and its requests carry the cookie.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    body::{Body, HttpBody as _, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use toolgate_gateway::{Administrator, BrowserPeer};

use crate::{
    PAGE_PATH, PagePlace, PageState, PublicPlace,
    access::{Visit, secret},
    assets, compress,
    form::Fields,
    layout,
};

/// What a screen knows of the request that it answers.
#[derive(Debug, Clone)]
pub(crate) struct PageRequest {
    /// What the scripts of the page are known by.
    pub(crate) nonce: Arc<str>,
    /// What its forms send along. It is another text for each request.
    pub(crate) form_token: Arc<str>,
    /// The visit of the browser.
    pub(crate) visit: Arc<str>,
    /// What a stream that is opened again has sent last.
    pub(crate) last_event: Option<Arc<str>>,
    /// Who it is; `None` for the person at the terminal.
    pub(crate) person: Option<Arc<str>>,
    /// The fields of the query.
    pub(crate) query: Fields,
    /// The fields of the form; none in a request that only reads.
    pub(crate) form: Fields,
}

impl PageRequest {
    /// Changes when a part of a screen does. The token of its forms does not count.
    pub(crate) fn fingerprint(&self, part: &str) -> String {
        let mut hash = blake3::Hasher::new();
        for piece in part.split(&*self.form_token) {
            hash.update(piece.as_bytes());
        }
        hash.finalize().to_hex()[..16].to_owned()
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageRefusal {
    Method,
    Host,
    Origin,
    NoCookie,
    UsedLink,
    FormToken,
    Server,
    TooLarge,
}

/// The largest form: a script of the playground, and arguments of a call.
const MAX_FORM_BYTES: usize = 1024 * 1024;

/// Checks a request, and adds the headers of a page to the response.
pub(crate) async fn guard(
    State(page): State<Arc<PageState>>,
    request: Request,
    next: Next,
) -> Response {
    let nonce: Arc<str> = secret().into();
    let (mut parts, body) = request.into_parts();
    let takes_gzip = takes_gzip(&parts.headers);
    let response = match check(&page, &mut parts, body, &nonce).await {
        Ok(Checked::Pass(body)) => next.run(Request::from_parts(parts, body)).await,
        Ok(Checked::Answer(response)) => response,
        Err(refusal) => refusal.response(&page, &nonce),
    };
    let response = if takes_gzip { compressed(response).await } else { response };
    with_headers(response, &nonce)
}

enum Checked {
    /// A screen answers it.
    Pass(Body),
    Answer(Response),
}

async fn check(
    page: &PageState,
    parts: &mut Parts,
    body: Body,
    nonce: &Arc<str>,
) -> Result<Checked, PageRefusal> {
    let is_change = match parts.method {
        Method::GET | Method::HEAD => false,
        Method::POST => true,
        _ => return Err(PageRefusal::Method),
    };
    check_origin(parts, &page.place, is_change)?;
    let path = parts.uri.path();
    if let Some(name) = path.strip_prefix("/assets/").filter(|_| !is_change) {
        return Ok(Checked::Answer(assets::serve(name, takes_gzip(&parts.headers))));
    }
    let peer = parts.extensions.get::<BrowserPeer>().cloned();
    let query = Fields::of_query(parts.uri.query());
    let visit = cookie(&parts.headers, &cookie_name(&page.place))
        .and_then(|cookie| page.access.visit(&cookie));
    if path == "/open" {
        return match &page.place {
            // Programs that look at a link first, as chats and mail do, do not use it up.
            PagePlace::Loopback(_) if parts.method == Method::HEAD => {
                Ok(Checked::Answer(StatusCode::OK.into_response()))
            }
            PagePlace::Loopback(_) if !is_change => {
                open(page, peer, visit.is_some(), query.get("token")).await
            }
            PagePlace::Public(place) => {
                open_public(page, place, peer, body, is_change, nonce).await
            }
            PagePlace::Loopback(_) => Err(PageRefusal::Method),
        };
    }
    let Some(visit) = visit else { return Err(PageRefusal::NoCookie) };
    if let Some(peer) = &peer {
        peer.accept();
    }
    refuse_servers(peer).await?;
    let (form, body) = if is_change {
        let body = to_bytes(body, MAX_FORM_BYTES).await.map_err(|_| PageRefusal::TooLarge)?;
        let form = Fields::read(&body);
        if !visit.has_sent(form.get("form_token")) {
            return Err(PageRefusal::FormToken);
        }
        (form, Body::empty())
    } else {
        (Fields::default(), body)
    };
    let form_token = visit.masked_token().into();
    let Visit { id, person, .. } = visit;
    let (nonce, last_event) = (Arc::clone(nonce), last_event(&parts.headers));
    let request = PageRequest { nonce, form_token, visit: id, last_event, person, query, form };
    parts.extensions.insert(request);
    Ok(Checked::Pass(body))
}

/// Turns the token of a link into a cookie.
async fn open(
    page: &PageState,
    peer: Option<BrowserPeer>,
    is_open: bool,
    token: &str,
) -> Result<Checked, PageRefusal> {
    let to_page = [(header::LOCATION, PAGE_PATH.to_owned())];
    if is_open {
        // The same browser opens the link again.
        return Ok(Checked::Answer((StatusCode::SEE_OTHER, to_page).into_response()));
    }
    refuse_servers(peer).await?;
    let cookie = page.access.open(token).ok_or(PageRefusal::UsedLink)?;
    Ok(with_cookie(page, &cookie))
}

/// Turns the token of an administrator into a cookie, or shows the form for one.
async fn open_public(
    page: &PageState,
    place: &PublicPlace,
    peer: Option<BrowserPeer>,
    body: Body,
    is_sent: bool,
    nonce: &str,
) -> Result<Checked, PageRefusal> {
    let form = |why: Option<&str>| {
        let status = if why.is_some() { StatusCode::FORBIDDEN } else { StatusCode::OK };
        Checked::Answer((status, layout::token_form(nonce, &place.scope, why)).into_response())
    };
    if !is_sent {
        return Ok(form(None));
    }
    refuse_servers(peer.clone()).await?;
    let body = to_bytes(body, MAX_FORM_BYTES).await.map_err(|_| PageRefusal::TooLarge)?;
    let fields = Fields::read(&body);
    let address = peer.map(|peer| peer.address().ip()).ok_or(PageRefusal::Server)?;
    let verified = place.access.administrator(fields.get("token").trim(), &place.scope, address);
    match verified.await {
        Err(why) => Ok(form(Some(&why))),
        Ok(Administrator { name, expires }) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let lasts = Duration::from_secs(expires.saturating_sub(now));
            Ok(with_cookie(page, &page.access.admit(Some(name.into()), Some(lasts))))
        }
    }
}

/// Leads to the page with a new cookie.
fn with_cookie(page: &PageState, cookie: &str) -> Checked {
    let name = cookie_name(&page.place);
    let secure = if matches!(page.place, PagePlace::Public(_)) { "; Secure" } else { "" };
    let cookie = format!("{name}={cookie}; Path={PAGE_PATH}; HttpOnly; SameSite=Strict{secure}");
    let to_page = [(header::LOCATION, PAGE_PATH.to_owned())];
    let response = (StatusCode::SEE_OTHER, to_page, [(header::SET_COOKIE, cookie)]);
    Checked::Answer(response.into_response())
}

/// Refuses a request that a server of toolgate has sent, or a program that it has started.
async fn refuse_servers(peer: Option<BrowserPeer>) -> Result<(), PageRefusal> {
    match peer {
        Some(peer) if peer.may_be_person().await => Ok(()),
        _ => Err(PageRefusal::Server),
    }
}

fn check_origin(parts: &Parts, place: &PagePlace, is_change: bool) -> Result<(), PageRefusal> {
    let one = |name: header::HeaderName| -> Result<Option<&str>, PageRefusal> {
        let mut values = parts.headers.get_all(&name).iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => value.to_str().map(Some).map_err(|_| PageRefusal::Origin),
            _ => Err(PageRefusal::Origin),
        }
    };
    let host = one(header::HOST)?.ok_or(PageRefusal::Host)?;
    let own = match place {
        PagePlace::Loopback(address) => {
            let hosts = [address.to_string(), format!("localhost:{}", address.port())];
            hosts.iter().any(|own| own == host).then(|| format!("http://{host}"))
        }
        PagePlace::Public(place) => (place.host == host).then(|| place.origin.clone()),
    };
    let own = own.ok_or(PageRefusal::Host)?;
    let origin = one(header::ORIGIN)?;
    if origin.is_some_and(|origin| origin != own) || is_change && origin.is_none() {
        return Err(PageRefusal::Origin);
    }
    // `none` is an address that a person typed or a program of theirs opened.
    match one(header::HeaderName::from_static("sec-fetch-site"))? {
        None | Some("same-origin") => Ok(()),
        Some("none") if !is_change => Ok(()),
        // A link on another page leads here, and without the cookie to nothing.
        Some("cross-site" | "same-site") if !is_change && is_navigation(&parts.headers) => Ok(()),
        Some(_) => Err(PageRefusal::Origin),
    }
}

/// Whether the browser shows the response as a page of its own, which no other page can read.
fn is_navigation(headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|it| it == value);
    is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document")
}

/// Cookies do not tell ports apart, so the name does.
fn cookie_name(place: &PagePlace) -> String {
    match place {
        PagePlace::Loopback(address) => format!("toolgate_page_{}", address.port()),
        PagePlace::Public(_) => "toolgate_page".to_owned(),
    }
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        all.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

fn last_event(headers: &HeaderMap) -> Option<Arc<str>> {
    headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(Arc::from)
}

/// Whether the browser takes gzip.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|it| it.to_str().ok());
    let mut offers = all.flat_map(|text| text.split(',')).map(|offer| offer.split(';'));
    offers.any(|mut offer| {
        let is_gzip = offer.next().is_some_and(|name| name.trim().eq_ignore_ascii_case("gzip"));
        let weight = offer.find_map(|it| it.trim().strip_prefix("q=")?.parse::<f32>().ok());
        is_gzip && weight.is_none_or(|weight| weight > 0.0)
    })
}

/// Compresses a page. Streams and exports stay as they are.
async fn compressed(response: Response) -> Response {
    const KINDS: [&str; 2] = ["text/html", "application/json"];
    let (mut parts, body) = response.into_parts();
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_page = kind.is_some_and(|kind| KINDS.iter().any(|known| kind.starts_with(known)));
    let size = body.size_hint();
    let is_long = size.exact().is_some_and(|size| size >= compress::SHORTEST as u64);
    if !is_page || !is_long || parts.headers.contains_key(header::CONTENT_ENCODING) {
        return Response::from_parts(parts, body);
    }
    let Ok(text) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let packed = tokio::task::spawn_blocking(move || compress::gzip(&text)).await;
    let Ok(Ok(packed)) = packed else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    Response::from_parts(parts, Body::from(packed))
}

impl PageRefusal {
    fn response(self, page: &PageState, nonce: &str) -> Response {
        if let (Self::NoCookie, PagePlace::Public(place)) = (self, &page.place) {
            let form = layout::token_form(nonce, &place.scope, None);
            return (StatusCode::UNAUTHORIZED, form).into_response();
        }
        let (status, title, text) = match self {
            Self::Method => (
                StatusCode::METHOD_NOT_ALLOWED,
                "Nothing is done this way",
                "The page is read with GET and changed with POST.",
            ),
            Self::Host => (
                StatusCode::FORBIDDEN,
                "Another name of this page",
                "Open the page under the address that toolgate printed.",
            ),
            Self::Origin => (
                StatusCode::FORBIDDEN,
                "Another page sent this",
                "toolgate accepts this only from its own page. Nothing was changed.",
            ),
            Self::NoCookie => (
                StatusCode::UNAUTHORIZED,
                "This browser has not opened the page",
                "Open the link that toolgate printed in your terminal. Press Enter there for a new one.",
            ),
            Self::UsedLink => (
                StatusCode::FORBIDDEN,
                "This link does not open the page",
                "A link works once. If you have not used it, somebody else has. Press Enter in the terminal of toolgate \
                 for a new one.",
            ),
            Self::FormToken => (
                StatusCode::FORBIDDEN,
                "This form is out of date",
                "Nothing was changed. Go back, load the page again, and repeat it.",
            ),
            Self::Server => (
                StatusCode::FORBIDDEN,
                "A server cannot decide",
                "A server of toolgate has sent this, or it is not known who has. Nothing was changed.",
            ),
            Self::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "This is too long",
                "A form has at most 1 MB. Nothing was changed.",
            ),
        };
        tracing::debug!(refusal = ?self, "a request of the page was refused");
        (status, layout::notice(nonce, title, text)).into_response()
    }
}

/// The headers that keep a browser from doing more than the page needs.
fn with_headers(mut response: Response, nonce: &str) -> Response {
    // Nothing but the scripts of this program runs, and only htmx may make elements of a text.
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types htmx"
    );
    let headers = response.headers_mut();
    let set = [
        (header::CONTENT_SECURITY_POLICY, policy.as_str()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Without a referrer a browser would send forms without their origin.
        (header::REFERRER_POLICY, "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in set {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
