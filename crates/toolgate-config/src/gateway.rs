//! The `gateway` key: who may connect over the network.

use url::{Host, Url};

use crate::ProblemSeverity;
use crate::document::Member;
use crate::scope::Scope;
use crate::section::{
    Definitions, Flag, Section, Wrong, custom, integer, section, strings_schema, text, text_schema,
    whole,
};

section! {
    /// Who may connect over HTTP, and the limits for clients: the `gateway` key.
    pub struct GatewayConfig as "Gateway" {
        /// Whether clients on this machine need a token too. Clients on other machines always need
        /// one.
        "requireToken" => require_token: bool = false, Flag(Wrong::Becomes(true));
        /// The URL under which browsers reach the gateway, such as `https://tools.example.com`. The pages on
        /// which callers log in at servers are there. The default comes from `oauth.resource`, or else from
        /// the address that the gateway listens on.
        "publicUrl" => public_url: Option<String> = None,
            custom(text_schema, |scope, member| address(scope, member, |_| true));
        /// Further host names of the gateway, with or without a port: the `Host` that a proxy in
        /// front of it sends.
        "allowedHosts" => allowed_hosts: Vec<String> = Vec::new(), custom(strings_schema, |scope, member| {
            let expected = "a host with or without a port, such as `tools.example.com`";
            list(scope, member, is_host, expected)
        });
        /// Further origins of web pages that may use the gateway, such as
        /// `https://app.example.com`.
        "allowedOrigins" => allowed_origins: Vec<String> = Vec::new(), custom(strings_schema, |scope, member| {
            list(scope, member, is_origin, "an origin, such as `https://app.example.com`")
        });
        /// The authorisation server whose tokens the gateway accepts, in addition to tokens of
        /// `toolgate token`.
        "oauth" => oauth: Option<OauthConfig> = None,
            custom(Definitions::reference::<OauthConfig>, read_oauth);
        /// How many connections there may be at once.
        "maxConnections" => max_connections: usize = 4_096, integer(1, 1_000_000);
        /// The largest body of a request, in bytes.
        "maxBodyBytes" => max_body_bytes: usize = 4 * 1024 * 1024, integer(1_024, 268_435_456);
        /// The largest head of a request, in bytes.
        "maxHeaderBytes" => max_header_bytes: usize = 64 * 1024, integer(8_192, 1_048_576);
        /// How many sessions there may be at once.
        "maxSessions" => max_sessions: usize = 4_000, integer(1, 1_000_000);
        /// How many sessions one caller may have.
        "maxSessionsPerCaller" => max_sessions_per_caller: usize = 1_000, integer(1, 1_000_000);
        /// How many requests of a session may be open at once.
        "maxRequestsInFlight" => max_requests_in_flight: usize = 256, integer(1, 100_000);
        /// After how many seconds without use a session ends.
        "sessionIdleSeconds" => session_idle_seconds: u64 = 30 * 60, whole::<u64>(10, 604_800);
    }
}

section! {
    /// The authorisation server whose tokens the gateway accepts: the `oauth` key of `gateway`.
    ///
    /// `${NAME}` and `${NAME:-default}` stand for environment variables.
    pub struct OauthConfig as "GatewayOauth" {
        /// The authorisation server, as it names itself in `iss`: an `https` URL.
        "issuer" => issuer: String = String::new(), custom(text_schema, guarded_url);
        /// The URL under which clients reach this gateway, such as `https://tools.example.com/mcp`.
        "resource" => resource: String = String::new(),
            custom(text_schema, |scope, member| address(scope, member, |_| true));
        /// The required value of `aud`. The default is the `resource`.
        "audience" => audience: Option<String> = None, text();
        /// The URL of the issuer's public keys. The default comes from the issuer's metadata.
        "jwksUrl" => jwks_url: Option<String> = None, custom(text_schema, guarded_url);
        /// Scopes that a token must have, all of them.
        "requiredScopes" => required_scopes: Vec<String> = Vec::new(), custom(strings_schema, scopes);
        /// The scope of administrators, who may open the page of the gateway at `/ui`. Give it to people and to no
        /// client: who has it decides. Without it there is no page on an address that other machines can reach.
        "adminScope" => admin_scope: Option<String> = None, text();
    }
}

/// Reads the section. An invalid limit keeps its default, with a warning. A mistake in an access
/// setting is an error, and then every client needs a token.
pub(crate) fn read(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> GatewayConfig {
    let mut settings = GatewayConfig::default();
    let consequence = "; every client needs a token";
    let is_object = scope.section(member, ProblemSeverity::Error, consequence, "", |scope| {
        settings.read_keys(scope);
        settings.require_token |= scope.object.get("oauth").is_some() && settings.oauth.is_none();
        scope.report_unknown::<GatewayConfig>();
    });
    settings.require_token |= is_object.is_none();
    settings
}

fn read_oauth(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<OauthConfig> {
    let hint = "write `\"oauth\": { \"issuer\": \"https://…\", \"resource\": \"https://…/mcp\" }`";
    scope.sound_section(member, hint, |scope| {
        scope.require("issuer", "add `\"issuer\": \"https://…\"`");
        scope.require("resource", "add `\"resource\": \"https://…\"`");
    })
}

/// A list whose elements have a required form. Other elements are ignored, so they admit nobody.
fn list(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
    fits: fn(&str) -> bool,
    expected: &str,
) -> Option<Vec<String>> {
    let mut list = Vec::new();
    for (element, at) in scope.strings(member)? {
        if fits(element) {
            list.push(element.to_ascii_lowercase());
        } else {
            scope.unfit(ProblemSeverity::Warning, &at, expected, "");
        }
    }
    Some(list)
}

fn is_host(text: &str) -> bool {
    let parsed = Url::parse(&format!("http://{text}"));
    parsed.is_ok_and(|url| {
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        bare && url.username().is_empty()
            && url.password().is_none()
            && !text.contains(['/', '*', '@', '?', '#', '\\'])
            && !text.ends_with(':')
    })
}

fn is_origin(text: &str) -> bool {
    // A browser writes neither a default port nor a slash at the end.
    Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && !text.contains('*')
            && url.origin().ascii_serialization().eq_ignore_ascii_case(text)
    })
}

fn guarded_url(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<String> {
    address(scope, member, is_guarded)
}

/// A URL as it is written.
fn address(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
    fits: fn(&Url) -> bool,
) -> Option<String> {
    let text = scope.text(member)?.trim().to_owned();
    let plain = Url::parse(&text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.fragment().is_none()
            && (member.key == "jwksUrl" || url.query().is_none())
            && url.username().is_empty()
            && url.password().is_none()
    });
    if plain.as_ref().is_some_and(fits) {
        return Some(text);
    }
    let (predicate, hint) = if plain.is_some() {
        let predicate = "must begin with `https://`, unless it is on this machine";
        (predicate, "somebody who changes its response on the way could decide who may connect")
    } else {
        ("is not a URL that begins with `https://`", "write the whole URL, without `?` and `#`")
    };
    scope.error(member, predicate, hint);
    None
}

/// Whether the content cannot be changed on the way.
pub(crate) fn is_guarded(url: &Url) -> bool {
    url.scheme() == "https"
        || match url.host() {
            Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
}

fn scopes(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<Vec<String>> {
    let mut scopes = Vec::new();
    for (text, at) in scope.strings(member)? {
        // The characters that RFC 6749 has for a scope; a quote would end the header that names it.
        let fits = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        if text.is_empty() || !text.bytes().all(fits) {
            scope.complain(ProblemSeverity::Error, &at, "must be one scope", "");
            return None;
        }
        scopes.push(text.to_owned());
    }
    Some(scopes)
}
