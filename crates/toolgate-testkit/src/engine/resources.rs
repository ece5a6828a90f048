//! Resources, templates, prompts and completion.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{Engine, Generation, Request};
use crate::reply::{Reply, code};

const RESOURCE_NOT_FOUND: i64 = -32002;

impl Engine {
    /// Answers requests about resources, prompts and completion. Returns `None` for other methods,
    /// and if the fixture has none of these.
    pub(super) fn resource_or_prompt(self: &Arc<Self>, request: &Request) -> Option<Reply> {
        let fixture = &self.fixture;
        let has_resources = !(fixture.resources.is_empty() && fixture.templates.is_empty());
        let has_prompts = !fixture.prompts.is_empty();
        Some(match request.method.as_str() {
            "resources/list" if has_resources => {
                self.list(request, "resources", &fixture.resources)
            }
            "resources/templates/list" if has_resources => {
                self.list(request, "resourceTemplates", &fixture.templates)
            }
            "resources/read" if has_resources => self.read(&request.params["uri"]),
            "resources/subscribe" | "resources/unsubscribe" if has_resources => {
                self.record_notification(&request.method, &request.params);
                Reply::Result(json!({}))
            }
            "prompts/list" if has_prompts => self.list(request, "prompts", &fixture.prompts),
            "prompts/get" if has_prompts => self.prompt(&request.params),
            "completion/complete" if has_resources || has_prompts => {
                let asked = &request.params["ref"];
                let about = asked.get("uri").unwrap_or(&asked["name"]);
                let values = [about, &request.params["argument"]["value"]];
                Reply::Result(json!({ "completion": { "values": values } }))
            }
            _ => return None,
        })
    }

    /// The capabilities for the resources and prompts of the fixture.
    pub(super) fn resource_capabilities(&self) -> Vec<(String, Value)> {
        let fixture = &self.fixture;
        let mut declared = Vec::new();
        if !(fixture.resources.is_empty() && fixture.templates.is_empty()) {
            declared.push(("resources", json!({ "subscribe": true, "listChanged": true })));
        }
        if !fixture.prompts.is_empty() {
            declared.push(("prompts", json!({ "listChanged": true })));
        }
        if !declared.is_empty() {
            declared.push(("completions", json!({})));
        }
        declared.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn list(&self, request: &Request, field: &str, items: &[Value]) -> Reply {
        let Some((page, next)) = self.page(items.to_vec(), &request.params["cursor"]) else {
            return Reply::error(code::INVALID_PARAMS, "Unknown cursor");
        };
        let mut result = json!({ field: page });
        if let Some(cursor) = next {
            result["nextCursor"] = json!(cursor);
        }
        if request.generation == Generation::Modern {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        Reply::Result(result)
    }

    /// A text that names the server and the URI, or a few bytes if the resource is an image.
    fn read(&self, uri: &Value) -> Reply {
        let listed = self.fixture.resources.iter().find(|resource| resource["uri"] == *uri);
        let expands = |template: &Value| {
            let literal = template["uriTemplate"].as_str().and_then(|text| text.split('{').next());
            literal.is_some_and(|start| uri.as_str().is_some_and(|uri| uri.starts_with(start)))
        };
        if listed.is_none() && !self.fixture.templates.iter().any(expands) {
            return Reply::Error {
                code: RESOURCE_NOT_FOUND,
                message: format!("Resource not found: {uri}"),
                data: Some(json!({ "uri": uri })),
            };
        }
        let kind =
            listed.and_then(|resource| resource["mimeType"].as_str()).unwrap_or("text/plain");
        let mut content = json!({ "uri": uri, "mimeType": kind, "odd": [1] });
        if let Some(meta) = listed.and_then(|resource| resource.get("_meta")) {
            content["_meta"] = meta.clone();
        }
        if kind.starts_with("image/") {
            content["blob"] = json!("aGVsbG8=");
        } else {
            let uri = uri.as_str().unwrap_or_default();
            content["text"] = json!(format!("{} has {uri}", self.fixture.name));
        }
        Reply::Result(json!({ "contents": [content] }))
    }

    fn prompt(&self, params: &Value) -> Reply {
        let name = &params["name"];
        if !self.fixture.prompts.iter().any(|prompt| prompt["name"] == *name) {
            return Reply::error(code::INVALID_PARAMS, format!("Unknown prompt: {name}"));
        }
        let arguments = &params["arguments"];
        if let Some(method) = arguments["announce"].as_str() {
            let told =
                arguments["params"].as_str().and_then(|text| serde_json::from_str(text).ok());
            match arguments["afterMs"].as_str().and_then(|text| text.parse().ok()) {
                Some(delay) => {
                    self.announce_later(method, told.as_ref(), Duration::from_millis(delay));
                }
                None => self.announce(method, told.as_ref()),
            }
        }
        let text = format!("{} says {name} with {arguments}", self.fixture.name);
        let mut messages =
            vec![json!({ "role": "user", "content": { "type": "text", "text": text } })];
        if let Some(resource) = self.fixture.resources.first() {
            let link = json!({ "type": "resource_link", "uri": resource["uri"], "name": "first" });
            messages.push(json!({ "role": "user", "content": link }));
        }
        Reply::Result(json!({ "messages": messages }))
    }
}
