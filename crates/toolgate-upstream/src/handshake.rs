//! What a server says of itself.

use serde_json::{Map, Value, json};
use toolgate_mcp::{Era, JsonObject, client::RawConnection, meta, versions};

/// What a server said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Handshake {
    /// The era of the connection.
    pub era: Era,
    /// The protocol version that was agreed on.
    pub protocol_version: String,
    /// Its `Implementation`, as it was sent.
    pub server_info: Value,
    /// Its text for the model.
    pub instructions: Option<String>,
    /// Whether it announces changes of its tools.
    pub announces_changes: bool,
    /// Its capabilities, as it declared them.
    pub capabilities: JsonObject,
}

/// The largest text or object of a handshake that is stored. Longer texts are cut, and larger
/// objects left out.
const MAX_BYTES: usize = 256 * 1024;

impl Handshake {
    pub(crate) fn read(connection: &RawConnection) -> Self {
        let (era, sent) = (connection.era(), connection.handshake());
        let (version, server_info) = match era {
            Era::Legacy => (sent["protocolVersion"].as_str(), sent.get("serverInfo")),
            Era::Modern => (Some(versions::MODERN), sent["_meta"].get(meta::SERVER_INFO)),
        };
        let bounded = |value: &&Value| value.to_string().len() <= MAX_BYTES;
        let capabilities = sent.get("capabilities").filter(bounded).and_then(Value::as_object);
        let capabilities = capabilities.cloned().unwrap_or_default();
        let instructions = sent.get("instructions").and_then(Value::as_str);
        Self {
            era,
            protocol_version: version.unwrap_or_default().to_owned(),
            server_info: server_info.filter(bounded).cloned().unwrap_or_default(),
            instructions: instructions
                .map(|text| text[..text.floor_char_boundary(MAX_BYTES)].to_owned()),
            announces_changes: announces(&capabilities, "tools"),
            capabilities,
        }
    }

    /// The `notifications` of a `subscriptions/listen` for all lists whose changes the server
    /// announces; `None` if it announces none.
    pub(crate) fn announced(&self) -> Option<Value> {
        let lists = ["tools", "prompts", "resources"].into_iter();
        let lists = lists.filter(|list| announces(&self.capabilities, list));
        let wanted: Map<String, Value> =
            lists.map(|list| (format!("{list}ListChanged"), json!(true))).collect();
        (!wanted.is_empty()).then(|| Value::Object(wanted))
    }
}

fn announces(capabilities: &JsonObject, list: &str) -> bool {
    let flag = capabilities.get(list).and_then(|capability| capability.get("listChanged"));
    flag.and_then(Value::as_bool).unwrap_or_default()
}
