//! Links to resources in what servers send, made to lead to their owner.

use serde_json::{Map, Value};
use toolgate_catalog::ServerName;

use super::uri::{self, Target};

/// How deep arguments are looked through.
const MAX_DEPTH: usize = 128;

/// Gives the links and resources in a tool's result URIs of ours.
pub(crate) fn own_content(server: &ServerName, result: &mut Value) {
    own_blocks(server, result.get_mut("content"));
}

/// The same for the messages of a prompt.
pub(crate) fn own_messages(server: &ServerName, result: &mut Value) {
    let messages = result.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        own_blocks(server, message.get_mut("content"));
    }
}

/// The same for the contents of a resource.
pub(crate) fn own_contents(server: &ServerName, result: &mut Value) {
    let contents = result.get_mut("contents").and_then(Value::as_array_mut);
    for content in contents.into_iter().flatten() {
        own_uri(server, Some(content));
    }
}

/// Takes the owner out of the URIs among a call's arguments, where it is the server that is called:
/// a model hands on what it saw, and the server knows only what it wrote.
pub(crate) fn disown(server: &ServerName, arguments: &mut Map<String, Value>) {
    for argument in arguments.values_mut() {
        disown_value(server, argument, 0);
    }
}

fn disown_value(server: &ServerName, value: &mut Value, depth: usize) {
    match value {
        Value::String(text) => {
            if let Some((owner, Target::Resource(theirs))) = uri::theirs(text)
                && owner == *server
            {
                *text = theirs;
            }
        }
        Value::Array(items) if depth < MAX_DEPTH => {
            for item in items {
                disown_value(server, item, depth + 1);
            }
        }
        Value::Object(fields) if depth < MAX_DEPTH => {
            for field in fields.values_mut() {
                disown_value(server, field, depth + 1);
            }
        }
        _ => {}
    }
}

/// Content is a block, or a list of blocks.
fn own_blocks(server: &ServerName, content: Option<&mut Value>) {
    let blocks = match content {
        Some(Value::Array(blocks)) => blocks.as_mut_slice(),
        Some(block) => std::slice::from_mut(block),
        None => return,
    };
    for block in blocks {
        match block.get("type").and_then(Value::as_str) {
            Some("resource_link") => own_uri(server, Some(block)),
            Some("resource") => own_uri(server, block.get_mut("resource")),
            _ => {}
        }
    }
}

/// Makes the `uri` of an object ours.
pub(crate) fn own_uri(server: &ServerName, holder: Option<&mut Value>) {
    if let Some(Value::String(text)) = holder.and_then(|holder| holder.get_mut("uri")) {
        *text = uri::ours(server, text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn links_get_their_owner_and_all_else_stays() {
        let mut result = json!({
            "content": [
                {"type": "text", "text": "file:///a"},
                {"type": "resource_link", "uri": "https://x.org/a", "name": "a", "size": 12.0, "odd": [1]},
                {"type": "resource", "resource": {"uri": "toolgate://b/x", "text": "t"}, "_meta": {"k": 1}},
                {"type": "resource", "resource": "no object"}, {"type": "resource_link"}, 7,
            ],
            "structuredContent": {"uri": "file:///a"},
        });
        own_content(&"s".into(), &mut result);
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
    fn a_server_is_handed_what_it_wrote() {
        let mut arguments = json!({
            "uri": "toolgate://s/file:///a", "other": "toolgate://b/file:///a", "s": "toolgate://s",
            "all": [{"x": "toolgate://s?a%20b"}], "text": "see toolgate://s/file:///a", "n": 1,
        });
        disown(&"s".into(), arguments.as_object_mut().unwrap());
        assert_eq!(
            arguments,
            json!({
                "uri": "file:///a", "other": "toolgate://b/file:///a", "s": "toolgate://s",
                "all": [{"x": "a b"}], "text": "see toolgate://s/file:///a", "n": 1,
            })
        );
    }

    #[test]
    fn prompts_and_resources_have_their_own_places() {
        let link = json!({"type": "resource_link", "uri": "x:1"});
        let ours = json!({"type": "resource_link", "uri": "toolgate://s/x:1"});
        let mut prompt =
            json!({"messages": [{"role": "user", "content": link}, {"content": [link]}, 1]});
        own_messages(&"s".into(), &mut prompt);
        assert_eq!(prompt["messages"][0]["content"], ours);
        assert_eq!(prompt["messages"][1]["content"][0], ours);
        let mut read = json!({"contents": [{"uri": "x:1", "blob": "eA=="}, null]});
        own_contents(&"s".into(), &mut read);
        assert_eq!(read, json!({"contents": [{"uri": "toolgate://s/x:1", "blob": "eA=="}, null]}));
    }
}
