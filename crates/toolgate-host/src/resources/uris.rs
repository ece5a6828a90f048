//! The URIs of resources, as clients see them.
//!
//! Two servers may both have `file:///notes`, and a client must never read one instead of the other.
//! So the URI for clients names the server:
//!
//! | URI for clients | meaning |
//! |---|---|
//! | `toolgate://SERVER/URI` | the server's URI, unchanged |
//! | `toolgate://SERVER?URI` | the server's URI, percent-encoded, if it cannot be part of a path |
//! | `toolgate://SERVER` | the server's instructions |
//! | `ui://toolgate.SERVER/REST`, `ui://toolgate.SERVER?REST` | the server's `ui://REST`: clients show no view whose URI begins in another way |
//! | `skill://toolgate.SERVER/REST`, `skill://toolgate.SERVER?REST` | the server's `skill://REST`, for the same reason |
//!
//! The first form is not encoded, so that a client can expand a template in it (RFC 6570). The result
//! is the expansion of the server's own template, after the name of the server. A server's URI may be
//! anything, even `toolgate://other/…`: the first name in the URI decides.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};
use toolgate_catalog::ServerName;

/// What a URI for clients refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UriTarget {
    /// A resource, by the server's own URI.
    Resource(String),
    /// The instructions of the server.
    Instructions,
}

const SCHEME: &str = "toolgate://";
/// How the URIs of views begin (MCP Apps).
const VIEW_SCHEME: &str = "ui://";
/// How the URIs of the files of skills begin.
const SKILL_SCHEME: &str = "skill://";
/// The schemes that stay for clients, because an extension fixes them.
const KEPT_SCHEMES: [&str; 2] = [VIEW_SCHEME, SKILL_SCHEME];
/// What follows such a scheme for clients, before the name of the server.
const MARK: &str = "toolgate.";
/// The longest URI of a view that is converted.
const MAX_VIEW_URI_BYTES: usize = 8 * 1024;

/// Encodes a server's name: all but the unreserved characters.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes a query (RFC 3986), with the percent sign.
const QUERY: &AsciiSet = &NAME
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@')
    .remove(b'/')
    .remove(b'?');

/// Whether a URI names a server of ours.
pub(crate) fn is_ours(uri: &str) -> bool {
    uri.starts_with(SCHEME) || marked(uri).is_some()
}

/// A URI for clients whose scheme is kept: the scheme, and what follows the mark.
fn marked(uri: &str) -> Option<(&'static str, &str)> {
    KEPT_SCHEMES
        .into_iter()
        .find_map(|scheme| Some((scheme, uri.strip_prefix(scheme)?.strip_prefix(MARK)?)))
}

/// Whether the server's own URI is that of a view.
pub(crate) fn is_view(uri: &str) -> bool {
    uri.starts_with(VIEW_SCHEME)
}

/// How the URI for clients begins, and which part of the server's URI follows.
fn base<'u>(server: &ServerName, uri: &'u str) -> (String, &'u str) {
    let kept =
        KEPT_SCHEMES.into_iter().find_map(|scheme| Some((scheme, uri.strip_prefix(scheme)?)));
    match kept {
        Some((scheme, rest)) => {
            let name = utf8_percent_encode(server.as_str(), NAME);
            (format!("{scheme}{MARK}{name}"), rest)
        }
        None => (instructions_uri(server), uri),
    }
}

/// The URI for clients of a resource.
pub(crate) fn ours(server: &ServerName, uri: &str) -> String {
    let (base, rest) = base(server, uri);
    if stands_in_a_path(rest) {
        format!("{base}/{rest}")
    } else {
        format!("{base}?{}", utf8_percent_encode(rest, QUERY))
    }
}

/// The URI for clients of a server's instructions.
pub(crate) fn instructions_uri(server: &ServerName) -> String {
    format!("{SCHEME}{}", utf8_percent_encode(server.as_str(), NAME))
}

/// The template for clients. Its expressions stay; the text around them is written as an expansion
/// writes it.
pub(crate) fn ours_template(server: &ServerName, template: &str) -> String {
    let (mut text, mut rest) = base(server, template);
    text.push('/');
    while let Some(open) = rest.find('{') {
        push_literal(&mut text, &rest[..open]);
        let after = &rest[open + 1..];
        rest = match after.split_once('}') {
            Some((expression, after)) if is_expression(expression) => {
                text.push('{');
                text.push_str(expression);
                text.push('}');
                after
            }
            _ => {
                text.push_str("%7B");
                after
            }
        };
    }
    push_literal(&mut text, rest);
    text
}

/// The server and the target of a URI for clients; `None` for other URIs.
pub(crate) fn theirs(uri: &str) -> Option<(ServerName, UriTarget)> {
    let (scheme, rest) = match marked(uri) {
        Some(marked) => marked,
        None => ("", uri.strip_prefix(SCHEME)?),
    };
    let resource = |text: &str| UriTarget::Resource(format!("{scheme}{text}"));
    let (name, target) = match rest.find(['/', '?', '#']) {
        None if scheme.is_empty() => (rest, UriTarget::Instructions),
        Some(end) if rest[end..].starts_with('/') => (&rest[..end], resource(&rest[end + 1..])),
        Some(end) if rest[end..].starts_with('?') => {
            (&rest[..end], resource(&decoded(&rest[end + 1..])?))
        }
        _ => return None,
    };
    Some((ServerName::from(decoded(name)?.as_ref()), target))
}

/// A text as one segment of a path.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NAME).to_string()
}

pub(super) fn decoded(text: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(text).decode_utf8().ok()
}

/// Whether a URI can follow a slash so that the whole is a URI, and survives a client that resolves
/// `..`.
fn stands_in_a_path(uri: &str) -> bool {
    let (before, fragment) = uri.split_once('#').unwrap_or((uri, ""));
    let path = before.split('?').next().unwrap_or_default();
    is_written_plainly(before) && is_written_plainly(fragment) && !path.split('/').any(is_dots)
}

/// Whether a text only has characters of paths, queries and fragments.
fn is_written_plainly(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(place, byte)| match byte {
        b'%' => is_triplet(&bytes[place..]),
        other => is_plain(*other),
    })
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte)
}

fn is_triplet(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// Whether a segment of a path is `.` or `..`, in any spelling.
fn is_dots(segment: &str) -> bool {
    let dots = segment.to_ascii_lowercase().replace("%2e", ".");
    dots == "." || dots == ".."
}

/// Whether a text can stand between the braces of a template.
fn is_expression(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.,:*%+#/;?&=!@|-".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

/// Adds text outside of expressions as an expansion writes it (RFC 6570, section 3.1).
fn push_literal(text: &mut String, literal: &str) {
    for (place, character) in literal.char_indices() {
        let is_kept = match character {
            '%' => is_triplet(&literal.as_bytes()[place..]),
            '#' | '[' | ']' => true,
            other => u8::try_from(other).is_ok_and(|byte| byte.is_ascii() && is_plain(byte)),
        };
        if is_kept {
            text.push(character);
        } else {
            text.extend(utf8_percent_encode(character.encode_utf8(&mut [0; 4]), NAME));
        }
    }
}

/// How deep arguments are searched.
const MAX_DEPTH: usize = 128;

/// Converts the links and resources in a tool's result to URIs for clients.
pub(crate) fn to_client_uris(server: &ServerName, result: &mut Value) {
    to_client_blocks(server, result.get_mut("content"));
    to_client_views(server, result);
}

/// Converts the URIs of views in the `_meta` of a definition or a result: those in `ui`, and those that are values
/// of `_meta` itself, as in older forms.
pub(crate) fn to_client_views(server: &ServerName, holder: &mut Value) {
    let Some(Value::Object(meta)) = holder.get_mut("_meta") else { return };
    for (key, value) in meta {
        let uri = if key == "ui" { value.get_mut("resourceUri") } else { Some(value) };
        if let Some(Value::String(uri)) = uri
            && is_view(uri)
            && uri.len() <= MAX_VIEW_URI_BYTES
        {
            *uri = ours(server, uri);
        }
    }
}

/// The same for the messages of a prompt.
pub(crate) fn to_client_messages(server: &ServerName, result: &mut Value) {
    let messages = result.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        to_client_blocks(server, message.get_mut("content"));
    }
}

/// The same for the contents of a resource.
pub(crate) fn to_client_contents(server: &ServerName, result: &mut Value) {
    let contents = result.get_mut("contents").and_then(Value::as_array_mut);
    for content in contents.into_iter().flatten() {
        to_client_uri(server, Some(content));
    }
}

/// Converts URIs for clients in a call's arguments back to the server's own, if they name the
/// called server: a model passes on what it saw, and the server knows only its own URIs.
pub(crate) fn to_server_uris(server: &ServerName, arguments: &mut Map<String, Value>) {
    for argument in arguments.values_mut() {
        each_text(argument, 0, &mut |text| {
            if let Some((owner, UriTarget::Resource(theirs))) = theirs(text)
                && owner == *server
            {
                *text = theirs;
            }
        });
    }
}

/// Visits all texts in a value, to a limited depth.
pub(crate) fn each_text(value: &mut Value, depth: usize, visit: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) if depth < MAX_DEPTH => {
            for item in items {
                each_text(item, depth + 1, visit);
            }
        }
        Value::Object(fields) if depth < MAX_DEPTH => {
            for field in fields.values_mut() {
                each_text(field, depth + 1, visit);
            }
        }
        _ => {}
    }
}

/// Content is one block or a list of blocks.
fn to_client_blocks(server: &ServerName, content: Option<&mut Value>) {
    let blocks = match content {
        Some(Value::Array(blocks)) => blocks.as_mut_slice(),
        Some(block) => std::slice::from_mut(block),
        None => return,
    };
    for block in blocks {
        match block.get("type").and_then(Value::as_str) {
            Some("resource_link") => to_client_uri(server, Some(block)),
            Some("resource") => to_client_uri(server, block.get_mut("resource")),
            _ => {}
        }
    }
}

/// Converts the `uri` of an object.
pub(crate) fn to_client_uri(server: &ServerName, holder: Option<&mut Value>) {
    if let Some(Value::String(text)) = holder.and_then(|holder| holder.get_mut("uri")) {
        *text = ours(server, text);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn name(server: &str) -> ServerName {
        ServerName::from(server)
    }

    fn resource(uri: &str) -> Option<(ServerName, String)> {
        match theirs(uri)? {
            (server, UriTarget::Resource(uri)) => Some((server, uri)),
            (_, UriTarget::Instructions) => None,
        }
    }

    #[test]
    fn a_uri_stays_readable() {
        let cases = [
            ("file:///home/notes.md", "toolgate://a/file:///home/notes.md"),
            ("https://x.org/a%20b?q=1#top", "toolgate://a/https://x.org/a%20b?q=1#top"),
            ("file:///C:/My Files/x", "toolgate://a?file:///C:/My%20Files/x"),
            ("file:///a/../b", "toolgate://a?file:///a/../b"),
            ("größe", "toolgate://a?gr%C3%B6%C3%9Fe"),
            ("100%", "toolgate://a?100%25"),
            ("", "toolgate://a/"),
            ("toolgate://b/file:///x", "toolgate://a/toolgate://b/file:///x"),
            ("ui://clock/app.html", "ui://toolgate.a/clock/app.html"),
            ("ui://toolgate.b/app.html", "ui://toolgate.a/toolgate.b/app.html"),
            ("ui://a b", "ui://toolgate.a?a%20b"),
            ("ui://", "ui://toolgate.a/"),
        ];
        for (uri, expected) in cases {
            assert_eq!(ours(&name("a"), uri), expected);
            assert_eq!(resource(expected), Some((name("a"), uri.to_owned())));
        }
        assert_eq!(ours(&name("my server/1"), "x:y"), "toolgate://my%20server%2F1/x:y");
    }

    #[test]
    fn no_server_can_write_the_uri_of_another() {
        for uri in ["toolgate://other/x", "/../other/x", "@other/x", "\\..\\other", "%2e%2e/other"]
        {
            assert_eq!(resource(&ours(&name("evil"), uri)).unwrap().0, name("evil"), "{uri}");
        }
    }

    #[test]
    fn the_instructions_have_their_own_uri() {
        assert_eq!(
            theirs(&instructions_uri(&name("a b"))),
            Some((name("a b"), UriTarget::Instructions))
        );
        assert_eq!(theirs("toolgate://a#x"), None);
        assert_eq!(theirs("file:///x"), None);
        assert_eq!(theirs("toolgate://%ff/x"), None);
        assert_eq!(theirs("ui://toolgate.a"), None, "views have none");
    }

    #[test]
    fn templates_stay_templates() {
        let template = |text: &str| ours_template(&name("a"), text);
        assert_eq!(template("file:///{+path}{?a,b*}"), "toolgate://a/file:///{+path}{?a,b*}");
        assert_eq!(template("{+uri}"), "toolgate://a/{+uri}");
        assert_eq!(template("ui://chart/{id}"), "ui://toolgate.a/chart/{id}");
        assert_eq!(
            template("x:ö {name} {no name} }"),
            "toolgate://a/x:%C3%B6%20{name}%20%7Bno%20name%7D%20%7D"
        );
        assert_eq!(template("x:{unclosed"), "toolgate://a/x:%7Bunclosed");
        assert_eq!(template("x:50%{v}%2F"), "toolgate://a/x:50%25{v}%2F");
    }

    /// An expander of `{name}` and `{+name}`, after RFC 6570.
    fn expand(template: &str, values: &HashMap<String, String>) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            push_literal(&mut text, &rest[..open]);
            let (expression, after) = rest[open + 1..].split_once('}').unwrap();
            rest = after;
            match expression.strip_prefix('+') {
                Some(name) => push_literal(&mut text, &values[name]),
                None => text.extend(utf8_percent_encode(&values[expression], NAME)),
            }
        }
        push_literal(&mut text, rest);
        text
    }

    proptest! {
        #[test]
        fn every_client_uri_leads_back_to_the_server_uri(server in ".{0,12}", uri in any_uri()) {
            let given = ours(&name(&server), &uri);
            prop_assert_eq!(resource(&given), Some((name(&server), uri)));
            let parsed = url::Url::parse(&given);
            prop_assert!(parsed.is_ok(), "{} {:?}", given, parsed);
            let read = parsed.unwrap();
            prop_assert_eq!(read.as_str(), &given, "a client that reads it leaves it");
            prop_assert!(given.bytes().all(|byte| is_plain(byte) || byte == b'%' || byte == b'#'));
            prop_assert!(given.bytes().filter(|byte| *byte == b'#').count() <= 1);
        }

        #[test]
        fn no_two_share_one(
            left in ("[a%/?#.]{0,3}", "[a%/?#.:2eEF]{0,6}"),
            right in ("[a%/?#.]{0,3}", "[a%/?#.:2eEF]{0,6}"),
        ) {
            let same = ours(&name(&left.0), &left.1) == ours(&name(&right.0), &right.1);
            prop_assert_eq!(same, left == right);
        }

        #[test]
        fn a_client_expands_a_template_like_the_server(
            server in ".{0,8}",
            parts in proptest::collection::vec(
                ("[a-z:/? ö%#0-9.]{0,6}", prop_oneof![Just("{v}"), Just("{+v}"), Just("{w}")]), 0..4),
            v in ".{0,10}",
            w in "[a-z/.%]{0,6}",
        ) {
            let template: String = parts.iter().flat_map(|(literal, expression)| [literal.as_str(), expression]).collect();
            let values = HashMap::from([("v".to_owned(), v), ("w".to_owned(), w)]);
            let expanded = expand(&ours_template(&name(&server), &template), &values);
            let expected = expand(&template, &values);
            prop_assert_eq!(resource(&expanded), Some((name(&server), expected)));
        }

        #[test]
        fn anything_can_be_read(uri in ".{0,40}") {
            let _ = theirs(&uri);
            let _ = theirs(&format!("{SCHEME}{uri}"));
        }
    }

    fn any_uri() -> impl Strategy<Value = String> {
        prop_oneof![
            ".{0,30}",
            "(file|https|toolgate|ui|skill)://[a-z]{0,5}(/[a-zA-Z.%2eF~]{0,4}){0,4}(\\?[a-z=&/.]{0,6})?(#[a-z#]{0,4})?",
        ]
    }

    #[test]
    fn links_get_the_name_of_their_server() {
        let mut result = json!({
            "content": [
                {"type": "text", "text": "file:///a"},
                {"type": "resource_link", "uri": "https://x.org/a", "name": "a", "size": 12.0, "odd": [1]},
                {"type": "resource", "resource": {"uri": "toolgate://b/x", "text": "t"}, "_meta": {"k": 1}},
                {"type": "resource", "resource": "no object"}, {"type": "resource_link"}, 7,
            ],
            "structuredContent": {"uri": "file:///a"},
        });
        to_client_uris(&"s".into(), &mut result);
        assert_eq!(
            result,
            json!({
                "content": [
                    {"type": "text", "text": "file:///a"},
                    {"type": "resource_link", "uri": "toolgate://s/https://x.org/a", "name": "a", "size": 12.0, "odd": [1]},
                    {"type": "resource", "resource": {"uri": "toolgate://s/toolgate://b/x", "text": "t"}, "_meta": {"k": 1}},
                    {"type": "resource", "resource": "no object"}, {"type": "resource_link"}, 7,
                ],
                "structuredContent": {"uri": "file:///a"},
            })
        );
    }

    #[test]
    fn views_get_the_name_of_their_server() {
        let mut tool = json!({ "name": "t", "_meta": {
            "ui": { "resourceUri": "ui://x/y", "visibility": ["app"], "csp": { "connectDomains": ["ui://z"] } },
            "ui/resourceUri": "ui://x/y", "other": "https://x", "long": format!("ui://{}", "x".repeat(9000)),
        } });
        let long = tool["_meta"]["long"].clone();
        to_client_views(&"s".into(), &mut tool);
        assert_eq!(
            tool,
            json!({ "name": "t", "_meta": {
                "ui": {
                    "resourceUri": "ui://toolgate.s/x/y", "visibility": ["app"],
                    "csp": { "connectDomains": ["ui://z"] },
                },
                "ui/resourceUri": "ui://toolgate.s/x/y", "other": "https://x", "long": long,
            } })
        );
    }

    #[test]
    fn a_uri_becomes_what_the_server_wrote() {
        let mut arguments = json!({
            "uri": "toolgate://s/file:///a", "other": "toolgate://b/file:///a", "s": "toolgate://s",
            "all": [{"x": "toolgate://s?a%20b"}], "text": "see toolgate://s/file:///a", "n": 1,
        });
        to_server_uris(&"s".into(), arguments.as_object_mut().unwrap());
        assert_eq!(
            arguments,
            json!({
                "uri": "file:///a", "other": "toolgate://b/file:///a", "s": "toolgate://s",
                "all": [{"x": "a b"}], "text": "see toolgate://s/file:///a", "n": 1,
            })
        );
    }

    #[test]
    fn uris_are_found_in_prompts_and_resources() {
        let link = json!({"type": "resource_link", "uri": "x:1"});
        let ours = json!({"type": "resource_link", "uri": "toolgate://s/x:1"});
        let mut prompt =
            json!({"messages": [{"role": "user", "content": link}, {"content": [link]}, 1]});
        to_client_messages(&"s".into(), &mut prompt);
        assert_eq!(prompt["messages"][0]["content"], ours);
        assert_eq!(prompt["messages"][1]["content"][0], ours);
        let mut read = json!({"contents": [{"uri": "x:1", "blob": "eA=="}, null]});
        to_client_contents(&"s".into(), &mut read);
        assert_eq!(read, json!({"contents": [{"uri": "toolgate://s/x:1", "blob": "eA=="}, null]}));
    }
}
