//! The `subagent` key of `toolSearch`.

use std::time::Duration;

use super::endpoint;
use super::report::Path;
use super::scope::Scope;
use crate::document::Value;
use crate::keys::SUBAGENT;
use crate::{ChatProviderName, SearchStrategy, Severity, Subagent};

const EXAMPLE: &str = "write `\"subagent\": { \"endpoint\": \"http://localhost:11434/v1\", \
                       \"model\": \"…\" }` in `toolSearch`, or choose another strategy";

/// Reads the model; where none is said, it is `inherited`. What is wrong costs the model, with an
/// error: search goes on without it.
pub(super) fn read(
    scope: &mut Scope<'_, '_>,
    strategy: SearchStrategy,
    inherited: Option<Subagent>,
) -> Option<Subagent> {
    let wanted = strategy == SearchStrategy::Subagent && inherited.is_none();
    let Some(member) = scope.object.get("subagent") else {
        if let Some(chosen) = scope.object.get("strategy").filter(|_| wanted) {
            let path = Path::Key(scope.path, &chosen.key);
            let predicate = "is `subagent`, but there is no model to ask";
            let (offset, hint) = (chosen.node.offset, Some(EXAMPLE.to_owned()));
            scope.complain(Severity::Error, &path, offset, predicate, hint);
        }
        return inherited;
    };
    let path = Path::Key(scope.path, &member.key);
    let Value::Object(object) = &member.node.value else {
        let hint = Some(EXAMPLE.to_owned());
        scope.mismatch(Severity::Error, &path, &member.node, "an object", hint);
        return None;
    };
    let outer_error = scope.first_error.take();
    let found = scope.within(object, &path, |inner| model(inner, member.node.offset));
    scope.first_error = outer_error;
    found
}

fn model(scope: &mut Scope<'_, '_>, offset: usize) -> Option<Subagent> {
    let object = scope.object;
    scope.report_replaced(object, scope.path);
    scope.report_unknown(&[SUBAGENT], SUBAGENT);
    let provider: ChatProviderName = match object.get("provider") {
        Some(_) => scope.choice("provider", Severity::Error)?,
        None => ChatProviderName::default(),
    };
    let endpoint = match object.get("endpoint") {
        Some(member) => endpoint::url(scope, member),
        None => Some(provider.endpoint().to_owned()),
    };
    let model = endpoint::model(scope, offset);
    let api_key = endpoint::api_key(scope);
    let candidates = scope.integer("candidates", 2, 100);
    let candidates = candidates.and_then(|number| usize::try_from(number).ok());
    let timeout = scope.number("timeoutSeconds", 0.1, 60.0);
    let timeout = timeout.map_or(Subagent::TIMEOUT, Duration::from_secs_f64);
    let candidates = candidates.unwrap_or(Subagent::CANDIDATES);
    let (endpoint, model) = (endpoint?, model?);
    let is_sound = scope.first_error.is_none();
    is_sound.then_some(Subagent { provider, endpoint, model, api_key, candidates, timeout })
}
