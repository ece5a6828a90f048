//! A server that is an endpoint.

use std::collections::BTreeMap;

use super::values::{self, Kind};
use crate::document::{Member, Value};
use crate::read::endpoint;
use crate::read::report::Path;
use crate::read::scope::Scope;
use crate::{HttpDialect, Secret, Severity, Transport};

/// Reads an endpoint from the key with its URL and the keys beside it.
pub(super) fn read<'r>(
    scope: &mut Scope<'r, '_>,
    member: &'r Member<'r>,
    dialect: HttpDialect,
) -> Option<Transport> {
    let headers = headers(scope);
    let hint = "write the whole URL, such as `https://example.com/mcp`";
    let url = endpoint::web_url(scope, member, hint)?;
    Some(Transport::Http { url, headers, dialect })
}

/// The headers as they are written, and those whose values Codex takes from variables it names.
fn headers(scope: &mut Scope<'_, '_>) -> BTreeMap<String, Secret> {
    let mut headers = values::read(scope, "headers", Kind::Header);
    headers.append(&mut values::read(scope, "http_headers", Kind::Header));
    headers.append(&mut values::read(scope, "env_http_headers", Kind::HeaderFromVariable));
    if let Some(member) = scope.object.get("bearer_token_env_var") {
        let path = Path::Key(scope.path, &member.key);
        let Value::String(name) = &member.node.value else {
            let expected = "the name of an environment variable";
            scope.mismatch(Severity::Error, &path, &member.node, expected, None);
            return headers;
        };
        let token = scope.variable(&path, member.node.offset, name);
        let is_set = headers.keys().any(|header| header.eq_ignore_ascii_case("authorization"));
        if let Some(token) = token.filter(|_| !is_set) {
            let value = format!("Bearer {token}");
            if values::is_header_value(scope, &path, member.node.offset, &value) {
                headers.insert("Authorization".to_owned(), Secret::new(value));
            }
        }
    }
    headers
}
