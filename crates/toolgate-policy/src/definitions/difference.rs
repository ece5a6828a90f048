//! The differences between two definitions, for a person to read.

use std::{collections::BTreeSet, fmt};

use serde::Serialize;
use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};
use toolgate_catalog::{Definition, ServerName, ToolId};

use super::{
    lock::Lock,
    pin::{EntryKind, LockedDefinition, PinKey, ServerEntry},
    shown,
};
use crate::NewTools;

/// The number of differences that are listed.
const MAX_LISTED: usize = 100;
/// The longest value that is shown, in characters.
const LONGEST_VALUE: usize = 200;
/// The longest text that is compared word by word, in bytes, because the comparison may take
/// quadratic time. Longer texts are shown side by side.
const LONGEST_COMPARED: usize = 32 * 1024;
/// The number of unchanged words that are shown around a change.
const WORDS_AROUND: usize = 4;

/// The differences, in the order of the keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Differences {
    /// The first hundred differences.
    #[serde(rename = "told")]
    pub listed: Vec<Difference>,
    /// The number of further differences.
    pub left_out: usize,
    /// Whether the entry in the lock file does not match its own fingerprint, because somebody
    /// edited the file.
    pub lock_edited: bool,
}

/// One difference. All texts are safe to display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The path, such as `inputSchema.properties.path.type`.
    pub path: String,
    /// The kind of the difference.
    #[serde(flatten)]
    pub kind: DifferenceKind,
}

/// How two values differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DifferenceKind {
    /// The value is new.
    Added(String),
    /// The value is gone.
    Removed(String),
    /// The value is another one.
    Changed {
        /// The value that was approved.
        before: String,
        /// The value now.
        after: String,
    },
    /// The text changed. Long unchanged parts are replaced by an ellipsis.
    Words(Vec<TextSpan>),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TextSpan {
    /// It is in both texts.
    Same(String),
    /// It is only in the approved text.
    Removed(String),
    /// It is only in the current text.
    Added(String),
}

impl Differences {
    /// Compares field by field.
    pub(super) fn between(before: &Map<String, Value>, after: &Map<String, Value>) -> Self {
        let mut differences = Self::default();
        differences.objects("", before, after);
        differences
    }

    fn tell(&mut self, path: &str, kind: impl FnOnce() -> DifferenceKind) {
        if self.listed.len() < MAX_LISTED {
            self.listed.push(Difference { path: shown(path, LONGEST_VALUE), kind: kind() });
        } else {
            self.left_out += 1;
        }
    }

    fn values(&mut self, path: &str, before: &Value, after: &Value) {
        match (before, after) {
            _ if before == after => {}
            (Value::Object(before), Value::Object(after)) => self.objects(path, before, after),
            (Value::Array(before), Value::Array(after)) => self.lists(path, before, after),
            (Value::String(before), Value::String(after)) if is_prose(before, after) => {
                self.tell(path, || DifferenceKind::Words(words(before, after)));
            }
            _ => self.tell(path, || DifferenceKind::Changed {
                before: value(before),
                after: value(after),
            }),
        }
    }

    fn objects(&mut self, path: &str, before: &Map<String, Value>, after: &Map<String, Value>) {
        let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            match (before.get(key), after.get(key)) {
                (Some(before), Some(after)) => self.values(&path, before, after),
                (Some(gone), None) => self.tell(&path, || DifferenceKind::Removed(value(gone))),
                (None, Some(new)) => self.tell(&path, || DifferenceKind::Added(value(new))),
                (None, None) => {}
            }
        }
    }

    /// Compares lists. For lists such as `required` and `enum` it finds added and removed members,
    /// for lists of schemas the changes in each.
    fn lists(&mut self, path: &str, before: &[Value], after: &[Value]) {
        let is_plain = |item: &Value| !item.is_object() && !item.is_array();
        if !before.iter().chain(after).all(is_plain) {
            for index in 0..before.len().max(after.len()) {
                let path = format!("{path}[{index}]");
                match (before.get(index), after.get(index)) {
                    (Some(before), Some(after)) => self.values(&path, before, after),
                    (Some(gone), None) => self.tell(&path, || DifferenceKind::Removed(value(gone))),
                    (None, Some(new)) => self.tell(&path, || DifferenceKind::Added(value(new))),
                    (None, None) => {}
                }
            }
            return;
        }
        let texts = |items: &[Value]| {
            let mut texts: Vec<String> = items.iter().map(Value::to_string).collect();
            texts.sort_unstable();
            texts
        };
        let (old, new) = (texts(before), texts(after));
        let (gone, come) = (missing(&old, &new), missing(&new, &old));
        if gone.is_empty() && come.is_empty() {
            self.tell(path, || DifferenceKind::Changed {
                before: value(&Value::Array(before.to_vec())),
                after: value(&Value::Array(after.to_vec())),
            });
        }
        for text in gone {
            self.tell(path, || DifferenceKind::Removed(shown(text, LONGEST_VALUE)));
        }
        for text in come {
            self.tell(path, || DifferenceKind::Added(shown(text, LONGEST_VALUE)));
        }
    }
}

/// The entries of a sorted list that the other one lacks, or has less often.
fn missing<'t>(from: &'t [String], other: &[String]) -> Vec<&'t str> {
    let mut rest = other.iter().peekable();
    let mut missing = Vec::new();
    for text in from {
        while rest.next_if(|candidate| *candidate < text).is_some() {}
        if rest.next_if(|candidate| *candidate == text).is_none() {
            missing.push(text.as_str());
        }
    }
    missing
}

fn is_prose(before: &str, after: &str) -> bool {
    let is_short = |text: &str| text.len() <= LONGEST_COMPARED;
    before.contains(' ') && is_short(before) && is_short(after)
}

fn value(value: &Value) -> String {
    shown(&value.to_string(), LONGEST_VALUE)
}

fn words(before: &str, after: &str) -> Vec<TextSpan> {
    let diff = TextDiff::from_words(before, after);
    let mut stretches: Vec<(ChangeTag, String)> = Vec::new();
    for change in diff.iter_all_changes() {
        match stretches.last_mut() {
            Some((tag, text)) if *tag == change.tag() => text.push_str(change.value()),
            _ => stretches.push((change.tag(), change.value().to_owned())),
        }
    }
    let last = stretches.len().saturating_sub(1);
    let whole = |text: &str| shown(text, 4 * LONGEST_VALUE);
    stretches
        .iter()
        .enumerate()
        .map(|(index, (tag, text))| match tag {
            ChangeTag::Delete => TextSpan::Removed(whole(text)),
            ChangeTag::Insert => TextSpan::Added(whole(text)),
            ChangeTag::Equal => TextSpan::Same(whole(&elided(text, index > 0, index < last))),
        })
        .collect()
}

/// An unchanged part, cut to the words next to a change.
fn elided(text: &str, follows: bool, precedes: bool) -> String {
    let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    let (start, end) =
        (if follows { WORDS_AROUND } else { 0 }, if precedes { WORDS_AROUND } else { 0 });
    if words.len() <= start + end + 1 {
        return text.to_owned();
    }
    let (head, tail) = (words[..start].concat(), words[words.len() - end..].concat());
    format!("{head}… {tail}")
}

impl fmt::Display for Differences {
    /// Displays one difference per line, with `[-removed-]` and `{+added+}` in texts.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<String> = Vec::new();
        if self.lock_edited {
            lines.push("the lock file was edited: its entry does not fit its fingerprint".into());
        }
        lines.extend(self.listed.iter().map(ToString::to_string));
        if self.left_out > 0 {
            lines.push(format!("and {} more differences", self.left_out));
        }
        formatter.write_str(&lines.join("\n"))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.kind {
            DifferenceKind::Added(value) => write!(formatter, "+ {path}: {value}"),
            DifferenceKind::Removed(value) => write!(formatter, "- {path}: {value}"),
            DifferenceKind::Changed { before, after } => {
                write!(formatter, "~ {path}: {before} → {after}")
            }
            DifferenceKind::Words(words) => {
                write!(formatter, "~ {path}: ")?;
                words.iter().try_for_each(|word| match word {
                    TextSpan::Same(text) => formatter.write_str(text),
                    TextSpan::Removed(text) => write!(formatter, "[-{text}-]"),
                    TextSpan::Added(text) => write!(formatter, "{{+{text}+}}"),
                })
            }
        }
    }
}

/// The comparison of one tool with its approved definition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The tool.
    pub tool: ToolId,
    /// The result of the comparison.
    #[serde(flatten)]
    pub kind: ChangeKind,
}

/// The result of comparing a tool with its approved definition.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "change", content = "details")]
pub enum ChangeKind {
    /// It is equal to the approved definition.
    Unchanged,
    /// It was never approved.
    New(Newness),
    /// It differs from the approved definition. It is held back until a person approves it.
    Changed(Differences),
    /// The server no longer has it.
    Gone,
}

/// Why a tool was never approved, and how it is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Newness {
    /// Its whole server is new. It is used and pinned, because somebody configured the server.
    WithItsServer,
    /// Its server is known, and the policy allows new tools. It is used and pinned.
    LetIn,
    /// Its server is known, and new tools are held back until a person approves them.
    Held,
}

impl ChangeKind {
    /// Whether what changed must be neither listed nor used.
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Changed(_) | Self::New(Newness::Held))
    }

    /// Whether the current definition has to be pinned.
    pub fn is_to_be_pinned(&self) -> bool {
        matches!(self, Self::New(Newness::WithItsServer | Newness::LetIn))
    }
}

impl Change {
    /// Whether the tool must not be listed or called.
    pub fn is_held(&self) -> bool {
        self.kind.is_held()
    }

    /// Whether the current definition has to be pinned.
    pub fn is_to_be_pinned(&self) -> bool {
        self.kind.is_to_be_pinned()
    }
}

/// Compares what a server lists with what was approved: its tools in the order of the list, then
/// those that are gone. The order of keys does not matter.
pub fn compare<'d>(
    lock: &Lock,
    server: &ServerName,
    listing: impl IntoIterator<Item = &'d Definition>,
    new_tools: NewTools,
) -> Vec<Change> {
    let newness = match (lock.knows(server), new_tools) {
        (false, _) => Newness::WithItsServer,
        (true, NewTools::Allow) => Newness::LetIn,
        (true, NewTools::Hold) => Newness::Held,
    };
    let change = |tool: &str, kind| Change { tool: ToolId::new(server.clone(), tool), kind };
    let mut listed = BTreeSet::new();
    let mut changes = Vec::new();
    for definition in listing {
        let name: &str = definition.name();
        listed.insert(name);
        let kind = match lock.get(server, name) {
            None => ChangeKind::New(newness),
            Some(locked) => against(locked, definition),
        };
        changes.push(change(name, kind));
    }
    let gone = lock.tools(server).filter(|(name, _)| !listed.contains(name));
    changes.extend(gone.map(|(name, _)| change(name, ChangeKind::Gone)));
    changes
}

/// Compares entries of servers with what was approved, in their order. Resources come and go, so a
/// new one is never held back.
pub fn compare_entries<'e>(
    lock: &Lock,
    entries: impl IntoIterator<Item = &'e ServerEntry>,
    new_tools: NewTools,
) -> Vec<ChangeKind> {
    let compare = |entry: &ServerEntry| {
        let Some(locked) = lock.entry(entry) else {
            let is_covered = lock.covers(&entry.server, entry.kind);
            return ChangeKind::New(match new_tools {
                _ if !is_covered => Newness::WithItsServer,
                NewTools::Hold if entry.kind != EntryKind::Resource => Newness::Held,
                NewTools::Hold | NewTools::Allow => Newness::LetIn,
            });
        };
        difference(locked, &entry.locked(), entry.kind.pin_key(&entry.key))
    };
    entries.into_iter().map(compare).collect()
}

fn against(locked: &LockedDefinition, definition: &Definition) -> ChangeKind {
    difference(locked, &locked.same_part_of(definition), PinKey::tool(definition.name()))
}

fn difference(locked: &LockedDefinition, now: &LockedDefinition, key: PinKey<'_>) -> ChangeKind {
    let lock_edited = !locked.is_consistent(key);
    if now.fingerprint() == locked.fingerprint() && !lock_edited {
        return ChangeKind::Unchanged;
    }
    let differences = Differences::between(locked.definition(), now.definition());
    ChangeKind::Changed(Differences { lock_edited, ..differences })
}
