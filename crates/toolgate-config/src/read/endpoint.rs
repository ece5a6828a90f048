//! What endpoints have: a URL, and where a model is behind them, its name and a key.

use url::Url;

use super::report::Path;
use super::scope::Scope;
use crate::document::{Member, Value};
use crate::{Secret, Severity};

/// A base URL of a model.
pub(super) fn url<'r>(scope: &mut Scope<'r, '_>, member: &'r Member<'r>) -> Option<String> {
    web_url(scope, member, "write the base URL, such as `http://localhost:11434/v1`")
}

/// A URL of the web; `hint` says how one is written here.
pub(in crate::read) fn web_url<'r>(
    scope: &mut Scope<'r, '_>,
    member: &'r Member<'r>,
    hint: &str,
) -> Option<String> {
    let text = scope.text(member)?;
    let url = Url::parse(text.trim()).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if url.is_none() {
        let path = Path::Key(scope.path, &member.key);
        let predicate = "is not a URL that begins with `http://` or `https://`";
        let hint = Some(hint.to_owned());
        scope.complain(Severity::Error, &path, member.node.offset, predicate, hint);
    }
    url.map(Into::into)
}

/// The model's name, which has to be there. `offset` is where the whole is.
pub(super) fn model(scope: &mut Scope<'_, '_>, offset: usize) -> Option<String> {
    if let Some(model) = scope.object.get("model") {
        return scope.text(model);
    }
    let hint = Some("add `\"model\": \"…\"`, as the endpoint calls it".to_owned());
    scope.complain(Severity::Error, scope.path, offset, "has no `model`", hint);
    None
}

/// The key, where there is one.
pub(super) fn api_key(scope: &mut Scope<'_, '_>) -> Option<Secret> {
    let member = scope.object.get("apiKey")?;
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
