//! How a client and a face come to know each other.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolgate_mcp::ErrorObject;

use crate::{
    caller::Caller,
    conversation::Conversation,
    era::{self, Declared, Era},
    face::{Client, Face, Source},
    link::{Link, Outbox, Questions},
    message::Request,
};

/// What an endpoint gives a client of the legacy era.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) caller: Caller,
    /// Where messages go that belong to no request.
    pub(crate) outbox: Arc<dyn Outbox>,
    /// How long it may take to answer a question.
    pub(crate) patience: Duration,
    /// How many requests may be under way.
    pub(crate) in_flight: usize,
}

/// What a handshake has come to.
#[derive(Debug)]
pub(crate) struct Agreed {
    pub(crate) version: &'static str,
    pub(crate) conversation: Arc<Conversation>,
    /// The result of `initialize`.
    pub(crate) greeting: Value,
}

/// Shakes hands with a client of the legacy era.
pub(crate) async fn initialize(
    source: &dyn Source,
    request: &Request,
    terms: Terms,
) -> Result<Agreed, ErrorObject> {
    let field = |name: &str| request.fields().and_then(|params| params.get(name));
    let Some(requested) = field("protocolVersion").and_then(Value::as_str) else {
        return Err(ErrorObject::invalid_params("`protocolVersion` is missing", None));
    };
    let version = era::negotiate(requested);
    let capabilities = field("capabilities").and_then(Value::as_object).cloned();
    let capabilities = Arc::new(capabilities.unwrap_or_default());
    let questions = Questions::new(terms.patience);
    let outlet = Link::legacy(Arc::clone(&capabilities), terms.outbox, Arc::clone(&questions));
    let client = Client {
        caller: terms.caller,
        era: Era::Legacy,
        info: field("clientInfo").cloned().unwrap_or_else(|| json!({})),
        capabilities: (*capabilities).clone(),
        outlet: Some(outlet),
    };
    let face = source.open(client).await?;
    let greeting = face.greeting(Era::Legacy).await?.into_initialize(version);
    let conversation = Conversation::new(face, capabilities, questions, terms.in_flight);
    Ok(Agreed { version, conversation, greeting })
}

/// Opens a face for clients of the modern era that are like the one who asks first.
pub(crate) async fn meet(
    source: &dyn Source,
    caller: Caller,
    declared: Declared<'_>,
) -> Result<Arc<dyn Face>, ErrorObject> {
    let client = Client {
        caller,
        era: Era::Modern,
        info: declared.client_info().cloned().unwrap_or_else(|| json!({})),
        capabilities: declared.capabilities().cloned().unwrap_or_default(),
        outlet: None,
    };
    source.open(client).await
}
