//! Adds to a configuration text and keeps the rest of it as it is, comments included.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstRootNode},
};
use serde_json::Value;
use thiserror::Error;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, value};

use crate::Format;

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
    /// The text is not JSON with comments, or not TOML.
    #[error("the file cannot be read")]
    NotAnObject,
    /// A policy is not written to YAML, which is a client's file.
    #[error("a YAML file gets no policy: write it to a toolgate.json")]
    Yaml,
    /// The value at this path is something else than it has to be.
    #[error("`{0}` is not what it has to be")]
    Unexpected(&'static str),
}

/// Adds labels and rules to the policy of a text.
///
/// A policy of one word becomes an object with the same default. Without a policy, the default stays
/// what it is without one.
pub fn add_to_policy(
    text: &str,
    format: Format,
    addition: &PolicyAddition,
) -> Result<String, PolicyEditError> {
    match format {
        Format::Jsonc => add_to_json(text, addition),
        Format::Toml => add_to_toml(text, addition),
        Format::Yaml => Err(PolicyEditError::Yaml),
    }
}

fn add_to_json(text: &str, addition: &PolicyAddition) -> Result<String, PolicyEditError> {
    let root = CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|_| PolicyEditError::NotAnObject)?;
    let object = root.object_value().ok_or(PolicyEditError::NotAnObject)?;
    let policy = match object.get("policy") {
        Some(member) => match member.to_serde_value() {
            Some(Value::Object(_)) => member.object_value(),
            word @ (Some(Value::String(_) | Value::Null) | None) => {
                let word = word.as_ref().and_then(Value::as_str);
                member.set_value(only_default(default_of(word)));
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

/// The policy of a text as JSON; `None` if it has none, or cannot be read.
pub fn policy_in(text: &str, format: Format) -> Option<Value> {
    match format {
        Format::Jsonc => {
            let root = CstRootNode::parse(text, &ParseOptions::default()).ok()?;
            root.object_value()?.get("policy")?.to_serde_value()
        }
        Format::Toml => {
            let document: toml_edit::DocumentMut = text.parse().ok()?;
            json_of(document.get("policy")?)
        }
        Format::Yaml => None,
    }
}

/// The text with another policy. What else it says stays.
pub fn replace_policy(
    text: &str,
    format: Format,
    policy: &Value,
) -> Result<String, PolicyEditError> {
    match format {
        Format::Jsonc => {
            let root = CstRootNode::parse(text, &ParseOptions::default())
                .map_err(|_| PolicyEditError::NotAnObject)?;
            let object = root.object_value().ok_or(PolicyEditError::NotAnObject)?;
            match object.get("policy") {
                Some(member) => member.set_value(input(policy)),
                None => drop(object.append("policy", input(policy))),
            }
            Ok(root.to_string())
        }
        Format::Toml => {
            let mut document: DocumentMut =
                text.parse().map_err(|_| PolicyEditError::NotAnObject)?;
            document.insert("policy", Item::Value(toml_value(policy)));
            Ok(document.to_string())
        }
        Format::Yaml => Err(PolicyEditError::Yaml),
    }
}

/// An item of TOML as JSON; `None` for what JSON does not have.
fn json_of(item: &Item) -> Option<Value> {
    fn of(value: &toml_edit::Value) -> Option<Value> {
        Some(match value {
            toml_edit::Value::String(text) => Value::from(text.value().as_str()),
            toml_edit::Value::Integer(number) => Value::from(*number.value()),
            toml_edit::Value::Float(number) => Value::from(*number.value()),
            toml_edit::Value::Boolean(value) => Value::from(*value.value()),
            toml_edit::Value::Datetime(_) => return None,
            toml_edit::Value::Array(items) => items.iter().map(of).collect::<Option<_>>()?,
            toml_edit::Value::InlineTable(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(key, field)| Some((key.to_owned(), of(field)?)))
                    .collect::<Option<_>>()?,
            ),
        })
    }
    let inline = item.clone().into_value().ok()?;
    of(&inline)
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

/// The default of a policy that is one word, or not there.
fn default_of(word: Option<&str>) -> &str {
    match word {
        Some("off") => "allow",
        Some(word) => word,
        None => WITHOUT,
    }
}

fn add_to_toml(text: &str, addition: &PolicyAddition) -> Result<String, PolicyEditError> {
    let mut document: DocumentMut = text.parse().map_err(|_| PolicyEditError::NotAnObject)?;
    let item = document.entry("policy").or_insert(Item::None);
    if item.is_none() || item.is_str() {
        let mut policy = Table::new();
        policy.insert("default", value(default_of(item.as_str())));
        *item = Item::Table(policy);
    }
    let policy = as_table(item).ok_or(PolicyEditError::Unexpected("policy"))?;
    if !addition.labels.is_empty() {
        let item = policy.entry("labels").or_insert_with(|| Item::Table(Table::new()));
        let all = as_table(item).ok_or(PolicyEditError::Unexpected("policy.labels"))?;
        for (name, labels) in &addition.labels {
            all.insert(name, value(labels.iter().copied().collect::<Array>()));
        }
    }
    if addition.rules.is_empty() {
        return Ok(document.to_string());
    }
    let none = || Item::ArrayOfTables(ArrayOfTables::new());
    let rules = policy.entry("rules").or_insert_with(none);
    for rule in addition.rules.iter().filter_map(Value::as_object) {
        let fields = rule.iter().map(|(key, field)| (key.as_str(), toml_value(field)));
        match rules {
            Item::ArrayOfTables(rules) => rules.push(fields.collect::<InlineTable>().into_table()),
            Item::Value(toml_edit::Value::Array(rules)) => {
                rules.push(fields.collect::<InlineTable>());
            }
            _ => return Err(PolicyEditError::Unexpected("policy.rules")),
        }
    }
    Ok(document.to_string())
}

/// The table of an item. One in a single line becomes one of several lines.
fn as_table(item: &mut Item) -> Option<&mut Table> {
    if let Some(inline) = item.as_inline_table() {
        *item = Item::Table(inline.clone().into_table());
    }
    item.as_table_mut()
}

/// A JSON value in TOML, whose tables are in one line.
pub fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.into(),
        Value::Array(items) => items.iter().map(toml_value).collect::<Array>().into(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, field)| (key.as_str(), toml_value(field)));
            fields.collect::<InlineTable>().into()
        }
        // TOML has no such value.
        Value::Null => "".into(),
    }
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
        insta::assert_snapshot!(add_to_policy(text, Format::Jsonc, &addition()).unwrap());
    }

    #[test]
    fn comments_and_order_of_toml_stay() {
        let text = "# mine\nmodel = \"o9\" # here\n\n[mcp_servers.crm]\ncommand = \"x\"\n";
        let added = |text: &str| add_to_policy(text, Format::Toml, &addition()).unwrap();
        insta::assert_snapshot!(added(text), @r#"
        # mine
        model = "o9" # here

        [mcp_servers.crm]
        command = "x"

        [policy]
        default = "ask-destructive"

        [policy.labels]
        "crm/list" = ["private"]

        [[policy.rules]]
        tool = "box/run"
        verdict = "ask"
        reason = "it runs code"
        "#);
        let inline =
            "policy = { default = \"ask\", rules = [{ tool = \"a\", verdict = \"deny\" }] }\n";
        for (policy, mode) in [
            ("", Mode::AskDestructive),
            ("policy = \"off\"\n", Mode::Allow),
            ("policy = \"deny-writes\"\n", Mode::DenyWrites),
            (inline, Mode::Ask),
            ("[policy]\ndefault = \"deny\"\n[policy.labels]\n\"a/b\" = [\"egress\"]\n", Mode::Deny),
        ] {
            let text = if policy.starts_with('[') {
                format!("{text}\n{policy}")
            } else {
                format!("{policy}{text}")
            };
            let read = crate::parse(&added(&text), Format::Toml, "config.toml", &|_| None).unwrap();
            assert_eq!(read.policy.mode, mode, "{policy}");
            assert!(!read.policy.labels.is_empty() && !read.policy.rules.is_empty(), "{policy}");
            assert!(read.problems.is_empty(), "{:?}", read.problems);
        }
        for text in ["policy = 1", "policy = {", "[policy]\nlabels = 1", "[policy]\nrules = 1"] {
            assert!(add_to_policy(text, Format::Toml, &addition()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_word_becomes_an_object_with_the_same_default() {
        let changed = |text: &str| {
            let text = add_to_policy(text, Format::Jsonc, &addition()).unwrap();
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
            assert!(add_to_policy(text, Format::Jsonc, &addition()).is_err(), "{text}");
        }
    }
}
