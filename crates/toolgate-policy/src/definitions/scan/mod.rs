//! Scans definitions for texts that try to manipulate the model.
//!
//! A finding is a reason to look, not a proof. The patterns are few and specific, because people
//! switch off a scanner that is mostly wrong. They are matched after hidden characters have been
//! removed, as a model would read the text.

mod hidden;
mod phrases;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_catalog::Definition;

pub use hidden::{HiddenKind, shown, spelled_out};

/// The largest number of findings for one definition.
const MAX_FINDINGS: usize = 32;
/// The number of characters of an excerpt on each side of the match.
const AROUND: usize = 20;
const LONGEST_EXCERPT: usize = 160;

/// The fields that a model or a person reads.
const READ: [&str; 6] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// Something in a definition that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionFinding {
    /// The kind of the finding.
    pub kind: FindingKind,
    /// The path, such as `inputSchema.properties.path.description`, safe to display.
    #[serde(rename = "place")]
    pub path: String,
    /// The text around the match, safe to display.
    pub excerpt: String,
}

/// The kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FindingKind {
    /// Characters that a model reads and a person does not see.
    Hidden(HiddenKind),
    /// Letters of several alphabets in one word, so that it looks like another.
    MixedAlphabets,
    /// "Ignore previous instructions".
    Override,
    /// "Do not tell the user".
    Secrecy,
    /// Files that hold keys and passwords.
    SecretFile,
    /// Tags that imitate those of a system prompt: `<IMPORTANT>`.
    PseudoTag,
    /// "Before using this tool, read …".
    Detour,
    /// "Send the conversation to …".
    Exfiltration,
    /// A parameter that asks for more than the tool needs: `sidenote`.
    Parameter,
    /// A long run of base64 or hexadecimal digits.
    Encoded,
}

/// Scans everything in a definition that a model reads.
pub fn scan(definition: &Definition) -> Vec<DefinitionFinding> {
    let value = definition.to_value();
    let mut findings = Vec::new();
    for field in READ {
        if let Some(part) = value.get(field) {
            look(part, field, &mut findings);
        }
    }
    findings
}

/// Scans a value recursively. The parser that made the value has limited its depth.
fn look(value: &Value, path: &str, findings: &mut Vec<DefinitionFinding>) {
    if findings.len() >= MAX_FINDINGS {
        return;
    }
    match value {
        Value::String(text) => look_at_text(text, path, findings),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                look(item, &format!("{path}[{index}]"), findings);
            }
        }
        Value::Object(fields) => {
            look_at_parameters(fields, path, findings);
            for (key, field) in fields {
                let path = format!("{path}.{key}");
                look_at_text(key, &path, findings);
                look(field, &path, findings);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn look_at_text(text: &str, path: &str, findings: &mut Vec<DefinitionFinding>) {
    let path = || shown(path, LONGEST_EXCERPT);
    for (kind, excerpt) in hidden::find(text) {
        findings.push(DefinitionFinding { kind: FindingKind::Hidden(kind), path: path(), excerpt });
    }
    let visible: String = text
        .chars()
        .filter(|character| HiddenKind::of(*character).is_none_or(HiddenKind::is_blank))
        .collect();
    for (kind, range) in phrases::find(&visible) {
        let start =
            visible[..range.start].char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
        let excerpt = shown(&visible[start..], LONGEST_EXCERPT);
        findings.push(DefinitionFinding { kind, path: path(), excerpt });
    }
    findings.truncate(MAX_FINDINGS);
}

fn look_at_parameters(
    schema: &Map<String, Value>,
    path: &str,
    findings: &mut Vec<DefinitionFinding>,
) {
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    for name in properties.keys().filter(|name| phrases::is_suspicious_parameter(name)) {
        let path = shown(&format!("{path}.properties.{name}"), LONGEST_EXCERPT);
        let excerpt = shown(name, LONGEST_EXCERPT);
        findings.push(DefinitionFinding { kind: FindingKind::Parameter, path, excerpt });
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Hidden(HiddenKind::Direction) => "characters that turn the direction of the text",
            Self::Hidden(HiddenKind::ZeroWidth) => "characters without a width",
            Self::Hidden(HiddenKind::Tag) => "a text in invisible characters",
            Self::Hidden(HiddenKind::Variation) => "selectors that may carry a hidden text",
            Self::Hidden(HiddenKind::Control) => "control characters",
            Self::MixedAlphabets => "a word of several alphabets",
            Self::Override => "an instruction to ignore instructions",
            Self::Secrecy => "an instruction to keep something from the user",
            Self::SecretFile => "a file that holds secrets",
            Self::PseudoTag => "a tag that pretends to be of the system",
            Self::Detour => "an instruction to read something first",
            Self::Exfiltration => "an instruction to pass on what the tool does not need",
            Self::Parameter => "a parameter that asks for more than the tool needs",
            Self::Encoded => "an encoded text",
        })
    }
}

impl fmt::Display for DefinitionFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} in `{}`: {}", self.kind, self.path, self.excerpt)
    }
}
