//! Who may talk to an endpoint, before anything is read of what they say.

use std::net::IpAddr;

use axum::http::{
    StatusCode, Uri,
    header::{HOST, HeaderName, ORIGIN},
    request::Parts,
    uri::Authority,
};

use super::refusal::Refusal;

/// What an endpoint answers to.
#[derive(Debug)]
pub(crate) struct Guard {
    /// The port that it listens on.
    pub(crate) port: u16,
    /// Whether other machines reach it.
    pub(crate) is_public: bool,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) allowed_origins: Vec<String>,
}

impl Guard {
    /// Checks whom a request is for, and where it comes from.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), Refusal> {
        self.check_host(parts)?;
        self.check_origin(parts)
    }

    /// A web page that had its own name point to this machine names itself in `Host`.
    fn check_host(&self, parts: &Parts) -> Result<(), Refusal> {
        let host = sole(parts, &HOST)?.map(str::parse::<Authority>).transpose();
        let host = host.map_err(|_| bad("`Host` cannot be read"))?;
        let host = host.or_else(|| parts.uri.authority().cloned());
        let Some(host) = host else { return Err(bad("`Host` is missing")) };
        // Names can be pointed to another address, addresses cannot.
        let ours = is_loopback(host.host()) || self.is_public && is_address(host.host());
        let ours = ours && host.port_u16().unwrap_or(80) == self.port;
        if ours || self.allowed_hosts.iter().any(|allowed| names(allowed, &host)) {
            return Ok(());
        }
        let message = "this `Host` is not served here; use the address that toolgate listens on, or \
                       add the host to `gateway.allowedHosts`";
        Err(Refusal::new(StatusCode::FORBIDDEN, message))
    }

    /// Programs send no `Origin`; web pages do, and only ours may.
    fn check_origin(&self, parts: &Parts) -> Result<(), Refusal> {
        let Some(origin) = sole(parts, &ORIGIN)? else { return Ok(()) };
        let allowed = self.allowed_origins.iter().any(|allowed| allowed == origin);
        let loopback = origin.parse::<Uri>().is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.host().is_some_and(is_loopback)
        });
        if allowed || loopback {
            return Ok(());
        }
        let message = "pages of this `Origin` may not talk to this server; `gateway.allowedOrigins` \
                       lets them";
        Err(Refusal::new(StatusCode::FORBIDDEN, message))
    }
}

/// Whether `allowed` (a host, or a host with a port) is `host`.
fn names(allowed: &str, host: &Authority) -> bool {
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

/// The only value of a header. Two would mean one thing here and another elsewhere.
fn sole<'a>(parts: &'a Parts, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = parts.headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(bad(&format!("`{name}` is there twice")));
    }
    value.to_str().map(Some).map_err(|_| bad(&format!("`{name}` cannot be read")))
}

fn bad(message: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, message)
}
