//! The connection to the server, behind traits that tests implement.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use serde_json::Value;
use toolgate_mcp::ErrorObject;
use toolgate_upstream::{
    ConnectionClient, ConnectionHandler, RawConnection, RawRequest, RequestError, ServerSpec,
};

use crate::era::Era;

/// A connection to one server, for one client or several.
pub(crate) trait ServerConnection: fmt::Debug + Send + Sync + 'static {
    /// The era of the server.
    fn era(&self) -> Era;

    /// The result of `initialize` or `server/discover`, as it was sent.
    fn server_info(&self) -> &Value;

    /// Sends a request. Returns the result as it was sent.
    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Value, ErrorObject>>;

    fn notify<'a>(&'a self, method: &'a str, params: Option<Value>) -> BoxFuture<'a, ()>;

    /// Completes when the connection has ended.
    fn closed(&self) -> BoxFuture<'_, ()>;

    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Opens connections.
pub(crate) trait ServerConnector: fmt::Debug + Send + Sync + 'static {
    /// Connects in the era of the client if the server supports it, so that less is converted.
    fn connect(
        &self,
        era: Era,
        client: ConnectionClient,
        handler: Arc<dyn ConnectionHandler>,
    ) -> BoxFuture<'_, Result<Arc<dyn ServerConnection>, ErrorObject>>;
}

impl ServerConnector for ServerSpec {
    fn connect(
        &self,
        era: Era,
        client: ConnectionClient,
        handler: Arc<dyn ConnectionHandler>,
    ) -> BoxFuture<'_, Result<Arc<dyn ServerConnection>, ErrorObject>> {
        Box::pin(async move {
            let spec = Self { remembered_era: Some(era), ..self.clone() };
            match spec.open_connection(&client, handler).await {
                Ok(connection) => Ok(Arc::new(connection) as Arc<dyn ServerConnection>),
                Err(failure) => {
                    let message = format!(
                        "server `{}` is not connected: {}; {}",
                        self.name, failure.reason, failure.action
                    );
                    Err(ErrorObject::internal_error(message, None))
                }
            }
        })
    }
}

impl ServerConnection for RawConnection {
    fn era(&self) -> Era {
        Self::era(self)
    }

    fn server_info(&self) -> &Value {
        Self::handshake(self)
    }

    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        Box::pin(async move {
            Self::request(self, request).await.map_err(|error| match error {
                RequestError::Refused(error) => error,
                other => ErrorObject::internal_error(other.to_string(), None),
            })
        })
    }

    fn notify<'a>(&'a self, method: &'a str, params: Option<Value>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = Self::notify(self, method, params).await {
                tracing::debug!(%error, "a notification could not be sent to the server");
            }
        })
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::closed(self))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::close(self))
    }
}
