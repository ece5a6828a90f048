//! Spans of requests, runs and calls.

use std::time::Instant;

use opentelemetry::{
    KeyValue,
    trace::{Span as _, SpanBuilder, SpanKind, Status, Tracer as _},
};
use opentelemetry_sdk::trace::Span;
use serde_json::Map;

use crate::{propagation, telemetry::Telemetry};

type Meta = Map<String, serde_json::Value>;

/// The request of a client.
#[derive(Debug, Clone, Copy)]
pub struct Operation<'a> {
    /// A known method, never an invented name.
    pub method: &'static str,
    /// The tool, if it is known.
    pub tool: Option<&'a str>,
    /// The session.
    pub session: &'a str,
}

/// A request of a client or of a command. If it is dropped before its end, it counts as cancelled.
#[derive(Debug)]
pub struct RequestSpan {
    span: TimedSpan,
    method: &'static str,
}

/// The run of a script.
#[derive(Debug)]
pub struct RunSpan {
    span: TimedSpan,
}

/// A call of a tool. If it is dropped before its end, it counts as cancelled.
#[derive(Debug)]
pub struct CallSpan {
    span: TimedSpan,
    server: String,
    tool: String,
}

/// The end of a call, for its span and the metrics.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallSpanEnd<'a> {
    /// The decision of the policy: `allow`, `ask`, `deny`.
    pub verdict: &'static str,
    /// The rule that decided, or the grant that allowed the call.
    pub rule: &'a str,
    /// `ok`, `error`, `refused`, `waiting`, `unknown`.
    pub outcome: &'static str,
    /// The kind of the error, if there was one.
    pub error: Option<&'static str>,
    /// Bytes of the arguments.
    pub argument_bytes: u64,
    /// Bytes of the result, if there is one.
    pub result_bytes: Option<u64>,
    /// The answer of a person: `allow`, `deny`, or `waiting` if there is none yet.
    pub question: Option<&'static str>,
}

/// A span, if telemetry is on.
#[derive(Debug)]
struct TimedSpan(Option<Box<RunningSpan>>);

#[derive(Debug)]
struct RunningSpan {
    telemetry: Telemetry,
    span: Span,
    started: Instant,
}

const CANCELLED: &str = "cancelled";

impl Telemetry {
    /// Starts the span of a request. `meta` identifies its trace.
    pub fn request(&self, operation: &Operation<'_>, meta: Option<&Meta>) -> RequestSpan {
        let Operation { method, tool, session } = *operation;
        let span = TimedSpan::start(self, meta, || {
            let name = tool.map_or_else(|| method.to_owned(), |tool| format!("{method} {tool}"));
            let mut attributes = vec![
                KeyValue::new("mcp.method.name", method),
                KeyValue::new("mcp.session.id", session.to_owned()),
            ];
            attributes.extend(tool.map(|tool| KeyValue::new("gen_ai.tool.name", tool.to_owned())));
            builder(name, SpanKind::Server, attributes)
        });
        RequestSpan { span, method }
    }

    /// Starts the span of a run.
    pub fn run(
        &self,
        id: &str,
        language: &'static str,
        session: &str,
        meta: Option<&Meta>,
    ) -> RunSpan {
        let span = TimedSpan::start(self, meta, || {
            let attributes = vec![
                KeyValue::new("toolgate.run", id.to_owned()),
                KeyValue::new("toolgate.language", language),
                KeyValue::new("mcp.session.id", session.to_owned()),
            ];
            builder(format!("run {language}"), SpanKind::Internal, attributes)
        });
        RunSpan { span }
    }

    /// Starts the span of a call. The call of an unknown tool has no name.
    pub fn call(
        &self,
        tool: Option<(&str, &str)>,
        session: &str,
        run: Option<&str>,
        meta: Option<&Meta>,
    ) -> CallSpan {
        if !self.is_on() {
            return CallSpan { span: TimedSpan(None), server: String::new(), tool: String::new() };
        }
        let (server, tool) = tool.unwrap_or_default();
        let span = TimedSpan::start(self, meta, || {
            let mut attributes = vec![
                KeyValue::new("gen_ai.operation.name", "execute_tool"),
                KeyValue::new("mcp.method.name", "tools/call"),
                KeyValue::new("mcp.session.id", session.to_owned()),
            ];
            let mut name = "execute_tool".to_owned();
            if !tool.is_empty() {
                name = format!("{name} {tool}");
                attributes.push(KeyValue::new("gen_ai.tool.name", tool.to_owned()));
                attributes.push(KeyValue::new("toolgate.server", server.to_owned()));
            }
            attributes.extend(run.map(|run| KeyValue::new("toolgate.run", run.to_owned())));
            builder(name, SpanKind::Client, attributes)
        });
        CallSpan { span, server: server.to_owned(), tool: tool.to_owned() }
    }
}

impl RequestSpan {
    /// Makes this span the parent of later spans.
    pub fn pass_on(&self, meta: &mut Option<Meta>) {
        self.span.pass_on(meta);
    }

    /// Ends the span. `error` is the kind of the failure, if the request failed.
    pub fn end(mut self, error: Option<&'static str>) {
        self.finish(error);
    }

    fn finish(&mut self, error: Option<&'static str>) {
        let Some(running) = self.span.0.as_deref() else { return };
        if let Some(instruments) = running.telemetry.instruments() {
            instruments.request(self.method, error, running.started.elapsed().as_secs_f64());
        }
        self.span.end(error, Vec::new());
    }
}

impl RunSpan {
    /// Makes this span the parent of later spans.
    pub fn pass_on(&self, meta: &mut Option<Meta>) {
        self.span.pass_on(meta);
    }

    /// Ends the span. `error` is the kind of the failure, if the run failed.
    pub fn end(mut self, error: Option<&'static str>, calls: u64) {
        let calls = i64::try_from(calls).unwrap_or(i64::MAX);
        self.span.end(error, vec![KeyValue::new("toolgate.calls", calls)]);
    }
}

impl CallSpan {
    /// Makes this span the parent of the server's spans.
    pub fn pass_on(&self, meta: &mut Option<Meta>) {
        self.span.pass_on(meta);
    }

    /// Ends the span, and counts the call.
    pub fn end(mut self, end: &CallSpanEnd<'_>) {
        self.finish(end);
    }

    fn finish(&mut self, end: &CallSpanEnd<'_>) {
        let Some(running) = self.span.0.as_deref() else { return };
        if let Some(instruments) = running.telemetry.instruments() {
            let seconds = running.started.elapsed().as_secs_f64();
            instruments.call(&self.server, &self.tool, end, seconds);
        }
        let size = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut attributes = vec![
            KeyValue::new("toolgate.verdict", end.verdict),
            KeyValue::new("toolgate.rule", end.rule.to_owned()),
            KeyValue::new("toolgate.outcome", end.outcome),
            KeyValue::new("toolgate.argument_bytes", size(end.argument_bytes)),
        ];
        let result = end.result_bytes.map(size);
        attributes.extend(result.map(|bytes| KeyValue::new("toolgate.result_bytes", bytes)));
        self.span.end(end.error, attributes);
    }
}

impl TimedSpan {
    fn start(
        telemetry: &Telemetry,
        meta: Option<&Meta>,
        builder: impl FnOnce() -> SpanBuilder,
    ) -> Self {
        Self(telemetry.tracer().map(|tracer| {
            let span = tracer.build_with_context(builder(), &propagation::parent(meta));
            Box::new(RunningSpan { telemetry: telemetry.clone(), span, started: Instant::now() })
        }))
    }

    fn pass_on(&self, meta: &mut Option<Meta>) {
        if let Some(running) = &self.0 {
            propagation::name(running.span.span_context(), meta);
        }
    }

    fn end(&mut self, error: Option<&'static str>, attributes: Vec<KeyValue>) {
        let Some(mut running) = self.0.take() else { return };
        running.span.set_attributes(attributes);
        if let Some(error) = error {
            running.span.set_attribute(KeyValue::new("error.type", error));
            running.span.set_status(Status::error(error));
        }
        running.span.end();
    }
}

fn builder(name: String, kind: SpanKind, attributes: Vec<KeyValue>) -> SpanBuilder {
    SpanBuilder::from_name(name).with_kind(kind).with_attributes(attributes)
}

impl Drop for RequestSpan {
    fn drop(&mut self) {
        self.finish(Some(CANCELLED));
    }
}

impl Drop for RunSpan {
    fn drop(&mut self) {
        self.span.end(Some(CANCELLED), Vec::new());
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        let end =
            CallSpanEnd { outcome: "unknown", error: Some(CANCELLED), ..CallSpanEnd::default() };
        self.finish(&end);
    }
}
