//! Scans definitions for texts that try to manipulate the model.
//!
//! A finding is a reason to look, not a proof. The patterns are few and specific, because people
//! switch off a scanner that is mostly wrong. They are matched after hidden characters have been
//! removed, as a model would read the text, and in other readings of it: decoded, reversed, in leet.

mod disguise;
mod hidden;
mod phrases;

use std::{fmt, sync::LazyLock};

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_catalog::Definition;

pub use hidden::{HiddenKind, shown, spelled_out};

/// The largest number of findings for one definition.
const MAX_FINDINGS: usize = 32;
/// The number of characters of an excerpt on each side of the match.
const AROUND: usize = 20;
pub(super) const LONGEST_EXCERPT: usize = 160;

/// So many blank characters in a row push what follows out of sight.
const FAR: usize = 120;
/// So many lines in a row without a text do, too.
const FAR_LINES: usize = 20;

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
    /// A long run of base64 or hexadecimal digits, or a short one that is a text.
    Encoded,
    /// One of these instructions in disguise: reversed, in leet, with spaces between the letters.
    Disguised,
    /// A comment, which is not shown where the text is.
    Comment,
    /// A text after so much blank space that nobody sees it.
    Distant,
    /// An instruction about a tool of another server.
    OtherTool,
}

/// Scans everything in a definition, fields that nobody knows included: a client may show any of it
/// to the model.
pub fn scan(definition: &Definition) -> Vec<DefinitionFinding> {
    scan_value(&definition.to_value())
}

/// Scans everything in the definition of a prompt, a resource or a template, or the instructions of
/// a server.
pub fn scan_value(value: &Value) -> Vec<DefinitionFinding> {
    let mut findings = Vec::new();
    match value {
        Value::Object(fields) => {
            for (field, part) in fields {
                look_at_text(field, field, &mut findings);
                look(part, field, &mut findings);
            }
        }
        value => look(value, "text", &mut findings),
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
    let mut push = |kind, excerpt| {
        findings.push(DefinitionFinding { kind, path: path(), excerpt });
    };
    // A picture is a long run of digits by its nature. What is written in it is read below.
    let is_picture = visible.starts_with("data:");
    let mut has_phrase = false;
    for (kind, range) in phrases::find(&visible) {
        if !(is_picture && kind == FindingKind::Encoded) {
            has_phrase = true;
            push(kind, excerpt(&visible, range.start));
        }
    }
    if let Some(at) = comment(&visible) {
        push(FindingKind::Comment, excerpt(&visible, at));
    }
    if let Some(far) = distant(&visible) {
        push(FindingKind::Distant, shown(far, LONGEST_EXCERPT));
    }
    if !has_phrase {
        let disguised = disguise::readings(&visible).into_iter().find_map(|reading| {
            let found = phrases::find(&reading.text);
            let is_instruction = |kind: &FindingKind| {
                !matches!(kind, FindingKind::Encoded | FindingKind::MixedAlphabets)
            };
            let phrase = found.into_iter().find(|(kind, _)| is_instruction(kind));
            match phrase {
                Some((_, range)) => {
                    Some((FindingKind::Disguised, excerpt(&reading.text, range.start)))
                }
                None if reading.is_encoded && !is_picture => {
                    Some((FindingKind::Encoded, shown(&reading.text, LONGEST_EXCERPT)))
                }
                None => None,
            }
        });
        let spaced = || {
            let said = disguise::spaced(&visible)?;
            Some((FindingKind::Disguised, shown(&said, LONGEST_EXCERPT)))
        };
        if let Some((kind, excerpt)) = disguised.or_else(spaced) {
            push(kind, excerpt);
        }
    }
    findings.truncate(MAX_FINDINGS);
}

/// The text around a match, safe to display.
pub(super) fn excerpt(text: &str, at: usize) -> String {
    let start = text[..at].char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    shown(&text[start..], LONGEST_EXCERPT)
}

/// Where a comment with a text in it begins: of HTML, Markdown or a template, or an element that is
/// not displayed.
fn comment(text: &str) -> Option<usize> {
    let has_words = |inside: &str| inside.split_whitespace().nth(1).is_some();
    let html = text.match_indices("<!--").map(|(at, _)| at).find(|at| {
        let inside = text[at + 4..].split("-->").next().unwrap_or_default();
        has_words(inside)
    });
    let other = || COMMENT.as_ref()?.find(text).map(|found| found.start());
    html.or_else(other)
}

static COMMENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let markdown = r#"\[(?://|comment)\]:\s*(?:#|<>)\s*[("'][^)"'\n]*\s[^)"'\n]*"#;
    let template = r"\{#\s[^#}]{12,400}\s#\}";
    let element = r"<[a-z]+\s[^>]{0,200}(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0\b)[^>]{0,200}>";
    Regex::new(&format!("(?i){markdown}|{template}|{element}")).ok()
});

/// What a text with very much blank space says after it.
fn distant(text: &str) -> Option<&str> {
    let (mut blank, mut lines) = (0, 0);
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        let written = BLANKS.iter().find(|(sign, _)| {
            rest.get(..sign.len()).is_some_and(|start| start.eq_ignore_ascii_case(sign))
        });
        if let Some((sign, is_line)) = written {
            blank += 1;
            lines += usize::from(*is_line);
            at += sign.len();
        } else if letter.is_alphanumeric() {
            if at > 0 && (blank >= FAR || lines >= FAR_LINES) {
                return Some(rest);
            }
            (blank, lines) = (0, 0);
            at += letter.len_utf8();
        } else {
            // A line of dots has no text either, but a rule or a box between texts is not blank.
            blank += usize::from(letter.is_whitespace());
            lines += usize::from(letter == '\n');
            at += letter.len_utf8();
        }
    }
    None
}

/// Blank space that is written out, and whether it ends a line.
const BLANKS: [(&str, bool); 7] = [
    ("<br>", true),
    ("<br/>", true),
    ("<br />", true),
    ("\\n", true),
    ("\\t", false),
    ("&nbsp;", false),
    ("&#160;", false),
];

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
            Self::Disguised => "an instruction in disguise",
            Self::Comment => "a comment that is not shown",
            Self::Distant => "a text far out of sight",
            Self::OtherTool => "an instruction about a tool of another server",
        })
    }
}

impl fmt::Display for DefinitionFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} in `{}`: {}", self.kind, self.path, self.excerpt)
    }
}
