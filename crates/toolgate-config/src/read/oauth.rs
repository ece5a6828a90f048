//! The `oauth` key of a server.

use url::Url;

use super::report::Path;
use super::scope::Scope;
use crate::document::Value;
use crate::keys::{OAUTH, OAUTH_FOREIGN};
use crate::{OAuth, Secret, Severity};

/// Reads how to log in. What is wrong is an error of the server: it would log in as somebody else.
pub(super) fn read(scope: &mut Scope<'_, '_>) -> OAuth {
    let Some(member) = scope.object.get("oauth") else { return OAuth::default() };
    // Some clients switch it on or off; here a server that asks for a login says so.
    if matches!(member.node.value, Value::Boolean(_) | Value::Null) {
        return OAuth::default();
    }
    let hint = "write `\"oauth\": { \"clientId\": \"…\" }`, or leave it out";
    let Some(object) = scope.members(member, hint) else { return OAuth::default() };
    let path = Path::Key(scope.path, &member.key);
    scope.within(object, &path, |inner| {
        inner.report_unknown(&[OAUTH, OAUTH_FOREIGN], OAUTH);
        let oauth = OAuth {
            client_id: text(inner, "clientId"),
            client_secret: text(inner, "clientSecret").map(Secret::new),
            client_metadata_url: document(inner),
            scopes: scopes(inner),
            redirect_port: port(inner, "redirectPort").or_else(|| port(inner, "callbackPort")),
        };
        if oauth.client_secret.is_some() && oauth.client_id.is_none() {
            let hint = Some("write the `clientId` that the secret belongs to".to_owned());
            let predicate = "has a `clientSecret` but no `clientId`";
            inner.complain(Severity::Error, &path, member.node.offset, predicate, hint);
        }
        oauth
    })
}

fn text(scope: &mut Scope<'_, '_>, key: &str) -> Option<String> {
    let member = scope.object.get(key)?;
    scope.text(member)
}

/// The URL is the client's id, and authorization servers take no other kind.
fn document(scope: &mut Scope<'_, '_>) -> Option<String> {
    let member = scope.object.get("clientMetadataUrl")?;
    let text = scope.text(member)?;
    let url = Url::parse(&text).ok();
    if url.is_some_and(|url| url.scheme() == "https" && url.has_host() && url.path() != "/") {
        return Some(text);
    }
    let path = Path::Key(scope.path, &member.key);
    let predicate = "is not the `https` URL of a document";
    let hint = Some("write its whole URL, such as `https://example.com/client.json`".to_owned());
    scope.complain(Severity::Error, &path, member.node.offset, predicate, hint);
    None
}

/// A list, or one text with spaces between, as in the protocol.
fn scopes(scope: &mut Scope<'_, '_>) -> Vec<String> {
    let Some(member) = scope.object.get("scopes") else { return Vec::new() };
    if matches!(member.node.value, Value::String(_)) {
        let text = scope.text(member).unwrap_or_default();
        return text.split_whitespace().map(str::to_owned).collect();
    }
    let strings = scope.strings(member).unwrap_or_default();
    strings.into_iter().map(|(text, _)| text.to_owned()).collect()
}

fn port(scope: &mut Scope<'_, '_>, key: &str) -> Option<u16> {
    scope.integer(key, 1, u64::from(u16::MAX)).and_then(|port| u16::try_from(port).ok())
}
