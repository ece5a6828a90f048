//! What the client answers when a server asks.

#![allow(
    deprecated,
    reason = "the suite covers older protocols, whose ways rmcp marks as deprecated"
)]

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, Implementation, ListRootsResult,
    ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleClient};
use rmcp::{ErrorData, model::SamplingMessage};
use serde_json::{Map, Value};

/// A client that accepts whatever it is asked, with defaults where there are any.
#[derive(Debug, Clone, Copy)]
pub(super) struct AcceptingClient;

impl ClientHandler for AcceptingClient {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder()
            .enable_roots()
            .enable_sampling()
            .enable_elicitation()
            .build();
        let name = Implementation::new("toolgate-conformance", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let message = SamplingMessage::assistant_text("This is what the model says.");
        Ok(CreateMessageResult::new(message, "a model".to_owned()))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::default())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(request).unwrap_or_default();
        let filled = filled(&request["requestedSchema"]);
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(filled))
    }
}

/// A value that fits a schema: its default, or the least that does.
pub(super) fn filled(schema: &Value) -> Value {
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    if let Some(first) = schema["enum"].get(0).or_else(|| schema.get("const")) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            Value::Object(
                properties
                    .map(|(name, schema)| (name.clone(), filled(schema)))
                    .collect::<Map<_, _>>(),
            )
        }
        Some("array") => Value::Array(Vec::new()),
        Some("integer" | "number") => Value::from(1),
        Some("boolean") => Value::from(true),
        Some("null") => Value::Null,
        _ => Value::from("a"),
    }
}
