//! How a server is reached, in the words of every client.

mod http;
mod stdio;
mod values;

use std::collections::BTreeMap;

use super::report::Path;
use super::scope::Scope;
use crate::document::{Member, Object, Value};
use crate::keys;
use crate::position::printable;
use crate::{HttpDialect, Secret, Severity, Transport};

/// The keys that hold a URL; where there are several, the first counts, as in Gemini CLI.
const URL_KEYS: [&str; 3] = ["httpUrl", "url", "serverUrl"];

/// What an entry says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Declared {
    Stdio,
    Http,
    Sse,
}

/// Reads the `headers` of something that is asked over HTTP.
pub(super) fn headers(scope: &mut Scope<'_, '_>) -> BTreeMap<String, Secret> {
    values::read(scope, "headers", values::Kind::Header)
}

/// Reads the transport. None, or an error in the scope, means that there is none to use.
pub(super) fn read(
    scope: &mut Scope<'_, '_>,
    entry_offset: usize,
    is_gemini: bool,
) -> Option<Transport> {
    let object = scope.object;
    let declared = declared(scope)?;
    let command = object.get("command");
    let url = URL_KEYS.iter().find_map(|key| object.get(key));
    match (command, url) {
        (Some(_), Some(url)) => {
            let predicate = format!("has both a `command` and a `{}`", url.key);
            let hint = "keep the one by which the server is reached".to_owned();
            scope.complain(Severity::Error, scope.path, entry_offset, &predicate, Some(hint));
            None
        }
        (None, None) => {
            report_missing(scope, entry_offset);
            None
        }
        (Some(command), None) => match declared {
            None | Some((Declared::Stdio, _)) => stdio::read(scope, command),
            Some((_, member)) => {
                contradiction(scope, member, "a `url`, but there is only a `command`")
            }
        },
        (None, Some(url)) => match declared {
            Some((Declared::Stdio, member)) => contradiction(
                scope,
                member,
                &format!("a `command`, but there is only a `{}`", url.key),
            ),
            Some((Declared::Sse, _)) => http::read(scope, url, HttpDialect::Sse),
            // In a file of Gemini CLI, `url` is the older transport and `httpUrl` the newer.
            None if url.key == "url" && (is_gemini || object.get("authProviderType").is_some()) => {
                http::read(scope, url, HttpDialect::Sse)
            }
            None | Some((Declared::Http, _)) => http::read(scope, url, HttpDialect::Any),
        },
    }
}

/// The key that was most likely meant to be the missing `command` or `url`, and which of the two.
pub(super) fn misspelt<'o>(object: &'o Object<'o>) -> Option<(&'o Member<'o>, &'static str)> {
    let is_missing =
        object.get("command").is_none() && URL_KEYS.iter().all(|key| object.get(key).is_none());
    if !is_missing {
        return None;
    }
    let is_known = |key: &str| {
        [keys::SERVER, keys::SERVER_MAPPED, keys::SERVER_IGNORED]
            .iter()
            .any(|keys| keys.contains(&key))
    };
    object
        .members
        .iter()
        .filter(|member| !is_known(&member.key))
        .find_map(|member| Some((member, keys::nearest(&member.key, &["command", "url"])?)))
}

/// What `type` says, and where; the outer none after an error.
#[expect(clippy::option_option, reason = "an error, no type and a type are three things")]
fn declared<'r>(scope: &mut Scope<'r, '_>) -> Option<Option<(Declared, &'r Member<'r>)>> {
    let Some(member) = scope.object.get("type").or_else(|| scope.object.get("transport")) else {
        return Some(None);
    };
    let name = match &member.node.value {
        Value::String(name) => name,
        _ => "",
    };
    let declared = match name.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "stdio" | "local" | "command" => Declared::Stdio,
        "http" | "streamablehttp" | "remote" => Declared::Http,
        "sse" => Declared::Sse,
        _ => {
            let path = Path::Key(scope.path, &member.key);
            let predicate = "must be `stdio`, `http` or `sse`";
            let hint = "leave it out: a `command` means stdio and a `url` means http".to_owned();
            scope.complain(Severity::Error, &path, member.node.offset, predicate, Some(hint));
            return None;
        }
    };
    Some(Some((declared, member)))
}

fn contradiction(scope: &mut Scope<'_, '_>, member: &Member<'_>, what: &str) -> Option<Transport> {
    let path = Path::Key(scope.path, &member.key);
    let hint = Some(format!("remove `{}`, or correct it", member.key));
    scope.complain(Severity::Error, &path, member.node.offset, &format!("asks for {what}"), hint);
    None
}

fn report_missing(scope: &mut Scope<'_, '_>, entry_offset: usize) {
    let predicate = "has neither a `command` nor a `url`";
    if let Some((member, meant)) = misspelt(scope.object) {
        let key = printable(&member.key);
        let path = Path::Key(scope.path, &member.key);
        let predicate = format!("is not a known key, and the server has no `{meant}`");
        let hint = Some(format!("rename `{key}` to `{meant}`"));
        scope.complain(Severity::Error, &path, member.key_offset, &predicate, hint);
        return;
    }
    let is_extension =
        scope.object.get("settings").is_some() || scope.object.get("source").is_some();
    let hint = if is_extension {
        "the server comes from an extension of the editor; write the `command` that it runs"
    } else {
        "add the `command` that starts the server, or the `url` where it runs"
    };
    scope.complain(Severity::Error, scope.path, entry_offset, predicate, Some(hint.to_owned()));
}
