//! Scripts that call tools.
//!
//! A script runs in a worker of the sandbox. Its calls come back here, go through the broker like
//! any other, and what they return is shaped for the script; what the script prints and returns is
//! shaped for the model.

mod bridge;
pub(crate) mod budget;
mod lanes;
mod learned;
mod ledger;
mod media;
mod outputs;
mod render;
mod settings;
mod value;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde_json::{Value, json};
use toolgate_broker::{RunContext, SessionContext, new_id};
use toolgate_sandbox::{
    CallState, Captured, Language, Outcome, Pool, Report, Script, lockdown::LockdownReport,
};
use toolgate_store::Store;
use toolgate_upstream::CallOptions;

pub use self::settings::CodeSettings;
use self::{bridge::Bridge, lanes::Lanes, media::Media};
pub(crate) use self::{
    learned::Learned,
    outputs::{Outputs, Page, Unreadable},
};
use crate::{host::Host, session::Session};

/// Everything that scripts share.
#[derive(Debug)]
pub(crate) struct CodeMode {
    settings: Option<CodeSettings>,
    /// Made when it is first needed: most commands of a shell never run a script.
    pool: OnceLock<Result<Pool, String>>,
    lanes: Arc<Lanes>,
    learned: Arc<Learned>,
    outputs: Outputs,
}

/// What came of a script, as it is shown and as data.
#[derive(Debug)]
pub struct CodeRun {
    /// What a model is shown.
    pub text: String,
    /// All that the script wrote, as far as it was kept.
    pub output: String,
    /// The end of the text: the error, if there is one, and the calls that were made.
    pub closing: String,
    /// Whether the script did not run to its end.
    pub is_error: bool,
    /// What the script returned, with words in the place of media.
    pub value: Option<Value>,
    /// The same as text, safe to be shown; there even where the value is nested too deeply to be
    /// read.
    pub value_text: Option<String>,
    /// Images and other content that it returned or emitted, as MCP content blocks.
    pub content: Vec<Value>,
    /// With what `read_output` reads what was left out of the text.
    pub output_id: Option<String>,
    /// The details.
    pub report: Report,
}

impl CodeMode {
    pub(crate) fn new(settings: Option<CodeSettings>, store: Option<&Store>) -> Self {
        let width = settings.as_ref().map_or(1, |settings| settings.max_parallel_calls);
        Self {
            settings,
            pool: OnceLock::new(),
            lanes: Arc::new(Lanes::new(width)),
            learned: Arc::new(Learned::new(store.map(Store::shapes))),
            outputs: Outputs::default(),
        }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.settings.is_some()
    }

    pub(crate) fn learned(&self) -> &Learned {
        &self.learned
    }

    /// Starts workers before the first script comes.
    pub(crate) fn warm_up(&self) {
        if let Some(Ok(pool)) = self.settings.as_ref().map(|settings| self.pool(settings)) {
            pool.warm_up();
        }
    }

    /// What confines workers here; `None` where scripts are off.
    pub(crate) async fn probe(&self) -> Option<Result<LockdownReport, String>> {
        let settings = self.settings.as_ref()?;
        Some(match self.pool(settings) {
            Ok(pool) => pool.probe().await.map_err(|error| error.to_string()),
            Err(problem) => Err(problem.to_owned()),
        })
    }

    /// Runs a script for a host. `None` where scripts are off.
    pub(crate) async fn run(
        &self,
        host: &Host,
        session: &Arc<SessionContext>,
        code: &str,
        language: Language,
        options: CallOptions,
    ) -> Option<CodeRun> {
        let settings = self.settings.as_ref()?;
        let media = Arc::new(Media::default());
        let bridge = Bridge::new(
            Session::within(host.clone(), Arc::clone(session)),
            RunContext::new(new_id("run"), code),
            Arc::clone(&media),
            Arc::clone(&self.lanes),
            Arc::clone(&self.learned),
            options.progress,
            options.respondent,
        );
        let script = Script::new(code, language);
        let tools = Arc::new(bridge.clone());
        let mut report = match self.pool(settings) {
            Ok(pool) => pool.run(script, &settings.limits, tools, options.cancel).await,
            Err(problem) => not_started(problem),
        };
        report.emitted.append(&mut bridge.take_emitted());
        let shown =
            render::render(&report, code, settings.max_output_tokens, &media, &self.outputs);
        let render::Shown {
            text,
            output,
            closing,
            is_error,
            content,
            value,
            value_text,
            output_id,
        } = shown;
        Some(CodeRun {
            text,
            output,
            closing,
            is_error,
            value,
            value_text,
            content,
            output_id,
            report,
        })
    }

    /// Keeps a text to be read in parts under an id that others know.
    pub(crate) fn keep_output_as(&self, id: &str, text: &str) {
        self.outputs.keep_as(id, text);
    }

    /// A part of a long output.
    pub(crate) fn read_output(
        &self,
        id: &str,
        offset: usize,
        pattern: Option<&str>,
    ) -> Result<Page, Unreadable> {
        let tokens = self.settings.as_ref().map_or(4_000, |settings| settings.max_output_tokens);
        match pattern {
            Some(pattern) => self.outputs.matches(id, pattern, offset, tokens),
            None => self.outputs.page(id, offset, tokens),
        }
    }

    pub(crate) fn keep_output(&self, text: &str) -> String {
        self.outputs.keep(text)
    }

    fn pool(&self, settings: &CodeSettings) -> Result<&Pool, &str> {
        let made = || Pool::new(settings.pool.clone()).map_err(|error| error.to_string());
        self.pool.get_or_init(made).as_ref().map_err(String::as_str)
    }
}

impl CodeRun {
    /// The run as the result of a tool.
    pub fn to_result(&self) -> Value {
        let mut content = Vec::new();
        if !self.text.is_empty() || self.content.is_empty() {
            content.push(json!({ "type": "text", "text": self.text }));
        }
        content.extend(self.content.iter().cloned());
        let mut result = json!({ "content": content });
        if self.is_error {
            result["isError"] = json!(true);
        }
        result["_meta"] = json!({ "toolgate/run": self.figures() });
        result
    }

    /// Whether it was rejected, and a tool that does not exist may be why.
    pub(crate) fn is_unknown_tool(&self) -> bool {
        matches!(self.report.outcome, Outcome::Rejected(_))
    }

    /// The figures of the run, for programs.
    pub fn figures(&self) -> Value {
        const LISTED: usize = 500;
        let Report { calls, cpu, wall, output, calls_left_out, .. } = &self.report;
        let rows: Vec<Value> = calls
            .iter()
            .take(LISTED)
            .map(|call| {
                let state = match &call.state {
                    CallState::Completed => "completed",
                    CallState::Failed(_) => "failed",
                    CallState::Undelivered(_) => "undelivered",
                    CallState::InFlight => "inFlight",
                    CallState::Refused(_) => "refused",
                    CallState::Suspended => "suspended",
                };
                let milliseconds = round(call.duration.as_secs_f64() * 1_000.0);
                json!({
                    "name": call.name, "state": state, "milliseconds": milliseconds,
                    "resultBytes": call.result_bytes,
                })
            })
            .collect();
        let left_out = calls.len().saturating_sub(LISTED) as u64 + calls_left_out;
        json!({
            "wallMilliseconds": round(wall.as_secs_f64() * 1_000.0),
            "cpuMilliseconds": round(cpu.as_secs_f64() * 1_000.0),
            "outputBytes": output.total,
            "outputId": self.output_id,
            "calls": rows,
            "callsLeftOut": left_out,
        })
    }
}

/// A run for which there is no worker.
fn not_started(problem: &str) -> Report {
    Report {
        outcome: Outcome::Crashed(format!("no worker could be started: {problem}")),
        output: Captured::default(),
        emitted: Vec::new(),
        warnings: Vec::new(),
        calls: Vec::new(),
        calls_left_out: 0,
        cpu: Duration::ZERO,
        wall: Duration::ZERO,
    }
}

fn round(milliseconds: f64) -> f64 {
    (milliseconds * 100.0).round() / 100.0
}
