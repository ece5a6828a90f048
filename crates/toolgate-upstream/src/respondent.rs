//! Who answers what a server asks.

use std::fmt;

use futures::future::BoxFuture;
use rmcp::{ErrorData, model::JsonObject};
use serde_json::Value;

/// What a server asks of a client: `elicitation/create`, `sampling/createMessage`, `roots/list`.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The method.
    pub method: String,
    /// Its parameters, as they were sent.
    pub params: Option<Value>,
}

/// Answers what a server asks while it works on a call: the client that made the call, whichever
/// era it speaks.
///
/// A server of the older protocol sends a request of its own and waits; one of 2026-07-28 gives an
/// `input_required` result and is called again with the answers. Both end here, so that who calls a
/// tool need not know which it was.
pub trait Respondent: fmt::Debug + Send + Sync {
    /// What can be asked, as the client declared it: the `capabilities` of its `initialize`, or of
    /// the request. What is not in it is refused without asking.
    fn capabilities(&self) -> &JsonObject;

    /// Asks, and gives the answer as it was sent.
    fn answer(&self, question: Question) -> BoxFuture<'_, Result<Value, ErrorData>>;
}
