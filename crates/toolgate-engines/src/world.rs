//! All that a script can reach.

use std::time::Duration;

use serde_json::value::RawValue;

/// The only way out of an engine.
///
/// It borrows nothing: an engine's own callbacks reach it through a scoped thread-local variable,
/// which can lend only what outlives every scope.
pub trait World: 'static {
    /// Hands in a call and returns at once. Its completion comes by [`World::wait`].
    fn submit(&mut self, call: EngineCall) -> Result<(), HostClosed>;

    /// Waits for any of the calls that were handed in, until `deadline` at most where there is one.
    /// `None` when time has passed: [`World::now`] says whether it is enough.
    fn wait(&mut self, deadline: Option<Duration>) -> Result<Option<Completion>, HostClosed>;

    /// The next of the completions that came together with the last one.
    fn more(&mut self) -> Result<Option<Completion>, HostClosed>;

    /// The time since the run began. It passes only in [`World::wait`]: a script that is run again
    /// with the same answers, in the same order, then sees the same times.
    fn now(&self) -> Duration;

    /// How the run began.
    fn beginning(&self) -> RunSeed;

    /// Writes to the script's console.
    fn write(&mut self, stream: Stream, text: &str);

    /// Gives a content block (an image, say) to whoever reads the run's result.
    fn emit(&mut self, block: Box<RawValue>);
}

/// What is given to a run at its start, and is the same when it is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunSeed {
    /// When it was, since 1970.
    pub unix: Duration,
    /// What random numbers are made of.
    pub seed: u64,
}

/// The number of a call within its run, chosen by the engine, from 0 up.
pub type CallId = u64;

/// A call that a script makes.
#[derive(Debug)]
pub struct EngineCall {
    /// Its number.
    pub id: CallId,
    /// The function's name.
    pub name: String,
    /// A JSON object.
    pub arguments: Box<RawValue>,
}

/// What came of a call.
#[derive(Debug)]
pub struct Completion {
    /// Which.
    pub id: CallId,
    /// Its value as JSON, or what is to be thrown.
    pub outcome: Result<Box<RawValue>, ToolException>,
}

/// A call that failed. It is an exception in the script, which may catch it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolException {
    /// The tool that failed.
    pub tool: String,
    /// What it said.
    pub message: String,
}

/// Where a line of output belongs.
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

/// A world in which nothing is: for a script that asks nothing of it.
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
