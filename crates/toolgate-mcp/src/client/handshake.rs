//! The handshakes of both eras.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

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
use crate::{Era, ErrorObject, HttpDialect, codes, methods, notification_message, versions};

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
    /// There was no response in time.
    Silence,
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

/// Connects. For a URL, HTTP+SSE is tried last. If it fails too, the earlier failure is reported.
pub(super) async fn open(
    settings: ConnectionSettings<'_>,
    client: &ConnectionClient,
    handler: &Arc<dyn ConnectionHandler>,
) -> Result<RawConnection, ConnectFailure> {
    if matches!(settings.endpoint, Endpoint::Http(endpoint) if endpoint.dialect == HttpDialect::Sse)
    {
        let opened = open_with(settings, true, client, handler).await;
        return opened.map_err(|failed| failed.failure);
    }
    let failed = match open_with(settings, false, client, handler).await {
        Ok(connection) => return Ok(connection),
        Err(failed) => failed,
    };
    if !failed.may_speak_sse {
        return Err(failed.failure);
    }
    let note = format!("{}; trying HTTP+SSE", failed.failure.reason);
    handler.output(OutputSource::Toolgate, &note);
    let opening = open_with(settings, true, client, handler);
    match tokio::time::timeout(settings.limits.discover(), opening).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(sse)) if sse.wants_authorization => Err(sse.failure),
        Ok(Err(_)) | Err(_) => Err(failed.failure),
    }
}

/// Tries the eras in turn. Only a response shows the era of a server. So after a failed
/// `server/discover` comes `initialize`. After a refused `initialize` comes `server/discover`, a
/// second time if it was only slow before.
async fn open_with(
    settings: ConnectionSettings<'_>,
    sse: bool,
    client: &ConnectionClient,
    handler: &Arc<dyn ConnectionHandler>,
) -> Result<RawConnection, HandshakeFailure> {
    let mut era = if sse { Era::Legacy } else { settings.era.unwrap_or(Era::Modern) };
    let (mut legacy_failed, mut modern_failed, mut was_slow) = (false, false, false);
    let mut failure: Option<HandshakeFailure> = None;
    loop {
        // Closed if the handshake fails.
        let exchange = Exchange::new(Arc::clone(handler));
        let closing = CloseOnDrop(Some(Arc::clone(&exchange)));
        let transport = Transport::open(settings, sse, &exchange).await?;
        let mut is_fresh = true;
        loop {
            let limit = match era {
                Era::Modern if !was_slow => settings.limits.discover(),
                _ => settings.limits.connect,
            };
            let error = match agree(era, client, &exchange, &transport, limit).await {
                Ok(handshake) => {
                    closing.disarm();
                    let meta = RequestMeta::new(era, client);
                    let agreed = (era, handshake);
                    return Ok(RawConnection::new(settings, agreed, meta, exchange, transport));
                }
                Err(error) => error,
            };
            let is_closed = error.is_closed();
            let next = match era {
                // Some servers do not survive `server/discover`, or what comes after it.
                Era::Legacy if is_closed && !is_fresh => Some(Era::Legacy),
                Era::Legacy => (error.is_refusal() && !sse && (!modern_failed || was_slow))
                    .then_some(Era::Modern),
                Era::Modern => (!legacy_failed).then_some(Era::Legacy),
            };
            match era {
                Era::Legacy => legacy_failed = true,
                Era::Modern => {
                    // The second time it had all the remaining time.
                    was_slow = matches!(error, EraError::Silence) && !modern_failed;
                    modern_failed = true;
                }
            }
            let (failed, gives_up) = explain(settings, &transport, error).await;
            // The failure of `initialize` is the most informative one.
            if era == Era::Legacy || failure.is_none() {
                failure = Some(failed);
            }
            let Some(next) = next.filter(|_| !gives_up) else {
                let unknown = || ConnectFailure::new("the handshake failed", settings.see_output);
                return Err(failure.unwrap_or_else(|| unknown().into()));
            };
            if let Some(failed) = &failure {
                let method =
                    if next == Era::Modern { methods::DISCOVER } else { methods::INITIALIZE };
                let note = format!("{}; trying `{method}`", failed.failure.reason);
                handler.output(OutputSource::Toolgate, &note);
            }
            era = next;
            if is_closed {
                break;
            }
            is_fresh = false;
        }
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

/// The handshake of one era. Returns its result as it was sent.
async fn agree(
    era: Era,
    client: &ConnectionClient,
    exchange: &Arc<Exchange>,
    transport: &Transport,
    limit: Duration,
) -> Result<Value, EraError> {
    let failed = EraError::Failed;
    let (method, params) = match era {
        Era::Modern => {
            let params = RequestMeta::new(era, client).request(None);
            (methods::DISCOVER, params.map_err(|error| failed(ExchangeError::Refused(error)))?)
        }
        Era::Legacy => {
            let params = json!({
                "protocolVersion": versions::LATEST_LEGACY,
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
            () = tokio::time::sleep(limit) => Err(EraError::Silence),
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
    error: EraError,
) -> (HandshakeFailure, bool) {
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
        (EraError::Silence, ..) => failed("no answer in time".to_owned()),
        (EraError::Unusable(why), ..) => failed(why.to_owned()),
    };
    let reason = settings.endpoint.redactor().line(&failure.reason);
    let failure = HandshakeFailure {
        failure: ConnectFailure { reason, ..failure },
        may_speak_sse: matches!(status, Some(400 | 404 | 405)),
        wants_authorization,
    };
    (failure, wants_authorization || is_unreachable)
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
