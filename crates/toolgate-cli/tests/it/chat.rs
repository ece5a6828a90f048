//! `toolgate chat`, against scripted endpoints of the four wires.

mod code;
mod commands;
mod keys;
mod sessions;
mod terminal;
mod turns;

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, process::Command};
use toolgate_agent::WireApi;
use toolgate_testkit::{Builtin, Fixture, within};

use crate::{
    endpoint::{Endpoint, Play},
    scripts::{self, Said},
    support::{Outcome, Workplace, entry_with},
};

/// The key in all of these tests. Nothing ever prints it.
pub(super) const KEY: &str = "sk-test-a1b2c3d4e5f6";

/// Variables that a developer's machine may have.
const KEYS: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "TOOLGATE_MODEL",
    "TOOLGATE_NO_MCP",
];

/// A folder with one server of a few tools, whose calls are logged.
pub(super) struct Lab {
    pub(super) place: Workplace,
    pub(super) endpoint: Endpoint,
    pub(super) log: PathBuf,
}

impl Lab {
    /// With these answers of the endpoint. All tools are listed, because they are few.
    pub(super) async fn new(plays: Vec<Play>) -> Self {
        Self::with(plays, json!({}), json!({})).await
    }

    /// With these settings of the server, and further keys of the configuration.
    pub(super) async fn with(plays: Vec<Play>, server: Value, more: Value) -> Self {
        let place = Workplace::empty();
        let log = place.path().join("calls.log");
        let tools = [Builtin::Echo, Builtin::Counter, Builtin::Sleep, Builtin::LastCancelled];
        let kit = Fixture::new("kit").with_builtins(tools).with_call_log(&log);
        let mut config = json!({ "mcpServers": { "kit": entry_with(&kit, server) } });
        let (Value::Object(all), Value::Object(more)) = (&mut config, more) else { unreachable!() };
        all.extend(more);
        place.rewrite(&config.to_string());
        Self { place, endpoint: Endpoint::start(plays).await, log }
    }

    /// The command, with a model of this wire behind the endpoint.
    pub(super) fn command(&self, api: WireApi, arguments: &[&str]) -> Command {
        let mut command = command(&self.place, arguments);
        command.args(["--model", model(api), "--url", &self.endpoint.url]);
        command.env("TOOLGATE_MODEL_KEY", KEY);
        command
    }

    pub(super) async fn run(&self, api: WireApi, arguments: &[&str]) -> Outcome {
        finish(self.command(api, arguments), "").await
    }

    /// The tools that were called, in their order.
    pub(super) fn called(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let calls = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        calls.map(|call| call["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// `toolgate chat` without a key of the developer.
pub(super) fn command(place: &Workplace, arguments: &[&str]) -> Command {
    let mut command = place.command(&[&["chat"], arguments].concat());
    for name in KEYS {
        command.env_remove(name);
    }
    // An editor of lines would write control sequences.
    command.env("TERM", "dumb");
    command
}

/// Runs a command to its end. Its output never has the key.
pub(super) async fn finish(mut command: Command, input: &str) -> Outcome {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    let output = within("the end of the chat", child.wait_with_output()).await.unwrap();
    let outcome = Outcome {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    };
    assert!(!outcome.shown().contains(KEY), "{outcome:?}");
    outcome
}

pub(super) fn model(api: WireApi) -> &'static str {
    match api {
        WireApi::Anthropic => "anthropic/m",
        WireApi::Responses => "openai/m",
        WireApi::Completions => "openai-chat/m",
        WireApi::Gemini => "gemini/m",
    }
}

pub(super) fn says(api: WireApi, text: &'static str) -> Play {
    scripts::streamed(api, &scripts::text(text))
}

pub(super) fn calls(api: WireApi, tool: &'static str, arguments: Value) -> Play {
    let said = Said { text: "", calls: vec![("c1", tool, arguments)] };
    scripts::streamed(api, &said)
}

/// The lines of `--json`.
pub(super) fn events(outcome: &Outcome) -> Vec<Value> {
    outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The kinds of the events.
pub(super) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}
