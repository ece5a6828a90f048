//! Traces and metrics, for an OpenTelemetry collector.
//!
//! A request of a client, the run of a script and each call of a tool are spans, one within the
//! other. Metrics count calls, their duration and their size. Telemetry is off without a collector.
//! It never delays a call: the queue is bounded, and spans that do not fit are dropped.
//!
//! `_meta` carries the trace (`traceparent` and `tracestate`, as in MCP) from the client to the
//! server.
//!
//! > **Invariant:** no argument, result or secret is in a span or a metric. Names come from the
//! > catalog, the policy and this crate, and never from the caller.

mod export;
mod instruments;
mod propagation;
mod settings;
mod span;
mod telemetry;

pub use propagation::{TRACE_FIELDS, trace_of};
pub use settings::{InvalidEnvironment, TelemetryOptions, TelemetrySettings};
pub use span::{CallSpan, CallSpanEnd, Operation, RequestSpan, RunSpan};
pub use telemetry::{FleetGauges, Telemetry, TelemetryError};
