//! Conditions as people type and read them.
//!
//! The language is that of rules: `path under src` is the operator `under`. `path=src/*` is short
//! for it, and `mode=r` is short for `mode equals r`.

use std::fmt;

use serde_json::{Map, Value, json};
use thiserror::Error;

use super::{ArgumentConditions, ConditionError, operator::OPERATORS};
use crate::definitions::shown;

/// Why a text is no condition. None of the conditions beside it is used.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ConditionTextError {
    /// The text names no argument or no operator.
    #[error("`{0}` is no condition; write NAME=VALUE, NAME=FOLDER/* or NAME OPERATOR VALUE")]
    Shape(String),
    /// A star is allowed only at the end of a folder, where it means everything in it.
    #[error(
        "in `{0}` the `*` stands where it has no meaning; write FOLDER/*, or NAME matches REGEX, or \
         NAME host HOST"
    )]
    Star(String),
    /// An argument has the same operator twice.
    #[error("`{0}` says the same operator of an argument a second time")]
    Twice(String),
    /// The operator has a problem.
    #[error("{}", describe(.0))]
    Condition(#[from] ConditionError),
}

/// The number of characters of a text or value that are shown.
const SHOWN: usize = 128;

impl ArgumentConditions {
    /// Reads conditions that a person typed, one per text. All of them must hold.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolgate_policy::{ArgumentConditions, Verdict};
    ///
    /// let conditions = ArgumentConditions::from_texts(["path=src/*", "depth less 3"])?;
    /// assert_eq!(conditions.to_string(), "path is under \"src\" and depth is less than 3");
    /// let leads_out = json!({ "path": "src/../../etc/passwd", "depth": 1 });
    /// assert!(!conditions.apply(&leads_out, Verdict::Allow));
    /// # Ok::<(), toolgate_policy::ConditionTextError>(())
    /// ```
    pub fn from_texts<'t>(
        texts: impl IntoIterator<Item = &'t str>,
    ) -> Result<Self, ConditionTextError> {
        let mut all = Map::new();
        for text in texts {
            let (name, operator, operand) = read(text)?;
            let of_argument = all.entry(name).or_insert_with(|| Value::Object(Map::new()));
            let body = of_argument.as_object_mut();
            if body.is_none_or(|body| body.insert(operator.to_owned(), operand).is_some()) {
                return Err(ConditionTextError::Twice(shown(text, SHOWN)));
            }
        }
        if all.is_empty() {
            return Err(ConditionTextError::Shape(String::new()));
        }
        Ok(Self::from_value(&Value::Object(all))?)
    }

    /// Reads conditions from one line, with `;` between them.
    pub fn from_line(line: &str) -> Result<Self, ConditionTextError> {
        Self::from_texts(line.split(';').map(str::trim).filter(|text| !text.is_empty()))
    }
}

/// Splits a condition into argument, operator and operand.
fn read(text: &str) -> Result<(String, &'static str, Value), ConditionTextError> {
    let wrong = || ConditionTextError::Shape(shown(text, SHOWN));
    let text = text.trim();
    if let Some((name, rest)) = text.split_once(char::is_whitespace)
        && let Some((operator, operand)) = rest.trim().split_once(char::is_whitespace)
        && let Some(known) = OPERATORS.iter().find(|known| **known == operator)
        && !name.contains('=')
    {
        let operand = operand.trim();
        let operand = match *known {
            // The operand is a text even if it looks like a number.
            "matches" | "prefix" | "under" => json!(unquoted(operand)),
            _ => value(operand),
        };
        return Ok((name.to_owned(), known, operand));
    }
    let (name, operand) = text.split_once('=').ok_or_else(wrong)?;
    let (name, operand) = (name.trim(), operand.trim());
    if name.contains(char::is_whitespace) {
        return Err(wrong());
    }
    let folder =
        operand.strip_suffix("/*").map(|folder| if folder.is_empty() { "/" } else { folder });
    match folder {
        // A URL is no folder: `https://example.com@other.test/`.
        Some(folder) if !folder.contains(['*', '?']) && !folder.contains("://") => {
            Ok((name.to_owned(), "under", json!(folder)))
        }
        None if !operand.contains('*') => {
            let (operator, operand) = equal(operand);
            Ok((name.to_owned(), operator, operand))
        }
        _ => Err(ConditionTextError::Star(shown(text, SHOWN))),
    }
}

fn describe(error: &ConditionError) -> String {
    format!("`{}` {error}", shown(&error.path.join(" "), SHOWN))
}

/// An equality with what was typed. The person need not know whether the tool takes a number or a
/// text.
fn equal(operand: &str) -> (&'static str, Value) {
    match value(operand) {
        plain @ (Value::Number(_) | Value::Bool(_)) => ("in", json!([plain, operand])),
        other => ("equals", other),
    }
}

/// The operand as JSON, or as text if it is no JSON.
fn value(operand: &str) -> Value {
    serde_json::from_str(operand).unwrap_or_else(|_| json!(operand))
}

fn unquoted(operand: &str) -> String {
    serde_json::from_str(operand).unwrap_or_else(|_| operand.to_owned())
}

impl fmt::Display for ArgumentConditions {
    /// Displays the conditions with a size limit and without control characters.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions = self.source.iter().flat_map(|(name, body)| {
            let body = body.as_object().into_iter().flatten();
            body.filter_map(move |(operator, operand)| Some((name, words(operator, operand)?)))
        });
        let mut between = "";
        for (name, words) in conditions {
            write!(formatter, "{between}{} {words}", shown(name, SHOWN))?;
            between = " and ";
        }
        Ok(())
    }
}

/// An operator and its operand as text. Flags of other operators give `None`.
fn words(operator: &str, operand: &Value) -> Option<String> {
    let begin = match (operator, operand) {
        ("exists", Value::Bool(true)) => return Some("is there".to_owned()),
        ("exists", _) => return Some("is not there".to_owned()),
        ("anchored", Value::Bool(false)) => return Some("is compared in any part".to_owned()),
        ("subdomains", Value::Bool(true)) => return Some("may be a subdomain".to_owned()),
        ("anchored" | "subdomains", _) => return None,
        ("equals", _) => "is",
        ("in", _) => "is one of",
        ("prefix", _) => "begins with",
        ("argv", _) => "is a command with the words",
        ("under", _) => "is under",
        ("less", _) => "is less than",
        ("greater", _) => "is greater than",
        ("host", _) => "is a URL of",
        ("schemes", _) => "has one of the schemes",
        (other, _) => other,
    };
    Some(format!("{begin} {}", shown(&operand.to_string(), SHOWN)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn source(texts: &[&str]) -> String {
        match ArgumentConditions::from_texts(texts.iter().copied()) {
            Ok(conditions) => format!("{}: {conditions}", conditions.to_value()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn typed_conditions_use_the_operators_of_rules() {
        let found = [
            source(&["path=src/*"]),
            source(&["path=/*", "depth less 3", "depth greater 0"]),
            source(&["id=4711", "name=\"4711\"", "options.mode = read only"]),
            source(&["to matches .*@example[.]com", "zip prefix 10"]),
            source(&["url host [\"example.com\", \"example.org\"]", "force exists false"]),
            source(&["mode in [\"r\", \"w\"]"]),
        ];
        insta::assert_snapshot!(found.join("\n"), @r#"
        {"path":{"under":"src"}}: path is under "src"
        {"path":{"under":"/"},"depth":{"less":3,"greater":0}}: path is under "/" and depth is less than 3 and depth is greater than 0
        {"id":{"in":[4711,"4711"]},"name":{"equals":"4711"},"options.mode":{"equals":"read only"}}: id is one of [4711,"4711"] and name is "4711" and options.mode is "read only"
        {"to":{"matches":".*@example[.]com"},"zip":{"prefix":"10"}}: to matches ".*@example[.]com" and zip begins with "10"
        {"url":{"host":["example.com","example.org"]},"force":{"exists":false}}: url is a URL of ["example.com","example.org"] and force is not there
        {"mode":{"in":["r","w"]}}: mode is one of ["r","w"]
        "#);
    }

    #[test]
    fn conditions_without_meaning_are_refused() {
        let found = [
            source(&[]),
            source(&["path"]),
            source(&["path like x"]),
            source(&["path like x=y"]),
            source(&["=x"]),
            source(&["to=*@example.com"]),
            source(&["path=src/*.rs"]),
            source(&["url=https://example.com/*"]),
            source(&["path=../x/*"]),
            source(&["depth less many"]),
            source(&["to matches ("]),
            source(&["id=1", "id=2"]),
        ];
        insta::assert_snapshot!(found.join("\n"), @r#"
        `` is no condition; write NAME=VALUE, NAME=FOLDER/* or NAME OPERATOR VALUE
        `path` is no condition; write NAME=VALUE, NAME=FOLDER/* or NAME OPERATOR VALUE
        `path like x` is no condition; write NAME=VALUE, NAME=FOLDER/* or NAME OPERATOR VALUE
        `path like x=y` is no condition; write NAME=VALUE, NAME=FOLDER/* or NAME OPERATOR VALUE
        `` is no path to an argument: at most 32 non-empty names
        in `to=*@example.com` the `*` stands where it has no meaning; write FOLDER/*, or NAME matches REGEX, or NAME host HOST
        in `path=src/*.rs` the `*` stands where it has no meaning; write FOLDER/*, or NAME matches REGEX, or NAME host HOST
        in `url=https://example.com/*` the `*` stands where it has no meaning; write FOLDER/*, or NAME matches REGEX, or NAME host HOST
        `path under` must be a folder such as "/srv/data", without `..` that leads out
        `depth less` must be a number
        `to matches` is no regular expression that can be used: unclosed group
        `id=2` says the same operator of an argument a second time
        "#);
    }

    #[test]
    fn a_folder_cannot_be_left() {
        let conditions = ArgumentConditions::from_line("path=src/*; mode=r").unwrap();
        let covers =
            |path: &str| conditions.apply(&json!({ "path": path, "mode": "r" }), Verdict::Allow);
        assert!(covers("src/a.rs") && covers("./src/deep/../b.rs") && covers("src/..a"));
        for out in [
            "src/../../etc/passwd",
            "src/../etc",
            "/src/a",
            "srcs/a",
            "SRC/a",
            "src\\..\\..\\etc",
            "~/src/a",
            "file:///src/a",
            "src/\0a",
            "",
        ] {
            assert!(!covers(out), "{out:?}");
        }
        assert!(!conditions.apply(&json!({ "path": ["src/a"], "mode": "r" }), Verdict::Allow));
        assert!(!conditions.apply(&json!({ "mode": "r" }), Verdict::Allow));
        assert!(ArgumentConditions::from_line(" ; ").is_err());
    }
}
