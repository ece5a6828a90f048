//! Checks of `Host` and `Origin`, and CORS for the web pages that pass them.
//!
//! CORS is written here because it depends on the check of `Origin`, which refuses unknown pages
//! instead of only hiding the response from them.

use std::net::IpAddr;

use axum::{
    http::{
        HeaderValue, Method, StatusCode, Uri,
        header::{
            ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
            ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
            ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
        },
        request::Parts,
        uri::Authority,
    },
    response::{IntoResponse, Response},
};

use super::{error::HttpError, headers::single};

/// The hosts and origins that an endpoint accepts.
#[derive(Debug)]
pub(crate) struct OriginPolicy {
    /// The port that the gateway listens on.
    pub(crate) port: u16,
    /// Whether other machines can reach it.
    pub(crate) is_public: bool,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) allowed_origins: Vec<String>,
}

impl OriginPolicy {
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), HttpError> {
        self.check_host(parts)?;
        self.check_origin(parts)
    }

    /// Protects against DNS rebinding: a web page that points its own name to this machine sends that
    /// name in `Host`.
    fn check_host(&self, parts: &Parts) -> Result<(), HttpError> {
        let host =
            single(&parts.headers, "host", bad_request)?.map(str::parse::<Authority>).transpose();
        let host = host.map_err(|_| bad_request("`Host` cannot be read"))?;
        // A request for `http://host/path` names its host twice.
        let target = parts.uri.authority();
        if let (Some(host), Some(target)) = (&host, target)
            && host != target
        {
            return Err(bad_request("`Host` differs from the host in the request line"));
        }
        let host = host.or_else(|| target.cloned());
        let Some(host) = host else { return Err(bad_request("`Host` is missing")) };
        if host.as_str().contains('@') {
            return Err(bad_request("`Host` must not contain a user"));
        }
        // A name can be pointed to another address; an address cannot.
        let is_own = is_loopback(host.host()) || self.is_public && is_address(host.host());
        let is_own = is_own && host.port_u16().unwrap_or(80) == self.port;
        if is_own || self.allowed_hosts.iter().any(|allowed| matches_host(allowed, &host)) {
            return Ok(());
        }
        let message = "this `Host` is not served here; use the address that toolgate listens on, or \
                       add the host to `gateway.allowedHosts`";
        Err(HttpError::new(StatusCode::FORBIDDEN, message))
    }

    /// Browsers send `Origin` for web pages; other programs do not.
    fn check_origin(&self, parts: &Parts) -> Result<(), HttpError> {
        let Some(origin) = single(&parts.headers, "origin", bad_request)? else { return Ok(()) };
        let is_allowed = self.allowed_origins.iter().any(|allowed| allowed == origin);
        let is_local = origin.parse::<Uri>().is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.host().is_some_and(is_loopback)
        });
        if is_allowed || is_local {
            return Ok(());
        }
        let message = "web pages of this `Origin` may not use this server; add the origin to \
                       `gateway.allowedOrigins` to allow them";
        Err(HttpError::new(StatusCode::FORBIDDEN, message))
    }
}

/// The response to a CORS preflight request. Browsers send those without credentials.
pub(crate) fn preflight(parts: &Parts) -> Option<Response> {
    let is_preflight = parts.method == Method::OPTIONS
        && parts.headers.contains_key(ORIGIN)
        && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if !is_preflight {
        return None;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, DELETE");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    // Tools may want arguments as headers, so the names of allowed headers are not known.
    if let Some(requested) = parts.headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
    }
    Some(response)
}

/// Adds the headers that let a page of an allowed origin read the response.
pub(crate) fn with_cors(origin: Option<HeaderValue>, mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static("mcp-session-id, www-authenticate, retry-after");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    response
}

/// Whether `allowed` (a host, or a host with a port) is `host`.
fn matches_host(allowed: &str, host: &Authority) -> bool {
    let Ok(allowed) = allowed.parse::<Authority>() else { return false };
    allowed.host().eq_ignore_ascii_case(host.host())
        && allowed.port_u16().is_none_or(|port| host.port_u16() == Some(port))
}

fn is_address(host: &str) -> bool {
    host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok()
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn bad_request(message: impl Into<String>) -> HttpError {
    HttpError::new(StatusCode::BAD_REQUEST, message)
}
