//! The connection to the one server, as far as a face has to know it.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use serde_json::Value;
use toolgate_mcp::ErrorObject;
use toolgate_upstream::{
    ConnectionClient, ConnectionHandler, RawConnection, RawRequest, RequestError, ServerSpec,
};

use crate::era::Era;

/// A connection.
pub(crate) trait Wire: fmt::Debug + Send + Sync + 'static {
    /// The era that the server speaks.
    fn era(&self) -> Era;

    /// The result of `initialize` or `server/discover`, as it was sent.
    fn greeting(&self) -> &Value;

    /// Sends a request, and gives its result as it was sent.
    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Value, ErrorObject>>;

    /// Sends a notification.
    fn notify<'a>(&'a self, method: &'a str, params: Option<Value>) -> BoxFuture<'a, ()>;

    /// Waits for its end.
    fn closed(&self) -> BoxFuture<'_, ()>;

    /// Ends it in order.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Makes connections.
pub(crate) trait Dial: fmt::Debug + Send + Sync + 'static {
    /// Makes one, of the client's own era where the server speaks it: the less is translated.
    fn dial(
        &self,
        era: Era,
        client: ConnectionClient,
        sink: Arc<dyn ConnectionHandler>,
    ) -> BoxFuture<'_, Result<Arc<dyn Wire>, ErrorObject>>;
}

impl Dial for ServerSpec {
    fn dial(
        &self,
        era: Era,
        client: ConnectionClient,
        sink: Arc<dyn ConnectionHandler>,
    ) -> BoxFuture<'_, Result<Arc<dyn Wire>, ErrorObject>> {
        Box::pin(async move {
            let spec = Self { remembered_era: Some(era), ..self.clone() };
            let line = spec.connect(&client, sink).await.map_err(|failure| {
                let message = format!(
                    "server `{}` is not connected: {}; {}",
                    self.name, failure.reason, failure.action
                );
                ErrorObject::internal_error(message, None)
            })?;
            Ok(Arc::new(line) as Arc<dyn Wire>)
        })
    }
}

impl Wire for RawConnection {
    fn era(&self) -> Era {
        RawConnection::era(self)
    }

    fn greeting(&self) -> &Value {
        RawConnection::handshake(self)
    }

    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        Box::pin(async move {
            RawConnection::request(self, request).await.map_err(|error| match error {
                RequestError::Refused(error) => error,
                other => ErrorObject::internal_error(other.to_string(), None),
            })
        })
    }

    fn notify<'a>(&'a self, method: &'a str, params: Option<Value>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = RawConnection::notify(self, method, params).await {
                tracing::debug!(%error, "the server could not be told");
            }
        })
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(RawConnection::closed(self))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(RawConnection::close(self))
    }
}
