//! The client of a session, as servers ask it.

use futures::future::BoxFuture;
use rmcp::{ErrorData, model::JsonObject};
use serde_json::Value;
use toolgate_upstream::{ClientId, Question, Respondent};

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

impl Respondent for AskedClient {
    fn capabilities(&self) -> &JsonObject {
        self.link.client_capabilities()
    }

    fn answer(&self, question: Question) -> BoxFuture<'_, Result<Value, ErrorData>> {
        self.link.ask(question)
    }

    fn client(&self) -> Option<ClientId> {
        Some(self.client)
    }
}
