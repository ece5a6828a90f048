//! What a run asks of whoever started it.

use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolgate_engines::Thrown;

use toolgate_bindings::check::Found;

/// The tools that a script may call.
///
/// Futures are polled by the run itself, several at a time; one that blocks its thread blocks the
/// whole run.
pub trait Tools: Send + Sync + 'static {
    /// Says which of the names are tools, one answer each.
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<Found>>;

    /// Calls a tool. The token is cancelled when the run ends before the call does; the call then
    /// has to end soon, and its result is not looked at.
    fn call(
        &self,
        name: String,
        arguments: Box<RawValue>,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>>;
}
