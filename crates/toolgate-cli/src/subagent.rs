//! The model that chooses tools.

use std::sync::Arc;

use toolgate_config::ChatProviderName;
use toolgate_host::{HostSettings, SubagentSettings};
use toolgate_models::chat::{ChatApi, ChatEndpoint, ChatSettings, ModelChooser};
use toolgate_search::StrategyName;

use crate::failure::Failure;

/// The model that the configuration names, ready to be asked.
pub(crate) fn of(settings: &toolgate_config::Subagent) -> Option<SubagentSettings> {
    let endpoint = ChatEndpoint::new(ChatSettings {
        api: match settings.provider {
            ChatProviderName::OpenAi => ChatApi::OpenAi,
            ChatProviderName::Anthropic => ChatApi::Anthropic,
        },
        endpoint: settings.endpoint.clone(),
        model: settings.model.clone(),
        api_key: settings.api_key.as_ref().map(|key| key.expose().to_owned()),
    });
    Some(SubagentSettings {
        chooser: Arc::new(ModelChooser::new(Arc::new(endpoint.ok()?))),
        candidates: settings.candidates,
        timeout: settings.timeout,
    })
}

/// Refuses to ask a model where there is none.
pub(crate) fn check(settings: &HostSettings) -> Result<(), Failure> {
    if settings.strategy != StrategyName::Subagent || settings.subagent.is_some() {
        return Ok(());
    }
    Err(Failure::usage("there is no model to ask, which the strategy `subagent` needs").hint(
        "name one in the configuration: \"toolSearch\": { \"subagent\": { \"endpoint\": \
         \"http://localhost:11434/v1\", \"model\": \"…\" } }; docs/search.md has more",
    ))
}
