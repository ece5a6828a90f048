//! What is said in one era, in the words of the other.

use serde_json::{Value, json};
use toolgate_mcp::JsonObject;

use crate::era::{
    META_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_SUBSCRIPTION, META_VERSION,
};

/// Takes out of a request what only the modern era knows.
pub(crate) fn without_declaration(params: &mut Option<Value>) {
    for key in [META_VERSION, META_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL] {
        remove_meta(params, key);
    }
}

/// Takes the name of a subscription out of a notification.
pub(crate) fn without_subscription(params: &mut Option<Value>) {
    remove_meta(params, META_SUBSCRIPTION);
}

/// Puts something into the `_meta` of parameters or of a result.
pub(crate) fn set_meta(params: &mut Value, key: &str, value: Value) {
    let Some(fields) = params.as_object_mut() else { return };
    let meta = fields.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert(key.to_owned(), value);
    }
}

/// What is in the `_meta` of parameters or of a result.
pub(crate) fn meta<'a>(params: Option<&'a Value>, key: &str) -> Option<&'a Value> {
    params?.get("_meta")?.get(key)
}

/// What can be listened to, of all that a server offers.
pub(crate) fn offered(capabilities: Option<&Value>) -> JsonObject {
    let announces = |part: &str| {
        let part = capabilities.and_then(|capabilities| capabilities.get(part));
        part.and_then(|part| part.get("listChanged")) == Some(&json!(true))
    };
    let mut filter = JsonObject::new();
    for (part, name) in [
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ] {
        if announces(part) {
            filter.insert(name.to_owned(), json!(true));
        }
    }
    filter
}

/// Under which name a client of the modern era asks for a notification about a list.
pub(crate) fn filter_name(method: &str) -> Option<&'static str> {
    match method {
        "notifications/tools/list_changed" => Some("toolsListChanged"),
        "notifications/prompts/list_changed" => Some("promptsListChanged"),
        "notifications/resources/list_changed" => Some("resourcesListChanged"),
        _ => None,
    }
}

fn remove_meta(params: &mut Option<Value>, key: &str) {
    let Some(fields) = params.as_mut().and_then(Value::as_object_mut) else { return };
    let Some(meta) = fields.get_mut("_meta").and_then(Value::as_object_mut) else { return };
    meta.shift_remove(key);
    if meta.is_empty() {
        fields.shift_remove("_meta");
    }
}
