//! Conditions on arguments: read by the policy itself, placed in the file here.

use serde_json::{Map, Value as Json};
use toolgate_policy::{ArgumentConditions, ConditionError, ConditionProblem, OPERATORS};

use super::report::Path;
use super::scope::Scope;
use crate::Severity;
use crate::document::{Member, Node, Object, Value};
use crate::keys::nearest;

/// Reads the conditions under `arguments`; what is wrong is an error, and none of them is used.
pub(super) fn read(scope: &mut Scope<'_, '_>) -> ArgumentConditions {
    let Some(member) = scope.object.get("arguments") else { return ArgumentConditions::default() };
    let hint = "write `\"arguments\": { \"path\": { \"under\": \"/srv\" } }`";
    let Some(object) = scope.members(member, hint) else { return ArgumentConditions::default() };
    let path = Path::Key(scope.path, &member.key);
    let Some(json) = arguments(scope, object, &path) else { return ArgumentConditions::default() };
    match ArgumentConditions::from_value(&Json::Object(json)) {
        Ok(conditions) => conditions,
        Err(error) => {
            complain(scope, &path, member, &error);
            ArgumentConditions::default()
        }
    }
}

/// The conditions as JSON. Variables are filled in where a path is written.
fn arguments(
    scope: &mut Scope<'_, '_>,
    object: &Object<'_>,
    path: &Path<'_>,
) -> Option<Map<String, Json>> {
    let mut arguments = Map::new();
    for argument in &object.members {
        let path = Path::Key(path, &argument.key);
        let Value::Object(body) = &argument.node.value else {
            arguments.insert(argument.key.to_string(), json(scope, &path, &argument.node)?);
            continue;
        };
        scope.report_replaced(body, &path);
        let mut operators = Map::new();
        for member in &body.members {
            let path = Path::Key(&path, &member.key);
            let operand = match &member.node.value {
                Value::String(text) if member.key == "under" => {
                    Json::String(scope.expand(&path, member.node.offset, text)?)
                }
                _ => json(scope, &path, &member.node)?,
            };
            operators.insert(member.key.to_string(), operand);
        }
        arguments.insert(argument.key.to_string(), Json::Object(operators));
    }
    Some(arguments)
}

/// The same value as JSON. The depth is bounded by that of the file.
fn json(scope: &mut Scope<'_, '_>, path: &Path<'_>, node: &Node<'_>) -> Option<Json> {
    Some(match &node.value {
        Value::Null => Json::Null,
        Value::Boolean(value) => Json::Bool(*value),
        Value::String(text) => Json::String(text.to_string()),
        Value::Number(text) => {
            let Ok(number) = serde_json::from_str(text) else {
                scope.unfit(Severity::Error, path, node, "a number as JSON has them", None);
                return None;
            };
            Json::Number(number)
        }
        Value::Array(nodes) => {
            let items = nodes.iter().map(|node| json(scope, path, node));
            Json::Array(items.collect::<Option<_>>()?)
        }
        Value::Object(object) => {
            let fields = object
                .members
                .iter()
                .map(|member| Some((member.key.to_string(), json(scope, path, &member.node)?)));
            Json::Object(fields.collect::<Option<_>>()?)
        }
        Value::Date => {
            scope.mismatch(Severity::Error, path, node, "a value that JSON has", None);
            return None;
        }
    })
}

/// Reports an error of the policy at its place in the file.
fn complain(
    scope: &mut Scope<'_, '_>,
    path: &Path<'_>,
    member: &Member<'_>,
    error: &ConditionError,
) {
    let hint = match (&error.problem, error.path.last()) {
        (ConditionProblem::UnknownOperator, Some(name)) => Some(match nearest(name, OPERATORS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are `{}`", OPERATORS.join("`, `")),
        }),
        _ => None,
    };
    let is_key = matches!(
        error.problem,
        ConditionProblem::UnknownOperator | ConditionProblem::Path | ConditionProblem::Alone(_)
    );
    let predicate = error.problem.to_string();
    let mut found = member;
    for key in &error.path {
        if let Value::Object(object) = &found.node.value
            && let Some(inner) = object.get(key)
        {
            found = inner;
        }
    }
    let offset = if is_key { found.key_offset } else { found.node.offset };
    let mut tell = |path: &Path<'_>| {
        scope.complain(Severity::Error, path, offset, &predicate, hint.clone());
    };
    match error.path.as_slice() {
        [] => tell(path),
        [argument] => tell(&Path::Key(path, argument)),
        [argument, operator, ..] => tell(&Path::Key(&Path::Key(path, argument), operator)),
    }
}
