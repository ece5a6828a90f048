//! The conditions of a rule for the arguments of a call.
//!
//! A condition has three results. *Yes* and *no* are certain. *Unclear* is everything else: a
//! relative path where an absolute one is needed, a text instead of a number, a list or a text in
//! the middle of a path to an argument, a URL that parsers read in different ways. An unclear
//! result counts against the call: a rule that allows must be certain of every value, while a rule
//! that asks or denies applies if any value is unclear.
//!
//! ```
//! use serde_json::json;
//! use toolgate_policy::{ArgumentConditions, Verdict};
//!
//! let conditions = ArgumentConditions::from_value(&json!({
//!     "path": { "under": "/home/ada/project" },
//!     "options.depth": { "less": 3 },
//! }))?;
//! let call = json!({ "path": "/home/ada/project/../.ssh/id_ed25519", "options": { "depth": 1 } });
//! assert!(!conditions.apply(&call, Verdict::Allow));
//! # Ok::<(), toolgate_policy::ConditionError>(())
//! ```

mod advice;
mod command_line;
mod location;
mod operator;
mod path;
mod text;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value};
use thiserror::Error;

pub use advice::ConditionAdvice;
pub use operator::OPERATORS;
use operator::Operator;
use path::PathTarget;
pub use path::{ArgumentPath, MAX_SEGMENTS};
pub use text::ConditionTextError;

use crate::Verdict;

/// The largest number of arguments in the conditions of one rule or grant.
pub const MAX_CONDITIONS: usize = 32;

/// The largest number of values of one call that a condition checks. Further values are unclear.
const MAX_VALUES: usize = 1_000;

/// Conditions on arguments, all of which must hold.
///
/// They are written as an object from paths to operators. A path is a JSON pointer
/// (`/options/force`) or names with dots (`options.force`); `*` in it stands for every element of a
/// list and every member of an object.
#[derive(Debug, Clone, Default)]
pub struct ArgumentConditions {
    conditions: Vec<Condition>,
    /// The conditions as they were written, for display and storage.
    source: Map<String, Value>,
}

#[derive(Debug, Clone)]
struct Condition {
    path: ArgumentPath,
    operators: Vec<Operator>,
}

/// The result of a condition, with its certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Truth {
    No,
    Unclear,
    Yes,
}

/// A problem with conditions. None of them is used then.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{problem}")]
pub struct ConditionError {
    /// The keys that lead to the problem.
    pub path: Vec<String>,
    /// The problem.
    pub problem: ConditionProblem,
}

/// The kinds of problems with a condition.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ConditionProblem {
    /// The value is not an object.
    #[error("must be an object such as {{ \"equals\": … }}")]
    NotAnObject,
    /// The argument has no operator.
    #[error("has no operator")]
    NoOperator,
    /// The operator is unknown.
    #[error("is not a known operator")]
    UnknownOperator,
    /// The path to the argument cannot be parsed.
    #[error("is no path to an argument: at most {MAX_SEGMENTS} non-empty names")]
    Path,
    /// There are too many conditions.
    #[error("has more than {MAX_CONDITIONS} conditions")]
    TooMany,
    /// The operator has an operand of the wrong kind.
    #[error("must be {0}")]
    Operand(&'static str),
    /// The flag belongs to an operator that is missing.
    #[error("belongs to `{0}`, which is missing")]
    Alone(&'static str),
    /// The regular expression is invalid or too large.
    #[error("is no regular expression that can be used: {0}")]
    Regex(String),
}

impl ArgumentConditions {
    /// Reads conditions from JSON and compiles their regular expressions.
    pub fn from_value(value: &Value) -> Result<Self, ConditionError> {
        let fail = |path: &[&str], problem| ConditionError {
            path: path.iter().map(ToString::to_string).collect(),
            problem,
        };
        let object = value.as_object().ok_or(fail(&[], ConditionProblem::NotAnObject))?;
        if object.len() > MAX_CONDITIONS {
            return Err(fail(&[], ConditionProblem::TooMany));
        }
        let mut conditions = Vec::with_capacity(object.len());
        for (key, body) in object {
            let path =
                ArgumentPath::new(key).ok_or_else(|| fail(&[key], ConditionProblem::Path))?;
            let body =
                body.as_object().ok_or_else(|| fail(&[key], ConditionProblem::NotAnObject))?;
            let operators = operator::read(body).map_err(|(name, problem)| match name {
                Some(name) => fail(&[key, &name], problem),
                None => fail(&[key], problem),
            })?;
            conditions.push(Condition { path, operators });
        }
        Ok(Self { conditions, source: object.clone() })
    }

    /// The conditions as they were written.
    pub fn to_value(&self) -> Value {
        Value::Object(self.source.clone())
    }

    /// The arguments that the conditions are about: the names that lead to each, `*` for every
    /// element or member.
    pub fn arguments(&self) -> impl Iterator<Item = Vec<&str>> {
        self.conditions.iter().map(|condition| condition.path.names())
    }

    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// If the only condition is whether an argument is there: the argument, and which is asked for.
    pub(crate) fn existence(&self) -> Option<(Vec<&str>, bool)> {
        let [Condition { path, operators }] = self.conditions.as_slice() else { return None };
        match operators.as_slice() {
            [Operator::Exists(wanted)] => Some((path.names(), *wanted)),
            _ => None,
        }
    }

    /// Whether a rule with this verdict applies to a call. A rule that allows needs certainty; a
    /// rule that asks or denies applies to unclear values too.
    pub fn apply(&self, arguments: &Value, verdict: Verdict) -> bool {
        self.conditions.iter().all(|condition| condition.applies(arguments, verdict))
    }
}

impl ArgumentConditions {
    /// The paths to the arguments with an unclear result.
    pub(crate) fn unclear(&self, arguments: &Value) -> Vec<String> {
        let pairs = self.conditions.iter().zip(self.source.keys());
        let is_unclear = |condition: &Condition| {
            let reached = condition.path.select(arguments, MAX_VALUES);
            reached.is_none_or(|reached| {
                reached.into_iter().any(|each| condition.judge(each) == Truth::Unclear)
            })
        };
        pairs.filter(|(condition, _)| is_unclear(condition)).map(|(_, key)| key.clone()).collect()
    }

    /// The paths to the arguments whose symbolic links cannot be followed, and why.
    pub(crate) fn unfollowed(&self, arguments: &Value) -> Vec<String> {
        let mut notes = Vec::new();
        for (condition, key) in self.conditions.iter().zip(self.source.keys()) {
            let reached = condition.path.select(arguments, MAX_VALUES).unwrap_or_default();
            let texts = reached.into_iter().filter_map(|each| match each {
                PathTarget::Value(value) => value.as_str(),
                PathTarget::Nothing | PathTarget::Else => None,
            });
            let why = texts
                .flat_map(|text| condition.operators.iter().map(move |it| it.unfollowed(text)))
                .find_map(|why| why);
            notes.extend(why.map(|why| format!("`{key}` {why}")));
        }
        notes
    }
}

impl Condition {
    fn applies(&self, arguments: &Value, verdict: Verdict) -> bool {
        let Some(mut reached) = self.path.select(arguments, MAX_VALUES) else {
            return Truth::Unclear >= needed(verdict);
        };
        if reached.is_empty() {
            reached.push(PathTarget::Nothing);
        }
        let mut truths = reached.into_iter().map(|each| self.judge(each));
        match verdict {
            Verdict::Allow => truths.all(|truth| truth == Truth::Yes),
            Verdict::Ask | Verdict::Deny => truths.any(|truth| truth >= needed(verdict)),
        }
    }

    /// The result of all operators for one value.
    fn judge(&self, reached: PathTarget<'_>) -> Truth {
        let value = match reached {
            PathTarget::Value(value) => Some(value),
            PathTarget::Nothing => None,
            PathTarget::Else => return Truth::Unclear,
        };
        self.operators.iter().map(|operator| operator.judge(value)).min().unwrap_or(Truth::Yes)
    }
}

fn needed(verdict: Verdict) -> Truth {
    match verdict {
        Verdict::Allow => Truth::Yes,
        Verdict::Ask | Verdict::Deny => Truth::Unclear,
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

impl PartialEq for ArgumentConditions {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Serialize for ArgumentConditions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ArgumentConditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(&value).map_err(|error| {
            D::Error::custom(format_args!("the condition `{}` {error}", error.path.join(".")))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applies(conditions: &Value, arguments: &Value, verdict: Verdict) -> bool {
        ArgumentConditions::from_value(conditions).unwrap().apply(arguments, verdict)
    }

    #[test]
    fn all_conditions_and_all_operators_must_hold() {
        let conditions = json!({ "n": { "greater": 1, "less": 5 }, "/mode": { "equals": "r" } });
        assert!(applies(&conditions, &json!({"n": 3, "mode": "r"}), Verdict::Allow));
        assert!(!applies(&conditions, &json!({"n": 5, "mode": "r"}), Verdict::Allow));
        assert!(!applies(&conditions, &json!({"n": 3, "mode": "w"}), Verdict::Deny));
        assert!(applies(&json!({}), &json!({}), Verdict::Allow));
    }

    #[test]
    fn one_value_denies_and_all_values_allow() {
        let conditions = json!({ "to.*": { "matches": ".*@example[.]com" } });
        let mixed = json!({ "to": ["a@example.com", "b@evil.test"] });
        assert!(!applies(&conditions, &mixed, Verdict::Allow));
        assert!(applies(&conditions, &mixed, Verdict::Deny));
        let pure = json!({ "to": ["a@example.com"] });
        assert!(applies(&conditions, &pure, Verdict::Allow));
        assert!(!applies(&conditions, &json!({ "to": [] }), Verdict::Allow));
        assert!(!applies(&conditions, &json!({ "to": [] }), Verdict::Deny));
    }

    #[test]
    fn an_argument_path_that_cannot_be_followed_counts_against_the_call() {
        let mails = json!({ "to.*.mail": { "matches": ".*@example[.]com" } });
        let ada = json!({ "mail": "ada@example.com" });
        assert!(applies(&mails, &json!({ "to": [ada] }), Verdict::Allow));
        for other in [json!("eve@evil.test"), json!({ "email": "eve@evil.test" }), json!(null)] {
            let arguments = json!({ "to": [ada, other] });
            assert!(!applies(&mails, &arguments, Verdict::Allow), "{other}");
        }
        let eve = json!({ "to.mail": { "equals": "eve@evil.test" } });
        for hidden in [json!([{ "mail": "eve@evil.test" }]), json!("eve@evil.test")] {
            assert!(applies(&eve, &json!({ "to": hidden }), Verdict::Deny), "{hidden}");
        }
        for without in [json!({}), json!({ "to": {} }), json!({ "to": null })] {
            assert!(!applies(&eve, &without, Verdict::Deny), "{without}");
        }
        let file = json!({ "path": { "equals": "/etc/passwd" } });
        assert!(applies(&file, &json!({ "path": ["/etc/passwd"] }), Verdict::Deny));
    }

    #[test]
    fn too_many_values_count_against_the_call() {
        let conditions = json!({ "*": { "equals": 1 } });
        let many = Value::Array(vec![json!(1); MAX_VALUES + 1]);
        assert!(!applies(&conditions, &many, Verdict::Allow));
        let other = Value::Array(vec![json!(2); MAX_VALUES + 1]);
        assert!(applies(&conditions, &other, Verdict::Deny));
    }

    #[test]
    fn mistakes_have_a_position() {
        let told = |value: &Value| {
            let error = ArgumentConditions::from_value(value).unwrap_err();
            format!("{}: {error}", error.path.join(" > "))
        };
        let found = [
            told(&json!([])),
            told(&json!({"a": 7})),
            told(&json!({"a": {}})),
            told(&json!({"a..b": {"equals": 1}})),
            told(&json!({"a": {"like": 1}})),
            told(&json!({"a": {"less": "1"}})),
            told(&json!({"a": {"matches": "("}})),
            told(&json!({"a": {"matches": "(\\w{100}){1000}"}})),
            told(&json!({"a": {"anchored": false}})),
            told(&json!({"a": {"host": "https://example.com/"}})),
            told(&json!({"a": {"under": "a/../.."}})),
        ];
        insta::assert_snapshot!(found.join("\n"), @r#"
        : must be an object such as { "equals": … }
        a: must be an object such as { "equals": … }
        a: has no operator
        a..b: is no path to an argument: at most 32 non-empty names
        a > like: is not a known operator
        a > less: must be a number
        a > matches: is no regular expression that can be used: unclosed group
        a > matches: is no regular expression that can be used: Compiled regex exceeds size limit of 262144 bytes
        a > anchored: belongs to `matches`, which is missing
        a > host: must be a host such as "example.com", or a list of 1 to 1,000
        a > under: must be a folder such as "/srv/data", without `..` that leads out
        "#);
    }

    #[test]
    fn conditions_are_stored_as_written() {
        let text = r#"{"path":{"under":"/srv"},"n":{"less":3,"greater":1}}"#;
        let read: ArgumentConditions = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert!(serde_json::from_str::<ArgumentConditions>(r#"{"a":{"like":1}}"#).is_err());
    }
}
