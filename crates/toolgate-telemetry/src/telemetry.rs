//! The exporters, and the handle that all others use.

use std::{fmt, sync::Arc, time::Duration};

use opentelemetry::{
    InstrumentationScope, KeyValue, metrics::MeterProvider, trace::TracerProvider,
};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    metrics::SdkMeterProvider,
    trace::{BatchSpanProcessor, SdkTracer, SdkTracerProvider},
};
use parking_lot::Mutex;
use thiserror::Error;

use crate::{
    export::{CountedExporter, CountedQueue, Sender, Tally},
    instruments::Instruments,
    settings::TelemetrySettings,
};

/// Makes spans and metrics, or nothing if it is off. Clones share their state.
#[derive(Clone, Default)]
pub struct Telemetry(Option<Arc<TelemetryState>>);

/// What is measured of a node of a fleet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FleetGauges {
    /// How many nodes live.
    pub nodes: u64,
    /// Whether the shared database is known to be away.
    pub is_away: bool,
    /// Bytes of the audit log that wait for it.
    pub waiting_bytes: u64,
}

/// Telemetry could not be started. Everything else works without it.
#[derive(Debug, Error)]
#[error("telemetry is off: {0}")]
pub struct TelemetryError(String);

struct TelemetryState {
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
    tracer: SdkTracer,
    instruments: Instruments,
    tally: Arc<Tally>,
    connected: Connected,
}

/// Returns the number of connected servers; `None` once the host is gone.
type Connected = Arc<Mutex<Vec<Box<dyn Fn() -> Option<u64> + Send + Sync>>>>;

const NAME: &str = "toolgate";
/// How long the end waits for a collector.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

impl Telemetry {
    /// Telemetry that is off.
    pub fn off() -> Self {
        Self::default()
    }

    /// Sends to a collector from now on. Must be called inside a tokio runtime. Respects the
    /// variables `OTEL_BSP_…`, `OTEL_METRIC_EXPORT_INTERVAL` and `OTEL_TRACES_SAMPLER`.
    pub fn start(settings: &TelemetrySettings) -> Result<Self, TelemetryError> {
        let tally = Arc::new(Tally::default());
        let sender = |signal: &str| {
            Sender::new(&settings.endpoint, signal, &settings.headers, Arc::clone(&tally))
                .map_err(|error| TelemetryError(error.to_string()))
        };
        let failed =
            |error: opentelemetry_otlp::ExporterBuildError| TelemetryError(error.to_string());
        let endpoint = settings.endpoint.as_str();
        let spans = SpanExporter::builder()
            .with_http()
            .with_http_client(sender("traces")?)
            .with_endpoint(endpoint)
            .build()
            .map_err(failed)?;
        let measured = MetricExporter::builder()
            .with_http()
            .with_http_client(sender("metrics")?)
            .with_endpoint(endpoint)
            .build()
            .map_err(failed)?;
        let resource = Resource::builder()
            .with_service_name(settings.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let exporter = CountedExporter { exporter: spans, tally: Arc::clone(&tally) };
        let queue = BatchSpanProcessor::builder(exporter).build();
        let spanned = SdkTracerProvider::builder()
            .with_span_processor(CountedQueue { queue, tally: Arc::clone(&tally) })
            .with_resource(resource.clone())
            .build();
        let metrics = SdkMeterProvider::builder()
            .with_periodic_exporter(measured)
            .with_resource(resource)
            .build();
        let scope =
            InstrumentationScope::builder(NAME).with_version(env!("CARGO_PKG_VERSION")).build();
        let tracer = spanned.tracer_with_scope(scope.clone());
        let meter = metrics.meter_with_scope(scope);
        let instruments = Instruments::new(&meter);
        let connected = Connected::default();
        let asked = Arc::clone(&connected);
        let gauge = meter.u64_observable_gauge("toolgate.servers.connected");
        gauge
            .with_description("Servers that are connected")
            .with_callback(move |observer| {
                let mut sum = 0;
                asked.lock().retain(|count| {
                    let counted = count();
                    sum += counted.unwrap_or_default();
                    counted.is_some()
                });
                observer.observe(sum, &[]);
            })
            .build();
        let inner =
            TelemetryState { traces: spanned, metrics, tracer, instruments, tally, connected };
        Ok(Self(Some(Arc::new(inner))))
    }

    /// Whether telemetry is on.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Calls `gauges` for the state of this node of a fleet at each export.
    pub fn watch_fleet(&self, gauges: impl Fn() -> FleetGauges + Send + Sync + 'static) {
        let Some(inner) = &self.0 else { return };
        let meter = inner.metrics.meter(NAME);
        let gauges = Arc::new(gauges);
        let gauge = |name: &'static str, about: &'static str, value: fn(&FleetGauges) -> u64| {
            let gauges = Arc::clone(&gauges);
            meter
                .u64_observable_gauge(name)
                .with_description(about)
                .with_callback(move |observer| observer.observe(value(&gauges()), &[]))
                .build();
        };
        gauge("toolgate.fleet.nodes", "Nodes that live", |it| it.nodes);
        gauge("toolgate.fleet.database.away", "1 while the shared database is away", |it| {
            u64::from(it.is_away)
        });
        gauge(
            "toolgate.fleet.audit.waiting",
            "Bytes of records that wait for the database",
            |it| it.waiting_bytes,
        );
    }

    /// Calls `count` for the number of connected servers at each export, until it returns `None`.
    pub fn watch_servers(&self, count: impl Fn() -> Option<u64> + Send + Sync + 'static) {
        if let Some(inner) = &self.0 {
            inner.connected.lock().push(Box::new(count));
        }
    }

    /// Exports the queued spans, within a short time, and stops telemetry. Logs the number of lost
    /// spans.
    pub async fn shutdown(&self) {
        let Some(inner) = self.0.clone() else { return };
        let (traces, metrics) = (inner.traces.clone(), inner.metrics.clone());
        // Both block, so they run in parallel.
        let traces = tokio::task::spawn_blocking(move || {
            traces.shutdown_with_timeout(FLUSH_TIMEOUT).is_ok()
        });
        let metrics = tokio::task::spawn_blocking(move || {
            metrics.shutdown_with_timeout(FLUSH_TIMEOUT).is_ok()
        });
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, async { tokio::join!(traces, metrics) }).await;
        let missing = inner.tally.missing();
        if missing > 0 {
            tracing::warn!("{missing} spans of telemetry were lost");
        }
    }

    /// The number of spans that no collector has received. Some may still be in the queue.
    pub fn missing(&self) -> u64 {
        self.0.as_ref().map_or(0, |inner| inner.tally.missing())
    }

    pub(crate) fn tracer(&self) -> Option<&SdkTracer> {
        self.0.as_ref().map(|inner| &inner.tracer)
    }

    pub(crate) fn instruments(&self) -> Option<&Instruments> {
        self.0.as_ref().map(|inner| &inner.instruments)
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_on() { "Telemetry(on)" } else { "Telemetry(off)" })
    }
}
