//! Converts the configuration to access control.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use toolgate_config::{GatewayConfig, ServerAuth};
use toolgate_gateway::{
    AccessControl, CredentialRequirement, HttpLimits, HttpSettings, IssuerSettings,
};

use url::Url;

use crate::{
    failure::Failure,
    load::{self, Loaded},
};

/// Reads an address to listen on. `localhost` and a port alone mean this machine.
pub(crate) fn read_address(text: &str) -> Result<SocketAddr, &'static str> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    let here = || port.parse().ok().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into());
    text.parse().ok().or_else(here).ok_or(
        "write an IP address and a port, such as 127.0.0.1:8808, or a port of this machine alone",
    )
}

/// Who may connect at an address. If other machines can reach it, every client needs a token.
pub(crate) fn control(
    gateway: &GatewayConfig,
    address: SocketAddr,
) -> Result<AccessControl, Failure> {
    let is_public = !address.ip().is_loopback();
    let is_required = is_public || gateway.require_token;
    let mut access = AccessControl::new(if is_required {
        CredentialRequirement::Required
    } else {
        CredentialRequirement::Optional
    });
    let mut can_connect = !is_required;
    if let Some(store) = load::store() {
        let tokens = store.access_tokens();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        match tokens.list() {
            Ok(records) => can_connect |= records.iter().any(|record| record.is_live(now)),
            Err(error) if is_required => return Err(error.into()),
            Err(_) => {}
        }
        access = access.with_tokens(tokens);
    }
    if let Some(oauth) = &gateway.oauth {
        let settings = IssuerSettings {
            issuer: oauth.issuer.clone(),
            resource: oauth.resource.clone(),
            audience: oauth.audience.clone(),
            jwks_url: oauth.jwks_url.clone(),
            required_scopes: oauth.required_scopes.clone(),
        };
        access = access
            .with_issuer(settings)
            .map_err(|error| Failure::usage(format!("`gateway.oauth` cannot be used: {error}")))?;
        can_connect = true;
    }
    if can_connect {
        return Ok(access);
    }
    let hint =
        "`toolgate token create` makes one; or name an authorisation server in `gateway.oauth`";
    if !is_public {
        let reason =
            "`gateway.requireToken` is set, and there is no token that a client could send";
        return Err(Failure::usage(reason).hint(hint));
    }
    let reason = format!(
        "{address} can be reached from other machines, and there is no token that a client could send"
    );
    let local = format!("or listen on this machine alone: --http 127.0.0.1:{}", address.port());
    Err(Failure::usage(reason).hint(hint).hint(local))
}

/// Lets callers log in at servers on pages of the gateway, which browsers have to reach.
pub(crate) fn serve_logins(loaded: &Loaded, address: SocketAddr) -> Result<(), Failure> {
    if let Some(pages) = pages(&loaded.configuration.gateway, address) {
        loaded.pending_logins().serve_at(pages);
        return Ok(());
    }
    let mut servers = loaded.configuration.servers.iter();
    let server = servers.find(|server| server.settings.auth == ServerAuth::PerCaller);
    let Some(server) = server else { return Ok(()) };
    let reason = format!(
        "`{}` has `\"auth\": \"perCaller\"`, and it is not known under which URL browsers reach this gateway",
        server.name
    );
    Err(Failure::usage(reason).hint("set `gateway.publicUrl`, such as `https://tools.example.com`"))
}

/// The URL of the gateway's pages.
pub(crate) fn pages(gateway: &GatewayConfig, address: SocketAddr) -> Option<Url> {
    let own = (!address.ip().is_unspecified()).then(|| format!("http://{address}"));
    let resource = gateway.oauth.as_ref().map(|oauth| {
        // Namespaces are below `/mcp`.
        let resource = oauth.resource.trim_end_matches('/');
        resource.rsplit_once("/mcp").map_or(resource, |(base, _)| base).to_owned()
    });
    Url::parse(&gateway.public_url.clone().or(resource).or(own)?).ok()
}

/// Applies the configuration to the settings of an endpoint.
pub(crate) fn apply(gateway: &GatewayConfig, access: AccessControl, settings: &mut HttpSettings) {
    settings.access = access;
    settings.allowed_hosts.clone_from(&gateway.allowed_hosts);
    settings.allowed_origins.clone_from(&gateway.allowed_origins);
    settings.limits = HttpLimits {
        connections: gateway.max_connections,
        body_bytes: gateway.max_body_bytes,
        header_bytes: gateway.max_header_bytes,
        sessions: gateway.max_sessions,
        sessions_per_caller: gateway.max_sessions_per_caller,
        in_flight: gateway.max_requests_in_flight,
        session_idle: Duration::from_secs(gateway.session_idle_seconds),
        ..settings.limits.clone()
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (text, expected) in [
            ("127.0.0.1:0", Some("127.0.0.1:0")),
            ("[::1]:8808", Some("[::1]:8808")),
            ("0.0.0.0:8808", Some("0.0.0.0:8808")),
            ("localhost:8808", Some("127.0.0.1:8808")),
            ("8808", Some("127.0.0.1:8808")),
            ("127.0.0.1", None),
            ("localhost", None),
            // Elsewhere it means all addresses.
            (":8808", None),
            ("127.0.0.1:99999", None),
            ("http://127.0.0.1:8808/mcp", None),
            ("", None),
        ] {
            let read = read_address(text).ok().map(|address| address.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }
}
