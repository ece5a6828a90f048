//! Reads and writes the trace context in `_meta`.

use opentelemetry::{
    Context,
    propagation::{Extractor, Injector, TextMapPropagator},
    trace::{SpanContext, TraceContextExt},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use serde_json::{Map, Value};

/// The fields of `_meta`, and the headers, with the trace of a request.
pub const TRACE_FIELDS: [&str; 2] = [PARENT, STATE];

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";
/// The longest valid value.
const LONGEST: usize = 512;

/// The fields of `_meta` that identify the trace.
pub fn trace_of(meta: Option<&Map<String, Value>>) -> Option<Map<String, Value>> {
    let meta = meta?;
    let fits = |value: &&Value| value.as_str().is_some_and(|text| text.len() <= LONGEST);
    let fields = TRACE_FIELDS
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), meta.get(*field).filter(fits)?.clone())));
    let fields: Map<String, Value> = fields.collect();
    fields.contains_key(PARENT).then_some(fields)
}

/// The trace that `_meta` names. An invalid one starts a new trace.
pub(crate) fn parent(meta: Option<&Map<String, Value>>) -> Context {
    let trace = trace_of(meta).unwrap_or_default();
    TraceContextPropagator::new().extract_with_context(&Context::new(), &Fields(trace))
}

/// Writes this span into `_meta`.
pub(crate) fn name(span: &SpanContext, meta: &mut Option<Map<String, Value>>) {
    let mut fields = Fields(meta.take().unwrap_or_default());
    let context = Context::new().with_remote_span_context(span.clone());
    TraceContextPropagator::new().inject_context(&context, &mut fields);
    if fields.0.get(STATE).is_some_and(|state| state == "") {
        fields.0.shift_remove(STATE);
    }
    *meta = Some(fields.0);
}

struct Fields(Map<String, Value>);

impl Extractor for Fields {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

impl Injector for Fields {
    fn set(&mut self, key: &str, value: String) {
        self.0.insert(key.to_owned(), Value::String(value));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_trace_is_taken_from_meta() {
        let meta = json!({ "traceparent": "00-a", "tracestate": "x=y", "progressToken": 1 });
        let taken = trace_of(meta.as_object()).unwrap();
        assert_eq!(Value::Object(taken), json!({ "traceparent": "00-a", "tracestate": "x=y" }));
        let hostile = json!({ "traceparent": "0".repeat(4_000), "tracestate": 7 });
        assert_eq!(trace_of(hostile.as_object()), None);
        assert_eq!(trace_of(json!({ "tracestate": "x=y" }).as_object()), None);
    }

    #[test]
    fn an_invalid_trace_starts_a_new_one() {
        for text in ["", "00-zz", "00-00000000000000000000000000000000-0000000000000000-01"] {
            let meta = json!({ "traceparent": text });
            assert!(!parent(meta.as_object()).has_active_span(), "{text}");
        }
    }
}
