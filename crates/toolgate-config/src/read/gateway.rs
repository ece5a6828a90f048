//! The `gateway` key.

use url::{Host, Url};

use super::Context;
use super::report::Path;
use super::scope::Scope;
use crate::document::{Member, Value};
use crate::keys::{GATEWAY, GATEWAY_OAUTH};
use crate::{Gateway, GatewayOauth, Severity};

/// Reads the settings. What only tunes keeps its default when it is wrong, with a warning. What
/// says who may come in is an error that lets nobody in without a token.
pub(super) fn read(context: &mut Context<'_>, path: &Path<'_>, member: &Member<'_>) -> Gateway {
    let defaults = Gateway::default();
    let Value::Object(object) = &member.node.value else {
        let kind = member.node.value.kind();
        let predicate = format!("must be an object, but is {kind}; every client needs a token");
        context.report.add(Severity::Error, path, member.node.offset, &predicate, None);
        return Gateway { require_token: true, ..defaults };
    };
    let mut scope = Scope::new(object, path, context);
    scope.report_replaced(object, path);
    let require_token = match object.get("requireToken") {
        Some(_) => scope.boolean("requireToken", Severity::Error).unwrap_or(true),
        None => defaults.require_token,
    };
    let oauth = oauth(&mut scope);
    let mut integer = |key, min, max, default| scope.integer(key, min, max).unwrap_or(default);
    let settings = Gateway {
        require_token: require_token || matches!(oauth, Oauth::Wrong),
        oauth: if let Oauth::Set(oauth) = oauth { Some(oauth) } else { None },
        max_connections: integer("maxConnections", 1, 1_000_000, defaults.max_connections),
        max_body_bytes: integer("maxBodyBytes", 1_024, 268_435_456, defaults.max_body_bytes),
        max_header_bytes: integer("maxHeaderBytes", 8_192, 1_048_576, defaults.max_header_bytes),
        max_sessions: integer("maxSessions", 1, 1_000_000, defaults.max_sessions),
        max_sessions_per_caller: integer(
            "maxSessionsPerCaller",
            1,
            1_000_000,
            defaults.max_sessions_per_caller,
        ),
        max_requests_in_flight: integer(
            "maxRequestsInFlight",
            1,
            100_000,
            defaults.max_requests_in_flight,
        ),
        session_idle_seconds: integer(
            "sessionIdleSeconds",
            10,
            604_800,
            defaults.session_idle_seconds,
        ),
        allowed_hosts: list(&mut scope, "allowedHosts", is_host, HOST),
        allowed_origins: list(&mut scope, "allowedOrigins", is_origin, ORIGIN),
    };
    scope.report_unknown(&[GATEWAY], GATEWAY);
    settings
}

const HOST: &str = "a host with or without a port, such as `tools.example.com`";
const ORIGIN: &str = "an origin, such as `https://app.example.com`";

/// What is said of an authorisation server.
enum Oauth {
    Unset,
    Wrong,
    Set(GatewayOauth),
}

/// A list whose entries have a form; those that have not let nobody in, and are left out.
fn list(
    scope: &mut Scope<'_, '_>,
    key: &str,
    fits: fn(&str) -> bool,
    expected: &str,
) -> Vec<String> {
    let Some(member) = scope.object.get(key) else { return Vec::new() };
    let Some(entries) = scope.strings(member) else { return Vec::new() };
    let list = Path::Key(scope.path, key);
    let mut kept = Vec::new();
    for (index, (entry, offset)) in entries.into_iter().enumerate() {
        if fits(entry) {
            kept.push(entry.to_ascii_lowercase());
        } else {
            let path = Path::Index(&list, index);
            let predicate = format!("must be {expected}; it is ignored");
            scope.complain(Severity::Warning, &path, offset, &predicate, None);
        }
    }
    kept
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

fn oauth(scope: &mut Scope<'_, '_>) -> Oauth {
    let Some(member) = scope.object.get("oauth") else { return Oauth::Unset };
    if matches!(member.node.value, Value::Null) {
        return Oauth::Unset;
    }
    let hint = "write `\"oauth\": { \"issuer\": \"https://…\", \"resource\": \"https://…/mcp\" }`";
    let Some(object) = scope.members(member, hint) else { return Oauth::Wrong };
    let path = Path::Key(scope.path, "oauth");
    let read = scope.within(object, &path, |inner| {
        inner.report_unknown(&[GATEWAY_OAUTH], GATEWAY_OAUTH);
        let offset = member.node.offset;
        let issuer = address(inner, "issuer", Some(offset), is_guarded);
        let resource = address(inner, "resource", Some(offset), |_| true);
        let jwks_url = address(inner, "jwksUrl", None, is_guarded);
        let audience = inner.object.get("audience").and_then(|member| inner.text(member));
        let required_scopes = scopes(inner);
        let wrong = inner.object.get("audience").is_some() && audience.is_none()
            || inner.object.get("jwksUrl").is_some() && jwks_url.is_none()
            || required_scopes.is_none();
        if wrong {
            return None;
        }
        let (issuer, resource) = (issuer?, resource?);
        let required_scopes = required_scopes.unwrap_or_default();
        Some(GatewayOauth { issuer, resource, audience, jwks_url, required_scopes })
    });
    read.map_or(Oauth::Wrong, Oauth::Set)
}

/// A URL as it is written. `needed` is where it is missing, if it has to be there.
fn address(
    scope: &mut Scope<'_, '_>,
    key: &str,
    needed: Option<usize>,
    fits: fn(&Url) -> bool,
) -> Option<String> {
    let Some(member) = scope.object.get(key) else {
        if let Some(offset) = needed {
            let predicate = format!("has no `{key}`");
            let hint = Some(format!("add `\"{key}\": \"https://…\"`"));
            scope.complain(Severity::Error, scope.path, offset, &predicate, hint);
        }
        return None;
    };
    let text = scope.text(member)?.trim().to_owned();
    let plain = Url::parse(&text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.fragment().is_none()
            && (key == "jwksUrl" || url.query().is_none())
            && url.username().is_empty()
            && url.password().is_none()
    });
    if plain.as_ref().is_some_and(fits) {
        return Some(text);
    }
    let path = Path::Key(scope.path, key);
    let (predicate, hint) = if plain.is_some() {
        let predicate = "must begin with `https://`, unless it is on this machine";
        (predicate, "whoever can change its answer on the way decides who comes in")
    } else {
        ("is not a URL that begins with `https://`", "write the whole URL, without `?` and `#`")
    };
    scope.complain(Severity::Error, &path, member.node.offset, predicate, Some(hint.to_owned()));
    None
}

/// Whether nobody on the way can change what is there.
fn is_guarded(url: &Url) -> bool {
    url.scheme() == "https"
        || match url.host() {
            Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
}

fn scopes(scope: &mut Scope<'_, '_>) -> Option<Vec<String>> {
    let Some(member) = scope.object.get("requiredScopes") else { return Some(Vec::new()) };
    let entries = scope.strings(member)?;
    let mut scopes = Vec::new();
    let list = Path::Key(scope.path, "requiredScopes");
    for (index, (entry, offset)) in entries.into_iter().enumerate() {
        // The characters that RFC 6749 has for a scope; a quote would end the header that names it.
        let fits = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        if entry.is_empty() || !entry.bytes().all(fits) {
            let path = Path::Index(&list, index);
            scope.complain(Severity::Error, &path, offset, "must be one scope", None);
            return None;
        }
        scopes.push(entry.to_owned());
    }
    Some(scopes)
}
