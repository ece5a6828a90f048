//! Methods that are not part of MCP, to test what arrives of a message.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Engine, Request};
use crate::questions;
use crate::reply::{Reply, code};

/// The number of client notifications that are kept.
const REMEMBERED: usize = 100;

impl Engine {
    /// Answers methods that the engine does not implement: those for which the fixture has a
    /// result, and those in the module documentation.
    pub(super) async fn raw_method(self: &Arc<Self>, request: &Arc<Request>) -> Reply {
        if request.method == "logging/setLevel" {
            self.state.lock().log_level = request.params.get("level").cloned();
        }
        let key = request.params.get("name").or_else(|| request.params.get("uri"));
        let by_key = self.fixture.methods_for.get(&request.method);
        if let Some(result) =
            by_key.zip(key.and_then(Value::as_str)).and_then(|(all, key)| all.get(key))
        {
            return Reply::Result(result.clone());
        }
        if let Some(result) = self.fixture.methods.get(&request.method) {
            return Reply::Result(result.clone());
        }
        if let Some(reply) = self.resource_or_prompt(request) {
            return reply;
        }
        let params = &request.params;
        match request.method.as_str() {
            "fixture/echo" => Reply::Result(params.clone()),
            "fixture/fail" => Reply::Error {
                code: params["code"].as_i64().unwrap_or(-32603),
                message: params["message"].as_str().unwrap_or("failed on request").to_owned(),
                data: params.get("data").cloned(),
            },
            "fixture/notify" => {
                let method = params["method"].as_str().unwrap_or_default();
                if params["toAll"] == true {
                    self.announce(method, params.get("params"));
                } else {
                    let mut message = json!({ "jsonrpc": "2.0", "method": method });
                    if let Some(params) = params.get("params") {
                        message["params"] = params.clone();
                    }
                    request.outbox.initiate(&message);
                }
                Reply::Result(json!({}))
            }
            "fixture/ask" => questions::ask_anything(request).await,
            "fixture/heard" => {
                let state = self.state.lock();
                let notifications: Vec<Value> = state.notifications.iter().cloned().collect();
                let listens: Vec<&Value> =
                    state.subscriptions.iter().map(|listen| &listen.params).collect();
                Reply::Result(json!({ "heard": notifications, "listens": listens }))
            }
            method => Reply::error(code::METHOD_NOT_FOUND, format!("Method not found: {method}")),
        }
    }

    /// Records a notification of a client.
    pub(super) fn record_notification(&self, method: &str, params: &Value) {
        let mut state = self.state.lock();
        if state.notifications.len() == REMEMBERED {
            state.notifications.pop_front();
        }
        state.notifications.push_back(json!({ "method": method, "params": params }));
    }
}
