//! The client of a session, as servers ask it.

use futures::future::BoxFuture;
use serde_json::Value;
use toolgate_mcp::{ErrorObject, JsonObject};
use toolgate_upstream::{ClientId, InputHandler, InputRequest};

use crate::link::Link;

/// The way back of one call, to a client that may have made others.
#[derive(Debug)]
pub(super) struct AskedClient {
    client: ClientId,
    link: Link,
}

impl AskedClient {
    pub(super) fn new(client: ClientId, link: Link) -> Self {
        Self { client, link }
    }
}

impl InputHandler for AskedClient {
    fn capabilities(&self) -> &JsonObject {
        self.link.client_capabilities()
    }

    fn answer(&self, question: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        self.link.ask(question)
    }

    fn client(&self) -> Option<ClientId> {
        Some(self.client)
    }
}
