//! From an endpoint to something that a line goes over.

use std::sync::Arc;

use super::{exchange::Exchange, pipes::Pipes, post::Post, web::Web, wire::Wire};
use crate::{
    error::ConnectFailure,
    http::RawHttp,
    reasons,
    server::read_headers,
    spec::{Endpoint, HttpEndpoint, ServerSpec},
    tap::Heard,
};

/// How a server is spoken to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// In the way of today, in either era.
    Usual,
    /// Over HTTP+SSE, which knows the older handshake alone.
    Older,
}

/// Why there is no line.
pub(super) struct Refused {
    pub(super) failure: ConnectFailure,
    /// Whether the URL may speak the older transport: it took no handshake by POST.
    pub(super) perhaps_older: bool,
    /// Whether the server wants to know who asks.
    pub(super) asks_who: bool,
}

impl From<ConnectFailure> for Refused {
    fn from(failure: ConnectFailure) -> Self {
        Self { failure, perhaps_older: false, asks_who: false }
    }
}

/// Connects, without a word yet.
pub(super) async fn connect(
    way: Way,
    spec: &ServerSpec,
    exchange: &Arc<Exchange>,
) -> Result<Wire, Refused> {
    let (redactor, limit) = (spec.endpoint.redactor(), spec.limits.max_message_bytes);
    match &spec.endpoint {
        Endpoint::Stdio(endpoint) => {
            let pipes = Pipes::start(endpoint, redactor.clone(), limit, exchange).await;
            pipes.map(Wire::Pipes).map_err(|error| {
                let failure = reasons::spawn_failure(endpoint, &error);
                ConnectFailure { reason: redactor.line(&failure.reason), ..failure }.into()
            })
        }
        Endpoint::Http(endpoint) if way == Way::Older => {
            let headers = read_headers(endpoint)?;
            let post = Post::open(endpoint, headers, limit, exchange).await;
            post.map(Wire::Post).map_err(|error| {
                let failure = reasons::url_failure(endpoint, &error);
                let failure = ConnectFailure { reason: redactor.line(&failure.reason), ..failure };
                let asks_who = reasons::wants_authorization(&error);
                Refused { asks_who, ..failure.into() }
            })
        }
        Endpoint::Http(endpoint) => Ok(Wire::Web(web(endpoint, limit, exchange)?)),
    }
}

fn web(
    endpoint: &HttpEndpoint,
    limit: usize,
    exchange: &Arc<Exchange>,
) -> Result<Web, ConnectFailure> {
    if let Err(error) = reqwest::Url::parse(&endpoint.url) {
        return Err(ConnectFailure {
            reason: format!("its `url` is no URL: {error}"),
            action: "correct `url` of the server".to_owned(),
        });
    }
    let heard = Arc::new(Heard::new(Arc::default(), |_, _| {}));
    let client = RawHttp::new(endpoint, limit, heard).map_err(|error| ConnectFailure {
        reason: format!("no HTTP client: {}", reasons::plain(&error)),
        action: "check `url` of the server".to_owned(),
    })?;
    Ok(Web::new(client, &endpoint.url, read_headers(endpoint)?, Arc::clone(exchange)))
}
