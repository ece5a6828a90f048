//! The connection to the one server, as far as a face has to know it.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use rmcp::{ErrorData, model::JsonObject};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolgate_upstream::Question;

use crate::era::Era;

/// Whom a connection is for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LineClient {
    pub(crate) info: Value,
    pub(crate) capabilities: JsonObject,
}

/// Gets what a server sends of its own accord.
pub(crate) trait LineSink: Send + Sync + 'static {
    fn notification(&self, about: Option<&Value>, method: &str, params: Option<Value>);

    fn question(
        &self,
        about: Option<&Value>,
        question: Question,
    ) -> BoxFuture<'static, Result<Value, ErrorData>>;
}

/// A request of the client.
#[derive(Debug, Clone)]
pub(crate) struct LineRequest {
    pub(crate) key: Value,
    pub(crate) method: String,
    pub(crate) params: Option<Value>,
    pub(crate) cancel: CancellationToken,
}

/// A connection.
pub(crate) trait Wire: fmt::Debug + Send + Sync + 'static {
    /// The era that the server speaks.
    fn era(&self) -> Era;

    /// The result of `initialize` or `server/discover`, as it was sent.
    fn greeting(&self) -> &Value;

    /// Sends a request, and gives its result as it was sent.
    fn request(&self, request: LineRequest) -> BoxFuture<'_, Result<Value, ErrorData>>;

    /// Sends a notification.
    fn notify<'a>(&'a self, method: &'a str, params: Option<Value>) -> BoxFuture<'a, ()>;

    /// Waits for its end.
    fn closed(&self) -> BoxFuture<'_, ()>;

    /// Ends it in order.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Makes connections.
pub(crate) trait Dial: fmt::Debug + Send + Sync + 'static {
    fn dial(
        &self,
        client: LineClient,
        sink: Arc<dyn LineSink>,
    ) -> BoxFuture<'_, Result<Arc<dyn Wire>, ErrorData>>;
}
