//! Exports spans and metrics, and counts what is lost.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use opentelemetry::Context;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor},
};
use tokio::runtime::Handle;
use url::Url;

/// How many spans were ended, and how many of them a collector has.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    ended: AtomicU64,
    delivered: AtomicU64,
    reported: AtomicBool,
}

/// Sends to one URL, only with configured headers. The exporters run on their own threads, and the
/// client on the runtime.
pub(crate) struct Sender {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    runtime: Handle,
    tally: Arc<Tally>,
}

/// Counts the spans that enter the queue.
#[derive(Debug)]
pub(crate) struct CountedQueue {
    pub(crate) queue: BatchSpanProcessor,
    pub(crate) tally: Arc<Tally>,
}

/// Counts the spans that arrive.
#[derive(Debug)]
pub(crate) struct CountedExporter<E> {
    pub(crate) exporter: E,
    pub(crate) tally: Arc<Tally>,
}

/// How long a collector may take to answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);
/// How many bytes of its response are read.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

impl Tally {
    /// The number of spans that no collector has received. Some may still be in the queue.
    pub(crate) fn missing(&self) -> u64 {
        let delivered = self.delivered.load(Ordering::Acquire);
        self.ended.load(Ordering::Acquire).saturating_sub(delivered)
    }

    /// Reported once, because an unreachable collector would fill the log.
    fn tell(&self, url: &Url, why: &str) {
        if !self.reported.swap(true, Ordering::Relaxed) {
            let host = url.host_str().unwrap_or_default();
            let port = url.port_or_known_default().unwrap_or_default();
            tracing::warn!("telemetry does not reach {host}:{port} and is lost: {why}");
        }
    }
}

impl Sender {
    /// Exports to `/v1/SIGNAL` of the collector. Invalid headers are left out with a warning.
    pub(crate) fn new(
        endpoint: &Url,
        signal: &str,
        headers: &BTreeMap<String, String>,
        tally: Arc<Tally>,
    ) -> Result<Self, reqwest::Error> {
        let mut url = endpoint.clone();
        let base = url.path().trim_end_matches('/');
        url.set_path(&format!("{base}/v1/{signal}"));
        let mut fit = HeaderMap::new();
        for (name, value) in headers {
            let header = HeaderName::try_from(name.as_str()).ok();
            let value = HeaderValue::try_from(value.as_str()).ok();
            if let Some((header, mut value)) = header.zip(value) {
                value.set_sensitive(true);
                fit.insert(header, value);
            } else {
                tracing::warn!("the telemetry header `{name}` cannot be sent");
            }
        }
        // No redirects, because another host must not get the headers.
        let client = toolgate_http::client_builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(RESPONSE_TIMEOUT)
            .build()?;
        Ok(Self { client, url, headers: fit, runtime: Handle::current(), tally })
    }
}

#[async_trait::async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let mut headers = self.headers.clone();
        for name in [header::CONTENT_TYPE, header::USER_AGENT] {
            if let Some(value) = parts.headers.get(&name) {
                headers.insert(name, value.clone());
            }
        }
        let request = self.client.post(self.url.clone()).headers(headers).body(body);
        let sent = self.runtime.spawn(async move {
            let mut response = request.send().await?;
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await? {
                body.extend_from_slice(&chunk);
                if body.len() > MAX_RESPONSE_BYTES {
                    break;
                }
            }
            body.truncate(MAX_RESPONSE_BYTES);
            Ok::<_, reqwest::Error>((response.status(), response.headers().clone(), body))
        });
        let (status, headers, body) = match sent.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                let error = error.without_url();
                self.tally.tell(
                    &self.url,
                    if error.is_timeout() { "no answer" } else { "no connection" },
                );
                return Err(Box::new(error));
            }
            Err(error) => return Err(Box::new(error)),
        };
        if !status.is_success() {
            self.tally.tell(&self.url, &format!("it answers {status}"));
        }
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

impl SpanProcessor for CountedQueue {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.queue.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        self.tally.ended.fetch_add(1, Ordering::AcqRel);
        self.queue.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.queue.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.queue.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.queue.set_resource(resource);
    }
}

impl<E: SpanExporter> SpanExporter for CountedExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len() as u64;
        let outcome = self.exporter.export(batch).await;
        if outcome.is_ok() {
            self.tally.delivered.fetch_add(count, Ordering::AcqRel);
        }
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host_str();
        formatter.debug_struct("Sender").field("host", &host).finish_non_exhaustive()
    }
}
