//! From something that a line goes over to a line: the handshakes.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_mcp::{Era, ErrorObject, HttpDialect, codes, methods, versions};

use super::{
    ConnectionClient, ConnectionHandler, RawConnection,
    connect::{Refused, Way, connect},
    dress::Dress,
    exchange::Exchange,
    trouble::Trouble,
    wire::Wire,
};
use crate::{
    error::ConnectFailure,
    process::Process,
    reasons,
    server::{probe_patience, with_words},
    spec::{Endpoint, ServerSpec},
};

/// How long a child that closed its output may take to end.
const EXIT_PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// Why an era was not agreed on.
enum Ungreeted {
    Trouble(Trouble),
    /// There was no answer in time.
    Silence,
    /// The answer is no greeting.
    Odd(&'static str),
}

/// Opens a line: connects, and tries the eras in turn. The older transport is the last thing to try
/// with a URL; if it comes to nothing, what was wrong before is what is wrong.
pub(super) async fn open(
    spec: &ServerSpec,
    client: ConnectionClient,
    sink: Arc<dyn ConnectionHandler>,
) -> Result<RawConnection, ConnectFailure> {
    if matches!(&spec.endpoint, Endpoint::Http(endpoint) if endpoint.dialect == HttpDialect::Sse) {
        return open_by(Way::Older, spec, &client, &sink).await.map_err(|refused| refused.failure);
    }
    let refused = match open_by(Way::Usual, spec, &client, &sink).await {
        Ok(line) => return Ok(line),
        Err(refused) => refused,
    };
    if !refused.perhaps_older {
        return Err(refused.failure);
    }
    let opening = open_by(Way::Older, spec, &client, &sink);
    match tokio::time::timeout(probe_patience(&spec.limits), opening).await {
        Ok(Ok(line)) => Ok(line),
        Ok(Err(older)) if older.asks_who => Err(older.failure),
        Ok(Err(_)) | Err(_) => Err(refused.failure),
    }
}

async fn open_by(
    way: Way,
    spec: &ServerSpec,
    client: &ConnectionClient,
    sink: &Arc<dyn ConnectionHandler>,
) -> Result<RawConnection, Refused> {
    let mut eras = match (way, spec.remembered_era) {
        (Way::Older, _) => vec![Era::Legacy],
        (Way::Usual, Some(Era::Legacy)) => vec![Era::Legacy, Era::Modern],
        (Way::Usual, Some(Era::Modern) | None) => vec![Era::Modern, Era::Legacy],
    };
    let mut refusal: Option<Refused> = None;
    'connect: loop {
        // Dropped with everything that it holds where the handshake is given up.
        let exchange = Exchange::new(Arc::clone(sink));
        let closing = CloseOnDrop(Some(Arc::clone(&exchange)));
        let wire = connect(way, spec, &exchange).await?;
        let mut was_asked = false;
        while !eras.is_empty() {
            let era = eras.remove(0);
            match greet(era, spec, client, &exchange, &wire).await {
                Ok(greeting) => {
                    let dress = Dress::new(era, client);
                    closing.disarm();
                    return Ok(RawConnection {
                        spec: spec.clone(),
                        era,
                        greeting,
                        dress,
                        exchange,
                        wire,
                    });
                }
                Err(ungreeted) => {
                    let stuck = is_stuck(&ungreeted);
                    let died = matches!(ungreeted, Ungreeted::Trouble(Trouble::Closed));
                    let (perhaps_older, asks_who) = match &ungreeted {
                        Ungreeted::Trouble(Trouble::Http(error)) => (
                            matches!(reasons::status(error.as_ref()), Some(400 | 404 | 405)),
                            reasons::wants_authorization(error.as_ref()),
                        ),
                        _ => (false, false),
                    };
                    let failure = explain(spec, &wire, ungreeted).await;
                    let refused = Refused { failure, perhaps_older, asks_who };
                    if stuck {
                        return Err(refused);
                    }
                    // What the older handshake met with says what is wrong.
                    if era == Era::Legacy || refusal.is_none() {
                        refusal = Some(refused);
                    }
                    if died && (was_asked || !eras.is_empty()) {
                        // Some servers do not survive the question, or what comes after it.
                        if eras.is_empty() {
                            eras.push(era);
                        }
                        continue 'connect;
                    }
                    was_asked = true;
                }
            }
        }
        let unknown =
            || ConnectFailure { reason: "the handshake failed".to_owned(), action: String::new() };
        return Err(refusal.unwrap_or_else(|| unknown().into()));
    }
}

/// Ends what an attempt has started.
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

/// Greets in the words of one era, and gives what the server said.
async fn greet(
    era: Era,
    spec: &ServerSpec,
    client: &ConnectionClient,
    exchange: &Arc<Exchange>,
    wire: &Wire,
) -> Result<Value, Ungreeted> {
    let (method, params, patience) = match era {
        Era::Modern => {
            let params = Dress::new(era, client).request(None);
            let params = params.map_err(|error| Ungreeted::Trouble(Trouble::Refused(error)))?;
            (methods::DISCOVER, params, probe_patience(&spec.limits))
        }
        Era::Legacy => {
            let params = json!({
                "protocolVersion": versions::LATEST_LEGACY,
                "capabilities": client.capabilities,
                "clientInfo": client.info,
            });
            (methods::INITIALIZE, Some(params), spec.limits.connect)
        }
    };
    let ask = async || {
        let mut waiting = exchange.begin(Value::Null, method, None);
        let id = waiting.id();
        tokio::select! {
            biased;
            answer = waiting.answered() => answer.map_err(Ungreeted::Trouble),
            trouble = wire.carry(id, method, params.clone()) => Err(Ungreeted::Trouble(trouble)),
            () = tokio::time::sleep(patience) => Err(Ungreeted::Silence),
        }
    };
    let greeting = match ask().await {
        // It refuses the very version that it offers: what it meant may pass the second time.
        Err(Ungreeted::Trouble(Trouble::Refused(error))) if offers_ours(&error) => ask().await?,
        greeting => greeting?,
    };
    match era {
        Era::Modern => {
            let versions = greeting["supportedVersions"].as_array().into_iter().flatten();
            if !versions.into_iter().any(|version| version == versions::MODERN) {
                return Err(Ungreeted::Odd("it speaks no protocol version that is known here"));
            }
        }
        Era::Legacy if !greeting["protocolVersion"].is_string() => {
            return Err(Ungreeted::Odd("its answer to `initialize` names no protocol version"));
        }
        Era::Legacy => {}
    }
    if let Wire::Web(web) = wire {
        web.greeted(era, &greeting, params);
    }
    if era == Era::Legacy {
        let told = wire.notify(methods::INITIALIZED, None).await;
        told.map_err(Ungreeted::Trouble)?;
        if let Wire::Web(web) = wire {
            web.listen();
        }
    }
    Ok(greeting)
}

/// Whether a server that refuses a version says that it speaks ours.
fn offers_ours(error: &ErrorObject) -> bool {
    let offered = error.data.as_ref().and_then(|data| data.get("supported")?.as_array());
    error.code == codes::UNSUPPORTED_PROTOCOL_VERSION
        && offered.into_iter().flatten().any(|version| version == versions::MODERN)
}

/// Whether the other era would fare no better.
fn is_stuck(ungreeted: &Ungreeted) -> bool {
    match ungreeted {
        Ungreeted::Trouble(Trouble::Http(error)) => {
            reasons::wants_authorization(error.as_ref())
                || reasons::unreachable(error.as_ref(), "").is_some()
        }
        _ => false,
    }
}

async fn explain(spec: &ServerSpec, wire: &Wire, ungreeted: Ungreeted) -> ConnectFailure {
    let failed = |why: String| ConnectFailure {
        reason: format!("the handshake failed: {why}"),
        action: "check that it is an MCP server".to_owned(),
    };
    let failure = match (ungreeted, wire, &spec.endpoint) {
        (Ungreeted::Trouble(Trouble::Closed), Wire::Pipes(pipes), _) => ended(&pipes.process).await,
        (Ungreeted::Trouble(Trouble::Http(error)), _, Endpoint::Http(endpoint)) => {
            reasons::url_failure(endpoint, error.as_ref())
        }
        (Ungreeted::Trouble(Trouble::Refused(error)), ..) => failed(error.message),
        (Ungreeted::Trouble(_), ..) => failed("the connection ended".to_owned()),
        (Ungreeted::Silence, ..) => failed("no answer in time".to_owned()),
        (Ungreeted::Odd(why), ..) => failed(why.to_owned()),
    };
    ConnectFailure { reason: spec.endpoint.redactor().line(&failure.reason), ..failure }
}

async fn ended(process: &Process) -> ConnectFailure {
    let how = match process.exited_within(EXIT_PATIENCE).await {
        Some(status) => format!("the process ended before it answered ({status})"),
        None => "the process closed its output before it answered".to_owned(),
    };
    ConnectFailure {
        reason: with_words(how, &process.last_words().await),
        action: "correct `command` and `args` of the server".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_offers_our_version_is_asked_again() {
        let refusal = |code, versions: Value| {
            offers_ours(&ErrorObject::new(code, "no", Some(json!({ "supported": versions }))))
        };
        let unsupported = codes::UNSUPPORTED_PROTOCOL_VERSION;
        assert!(refusal(unsupported, json!(["2030-01-01", versions::MODERN])));
        assert!(!refusal(unsupported, json!(["2025-11-25"])));
        assert!(!refusal(unsupported, json!(versions::MODERN)));
        assert!(!refusal(codes::INVALID_PARAMS, json!([versions::MODERN])));
        assert!(!offers_ours(&ErrorObject::new(unsupported, "no", None)));
    }
}
