//! The handshakes of both eras.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    connection::{
        ConnectionClient, ConnectionHandler, ConnectionSettings, OutputSource, RawConnection,
    },
    endpoint::Endpoint,
    exchange::{Exchange, ExchangeError},
    failure::{ConnectFailure, HttpError, with_last_output},
    process::Process,
    request_meta::RequestMeta,
    stdio::StdioTransport,
    transport::Transport,
};
use crate::{Era, ErrorObject, HttpDialect, codes, meta, methods, notification_message, versions};

/// How long a child that closed its output may take to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Why there is no connection.
pub(super) struct HandshakeFailure {
    pub(super) failure: ConnectFailure,
    /// Whether the URL may speak HTTP+SSE: it accepted no handshake by POST.
    pub(super) may_speak_sse: bool,
    /// Whether the server requires authorization.
    pub(super) wants_authorization: bool,
}

impl From<ConnectFailure> for HandshakeFailure {
    fn from(failure: ConnectFailure) -> Self {
        Self { failure, may_speak_sse: false, wants_authorization: false }
    }
}

/// Why the handshake of one era failed.
enum EraError {
    Failed(ExchangeError),
    /// The response is no handshake.
    Unusable(&'static str),
}

impl EraError {
    /// Whether the server understood the handshake and refused it.
    fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Failed(ExchangeError::Refused(_) | ExchangeError::Http(HttpError::Status(_)))
                | Self::Unusable(_)
        )
    }

    fn is_closed(&self) -> bool {
        matches!(self, Self::Failed(ExchangeError::Closed))
    }

    fn http(&self) -> Option<&HttpError> {
        match self {
            Self::Failed(ExchangeError::Http(error)) => Some(error),
            _ => None,
        }
    }
}

/// Connects within the time of the limits. For a URL, HTTP+SSE is tried last. If it fails too, the
/// earlier failure is reported.
pub(super) async fn open(
    settings: ConnectionSettings<'_>,
    client: &ConnectionClient,
    handler: &Arc<dyn ConnectionHandler>,
) -> Result<RawConnection, ConnectFailure> {
    let log = HandshakeLog::new();
    let limit = settings.limits.connect;
    let opening = open_any(settings, client, handler, &log);
    let opened = tokio::time::timeout(limit, opening).await.unwrap_or_else(|_| {
        let seconds = limit.as_secs_f64();
        let reason = format!("no answer to the handshake within {seconds} s{}", log.told());
        let reason = settings.endpoint.redactor().line(&reason);
        let exchange = log.exchange.lock().clone();
        if let Some(exchange) = exchange.filter(|exchange| exchange.first_stray().is_some()) {
            return Err(ConnectFailure::new(with_stray(reason, &exchange), not_mcp(settings)));
        }
        let raise = "raise `connectTimeoutSeconds` of the server";
        let action = match settings.endpoint {
            Endpoint::Stdio(_) => format!("{raise}, or {}", settings.see_output),
            _ => raise.to_owned(),
        };
        Err(ConnectFailure::new(reason, action))
    });
    let connection = opened?;
    // Below another process, toolgate would start the same servers again.
    if matches!(settings.endpoint, Endpoint::Stdio(_)) && is_toolgate(&connection) {
        connection.close().await;
        return Err(ConnectFailure::own());
    }
    if let (Some(spares), Endpoint::Stdio(endpoint)) = (settings.spares, settings.endpoint) {
        spares.connected(endpoint, &settings.endpoint.redactor());
    }
    Ok(connection)
}

async fn open_any(
    settings: ConnectionSettings<'_>,
    client: &ConnectionClient,
    handler: &Arc<dyn ConnectionHandler>,
    log: &HandshakeLog,
) -> Result<RawConnection, ConnectFailure> {
    if matches!(settings.endpoint, Endpoint::Http(endpoint) if endpoint.dialect == HttpDialect::Sse)
    {
        let opened = open_with(settings, true, client, handler, log).await;
        return opened.map_err(|failed| failed.failure);
    }
    let failed = match open_with(settings, false, client, handler, log).await {
        Ok(connection) => return Ok(connection),
        Err(failed) => failed,
    };
    if !failed.may_speak_sse {
        return Err(failed.failure);
    }
    let note = format!("{}; trying HTTP+SSE", failed.failure.reason);
    handler.output(OutputSource::Toolgate, &note);
    let opening = open_with(settings, true, client, handler, log);
    match tokio::time::timeout(settings.limits.discover(), opening).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(sse)) if sse.wants_authorization => Err(sse.failure),
        Ok(Err(_)) | Err(_) => Err(failed.failure),
    }
}

/// Tries the eras in turn. Only a response shows the era of a server. So after a failed
/// `server/discover` comes `initialize`, and after a refused `initialize` comes `server/discover`. If
/// the first of them is only slow, both are open at the same time, and the first good response counts.
async fn open_with(
    settings: ConnectionSettings<'_>,
    sse: bool,
    client: &ConnectionClient,
    handler: &Arc<dyn ConnectionHandler>,
    log: &HandshakeLog,
) -> Result<RawConnection, HandshakeFailure> {
    let mut era = if sse { Era::Legacy } else { settings.era.unwrap_or(Era::Modern) };
    let (mut legacy_failed, mut modern_failed) = (false, false);
    let mut failure: Option<HandshakeFailure> = None;
    let mut spares = settings.spares;
    loop {
        // Closed if the handshake fails.
        let exchange = Exchange::new(Arc::clone(handler));
        let closing = CloseOnDrop(Some(Arc::clone(&exchange)));
        *log.exchange.lock() = Some(Arc::clone(&exchange));
        let spare = spares.and_then(|spares| spares.take(&exchange));
        let is_spare = spare.is_some();
        let transport = Transport::open(settings, sse, &exchange, spare).await?;
        let attempt = |era: Era| {
            log.sent(era);
            let agreeing = agree(era, client, &exchange, &transport);
            agreeing.map(move |outcome| (era, outcome))
        };
        let mut open = FuturesUnordered::new();
        let mut sent = vec![era];
        open.push(attempt(era));
        let next = loop {
            let is_slow = tokio::time::sleep(settings.limits.discover());
            let (answered, outcome) = tokio::select! {
                biased;
                Some(answered) = open.next() => answered,
                () = is_slow, if sent == [Era::Modern] && !legacy_failed => {
                    let note = "no answer to `server/discover` yet; sending `initialize` too";
                    handler.output(OutputSource::Toolgate, note);
                    sent.push(Era::Legacy);
                    open.push(attempt(Era::Legacy));
                    continue;
                }
            };
            let error = match outcome {
                Ok(handshake) => {
                    drop(open);
                    closing.disarm();
                    let meta = RequestMeta::new(answered, client);
                    let agreed = (answered, handshake);
                    return Ok(RawConnection::new(settings, agreed, meta, exchange, transport));
                }
                Err(error) => error,
            };
            let (is_closed, is_refusal) = (error.is_closed(), error.is_refusal());
            if is_closed && is_spare {
                // It may have ended while it waited. Nothing was done with it.
                spares = None;
                break Some(era);
            }
            match answered {
                Era::Legacy => legacy_failed = true,
                Era::Modern => modern_failed = true,
            }
            let (failed, gives_up) = explain(settings, &transport, &exchange, error).await;
            log.failed(answered, &failed.failure.reason);
            // The failure of `initialize` is the most informative one.
            if answered == Era::Legacy || failure.is_none() {
                failure = Some(failed);
            }
            if gives_up {
                break None;
            }
            if is_closed {
                // Some servers do not survive `server/discover`, or what comes after it.
                let was_asked = sent != [Era::Legacy];
                break was_asked.then_some(Era::Legacy);
            }
            if !open.is_empty() {
                // The other one may still be answered.
                continue;
            }
            let other = match answered {
                Era::Legacy => (is_refusal && !sse && !modern_failed).then_some(Era::Modern),
                Era::Modern => (!legacy_failed).then_some(Era::Legacy),
            };
            let Some(other) = other else { break None };
            tell(handler, failure.as_ref(), other);
            sent.push(other);
            open.push(attempt(other));
        };
        let Some(next) = next else {
            let unknown = || ConnectFailure::new("the handshake failed", settings.see_output);
            let mut failed = failure.unwrap_or_else(|| unknown().into());
            if log.took_longer_than(settings.limits.discover()) {
                let told = settings.endpoint.redactor().line(&log.told());
                failed.failure.reason.push_str(&told);
            }
            return Err(failed);
        };
        tell(handler, failure.as_ref(), next);
        era = next;
    }
}

/// Notes why another era is tried.
fn tell(handler: &Arc<dyn ConnectionHandler>, failed: Option<&HandshakeFailure>, next: Era) {
    if let Some(failed) = failed {
        let note = format!("{}; trying `{}`", failed.failure.reason, method_of(next));
        handler.output(OutputSource::Toolgate, &note);
    }
}

fn method_of(era: Era) -> &'static str {
    match era {
        Era::Modern => methods::DISCOVER,
        Era::Legacy => methods::INITIALIZE,
    }
}

/// Whether the server is toolgate, and not a server that toolgate passes through.
fn is_toolgate(connection: &RawConnection) -> bool {
    let sent = connection.handshake();
    let info = match connection.era() {
        Era::Legacy => sent.get("serverInfo"),
        Era::Modern => sent.get("_meta").and_then(|meta| meta.get(meta::SERVER_INFO)),
    };
    info.and_then(|info| info.get("name")).is_some_and(|name| name == "toolgate")
}

/// What was sent and what was answered, for the message if there is no connection.
struct HandshakeLog {
    began: Instant,
    steps: Mutex<Vec<HandshakeStep>>,
    /// The exchange of the last attempt, which knows what is no message.
    exchange: Mutex<Option<Arc<Exchange>>>,
}

struct HandshakeStep {
    era: Era,
    at: Duration,
    /// Why it failed, and when.
    failed: Option<(Duration, String)>,
}

impl HandshakeLog {
    fn new() -> Self {
        Self { began: Instant::now(), steps: Mutex::default(), exchange: Mutex::default() }
    }

    fn sent(&self, era: Era) {
        self.steps.lock().push(HandshakeStep { era, at: self.began.elapsed(), failed: None });
    }

    fn failed(&self, era: Era, reason: &str) {
        let mut steps = self.steps.lock();
        let step = steps.iter_mut().rev().find(|step| step.era == era && step.failed.is_none());
        if let Some(step) = step {
            step.failed = Some((self.began.elapsed(), reason.to_owned()));
        }
    }

    fn took_longer_than(&self, limit: Duration) -> bool {
        self.began.elapsed() > limit
    }

    /// The steps as the end of a sentence; empty if nothing was sent.
    fn told(&self) -> String {
        let steps = self.steps.lock();
        let seconds = |time: &Duration| (time.as_secs_f64() * 10.0).round() / 10.0;
        let told = steps.iter().map(|step| {
            let sent = format!("`{}` was sent at {} s", method_of(step.era), seconds(&step.at));
            match &step.failed {
                Some((at, reason)) => format!("{sent} and failed at {} s ({reason})", seconds(at)),
                None => format!("{sent} and not answered"),
            }
        });
        let told: Vec<String> = told.collect();
        if told.is_empty() { String::new() } else { format!(": {}", told.join(", ")) }
    }
}

/// Closes what an attempt has started.
struct CloseOnDrop(Option<Arc<Exchange>>);

impl CloseOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(exchange) = &self.0 {
            exchange.close();
        }
    }
}

/// The handshake of one era, which waits for as long as its caller does. Returns its result as it was sent.
async fn agree(
    era: Era,
    client: &ConnectionClient,
    exchange: &Arc<Exchange>,
    transport: &Transport,
) -> Result<Value, EraError> {
    let failed = EraError::Failed;
    let (method, params) = match era {
        Era::Modern => {
            let params = RequestMeta::new(era, client).request(None);
            (methods::DISCOVER, params.map_err(|error| failed(ExchangeError::Refused(error)))?)
        }
        Era::Legacy => {
            let params = json!({
                "protocolVersion": client.legacy_version.as_deref().unwrap_or(versions::LATEST_LEGACY),
                "capabilities": client.legacy_capabilities,
                "clientInfo": client.info,
            });
            (methods::INITIALIZE, Some(params))
        }
    };
    let ask = async || {
        let mut awaited = exchange.begin(Value::Null, method, None);
        let id = awaited.id();
        tokio::select! {
            biased;
            response = awaited.received() => response.map_err(failed),
            error = transport.carry(id, method, params.clone()) => Err(failed(error)),
        }
    };
    let handshake = match ask().await {
        // The server refuses a version that it offers. A second attempt may succeed.
        Err(EraError::Failed(ExchangeError::Refused(error))) if offers_modern(&error) => {
            ask().await?
        }
        response => response?,
    };
    let version = match era {
        Era::Modern => {
            let versions = handshake["supportedVersions"].as_array().into_iter().flatten();
            if !versions.into_iter().any(|version| version == versions::MODERN) {
                return Err(EraError::Unusable("it speaks no protocol version that is known here"));
            }
            versions::MODERN
        }
        Era::Legacy => handshake["protocolVersion"]
            .as_str()
            .ok_or(EraError::Unusable("its answer to `initialize` names no protocol version"))?,
    };
    if let Transport::Streamable(http) = transport {
        http.agreed(era, version, params.filter(|_| era == Era::Legacy));
    }
    if era == Era::Legacy {
        let initialized = notification_message(methods::INITIALIZED, None);
        transport.send(initialized).await.map_err(failed)?;
        if let Transport::Streamable(http) = transport {
            http.listen();
        }
    }
    Ok(handshake)
}

/// Whether a server that refuses a version names one that toolgate supports.
fn offers_modern(error: &ErrorObject) -> bool {
    let offered = error.data.as_ref().and_then(|data| data.get("supported")?.as_array());
    error.code == codes::UNSUPPORTED_PROTOCOL_VERSION
        && offered.into_iter().flatten().any(|version| version == versions::MODERN)
}

/// Describes a failure. Also returns whether the other era would fail for the same reason.
async fn explain(
    settings: ConnectionSettings<'_>,
    transport: &Transport,
    exchange: &Exchange,
    error: EraError,
) -> (HandshakeFailure, bool) {
    let is_nested = matches!(
        &error,
        EraError::Failed(ExchangeError::Refused(error)) if error.code == codes::NESTED
    );
    if is_nested || error.http().and_then(HttpError::status) == Some(508) {
        return (ConnectFailure::own().into(), true);
    }
    let wants_authorization = error.http().is_some_and(HttpError::wants_authorization);
    let is_unreachable = error.http().is_some_and(|error| error.unreachable("").is_some());
    let status = error.http().and_then(HttpError::status);
    let failed = |why: String| match settings.endpoint {
        Endpoint::Stdio(_) | Endpoint::InProcess(_) => {
            ConnectFailure::new(format!("the handshake failed: {why}"), settings.see_output)
        }
        Endpoint::Http(endpoint) => HttpError::Handshake(why).connect_failure(endpoint),
    };
    let failure = match (error, transport, settings.endpoint) {
        (
            EraError::Failed(ExchangeError::Closed),
            Transport::Stdio(StdioTransport { process: Some(process), .. }),
            _,
        ) => ConnectFailure::new(exit_reason(process).await, settings.see_output),
        (EraError::Failed(ExchangeError::Http(error)), _, Endpoint::Http(endpoint)) => {
            error.connect_failure(endpoint)
        }
        (EraError::Failed(ExchangeError::Refused(error)), ..) => {
            failed(format!("JSON-RPC error: {}: {}", error.code, error.message))
        }
        (EraError::Failed(ExchangeError::Unreadable(why)), ..) => {
            failed(format!("the server's answer cannot be used: {why}"))
        }
        (EraError::Failed(_), ..) => failed("the connection ended".to_owned()),
        (EraError::Unusable(why), ..) => failed(why.to_owned()),
    };
    let reason = settings.endpoint.redactor().line(&failure.reason);
    let reason = with_stray(reason, exchange);
    let failure = HandshakeFailure {
        failure: ConnectFailure { reason, ..failure },
        may_speak_sse: matches!(status, Some(400 | 404 | 405)),
        wants_authorization,
    };
    (failure, wants_authorization || is_unreachable)
}

/// What to do about a server that prints to stdout what is not MCP.
fn not_mcp(settings: ConnectionSettings<'_>) -> String {
    let start = "check that its `command` and `args` start an MCP server over stdio";
    format!("{start}, and let it print everything else to stderr; or {}", settings.see_output)
}

/// Adds the first line that is no message, if the server wrote one to stdout.
fn with_stray(reason: String, exchange: &Exchange) -> String {
    match exchange.first_stray() {
        Some(line) => format!("{reason}; it prints to stdout what is not MCP: `{line}`"),
        None => reason,
    }
}

async fn exit_reason(process: &Process) -> String {
    let how = match process.exited_within(EXIT_TIMEOUT).await {
        Some(status) => format!("the process ended before it answered ({status})"),
        None => "the process closed its output before it answered".to_owned(),
    };
    with_last_output(how, &process.last_output().await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_with_a_supported_version_is_asked_again() {
        let refusal = |code, versions: Value| {
            offers_modern(&ErrorObject::new(code, "no", Some(json!({ "supported": versions }))))
        };
        let unsupported = codes::UNSUPPORTED_PROTOCOL_VERSION;
        assert!(refusal(unsupported, json!(["2030-01-01", versions::MODERN])));
        assert!(!refusal(unsupported, json!(["2025-11-25"])));
        assert!(!refusal(unsupported, json!(versions::MODERN)));
        assert!(!refusal(codes::INVALID_PARAMS, json!([versions::MODERN])));
        assert!(!offers_modern(&ErrorObject::new(unsupported, "no", None)));
    }
}
