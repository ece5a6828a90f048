//! The metrics.

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter},
};

use crate::span::CallSpanEnd;

/// The instruments. The SDK limits the number of attribute sets of each.
#[derive(Debug)]
pub(crate) struct Instruments {
    calls: Counter<u64>,
    questions: Counter<u64>,
    call_duration: Histogram<f64>,
    request_duration: Histogram<f64>,
    argument_bytes: Histogram<u64>,
    result_bytes: Histogram<u64>,
}

/// From the conventions for MCP, in seconds.
const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
const BYTES: [f64; 8] =
    [64.0, 256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0, 1_048_576.0, 16_777_216.0];

impl Instruments {
    pub(crate) fn new(meter: &Meter) -> Self {
        let seconds = |name: &'static str, description: &'static str| {
            let histogram = meter.f64_histogram(name).with_description(description).with_unit("s");
            histogram.with_boundaries(SECONDS.to_vec()).build()
        };
        let bytes = |name: &'static str, description: &'static str| {
            let histogram = meter.u64_histogram(name).with_description(description).with_unit("By");
            histogram.with_boundaries(BYTES.to_vec()).build()
        };
        let count = |name: &'static str, description: &'static str| {
            meter.u64_counter(name).with_description(description).build()
        };
        Self {
            calls: count("toolgate.calls", "Calls of tools, by verdict and outcome"),
            questions: count("toolgate.questions", "Questions to people, by their answer"),
            call_duration: seconds(
                "mcp.client.operation.duration",
                "How long calls of tools took, waiting for people included",
            ),
            request_duration: seconds(
                "mcp.server.operation.duration",
                "How long requests of clients took",
            ),
            argument_bytes: bytes("toolgate.call.arguments", "Bytes of the arguments of calls"),
            result_bytes: bytes("toolgate.call.result", "Bytes of the results of calls"),
        }
    }

    pub(crate) fn request(&self, method: &'static str, error: Option<&'static str>, seconds: f64) {
        let mut attributes = vec![KeyValue::new("mcp.method.name", method)];
        attributes.extend(error.map(|error| KeyValue::new("error.type", error)));
        self.request_duration.record(seconds, &attributes);
    }

    pub(crate) fn call(&self, server: &str, tool: &str, end: &CallSpanEnd<'_>, seconds: f64) {
        let of_server = KeyValue::new("toolgate.server", server.to_owned());
        let of_tool = KeyValue::new("gen_ai.tool.name", tool.to_owned());
        self.calls.add(
            1,
            &[
                of_server.clone(),
                of_tool.clone(),
                KeyValue::new("toolgate.outcome", end.outcome),
                KeyValue::new("toolgate.verdict", end.verdict),
            ],
        );
        let mut attributes = vec![
            KeyValue::new("mcp.method.name", "tools/call"),
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            of_tool,
        ];
        attributes.extend(end.error.map(|error| KeyValue::new("error.type", error)));
        self.call_duration.record(seconds, &attributes);
        self.argument_bytes.record(end.argument_bytes, std::slice::from_ref(&of_server));
        if let Some(bytes) = end.result_bytes {
            self.result_bytes.record(bytes, std::slice::from_ref(&of_server));
        }
        if let Some(answer) = end.question {
            self.questions.add(1, &[KeyValue::new("toolgate.answer", answer)]);
        }
    }
}
