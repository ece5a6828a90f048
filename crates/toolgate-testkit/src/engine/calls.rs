//! `tools/call`, and the faults around the run of a tool.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Engine, Request};
use crate::reply::{Reply, code};
use crate::{Builtin, tools};

impl Engine {
    /// Answers `tools/call`.
    pub(super) async fn call_tool(self: &Arc<Self>, request: &Arc<Request>) -> Reply {
        let Some(name) = request.params["name"].as_str() else {
            return Reply::error(code::INVALID_PARAMS, "The tool's name is missing");
        };
        if !self.state.lock().tools.iter().any(|tool| tool["name"] == name) {
            return Reply::error(code::INVALID_PARAMS, format!("Unknown tool: {name}"));
        }
        if let Err(error) = self.log_call(name, &request.params["arguments"]) {
            return Reply::failure(format!("The call log could not be written: {error}"));
        }
        let number = {
            let mut state = self.state.lock();
            state.calls += 1;
            state.calls
        };
        let faults = &self.fixture.faults;
        if faults.call_delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(faults.call_delay_ms)).await;
        }
        if faults.error_every.is_some_and(|every| every > 0 && number % every == 0) {
            return Reply::failure(format!("Call {number} fails on request."));
        }

        if let Some(reply) = self.begin_task(name, request) {
            return reply;
        }
        let arguments = &request.params["arguments"];
        let special = self.fixture.answers_for.get(name).and_then(|answers| {
            let fits = answers.iter().find(|it| arguments[&it.argument] == it.value)?;
            Some(&fits.result)
        });
        let mut reply = match special.or_else(|| self.fixture.answers.get(name)) {
            Some(result) => Reply::Result(result.clone()),
            None => {
                tools::run(Builtin::from_name(name).unwrap_or(Builtin::Echo), self, request).await
            }
        };

        if faults.crash_after_calls.is_some_and(|answered| number > answered) {
            return self.die(101).await;
        }
        if faults.list_changed_after_calls == Some(number) {
            let tool = json!({ "name": "appeared", "inputSchema": { "type": "object" } });
            self.state.lock().tools.push(tool);
            self.announce_tools();
        }
        if faults.sessions_lost_after_calls == Some(number) {
            self.forget_sessions();
        }
        if let (Some(bytes), Reply::Result(result)) = (faults.oversized_results, &mut reply) {
            result["content"] = json!([{ "type": "text", "text": "x".repeat(bytes) }]);
        }
        reply
    }

    /// Appends a call to the log, before it has any effect.
    fn log_call(&self, name: &str, arguments: &Value) -> std::io::Result<()> {
        let Some(path) = &self.fixture.call_log else { return Ok(()) };
        let line = json!({ "name": name, "arguments": arguments });
        // One write, so that the lines of concurrent calls do not mix.
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(format!("{line}\n").as_bytes())
    }
}
