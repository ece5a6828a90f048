//! The `subagent` key of `toolSearch`.

use std::time::Duration;

use url::Url;

use super::report::Path;
use super::scope::Scope;
use crate::document::{Member, Value};
use crate::keys::SUBAGENT;
use crate::{ChatProviderName, SearchStrategy, Secret, Severity, Subagent};

const EXAMPLE: &str = "write `\"subagent\": { \"endpoint\": \"http://localhost:11434/v1\", \
                       \"model\": \"…\" }` in `toolSearch`, or choose another strategy";

/// Reads the model. What is wrong costs the model, with an error: search goes on without it.
pub(super) fn read(scope: &mut Scope<'_, '_>, strategy: SearchStrategy) -> Option<Subagent> {
    let wanted = strategy == SearchStrategy::Subagent;
    let Some(member) = scope.object.get("subagent") else {
        if let Some(chosen) = scope.object.get("strategy").filter(|_| wanted) {
            let path = Path::Key(scope.path, &chosen.key);
            let predicate = "is `subagent`, but there is no model to ask";
            let (offset, hint) = (chosen.node.offset, Some(EXAMPLE.to_owned()));
            scope.complain(Severity::Error, &path, offset, predicate, hint);
        }
        return None;
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
        Some(endpoint) => url(scope, endpoint),
        None => Some(provider.endpoint().to_owned()),
    };
    let model = if let Some(model) = object.get("model") {
        scope.text(model)
    } else {
        let hint = Some("add `\"model\": \"…\"`, as the endpoint calls it".to_owned());
        scope.complain(Severity::Error, scope.path, offset, "has no `model`", hint);
        None
    };
    let api_key = object.get("apiKey").and_then(|key| api_key(scope, key));
    let candidates = scope.integer("candidates", 2, 100);
    let candidates = candidates.and_then(|number| usize::try_from(number).ok());
    let timeout = scope.number("timeoutSeconds", 0.1, 60.0);
    let timeout = timeout.map_or(Subagent::TIMEOUT, Duration::from_secs_f64);
    let candidates = candidates.unwrap_or(Subagent::CANDIDATES);
    let (endpoint, model) = (endpoint?, model?);
    let is_sound = scope.first_error.is_none();
    is_sound.then_some(Subagent { provider, endpoint, model, api_key, candidates, timeout })
}

fn url<'r>(scope: &mut Scope<'r, '_>, member: &'r Member<'r>) -> Option<String> {
    let text = scope.text(member)?;
    let url = Url::parse(text.trim()).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if url.is_none() {
        let path = Path::Key(scope.path, &member.key);
        let predicate = "is not a URL that begins with `http://` or `https://`";
        let hint = Some("write the base URL, such as `http://localhost:11434/v1`".to_owned());
        scope.complain(Severity::Error, &path, member.node.offset, predicate, hint);
    }
    url.map(Into::into)
}

fn api_key<'r>(scope: &mut Scope<'r, '_>, member: &'r Member<'r>) -> Option<Secret> {
    if matches!(member.node.value, Value::Null) {
        return None;
    }
    let key = scope.text(member)?;
    if key.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Some(Secret::new(key));
    }
    let path = Path::Key(scope.path, &member.key);
    let predicate = "has a line break or another character that no header can carry in its value";
    let hint = Some("look at the variables that it uses".to_owned());
    scope.complain(Severity::Error, &path, member.node.offset, predicate, hint);
    None
}
