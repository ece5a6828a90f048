//! Scripts that call tools.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use toolgate_host::CodeRun;
use toolgate_sandbox::{CallState, Language, RunOutcome};

/// A script. Tools are functions in it, by their exposed names.
///
/// ```
/// # use toolgate::Script;
/// let script = Script::typescript("return await double({ n: 21 })");
/// let script = Script::python("await double(n=21)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub(crate) code: String,
    pub(crate) language: Language,
}

/// A script that has ended, in whichever way.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ScriptRun {
    /// How it ended.
    pub end: RunEnd,
    /// What it returned.
    pub value: Option<Value>,
    /// What it printed.
    pub output: String,
    /// Everything for a model: output, value, error and the calls that were made, within the budget of
    /// tokens.
    pub text: String,
    /// Images and other content that it returned, as MCP content blocks.
    pub content: Vec<Value>,
    /// The calls that it made, in order.
    pub calls: Vec<ScriptCall>,
    /// The id for [`Session::resume`](crate::Session::resume); `None` without a state folder.
    pub id: Option<String>,
    /// Whether it can resume, and has made calls that need not be repeated.
    pub is_resumable: bool,
    /// How long it took.
    pub duration: Duration,
    error: String,
}

/// How a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunEnd {
    /// It ran to its end.
    Finished,
    /// It did not start, because the check of its calls found errors.
    Rejected,
    /// It threw an error.
    Failed,
    /// A limit ended it.
    Stopped,
    /// It waits for the approval of a call, and can resume after that.
    Waiting,
    /// It was cancelled.
    Cancelled,
    /// Its worker died.
    Crashed,
}

/// A call that a script made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptCall {
    /// The tool.
    pub tool: String,
    /// The beginning of the arguments.
    pub arguments: String,
    /// Why it has no result; `None` if it has one.
    pub problem: Option<String>,
    /// How long it took.
    pub duration: Duration,
}

/// Why a script was not started at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// Scripts are off.
    #[error(
        "scripts are off: `codeMode.enabled` is false in the configuration, or the host was built with \
         `without_scripts`"
    )]
    ScriptsOff,
    /// The run cannot resume.
    #[error("{0}")]
    CannotResume(String),
}

/// Why the value of a script is not a value of a type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseRunError {
    /// The script did not end with a value.
    #[error("the script did not return: {message}")]
    NoValue {
        /// How it ended.
        end: RunEnd,
        /// What went wrong, for people and models.
        message: String,
    },
    /// The value is something else.
    #[error("the script did not return a {wanted}: {reason}")]
    OtherType {
        /// The name of the type.
        wanted: &'static str,
        /// What does not fit.
        reason: String,
    },
}

impl Script {
    /// A script in TypeScript.
    pub fn typescript(code: impl Into<String>) -> Self {
        Self { code: code.into(), language: Language::TypeScript }
    }

    /// A script in Python.
    pub fn python(code: impl Into<String>) -> Self {
        Self { code: code.into(), language: Language::Python }
    }
}

impl ScriptRun {
    pub(crate) fn of(run: CodeRun) -> Self {
        let end = match run.report.outcome {
            RunOutcome::Value(_) => RunEnd::Finished,
            RunOutcome::Rejected(_) => RunEnd::Rejected,
            RunOutcome::Failed(_) | RunOutcome::Diverged(_) => RunEnd::Failed,
            RunOutcome::Stopped(_) => RunEnd::Stopped,
            RunOutcome::Suspended => RunEnd::Waiting,
            RunOutcome::Cancelled => RunEnd::Cancelled,
            RunOutcome::Crashed(_) => RunEnd::Crashed,
        };
        let calls = run.report.calls.into_iter().map(|call| ScriptCall {
            tool: call.name,
            arguments: call.arguments,
            problem: match call.state {
                CallState::Completed => None,
                CallState::Failed(why) | CallState::Undelivered(why) | CallState::Refused(why) => {
                    Some(why)
                }
                CallState::InFlight => Some("the run ended before the tool answered".to_owned()),
                CallState::Suspended => Some("it waits for an approval".to_owned()),
            },
            duration: call.duration,
        });
        Self {
            end,
            value: run.value,
            output: run.output,
            text: run.text,
            content: run.content,
            calls: calls.collect(),
            id: run.id,
            is_resumable: run.is_resumable,
            duration: run.report.wall,
            error: run.closing,
        }
    }

    /// Whether the script ran to its end.
    pub fn is_finished(&self) -> bool {
        self.end == RunEnd::Finished
    }

    /// What the script returned, as a value of your type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ParseRunError> {
        if !self.is_finished() {
            let message = self.error.trim().to_owned();
            return Err(ParseRunError::NoValue { end: self.end, message });
        }
        let value = self.value.clone().unwrap_or_default();
        serde_json::from_value(value).map_err(|error| ParseRunError::OtherType {
            wanted: std::any::type_name::<T>(),
            reason: error.to_string(),
        })
    }
}
