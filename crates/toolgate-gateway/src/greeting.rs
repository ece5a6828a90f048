//! What a server says of itself, in the words of either era.

use serde_json::{Map, Value, json};
use toolgate_mcp::JsonObject;

use crate::{
    era::{self, Era, META_SERVER_INFO},
    results::{self, Cached},
};

/// The result of `initialize` or of `server/discover`, with whatever fields it has.
#[derive(Debug, Clone, PartialEq)]
pub struct Greeting {
    /// Of which era the words are.
    pub era: Era,
    /// The words.
    pub fields: JsonObject,
}

impl Greeting {
    /// As the result of `initialize`, with the version that was agreed on.
    pub(crate) fn into_initialize(mut self, version: &str) -> Value {
        if self.era == Era::Modern {
            for key in ["supportedVersions", "ttlMs", "cacheScope", "resultType"] {
                self.fields.shift_remove(key);
            }
            let info = self.fields.get_mut("_meta").and_then(Value::as_object_mut);
            let info = info.and_then(|meta| meta.shift_remove(META_SERVER_INFO));
            let info = info.unwrap_or_else(|| json!({ "name": "unknown", "version": "0" }));
            self.fields.insert("serverInfo".to_owned(), info);
            if self.fields.get("_meta").and_then(Value::as_object).is_some_and(Map::is_empty) {
                self.fields.shift_remove("_meta");
            }
        }
        let mut result = Map::new();
        result.insert("protocolVersion".to_owned(), json!(version));
        self.fields.shift_remove("protocolVersion");
        result.append(&mut self.fields);
        Value::Object(result)
    }

    /// As the result of `server/discover`.
    pub(crate) fn into_discover(mut self) -> Value {
        self.fields.shift_remove("protocolVersion");
        if let Some(info) = self.fields.shift_remove("serverInfo")
            && let Some(meta) =
                self.fields.entry("_meta").or_insert_with(|| json!({})).as_object_mut()
        {
            meta.insert(META_SERVER_INFO.to_owned(), info);
        }
        self.fields.insert("supportedVersions".to_owned(), era::versions());
        results::complete(&mut self.fields, Cached::Briefly);
        Value::Object(self.fields)
    }
}
