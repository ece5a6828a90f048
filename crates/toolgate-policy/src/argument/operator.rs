//! The operators of conditions.

use std::cmp::Ordering;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Number, Value};

use super::command_line::CommandPattern;
use super::location::{ArgumentLocation, Hosts, Unfollowed};
use super::{ConditionProblem, Truth};

/// The names of the operators.
pub const OPERATORS: &[&str] = &[
    "equals",
    "in",
    "matches",
    "anchored",
    "prefix",
    "argv",
    "under",
    "less",
    "greater",
    "exists",
    "host",
    "subdomains",
    "schemes",
];

/// The largest regular expression, in bytes, and its largest compiled size.
const MAX_REGEX_BYTES: usize = 1_000;
const MAX_COMPILED_BYTES: usize = 256 * 1024;
/// The longest list of values.
const MAX_LISTED: usize = 1_000;
/// The most schemes beside a host.
const MAX_SCHEMES: usize = 32;
/// The longest text to compare with, in bytes.
const MAX_TEXT_BYTES: usize = 4_096;

/// One operator with its operand.
#[derive(Debug, Clone)]
pub(super) enum Operator {
    In(Vec<Value>),
    Matches(Regex),
    Prefix(Box<str>),
    Argv(CommandPattern),
    Under(ArgumentLocation),
    Less(Number),
    Greater(Number),
    Exists(bool),
    Host(Hosts),
}

type OperatorError = (Option<String>, ConditionProblem);

/// Reads the operators of one argument. An error contains the key of the operator.
pub(super) fn read(body: &Map<String, Value>) -> Result<Vec<Operator>, OperatorError> {
    let anchored = flag(body, "anchored", "matches")?.unwrap_or(true);
    let subdomains = flag(body, "subdomains", "host")?.unwrap_or(false);
    companion(body, "schemes", "host")?;
    let mut operators = Vec::new();
    for (name, operand) in body {
        let wrong = |expected| (Some(name.clone()), ConditionProblem::Operand(expected));
        operators.push(match name.as_str() {
            "equals" => Operator::In(vec![operand.clone()]),
            "in" => match operand {
                Value::Array(values) if (1..=MAX_LISTED).contains(&values.len()) => {
                    Operator::In(values.clone())
                }
                _ => return Err(wrong("a list of 1 to 1,000 values")),
            },
            "matches" => {
                let pattern = text(operand, MAX_REGEX_BYTES)
                    .ok_or(wrong("a regular expression of at most 1,000 bytes"))?;
                let regex =
                    compile(pattern, anchored).map_err(|problem| (Some(name.clone()), problem))?;
                Operator::Matches(regex)
            }
            "prefix" => Operator::Prefix(
                text(operand, MAX_TEXT_BYTES)
                    .ok_or(wrong("a non-empty text of at most 4,096 bytes"))?
                    .into(),
            ),
            "argv" => Operator::Argv(CommandPattern::new(operand).ok_or(wrong(
                "a list of 1 to 100 words; `*` alone is any word, and at the end any number of words",
            ))?),
            "under" => Operator::Under(
                text(operand, MAX_TEXT_BYTES)
                    .and_then(ArgumentLocation::read)
                    .ok_or(wrong("a folder such as \"/srv/data\", without `..` that leads out"))?,
            ),
            "less" => Operator::Less(number(operand).ok_or(wrong("a number"))?),
            "greater" => Operator::Greater(number(operand).ok_or(wrong("a number"))?),
            "exists" => Operator::Exists(operand.as_bool().ok_or(wrong("true or false"))?),
            "host" => Operator::Host(
                Hosts::new(operand, subdomains, schemes(body)?)
                    .ok_or(wrong("a host such as \"example.com\", or a list of 1 to 1,000"))?,
            ),
            "anchored" | "subdomains" | "schemes" => continue,
            _ => return Err((Some(name.clone()), ConditionProblem::UnknownOperator)),
        });
    }
    if operators.is_empty() { Err((None, ConditionProblem::NoOperator)) } else { Ok(operators) }
}

impl Operator {
    /// The result for a value, or for a missing one.
    pub(super) fn judge(&self, value: Option<&Value>) -> Truth {
        if let Self::Exists(wanted) = self {
            // Many clients send `null` for an argument that they leave out.
            let exists = value.is_some_and(|value| !value.is_null());
            return (exists == *wanted).into();
        }
        let Some(value) = value else { return Truth::No };
        match self {
            Self::Exists(_) => Truth::No,
            Self::In(values) => is_one_of(values, value),
            Self::Matches(regex) => of_text(value, |text| regex.is_match(text).into()),
            Self::Prefix(prefix) => of_text(value, |text| text.starts_with(&**prefix).into()),
            Self::Argv(pattern) => pattern.judge(value),
            Self::Under(folder) => of_text(value, |text| folder.holds(text)),
            Self::Host(hosts) => of_text(value, |text| hosts.judge(text)),
            Self::Less(limit) => of_number(value, limit, Ordering::Less),
            Self::Greater(limit) => of_number(value, limit, Ordering::Greater),
        }
    }

    /// Why the symbolic links of a path cannot be followed, if the operator follows them.
    pub(super) fn unfollowed(&self, path: &str) -> Option<Unfollowed> {
        match self {
            Self::Under(folder) => folder.unfollowed(path),
            _ => None,
        }
    }
}

/// Some servers accept a list with one value in place of the value.
fn is_one_of(values: &[Value], value: &Value) -> Truth {
    if values.iter().any(|one| equal(one, value)) {
        return Truth::Yes;
    }
    let comparable = match value {
        Value::Array(_) => values.iter().any(Value::is_array),
        Value::Object(_) => values.iter().any(Value::is_object),
        _ => true,
    };
    if comparable { Truth::No } else { Truth::Unclear }
}

/// A value that is no text is unclear, because the server may convert it to one.
fn of_text(value: &Value, judge: impl FnOnce(&str) -> Truth) -> Truth {
    match value {
        Value::String(text) => judge(text),
        Value::Null => Truth::No,
        _ => Truth::Unclear,
    }
}

/// Most servers accept `"7"` for 7.
fn of_number(value: &Value, limit: &Number, wanted: Ordering) -> Truth {
    match value {
        Value::Number(number) => {
            compare(number, limit).map_or(Truth::Unclear, |ordering| (ordering == wanted).into())
        }
        Value::Null => Truth::No,
        _ => Truth::Unclear,
    }
}

fn compare(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// JSON equality, but 1 is 1.0.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            compare(left, right) == Some(Ordering::Equal)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(one, two)| equal(one, two))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, one)| right.get(key).is_some_and(|two| equal(one, two)))
        }
        _ => left == right,
    }
}

fn flag(
    body: &Map<String, Value>,
    name: &str,
    belongs_to: &'static str,
) -> Result<Option<bool>, OperatorError> {
    let Some(value) = companion(body, name, belongs_to)? else { return Ok(None) };
    let wrong = (Some(name.to_owned()), ConditionProblem::Operand("true or false"));
    value.as_bool().map(Some).ok_or(wrong)
}

/// The schemes that a URL may have beside `host`.
fn schemes(body: &Map<String, Value>) -> Result<Vec<String>, OperatorError> {
    let Some(value) = companion(body, "schemes", "host")? else {
        return Ok(vec!["http".to_owned(), "https".to_owned()]);
    };
    let is_scheme = |text: &&str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.chars().all(|each| each.is_ascii_alphanumeric() || "+-.".contains(each))
    };
    let scheme = |value: &Value| value.as_str().filter(is_scheme).map(str::to_ascii_lowercase);
    let listed = value.as_array().filter(|listed| (1..=MAX_SCHEMES).contains(&listed.len()));
    let schemes = listed.and_then(|listed| listed.iter().map(scheme).collect());
    schemes.ok_or((
        Some("schemes".to_owned()),
        ConditionProblem::Operand("a list of 1 to 32 schemes such as \"https\""),
    ))
}

/// The value of a key that only has a meaning beside another.
fn companion<'b>(
    body: &'b Map<String, Value>,
    name: &str,
    belongs_to: &'static str,
) -> Result<Option<&'b Value>, OperatorError> {
    match body.get(name) {
        Some(_) if !body.contains_key(belongs_to) => {
            Err((Some(name.to_owned()), ConditionProblem::Alone(belongs_to)))
        }
        found => Ok(found),
    }
}

fn text(operand: &Value, longest: usize) -> Option<&str> {
    operand.as_str().filter(|text| !text.is_empty() && text.len() <= longest)
}

fn number(operand: &Value) -> Option<Number> {
    match operand {
        Value::Number(number) => Some(number.clone()),
        _ => None,
    }
}

/// Compiles a pattern. Matching takes time linear in the text, so only the size needs a limit.
fn compile(pattern: &str, anchored: bool) -> Result<Regex, ConditionProblem> {
    let build = |pattern: &str| {
        RegexBuilder::new(pattern)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_COMPILED_BYTES)
            .build()
            .map_err(|error| ConditionProblem::Regex(last_line(&error.to_string())))
    };
    // The pattern is compiled alone first, so that `a)|(b` is refused and not read inside the group.
    let plain = build(pattern)?;
    if anchored { build(&format!("\\A(?:{pattern})\\z")) } else { Ok(plain) }
}

/// The message without the excerpt that marks the position.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge(operators: &Value, value: &Value) -> Truth {
        let operators = read(operators.as_object().unwrap()).unwrap();
        operators.iter().map(|operator| operator.judge(Some(value))).min().unwrap()
    }

    #[test]
    fn values_are_compared_as_json() {
        assert_eq!(
            judge(&json!({"equals": {"a": 1, "b": 2}}), &json!({"b": 2.0, "a": 1})),
            Truth::Yes
        );
        assert_eq!(judge(&json!({"equals": 1}), &json!("1")), Truth::No);
        assert_eq!(judge(&json!({"equals": "/etc"}), &json!(["/etc"])), Truth::Unclear);
        assert_eq!(judge(&json!({"in": ["/etc"]}), &json!({"path": "/etc"})), Truth::Unclear);
        assert_eq!(judge(&json!({"equals": [1]}), &json!([2])), Truth::No);
        assert_eq!(judge(&json!({"in": ["a", null]}), &json!(null)), Truth::Yes);
    }

    #[test]
    fn a_regular_expression_is_anchored_by_default() {
        assert_eq!(judge(&json!({"matches": "a|ab"}), &json!("ab")), Truth::Yes);
        assert_eq!(judge(&json!({"matches": "a"}), &json!("ab")), Truth::No);
        assert_eq!(judge(&json!({"matches": "a"}), &json!("a\n")), Truth::No);
        assert_eq!(judge(&json!({"matches": "a", "anchored": false}), &json!("ba")), Truth::Yes);
        assert_eq!(judge(&json!({"matches": "7"}), &json!(7)), Truth::Unclear);
        assert!(compile("a)|(b", true).is_err());
    }

    #[test]
    fn numbers_are_compared_exactly() {
        let limit = json!({"greater": 9_007_199_254_740_992_u64});
        assert_eq!(judge(&limit, &json!(9_007_199_254_740_993_u64)), Truth::Yes);
        assert_eq!(judge(&limit, &json!(9_007_199_254_740_992_u64)), Truth::No);
        assert_eq!(judge(&json!({"less": 1.5}), &json!(1)), Truth::Yes);
        assert_eq!(judge(&json!({"less": 100}), &json!("50")), Truth::Unclear);
    }

    #[test]
    fn null_is_nothing() {
        assert_eq!(judge(&json!({"exists": false}), &json!(null)), Truth::Yes);
        assert_eq!(judge(&json!({"exists": true}), &json!(0)), Truth::Yes);
        assert_eq!(judge(&json!({"prefix": "a"}), &json!(null)), Truth::No);
    }

    #[test]
    fn the_table_of_operator_names_is_complete() {
        for name in OPERATORS {
            let body = json!({ *name: {} });
            let problem = read(body.as_object().unwrap()).err().map(|(_, problem)| problem);
            assert_ne!(problem, Some(ConditionProblem::UnknownOperator), "{name}");
        }
    }
}
