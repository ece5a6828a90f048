//! Calls that need an approval: in the client, at the terminal, in the queue.

mod both_eras;
mod data;
mod first;
mod late;
mod model;
mod ownership;
mod patterns;
mod peers;
mod presence;
mod talk;
mod terminal;
mod visits;

use std::path::PathBuf;

use serde_json::{Value, json};
use toolgate_testkit::Fixture;

use crate::{
    fixtures::kit,
    support::{Workplace, entry_with, text},
};

/// A server with all built-in tools, and the log of its calls. `kit_counter` needs an approval.
pub(super) fn workplace(code_mode: &Value) -> (Workplace, PathBuf) {
    let place = Workplace::empty();
    let log = place.path().join("calls.log");
    let settings = json!({ "tools": { "counter": { "approval": "ask" } } });
    place.rewrite(
        &json!({
            "mcpServers": { "kit": entry_with(&logged(&log), settings) },
            "toolSearch": { "enabled": true },
            "codeMode": code_mode,
        })
        .to_string(),
    );
    (place, log)
}

pub(super) fn logged(log: &PathBuf) -> Fixture {
    kit().with_call_log(log)
}

/// The tools that were called, in their order.
pub(super) fn called(log: &PathBuf) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let calls = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    calls.map(|call| call["name"].as_str().unwrap().to_owned()).collect()
}

/// The response of a client whose person chose this.
pub(crate) fn said(choice: &str) -> Value {
    json!({ "action": "accept", "content": { "answer": choice } })
}

/// The id of a run, and the name of the first question that it waits for.
pub(super) fn ids(result: &Value) -> (String, String) {
    let told = &result["_meta"]["toolgate/run"];
    let id = |value: &Value| {
        value.as_str().unwrap_or_else(|| panic!("no id: {}", text(result))).to_owned()
    };
    (id(&told["id"]), id(&told["waiting"][0]["reference"]))
}
