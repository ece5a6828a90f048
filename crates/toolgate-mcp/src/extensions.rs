//! Extensions of the protocol: their identifiers, and the capability that declares them.

use serde_json::Value;

use crate::JsonObject;

/// The capability, of clients and of servers, whose keys are the identifiers of extensions.
pub const CAPABILITY: &str = "extensions";
/// MCP Apps: tools with a view, which is a resource `ui://…`.
pub const UI: &str = "io.modelcontextprotocol/ui";
/// The type of the resources that are views.
pub const UI_MIME_TYPE: &str = "text/html;profile=mcp-app";
/// Skills over MCP.
pub const SKILLS: &str = "io.modelcontextprotocol/skills";
/// Groups of tools, prompts and resources (draft).
pub const GROUPS: &str = "io.modelcontextprotocol/groups";
/// The extension in which a call becomes a task, in the modern era.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The most extensions that are read from one declaration.
const MAX_EXTENSIONS: usize = 64;
/// The most bytes of the settings of one extension. Larger ones are left out.
const MAX_SETTINGS_BYTES: usize = 16 * 1024;

/// The extensions that capabilities declare, with their settings as they were sent.
pub fn declared(capabilities: &JsonObject) -> JsonObject {
    let declared = capabilities.get(CAPABILITY).and_then(Value::as_object);
    let usable = declared.into_iter().flatten().filter(|(name, settings)| {
        settings.is_object() && name.len() + settings.to_string().len() <= MAX_SETTINGS_BYTES
    });
    usable.take(MAX_EXTENSIONS).map(|(name, settings)| (name.clone(), settings.clone())).collect()
}

/// Adds extensions to a declaration. Of the settings of one extension, those that are there first count.
pub fn merge(into: &mut JsonObject, more: &JsonObject) {
    for (name, settings) in more {
        match (into.get_mut(name), settings) {
            (Some(Value::Object(present)), Value::Object(settings)) => {
                for (key, value) in settings {
                    if !present.contains_key(key) {
                        present.insert(key.clone(), value.clone());
                    }
                }
            }
            (Some(_), _) => {}
            (None, settings) => {
                if into.len() < MAX_EXTENSIONS {
                    into.insert(name.clone(), settings.clone());
                }
            }
        }
    }
}

/// Whether toolgate itself is the end of an extension: it speaks it with each side on its own.
pub fn is_ended_here(name: &str) -> bool {
    [SKILLS, GROUPS, TASKS].contains(&name)
}

/// Whether toolgate knows an extension.
pub fn is_known(name: &str) -> bool {
    name == UI || is_ended_here(name)
}

/// The extensions of a declaration that toolgate does not know. It passes them on.
pub fn unknown(declared: &JsonObject) -> impl Iterator<Item = &String> {
    declared.keys().filter(|name| !is_known(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> JsonObject {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn declarations_are_bounded() {
        let long = "x".repeat(MAX_SETTINGS_BYTES);
        let mut many = JsonObject::new();
        for number in 0..2 * MAX_EXTENSIONS {
            many.insert(format!("org.example/{number}"), json!({}));
        }
        many.insert("org.example/long".to_owned(), json!({ "text": long }));
        many.insert("org.example/odd".to_owned(), json!(true));
        let declared = declared(&object(&json!({ "extensions": many })));
        assert_eq!(declared.len(), MAX_EXTENSIONS);
        assert!(!declared.contains_key("org.example/long"));
    }

    #[test]
    fn the_first_settings_count() {
        let mut all = object(&json!({ "a": { "one": 1, "deep": { "x": 1 } } }));
        merge(
            &mut all,
            &object(&json!({ "a": { "one": 2, "two": 2, "deep": { "y": 2 } }, "b": {} })),
        );
        assert_eq!(
            Value::Object(all),
            json!({ "a": { "one": 1, "deep": { "x": 1 }, "two": 2 }, "b": {} })
        );
    }
}
