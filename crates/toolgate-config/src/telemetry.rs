//! Where traces and metrics go.

use std::collections::BTreeMap;

use crate::Secret;

/// Where traces and metrics go: the `telemetry` key. What is not said is taken from the standard
/// environment variables, by whoever starts it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TelemetryKey {
    /// Whether they go nowhere, whatever the environment says: `false` in the place of an object, or
    /// something that is not understood.
    pub is_off: bool,
    /// The base URL of a collector's OTLP/HTTP receiver.
    pub otlp_endpoint: Option<String>,
    /// Headers for every request to it.
    pub headers: BTreeMap<String, Secret>,
    /// What the traces are said to be of.
    pub service_name: Option<String>,
}
