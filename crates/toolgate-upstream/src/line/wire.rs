//! What a line goes over.

use std::time::Duration;

use serde_json::Value;
use toolgate_catalog::Era;

use super::{pipes::Pipes, trouble::Trouble, web::Web};

/// What a line goes over.
pub(super) enum Wire {
    Pipes(Pipes),
    Web(Web),
}

impl Wire {
    /// Sends a request and carries its answer to the exchange. Returns when there is trouble, or when
    /// the answer was carried; who waits for it knows first.
    pub(super) async fn carry(&self, id: i64, method: &str, params: Option<Value>) -> Trouble {
        match self {
            Self::Pipes(pipes) => match pipes.request(id, method, params).await {
                Ok(()) => std::future::pending().await,
                Err(trouble) => trouble,
            },
            Self::Web(web) => match web.request(id, method, params).await {
                Ok(()) => std::future::pending().await,
                Err(trouble) => trouble,
            },
        }
    }

    pub(super) async fn notify(&self, method: &str, params: Option<Value>) -> Result<(), Trouble> {
        match self {
            Self::Pipes(pipes) => pipes.notify(method, params).await,
            Self::Web(web) => web.notify(method, params).await,
        }
    }

    /// Whether a cancellation is told in words. Over HTTP, in the newer protocol, it is the end of
    /// the request's stream.
    pub(super) fn is_told_of_cancellations(&self, era: Era) -> bool {
        matches!(self, Self::Pipes(_)) || era == Era::Legacy
    }

    /// Ends it in order.
    pub(super) async fn close(&self, patience: Duration) {
        match self {
            Self::Pipes(pipes) => pipes.close(patience).await,
            Self::Web(web) => web.close(patience).await,
        }
    }
}
