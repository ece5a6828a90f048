//! What a run needs from the code that started it.

use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolgate_bindings::check::{LookupResult, ProgramFlow};
use toolgate_engines::{EngineCall, ToolException};

use crate::{clock::RunClock, journal::RunEvent};

/// The tools that a script may call.
///
/// The run polls the futures itself, several at a time. A future that blocks its thread blocks the
/// whole run.
pub trait Tools: Send + Sync + 'static {
    /// Says which of the names are tools, with one result per name.
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<LookupResult>>;

    /// Calls a tool. The token is cancelled when the run ends before the call does. The call must
    /// then end soon; its result is ignored.
    fn call(&self, call: EngineCall, cancel: CancellationToken)
    -> BoxFuture<'static, CallResponse>;

    /// Reports an event before it has any effect on the script or on a server. The run waits for
    /// this function, so its cost is added to every call.
    fn on_event(&self, event: &RunEvent<'_>) {
        let _ = event;
    }

    /// Reports which results can reach which arguments, before the first call. Without this report
    /// every result may reach every argument.
    fn on_flow(&self, flow: ProgramFlow) {
        let _ = flow;
    }

    /// Keeps a result that is too large for the script, and says where it is.
    fn keep(&self, result: &RawValue) -> Option<String> {
        let _ = result;
        None
    }

    /// The clock of the run, requested once at its start. The implementation stops it while a call
    /// waits for a person.
    fn clock(&self) -> RunClock {
        RunClock::new()
    }
}

/// The response to a call.
#[derive(Debug)]
pub enum CallResponse {
    /// The result, or the exception to throw in the script.
    Ended(Result<Box<RawValue>, ToolException>),
    /// The call was not made and will not be made soon. When no other call is in flight, the run
    /// ends as [`RunOutcome::Suspended`](crate::RunOutcome::Suspended), even if the script has
    /// timers.
    Suspended,
}
