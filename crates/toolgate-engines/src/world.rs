//! Everything that a script can reach outside of its engine.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The connection between an engine and everything outside of it.
///
/// A world is `'static` because the callbacks of an engine reach it through a scoped thread-local
/// variable, which can lend only what outlives every scope.
pub trait World: 'static {
    /// Submits a call and returns at once. [`World::wait`] returns its completion.
    fn submit(&mut self, call: EngineCall) -> Result<(), HostClosed>;

    /// Waits for the completion of any submitted call, at most until `deadline`. Returns `None`
    /// when time has passed; [`World::now`] then says how much.
    fn wait(&mut self, deadline: Option<Duration>) -> Result<Option<Completion>, HostClosed>;

    /// The next of the completions that arrived together with the last one.
    fn more(&mut self) -> Result<Option<Completion>, HostClosed>;

    /// The time since the run began. It advances only in [`World::wait`], so a script that is
    /// replayed with the same answers in the same order sees the same times.
    fn now(&self) -> Duration;

    /// The start values of the run.
    fn beginning(&self) -> RunSeed;

    /// Writes to the script's console.
    fn write(&mut self, stream: Stream, text: &str);

    /// Adds a content block, such as an image, to the result of the run.
    fn emit(&mut self, block: Box<RawValue>);
}

/// The start values of a run. A replay uses the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunSeed {
    /// The start of the run, since 1970.
    pub unix: Duration,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The number of a call within its run, chosen by the engine, from 0 up.
pub type CallId = u64;

/// A call that a script makes.
#[derive(Debug, Serialize, Deserialize)]
pub struct EngineCall {
    /// The number of the call.
    pub id: CallId,
    /// The function's name.
    pub name: String,
    /// The arguments, a JSON object.
    pub arguments: Box<RawValue>,
    /// The place in the script that makes the call, as a position in
    /// [`EngineScript::places`](crate::EngineScript::places); `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
}

/// The completion of a call.
#[derive(Debug, Serialize, Deserialize)]
pub struct Completion {
    /// The number of the call.
    pub id: CallId,
    /// The result as JSON, or the exception to throw.
    pub outcome: Result<Box<RawValue>, ToolException>,
}

/// A failed call. The script gets it as an exception and may catch it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolException {
    /// The tool that failed.
    pub tool: String,
    /// The message of the tool.
    pub message: String,
    /// The content blocks of the error as a JSON array, if they are more than a text with the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

impl ToolException {
    /// An exception whose content is its message.
    pub fn new(tool: impl Into<String>, message: impl Into<String>) -> Self {
        Self { tool: tool.into(), message: message.into(), content: None }
    }
}

/// The stream that a line of output belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// `console.log`, `print`.
    Output,
    /// `console.error`, `print(file=sys.stderr)`.
    Error,
}

/// The host is gone; the engine gives up with [`crate::FailureKind::Abandoned`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostClosed;

/// A world without tools, time or output, for scripts that need none of them.
#[derive(Debug, Clone, Copy)]
pub struct NullWorld;

impl World for NullWorld {
    fn submit(&mut self, _call: EngineCall) -> Result<(), HostClosed> {
        Err(HostClosed)
    }

    fn wait(&mut self, _deadline: Option<Duration>) -> Result<Option<Completion>, HostClosed> {
        Err(HostClosed)
    }

    fn more(&mut self) -> Result<Option<Completion>, HostClosed> {
        Err(HostClosed)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn beginning(&self) -> RunSeed {
        RunSeed::default()
    }

    fn write(&mut self, _stream: Stream, _text: &str) {}

    fn emit(&mut self, _block: Box<RawValue>) {}
}
