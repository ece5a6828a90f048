//! What a run asks of whoever started it.

use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolgate_bindings::check::LookupResult;
use toolgate_engines::{CallId, ToolException};

use crate::{clock::RunClock, journal::RunEvent};

/// The tools that a script may call.
///
/// Futures are polled by the run itself, several at a time; one that blocks its thread blocks the
/// whole run.
pub trait Tools: Send + Sync + 'static {
    /// Says which of the names are tools, one answer each.
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<LookupResult>>;

    /// Calls a tool. The token is cancelled when the run ends before the call does; the call then
    /// has to end soon, and its result is not looked at.
    fn call(
        &self,
        id: CallId,
        name: String,
        arguments: Box<RawValue>,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, CallResponse>;

    /// Is told what happens, before the script or the world notices. Called on the run's own way: what
    /// it does is paid for by every call.
    fn on_event(&self, event: &RunEvent<'_>) {
        let _ = event;
    }

    /// The clock of the run, asked for once when it begins. Whoever makes the calls holds it while a
    /// person is waited for.
    fn clock(&self) -> RunClock {
        RunClock::new()
    }
}

/// What came of a call.
#[derive(Debug)]
pub enum CallResponse {
    /// A value, or what is thrown in the script.
    Ended(Result<Box<RawValue>, ToolException>),
    /// Nothing yet, and nothing for a long time: the call was not made. Once no other call is under
    /// way, and whatever timers the script has, the run ends as
    /// [`RunOutcome::Suspended`](crate::Outcome::Suspended).
    Suspended,
}
