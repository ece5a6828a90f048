//! Methods that no client knows, to see what of a message arrives.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Engine, Request};
use crate::questions;
use crate::reply::{Reply, code};

/// How many notifications of clients are remembered.
const REMEMBERED: usize = 100;

impl Engine {
    /// Answers what is no method of the engine's own: what the fixture has a result for, and the
    /// methods of the module documentation.
    pub(super) async fn raw_method(self: &Arc<Self>, request: &Arc<Request>) -> Reply {
        if let Some(result) = self.fixture.methods.get(&request.method) {
            return Reply::Result(result.clone());
        }
        if let Some(reply) = self.offer(request) {
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
                let heard: Vec<Value> = self.state.lock().heard.iter().cloned().collect();
                Reply::Result(json!({ "heard": heard }))
            }
            method => Reply::error(code::METHOD_NOT_FOUND, format!("Method not found: {method}")),
        }
    }

    /// Remembers a notification of a client.
    pub(super) fn hear(&self, method: &str, params: &Value) {
        let mut state = self.state.lock();
        if state.heard.len() == REMEMBERED {
            state.heard.pop_front();
        }
        state.heard.push_back(json!({ "method": method, "params": params }));
    }
}
