//! Traces and metrics, for an OpenTelemetry collector.
//!
//! A request of a client, the run of a script and each call of a tool are spans, one within the
//! other; calls, how long they took and how large they were are counted. Off unless somebody says
//! where to, and then never in the way of a call: what waits to be sent is bounded, and lost
//! rather than waited for.
//!
//! Which trace something belongs to travels in `_meta` (`traceparent` and `tracestate`, as MCP has
//! it), from the client by way of all of these to the server.
//!
//! > **Invariant:** no argument, result or secret is in a span or a metric. Names come from the
//! > catalogue, the policy and this crate, and never from whoever calls.

mod export;
mod instruments;
mod propagation;
mod settings;
mod span;
mod telemetry;

pub use propagation::{TRACE_FIELDS, trace_of};
pub use settings::{InvalidEnvironment, TelemetryOptions, TelemetrySettings};
pub use span::{CallSpan, CallSpanEnd, Operation, RequestSpan, RunSpan};
pub use telemetry::{Telemetry, TelemetryError};
