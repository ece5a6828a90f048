//! One attempt to connect.

use std::{collections::HashMap, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue};
use rmcp::{
    service::{ClientInitializeError, ServiceError},
    transport::{
        StreamableHttpClientTransport, common::client_side_sse::ExponentialBackoff,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{Era, HttpDialect};

use super::{Server, supervise::with_words};
use crate::{
    connection::{About, Connection},
    error::ConnectFailure,
    handshake::{self, Approach, GreetError, Handshake, Manner, Running},
    http::RawHttp,
    listing::Listing,
    process::{self, Process, Started},
    reasons,
    spec::{Endpoint, HttpEndpoint, ServerLimits, StdioEndpoint, place},
    sse::SseTransport,
    stdio::StdioTransport,
    tap::Heard,
    upstream::OutputSource,
};

/// Requests that may wait for their answer at the same time on one HTTP connection.
const CONCURRENT_REQUESTS: usize = 256;
/// The longest pause before a broken stream of notifications is opened again.
const LONGEST_STREAM_PAUSE: Duration = Duration::from_mins(1);

/// What is needed of an attempt that went well.
struct Greeted {
    greeting: (Running, Handshake),
    heard: Arc<Heard>,
    cancel: CancellationToken,
    process: Option<Process>,
}

/// Why an attempt went wrong, and what else is worth trying.
struct Ungreeted {
    failure: ConnectFailure,
    next: Option<Approach>,
    /// Whether the URL may speak the older transport: it took no handshake by POST.
    perhaps_sse: bool,
    /// Whether the server wants to know who asks.
    asks_who: bool,
}

impl Ungreeted {
    /// Nothing else is worth trying.
    fn stuck(failure: ConnectFailure) -> Self {
        Self { failure, next: None, perhaps_sse: false, asks_who: false }
    }
}

impl Server {
    pub(super) async fn connect(
        &self,
        era: Option<Era>,
    ) -> Result<(Connection, Listing), ConnectFailure> {
        let greeted = self.greet(era.map_or(Approach::Probe, Approach::Known)).await?;
        let about = About {
            server: self.spec.name.clone(),
            place: match &self.spec.endpoint {
                Endpoint::Stdio(_) => None,
                Endpoint::Http(endpoint) => Some(place(&endpoint.url)),
            },
            limits: self.spec.limits,
            redactor: self.redactor.clone(),
        };
        let Greeted { greeting, heard, cancel, process } = greeted;
        let connection = Connection::new(about, greeting, heard, cancel, process);
        *self.stage.lock() = "tools/list";
        match connection.list().await {
            Ok(listing) => Ok((connection, listing)),
            Err(ServiceError::TransportClosed) => Err(match &connection.process {
                Some(process) => self.exit_failure(process).await,
                None => self.failure("the connection was closed during tools/list"),
            }),
            Err(error) => {
                Err(self.failure(&format!("tools/list failed: {}", reasons::plain(&error))))
            }
        }
    }

    /// Tries the approaches that are worth it, each once.
    async fn greet(&self, first: Approach) -> Result<Greeted, ConnectFailure> {
        let mut tried = vec![first];
        let mut approach = first;
        let mut earlier: Option<ConnectFailure> = None;
        loop {
            *self.stage.lock() = "the handshake";
            let greeted = match &self.spec.endpoint {
                Endpoint::Stdio(endpoint) => self.greet_child(endpoint, approach).await,
                Endpoint::Http(endpoint) if endpoint.dialect == HttpDialect::Sse => {
                    self.greet_stream(endpoint).await
                }
                Endpoint::Http(endpoint) => self.greet_url(endpoint, approach).await,
            };
            let Ungreeted { failure, next, perhaps_sse, .. } = match greeted {
                Ok(greeted) => return Ok(greeted),
                Err(ungreeted) => ungreeted,
            };
            // The newer handshake is only a second thought where the older one was refused, and
            // then it is that refusal that says what is wrong.
            let failure = match (approach, earlier.take()) {
                (Approach::Known(Era::Modern), Some(earlier)) => earlier,
                _ => failure,
            };
            match next.filter(|next| !tried.contains(next)) {
                Some(next) => {
                    self.note(&format!("{}; trying {next}", failure.reason));
                    tried.push(next);
                    approach = next;
                    earlier = Some(failure);
                }
                None if perhaps_sse => return self.greet_older(failure).await,
                None => return Err(failure),
            }
        }
    }

    /// The last thing to try with a URL. If it comes to nothing, what was wrong before is what is
    /// wrong.
    async fn greet_older(&self, failure: ConnectFailure) -> Result<Greeted, ConnectFailure> {
        let Endpoint::Http(endpoint) = &self.spec.endpoint else { return Err(failure) };
        self.note(&format!("{}; trying the older HTTP+SSE", failure.reason));
        let greeting =
            tokio::time::timeout(probe_patience(&self.spec.limits), self.greet_stream(endpoint));
        match greeting.await {
            Ok(Ok(greeted)) => Ok(greeted),
            Ok(Err(ungreeted)) if ungreeted.asks_who => Err(ungreeted.failure),
            Ok(Err(_)) | Err(_) => Err(failure),
        }
    }

    async fn greet_child(
        &self,
        endpoint: &StdioEndpoint,
        approach: Approach,
    ) -> Result<Greeted, Ungreeted> {
        let on_stderr = self.recorder(OutputSource::Stderr);
        let started = process::start(endpoint, &self.watchdog, self.redactor.clone(), on_stderr);
        let Started { process, stdin, stdout } = started.await.map_err(|error| {
            let mut failure = reasons::spawn_failure(endpoint, &error);
            failure.reason = self.redactor.line(&failure.reason);
            Ungreeted::stuck(failure)
        })?;
        let limits = &self.spec.limits;
        let on_stray = self.recorder(OutputSource::Stdout);
        let transport = StdioTransport::new(stdout, stdin, limits.max_message_bytes, on_stray);
        let heard = self.listener();
        let cancel = CancellationToken::new();
        let greeting = handshake::greet(
            transport,
            Arc::clone(&heard),
            Manner::Pipes,
            approach,
            probe_patience(limits),
            cancel.clone(),
        );
        let error = match greeting.await {
            Ok(greeting) => {
                return Ok(Greeted { greeting, heard, cancel, process: Some(process) });
            }
            Err(GreetError::Failed(error)) => *error,
            Err(GreetError::Unanswered) => ClientInitializeError::Cancelled,
        };
        let failure = if reasons::is_closed(&error) {
            self.exit_failure(&process).await
        } else {
            self.failure(&format!("the handshake failed: {}", reasons::plain(&error)))
        };
        let next = next_approach(approach, &error, &heard);
        Err(Ungreeted { next, ..Ungreeted::stuck(failure) })
    }

    async fn greet_url(
        &self,
        endpoint: &HttpEndpoint,
        approach: Approach,
    ) -> Result<Greeted, Ungreeted> {
        let stuck = Ungreeted::stuck;
        if let Err(error) = reqwest::Url::parse(&endpoint.url) {
            return Err(stuck(ConnectFailure {
                reason: format!("its `url` is no URL: {error}"),
                action: "correct `url` of the server".to_owned(),
            }));
        }
        let limits = &self.spec.limits;
        let limit = limits.max_message_bytes;
        let heard = self.listener();
        let client = RawHttp::new(endpoint, limit, Arc::clone(&heard)).map_err(|error| {
            stuck(self.failure(&format!("no HTTP client: {}", reasons::plain(&error))))
        })?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str())
            .custom_headers(read_headers(endpoint).map_err(stuck)?)
            .max_concurrent_requests(CONCURRENT_REQUESTS)
            .max_sse_event_size(limit);
        let mut pauses = ExponentialBackoff::default();
        pauses.max_delay = Some(LONGEST_STREAM_PAUSE);
        config.retry_config = Arc::new(pauses);
        let transport = StreamableHttpClientTransport::with_client(client, config);
        let cancel = CancellationToken::new();
        let greeting = handshake::greet(
            transport,
            Arc::clone(&heard),
            Manner::Http,
            approach,
            probe_patience(limits),
            cancel.clone(),
        );
        match greeting.await {
            Ok(greeting) => Ok(Greeted { greeting, heard, cancel, process: None }),
            Err(GreetError::Unanswered) => Err(Ungreeted {
                next: Some(Approach::Known(Era::Legacy)),
                ..stuck(self.failure("the server did not say which protocol it speaks"))
            }),
            Err(GreetError::Failed(error)) => {
                let error = *error;
                let mut failure = reasons::url_failure(endpoint, &error);
                failure.reason = self.redactor.line(&failure.reason);
                let next = next_approach(approach, &error, &heard);
                let perhaps_sse = matches!(reasons::status(&error), Some(400 | 404 | 405));
                Err(Ungreeted { next, perhaps_sse, ..Ungreeted::stuck(failure) })
            }
        }
    }

    /// The older transport, which knows the older handshake alone.
    async fn greet_stream(&self, endpoint: &HttpEndpoint) -> Result<Greeted, Ungreeted> {
        let limits = &self.spec.limits;
        let headers = read_headers(endpoint).map_err(Ungreeted::stuck)?;
        let on_stray = self.recorder(OutputSource::Stdout);
        let failed = |error: &(dyn std::error::Error + 'static)| {
            let mut failure = reasons::url_failure(endpoint, error);
            failure.reason = self.redactor.line(&failure.reason);
            let asks_who = reasons::wants_authorization(error);
            Ungreeted { asks_who, ..Ungreeted::stuck(failure) }
        };
        let opened = SseTransport::open(endpoint, headers, limits.max_message_bytes, on_stray);
        let transport = opened.await.map_err(|error| failed(&error))?;
        let (heard, cancel) = (self.listener(), CancellationToken::new());
        let greeting = handshake::greet(
            transport,
            Arc::clone(&heard),
            Manner::Pipes,
            Approach::Known(Era::Legacy),
            probe_patience(limits),
            cancel.clone(),
        );
        match Box::pin(greeting).await {
            Ok(greeting) => Ok(Greeted { greeting, heard, cancel, process: None }),
            Err(GreetError::Failed(error)) => Err(failed(error.as_ref())),
            Err(GreetError::Unanswered) => Err(failed(&ClientInitializeError::Cancelled)),
        }
    }

    fn failure(&self, reason: &str) -> ConnectFailure {
        ConnectFailure { reason: self.redactor.line(reason), action: self.see_logs() }
    }

    async fn exit_failure(&self, process: &Process) -> ConnectFailure {
        let how = match process.exited_within(Duration::from_secs(1)).await {
            Some(status) => format!("the process ended before it answered ({status})"),
            None => "the process closed its output before it answered".to_owned(),
        };
        self.failure(&with_words(how, &process.last_words().await))
    }

    /// What hears a connection, and passes on what is about no call.
    fn listener(&self) -> Arc<Heard> {
        let (observer, name) = (Arc::clone(&self.observer), self.spec.name.clone());
        let on_notification = move |method: &str, params: Option<&Value>| {
            observer.notified(&name, method, params);
        };
        Arc::new(Heard::new(Arc::clone(&self.turns), on_notification))
    }

    fn recorder(&self, source: OutputSource) -> impl Fn(&str) + Send + 'static {
        let (observer, redactor) = (Arc::clone(&self.observer), self.redactor.clone());
        let name = self.spec.name.clone();
        move |line| observer.output(&name, source, &redactor.clean(line))
    }
}

/// What is left of the time to connect must do for the older handshake.
pub(crate) fn probe_patience(limits: &ServerLimits) -> Duration {
    limits.probe.min(limits.connect / 2)
}

/// What else is worth trying after `approach` failed with `error`.
///
/// Whether a server is of one era or the other is known for sure only when it speaks. So a probe
/// that came to nothing is followed by the older handshake, on a fresh connection since some
/// servers do not survive the question, and whoever refuses one handshake is offered the other.
fn next_approach(
    approach: Approach,
    error: &ClientInitializeError,
    heard: &Heard,
) -> Option<Approach> {
    let (legacy, modern) = (Approach::Known(Era::Legacy), Approach::Known(Era::Modern));
    if reasons::wants_authorization(error) || reasons::unreachable(error, "").is_some() {
        return None;
    }
    let refused = reasons::is_refusal(error) || reasons::status(error) == Some(400);
    match approach {
        // It was only slow to say so.
        Approach::Probe if heard.discovered_late() => Some(modern),
        // It was asked both ways already, and answered.
        Approach::Probe
            if refused && matches!(error, ClientInitializeError::LegacyFallbackFailed { .. }) =>
        {
            heard.probe_was_abandoned().then_some(modern)
        }
        Approach::Probe | Approach::Known(Era::Modern) => Some(legacy),
        Approach::Known(Era::Legacy) => refused.then_some(modern),
    }
}

pub(crate) fn read_headers(
    endpoint: &HttpEndpoint,
) -> Result<HashMap<HeaderName, HeaderValue>, ConnectFailure> {
    endpoint
        .headers
        .iter()
        .map(|(name, value)| {
            let mut parsed = name.parse::<HeaderName>().ok().zip(HeaderValue::from_str(value).ok());
            if let Some((_, value)) = &mut parsed {
                // Kept out of what libraries log.
                value.set_sensitive(true);
            }
            parsed.ok_or_else(|| ConnectFailure {
                reason: format!("the header `{name}` is not a valid HTTP header"),
                action: "correct it under `headers` of the server".to_owned(),
            })
        })
        .collect()
}
