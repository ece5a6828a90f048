//! What a line goes over.

use std::time::Duration;

use serde_json::Value;
use toolgate_mcp::Era;

use super::{pipes::Pipes, post::Post, trouble::Trouble, web::Web};

/// What a line goes over.
pub(super) enum Wire {
    Pipes(Pipes),
    Web(Web),
    Post(Post),
}

impl Wire {
    /// Sends a request and carries its answer to the exchange. Returns when there is trouble, or when
    /// the answer was carried; who waits for it knows first.
    pub(super) async fn carry(&self, id: i64, method: &str, params: Option<Value>) -> Trouble {
        let carried = match self {
            Self::Pipes(pipes) => pipes.request(id, method, params).await,
            Self::Web(web) => web.request(id, method, params).await,
            Self::Post(post) => post.request(id, method, params).await,
        };
        match carried {
            Ok(()) => std::future::pending().await,
            Err(trouble) => trouble,
        }
    }

    pub(super) async fn notify(&self, method: &str, params: Option<Value>) -> Result<(), Trouble> {
        match self {
            Self::Pipes(pipes) => pipes.notify(method, params).await,
            Self::Web(web) => web.notify(method, params).await,
            Self::Post(post) => post.notify(method, params).await,
        }
    }

    /// Whether a cancellation is told in words. Over HTTP, in the newer protocol, it is the end of
    /// the request's stream.
    pub(super) fn is_told_of_cancellations(&self, era: Era) -> bool {
        !matches!(self, Self::Web(_)) || era == Era::Legacy
    }

    /// Ends it in order.
    pub(super) async fn close(&self, patience: Duration) {
        match self {
            Self::Pipes(pipes) => pipes.close(patience).await,
            Self::Web(web) => web.close(patience).await,
            // The stream ends with the exchange, and nothing else is kept of it.
            Self::Post(_) => {}
        }
    }
}
