//! The connection to the server, behind traits that tests implement.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use serde_json::Value;
use toolgate_broker::{Admitted, Broker, BrokerError, Outgoing, RawChannel};
use toolgate_host::PassthroughGuard;
use toolgate_mcp::ErrorObject;
use toolgate_upstream::{
    ConnectionClient, ConnectionHandler, RawRequest, RequestError, ServerSpec,
};

use crate::era::Era;

/// Opens connections.
pub(crate) trait ServerConnector: fmt::Debug + Send + Sync + 'static {
    /// Connects in the era of the client if the server supports it, so that less is converted. `owner` is whose
    /// login the client uses, where each caller has their own.
    fn connect(
        &self,
        owner: Arc<str>,
        era: Era,
        client: ConnectionClient,
        handler: Arc<dyn ConnectionHandler>,
    ) -> BoxFuture<'_, Result<Arc<dyn RawChannel>, ErrorObject>>;
}

impl ServerConnector for ServerSpec {
    fn connect(
        &self,
        owner: Arc<str>,
        era: Era,
        client: ConnectionClient,
        handler: Arc<dyn ConnectionHandler>,
    ) -> BoxFuture<'_, Result<Arc<dyn RawChannel>, ErrorObject>> {
        Box::pin(async move {
            let connecting = async {
                let spec = self.of_caller(&owner).await?;
                Broker::connect_raw(&spec, era, client, handler).await
            };
            connecting.await.map_err(|failure| {
                let message = format!(
                    "server `{}` is not connected: {}; {}",
                    self.name, failure.reason, failure.action
                );
                ErrorObject::internal_error(message, None)
            })
        })
    }
}

/// Sends an admitted request over a connection.
pub(crate) async fn send(
    admitted: &mut Admitted,
    connection: &dyn RawChannel,
    request: RawRequest,
) -> Result<Value, ErrorObject> {
    let sent = admitted.send(Outgoing::Raw(connection, request)).await;
    sent.map_err(|error| match error {
        BrokerError::Raw(RequestError::Refused(error)) => error,
        other => ErrorObject::internal_error(other.to_string(), None),
    })
}

/// Sends a request that the policy does not judge.
pub(crate) async fn send_unjudged(
    guard: &PassthroughGuard,
    connection: &dyn RawChannel,
    request: RawRequest,
) -> Result<Value, ErrorObject> {
    let mut admitted = admit_unjudged(guard, &request.method)?;
    send(&mut admitted, connection, request).await
}

pub(crate) fn admit_unjudged(
    guard: &PassthroughGuard,
    method: &str,
) -> Result<Admitted, ErrorObject> {
    let admitted = guard.broker().admit_unjudged(guard.server(), method);
    admitted.ok_or_else(|| ErrorObject::method_not_found(method))
}
