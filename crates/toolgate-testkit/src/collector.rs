//! An OpenTelemetry collector that records what it receives.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use parking_lot::Mutex;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::TestkitError;

/// A collector on loopback, which takes OTLP over HTTP. Dropping it stops it.
#[derive(Debug)]
pub struct Collector {
    url: String,
    seen: Arc<Mutex<CollectedTelemetry>>,
    server: JoinHandle<std::io::Result<()>>,
}

/// A span that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectedSpan {
    /// Its name.
    pub name: String,
    /// The trace id, in hexadecimal.
    pub trace: String,
    /// The span id, in hexadecimal.
    pub id: String,
    /// The id of the parent span; empty for a root.
    pub parent: String,
    /// The attributes.
    pub attributes: BTreeMap<String, String>,
    /// Whether the status is an error.
    pub failed: bool,
}

/// A metric that was received: a sum, a gauge, or the count of a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectedMetric {
    /// Its name.
    pub name: String,
    /// The attributes.
    pub attributes: BTreeMap<String, String>,
    /// The value.
    pub count: u64,
}

#[derive(Debug, Default)]
struct CollectedTelemetry {
    spans: Vec<CollectedSpan>,
    metrics: Vec<CollectedMetric>,
    bytes: Vec<u8>,
    headers: Vec<HeaderMap>,
}

impl Collector {
    /// Starts one.
    pub async fn start() -> Result<Self, TestkitError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let seen = Arc::<Mutex<CollectedTelemetry>>::default();
        let routes = Router::new()
            .route("/v1/traces", post(traces))
            .route("/v1/metrics", post(metrics))
            .with_state(Arc::clone(&seen));
        let server = tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(Self { url, seen, server })
    }

    /// Its base URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The spans so far.
    pub fn spans(&self) -> Vec<CollectedSpan> {
        self.seen.lock().spans.clone()
    }

    /// The last value of each metric and set of attributes.
    pub fn metrics(&self) -> Vec<CollectedMetric> {
        self.seen.lock().metrics.clone()
    }

    /// Whether these bytes occur in any request.
    pub fn was_sent(&self, bytes: &[u8]) -> bool {
        let seen = self.seen.lock();
        let in_headers = seen.headers.iter().flat_map(HeaderMap::values);
        let in_headers = in_headers.map(axum::http::HeaderValue::as_bytes);
        let mut all = in_headers.chain([seen.bytes.as_slice()]);
        all.any(|sent| sent.windows(bytes.len()).any(|window| window == bytes))
    }

    /// The values of a header in all requests.
    pub fn header(&self, name: &str) -> Vec<String> {
        let seen = self.seen.lock();
        let values = seen.headers.iter().filter_map(|headers| headers.get(name)?.to_str().ok());
        values.map(str::to_owned).collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn traces(
    State(seen): State<Arc<Mutex<CollectedTelemetry>>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let Ok(request) = ExportTraceServiceRequest::decode(body.clone()) else {
        return StatusCode::BAD_REQUEST;
    };
    let mut seen = seen.lock();
    seen.bytes.extend_from_slice(&body);
    seen.headers.push(headers);
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    for span in scopes.flat_map(|scope| scope.spans) {
        seen.spans.push(CollectedSpan {
            name: span.name,
            trace: hexadecimal(&span.trace_id),
            id: hexadecimal(&span.span_id),
            parent: hexadecimal(&span.parent_span_id),
            attributes: attributes(span.attributes),
            failed: span.status.is_some_and(|status| status.code == 2),
        });
    }
    StatusCode::OK
}

async fn metrics(
    State(seen): State<Arc<Mutex<CollectedTelemetry>>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let Ok(request) = ExportMetricsServiceRequest::decode(body.clone()) else {
        return StatusCode::BAD_REQUEST;
    };
    let mut seen = seen.lock();
    seen.bytes.extend_from_slice(&body);
    seen.headers.push(headers);
    let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
    for metric in scopes.flat_map(|scope| scope.metrics) {
        let points: Vec<(Vec<KeyValue>, u64)> = match metric.data {
            Some(metric::Data::Sum(sum)) => sum
                .data_points
                .into_iter()
                .map(|point| (point.attributes, number(point.value)))
                .collect(),
            Some(metric::Data::Gauge(gauge)) => gauge
                .data_points
                .into_iter()
                .map(|point| (point.attributes, number(point.value)))
                .collect(),
            Some(metric::Data::Histogram(histogram)) => histogram
                .data_points
                .into_iter()
                .map(|point| (point.attributes, point.count))
                .collect(),
            _ => Vec::new(),
        };
        for (given, count) in points {
            let (name, attributes) = (metric.name.clone(), attributes(given));
            seen.metrics.retain(|old| old.name != name || old.attributes != attributes);
            seen.metrics.push(CollectedMetric { name, attributes, count });
        }
    }
    StatusCode::OK
}

fn attributes(given: Vec<KeyValue>) -> BTreeMap<String, String> {
    given.into_iter().map(|pair| (pair.key, text(pair.value))).collect()
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text,
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

fn number(value: Option<number_data_point::Value>) -> u64 {
    match value {
        Some(number_data_point::Value::AsInt(number)) => u64::try_from(number).unwrap_or_default(),
        _ => 0,
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
