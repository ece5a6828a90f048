//! Adds to a configuration text and keeps the rest of it as it is, comments included.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstRootNode},
};
use serde_json::Value;
use thiserror::Error;

/// What is added to the policy of a configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PolicyAddition {
    /// Labels by `server/tool`, as they are written.
    pub labels: Vec<(String, Vec<&'static str>)>,
    /// Rules with the keys of the configuration.
    pub rules: Vec<Value>,
}

/// Why a text was not changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyEditError {
    /// The text is not JSON with comments.
    #[error("the file is no JSON object")]
    NotAnObject,
    /// The value at this path is something else than it has to be.
    #[error("`{0}` is not what it has to be")]
    Unexpected(&'static str),
}

/// Adds labels and rules to the policy of a JSON text.
///
/// A policy of one word becomes an object with the same default. Without a policy, the default stays
/// what it is without one.
pub fn add_to_policy(text: &str, addition: &PolicyAddition) -> Result<String, PolicyEditError> {
    let root = CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|_| PolicyEditError::NotAnObject)?;
    let object = root.object_value().ok_or(PolicyEditError::NotAnObject)?;
    let policy = match object.get("policy") {
        Some(member) => match member.to_serde_value() {
            Some(Value::Object(_)) => member.object_value(),
            word @ (Some(Value::String(_) | Value::Null) | None) => {
                let word = match word.as_ref().and_then(Value::as_str) {
                    Some("off") => "allow",
                    Some(word) => word,
                    None => WITHOUT,
                };
                member.set_value(only_default(word));
                member.object_value()
            }
            Some(_) => None,
        },
        None => object.append("policy", only_default(WITHOUT)).object_value(),
    };
    let policy = policy.ok_or(PolicyEditError::Unexpected("policy"))?;
    if !addition.labels.is_empty() {
        add_labels(&policy, &addition.labels)?;
    }
    if !addition.rules.is_empty() {
        let rules = policy
            .array_value_or_create("rules")
            .ok_or(PolicyEditError::Unexpected("policy.rules"))?;
        rules.ensure_multiline();
        for rule in &addition.rules {
            rules.append(input(rule));
        }
    }
    Ok(root.to_string())
}

/// The default of a file without a policy.
const WITHOUT: &str = "ask-destructive";

fn add_labels(
    policy: &CstObject,
    labels: &[(String, Vec<&'static str>)],
) -> Result<(), PolicyEditError> {
    let all = policy
        .object_value_or_create("labels")
        .ok_or(PolicyEditError::Unexpected("policy.labels"))?;
    all.ensure_multiline();
    for (name, labels) in labels {
        let list = labels.iter().map(|label| CstInputValue::String((*label).to_owned()));
        let list = CstInputValue::Array(list.collect());
        match all.get(name) {
            Some(member) => member.set_value(list),
            None => drop(all.append(name, list)),
        }
    }
    Ok(())
}

fn only_default(word: &str) -> CstInputValue {
    CstInputValue::Object(vec![("default".to_owned(), CstInputValue::String(word.to_owned()))])
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(fields) => CstInputValue::Object(
            fields.iter().map(|(key, value)| (key.clone(), input(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use toolgate_policy::Mode;

    use serde_json::json;

    use super::*;

    fn addition() -> PolicyAddition {
        PolicyAddition {
            labels: vec![("crm/list".to_owned(), vec!["private"])],
            rules: vec![json!({ "tool": "box/run", "verdict": "ask", "reason": "it runs code" })],
        }
    }

    #[test]
    fn comments_and_order_stay() {
        let text = "{\n  // mine\n  \"mcpServers\": { \"crm\": { \"command\": \"x\" } }, // here\n  \
                    \"policy\": {\n    \"default\": \"ask\", /* why */\n    \"labels\": { \"a/b\": \
                    [\"egress\"] },\n  },\n}\n";
        insta::assert_snapshot!(add_to_policy(text, &addition()).unwrap());
    }

    #[test]
    fn a_word_becomes_an_object_with_the_same_default() {
        let changed = |text: &str| {
            let text = add_to_policy(text, &addition()).unwrap();
            crate::parse(&text, crate::Format::Jsonc, "toolgate.json", &|_| None)
                .unwrap()
                .policy
                .mode
        };
        let file = |policy: &str| {
            format!("{{ \"mcpServers\": {{ \"crm\": {{ \"command\": \"x\" }} }}{policy} }}")
        };
        assert_eq!(changed(&file("")), Mode::AskDestructive);
        assert_eq!(changed(&file(", \"policy\": null")), Mode::AskDestructive);
        assert_eq!(changed(&file(", \"policy\": \"deny-writes\"")), Mode::DenyWrites);
        assert_eq!(changed(&file(", \"policy\": \"off\"")), Mode::Allow);
        assert_eq!(changed(&file(", \"policy\": { \"default\": \"deny\" }")), Mode::Deny);
    }

    #[test]
    fn what_cannot_be_understood_is_not_changed() {
        for text in ["[]", "{", "{ \"policy\": [] }", "{ \"policy\": { \"labels\": [] } }"] {
            assert!(add_to_policy(text, &addition()).is_err(), "{text}");
        }
    }
}
