//! Objects of names and values: `env` and `headers`.

use std::collections::BTreeMap;

use crate::document::{Member, Value};
use crate::expand::is_variable_name;
use crate::read::report::Path;
use crate::read::scope::Scope;
use crate::{Secret, Severity};

/// What the names and values of an object are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Environment variables of a process.
    Variable,
    /// Headers of a request.
    Header,
    /// Headers of a request, whose values are the names of our own environment variables.
    HeaderFromVariable,
}

/// Reads an object of names and values; what is wrong is an error in the scope. Numbers and
/// booleans are taken as they are written, as clients do; a `null` is as good as no entry.
pub(super) fn read(scope: &mut Scope<'_, '_>, key: &str, kind: Kind) -> BTreeMap<String, Secret> {
    let mut values = BTreeMap::new();
    let Some(member) = scope.object.get(key) else { return values };
    let hint = format!("write `\"{key}\": {{ \"NAME\": \"value\" }}`");
    let Some(object) = scope.members(member, &hint) else { return values };
    let parent = Path::Key(scope.path, &member.key);
    for member in &object.members {
        let path = Path::Key(&parent, &member.key);
        if let Some(value) = value(scope, &path, member, kind)
            && is_name(scope, &path, member, kind)
        {
            values.insert(member.key.to_string(), Secret::new(value));
        }
    }
    values
}

/// Whether a header can carry a value; if not, records an error.
pub(super) fn is_header_value(
    scope: &mut Scope<'_, '_>,
    path: &Path<'_>,
    offset: usize,
    value: &str,
) -> bool {
    let is_fit = !value.chars().any(|character| character.is_control() && character != '\t');
    if !is_fit {
        let predicate = "has a line break or another control character in its value";
        let hint = Some("look at the variables that it uses".to_owned());
        scope.complain(Severity::Error, path, offset, predicate, hint);
    }
    is_fit
}

fn value(
    scope: &mut Scope<'_, '_>,
    path: &Path<'_>,
    member: &Member<'_>,
    kind: Kind,
) -> Option<String> {
    let offset = member.node.offset;
    let value = match (&member.node.value, kind) {
        (Value::Null, _) => return None,
        (Value::String(name), Kind::HeaderFromVariable) => scope.variable(path, offset, name)?,
        (Value::String(text), _) => {
            warn_of_bare_variable(scope, path, offset, text);
            scope.expand(path, offset, text)?
        }
        (Value::Boolean(value), Kind::Variable | Kind::Header) => value.to_string(),
        (Value::Number(number), Kind::Variable | Kind::Header) => number.to_string(),
        _ => {
            scope.mismatch(Severity::Error, path, &member.node, "a string", None);
            return None;
        }
    };
    let is_fit = kind == Kind::Variable || is_header_value(scope, path, offset, &value);
    is_fit.then_some(value)
}

fn is_name(scope: &mut Scope<'_, '_>, path: &Path<'_>, member: &Member<'_>, kind: Kind) -> bool {
    let name: &str = &member.key;
    let is_token = |character: char| {
        character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character)
    };
    let (is_valid, what) = match kind {
        Kind::Variable => (!name.contains(['=', '\0']), "an environment variable"),
        Kind::Header | Kind::HeaderFromVariable => (name.chars().all(is_token), "a header"),
    };
    let is_valid = is_valid && !name.is_empty();
    if !is_valid {
        let predicate = format!("is not a valid name for {what}");
        scope.complain(Severity::Error, path, member.key_offset, &predicate, None);
    }
    is_valid
}

/// A shell's `$NAME` is not expanded, since a password may begin with a `$` too; for the same
/// reason the message does not repeat it.
fn warn_of_bare_variable(scope: &mut Scope<'_, '_>, path: &Path<'_>, offset: usize, text: &str) {
    if text.strip_prefix('$').is_some_and(is_variable_name) {
        let predicate = "looks like a variable of a shell, but is passed on as it is written";
        let hint = Some("write `${NAME}` for the value of an environment variable".to_owned());
        scope.complain(Severity::Warning, path, offset, predicate, hint);
    }
}
