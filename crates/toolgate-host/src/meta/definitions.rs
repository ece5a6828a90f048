//! The definitions of the meta-tools. They are all that a deferred session pays for.

use serde_json::{Value, json};
use toolgate_catalog::ExposureKind;

use super::MetaTool;

/// The definitions, in their fixed order.
pub(crate) fn meta_definitions(kind: ExposureKind, keep_loaded_tools: bool) -> Vec<Value> {
    let unloads = kind == ExposureKind::Dynamic && !keep_loaded_tools;
    MetaTool::ALL
        .into_iter()
        .map(|tool| {
            json!({
                "name": tool.name(),
                "description": description(tool, kind),
                "inputSchema": input_schema(tool, unloads),
                "annotations": annotations(tool),
            })
        })
        .collect()
}

fn description(tool: MetaTool, kind: ExposureKind) -> &'static str {
    match (tool, kind) {
        (MetaTool::Search, ExposureKind::Dynamic) => {
            "Find tools of the connected servers by what they do. Most tools are not listed until \
             found: search before you say that something cannot be done. Found tools are added to \
             your tools and can be called by name."
        }
        (MetaTool::Search, _) => {
            "Find tools of the connected servers by what they do. Most tools are not listed: \
             search before you say that something cannot be done. Call a found tool with call_tool."
        }
        (MetaTool::Details, _) => {
            "Full definitions of tools: parameters, types, what they return. Read them before the \
             first call."
        }
        (MetaTool::Call, _) => {
            "Call a tool by its name from search_tools. Arguments are checked first; the tool's \
             own result comes back."
        }
    }
}

pub(super) fn input_schema(tool: MetaTool, unloads: bool) -> Value {
    match tool {
        MetaTool::Search => {
            let mut schema = json!({
                "type": "object",
                "properties": {
                    "query": { "type": "string", "description": "What the tool should do, in a few words" },
                    "queries": {
                        "type": "array", "items": { "type": "string" },
                        "description": "Several queries at once, for a task of several steps"
                    },
                    "server": { "type": "string", "description": "Only this server" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 50 },
                    "detail": {
                        "enum": ["name", "description", "schema"],
                        "description": "How much to show of each tool; default description"
                    },
                },
                "additionalProperties": false,
            });
            if unloads {
                schema["properties"]["unload"] = json!({
                    "type": "boolean", "description": "Unload the tools found so far first"
                });
            }
            schema
        }
        MetaTool::Details => json!({
            "type": "object",
            "properties": {
                "names": { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 20 },
                "format": { "enum": ["json"] },
            },
            "required": ["names"],
            "additionalProperties": false,
        }),
        MetaTool::Call => json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "arguments": { "type": "object" },
            },
            "required": ["name"],
            "additionalProperties": false,
        }),
    }
}

fn annotations(tool: MetaTool) -> Value {
    match tool {
        MetaTool::Search | MetaTool::Details => json!({ "readOnlyHint": true }),
        // What a call does depends on the tool that is called.
        MetaTool::Call => json!({ "openWorldHint": true }),
    }
}

#[cfg(test)]
mod tests {
    use toolgate_catalog::TokenCounter;

    use super::*;

    #[test]
    fn all_of_them_cost_a_session_less_than_a_thousand_tokens() {
        for kind in [ExposureKind::Stable, ExposureKind::Dynamic] {
            let text = serde_json::to_string(&meta_definitions(kind, false)).unwrap();
            let tokens = TokenCounter::shared().count(&text);
            assert!(tokens <= 1_000, "{kind}: {tokens}");
        }
    }

    #[test]
    fn their_bytes_are_always_the_same() {
        let text = || serde_json::to_string(&meta_definitions(ExposureKind::Stable, true)).unwrap();
        assert_eq!(text(), text());
        insta::assert_json_snapshot!("stable", meta_definitions(ExposureKind::Stable, true));
    }
}
