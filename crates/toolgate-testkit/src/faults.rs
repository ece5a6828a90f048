//! How a fixture misbehaves.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Faults on request; the default is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Faults {
    /// Waits this long before it reads its first message.
    pub start_delay_ms: u64,
    /// Waits until this file exists before it reads its first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_with_file: Option<PathBuf>,
    /// Waits this long before it runs a tool.
    pub call_delay_ms: u64,
    /// Exits at once instead of serving.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_at_start: Option<StartupExit>,
    /// Writes this many bytes to stderr before it serves, and blocks if they are not read.
    pub stderr_bytes: u64,
    /// Answers this many calls; the next one runs its tool, then the process exits unanswered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crash_after_calls: Option<u64>,
    /// Each n-th call answers `isError: true` without running its tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_every: Option<u64>,
    /// After this many calls a tool named `appeared` joins the list, with a notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed_after_calls: Option<u64>,
    /// Pads the text of each result to this many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oversized_results: Option<usize>,
    /// Sends `tools/list` in pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    /// Lines on stdout that are not messages.
    pub stray_output: StrayOutput,
    /// Stays alive after stdin ends and after SIGTERM, for ten minutes at most, so that a failed
    /// test leaves no process behind for ever.
    pub ignores_shutdown: bool,
    /// Methods with broken answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broken_answers: Vec<BrokenAnswer>,
    /// Sends `roots/list` and `ping` to the client right after the handshake.
    pub asks_after_handshake: bool,
    /// In the modern era, tools that would ask fail as those of the Python SDK do that ask by requests.
    pub asks_only_by_requests: bool,
    /// Over HTTP: forgets all its sessions after this many calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions_lost_after_calls: Option<u64>,
}

impl Faults {
    /// Faults with broken answers to one method.
    pub fn broken_answer(method: impl Into<String>, fault: AnswerFault) -> Self {
        let broken_answers = vec![BrokenAnswer { method: method.into(), fault }];
        Self { broken_answers, ..Self::default() }
    }

    /// The fault of answers to `method`, if it has one.
    pub(crate) fn of_answers_to(&self, method: &str) -> Option<AnswerFault> {
        self.broken_answers.iter().find(|broken| broken.method == method).map(|b| b.fault)
    }
}

/// How a process that never serves ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StartupExit {
    /// The exit code.
    pub code: i32,
    /// What it writes to stderr first.
    pub message: String,
}

/// `tools/list` in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Pages {
    /// Tools a page; 0 counts as 1.
    pub size: usize,
    /// How the cursors behave.
    #[serde(default)]
    pub cursors: Cursors,
}

/// How the cursors of a paged list behave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cursors {
    /// They end with the list.
    #[default]
    Honest,
    /// Each page is the first one, and its cursor is always the same.
    Repeating,
    /// They never end: past the list, each page has one made-up tool and a fresh cursor.
    Endless,
}

/// Lines on stdout that are not messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct StrayOutput {
    /// A banner before the first message.
    pub at_start: bool,
    /// A log line before each message.
    pub between_messages: bool,
    /// One line of this many bytes before the first message.
    pub long_line_bytes: usize,
}

/// A method with broken answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct BrokenAnswer {
    /// The method, such as `tools/list`.
    pub method: String,
    /// The fault of its responses.
    pub fault: AnswerFault,
}

/// A fault of a response. The request still has its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerFault {
    /// There is no response.
    Silence,
    /// It is not JSON.
    Garbage,
    /// It is cut in the middle.
    Truncated,
    /// It carries the id of no request.
    WrongId,
    /// It has neither a result nor an error.
    Hollow,
    /// It has half of a surrogate pair where the result has U+FFFD.
    LoneSurrogate,
}
