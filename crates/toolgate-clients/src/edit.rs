//! Changes entries in a text, and nothing else.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstRootNode},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike};
use toolgate_config::{Format, as_written, toml_value};

use crate::yaml;

/// A change of one entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "edit")]
pub enum Edit {
    /// Adds the entry, or replaces it.
    Set {
        /// The keys that lead to the entries.
        container: Vec<String>,
        /// The name of the entry.
        name: String,
        /// Its content.
        entry: Map<String, Value>,
    },
    /// Sets a boolean of the entry.
    Switch {
        /// The keys that lead to the entries.
        container: Vec<String>,
        /// The name of the entry.
        name: String,
        /// The key of the boolean.
        key: String,
        /// Its value.
        value: bool,
    },
    /// Replaces a list that is there, such as that of the servers that a client uses.
    List {
        /// The keys that lead to the list.
        container: Vec<String>,
        /// The key of the list.
        name: String,
        /// Its items.
        items: Vec<String>,
    },
    /// Removes the entry.
    Remove {
        /// The keys that lead to the entries.
        container: Vec<String>,
        /// The name of the entry.
        name: String,
    },
}

/// Why a text was not changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EditError {
    /// The text breaks the rules of its syntax.
    #[error("it cannot be read: {0}")]
    Syntax(String),
    /// The value at this path is no object.
    #[error("`{0}` in it is not an object")]
    Unexpected(String),
    /// The text is written in a way that cannot be edited in place.
    #[error("it is written in a way that toolgate does not edit")]
    Unsupported,
}

/// The text with all edits. The result is read again: it differs from the text in what the edits say, and in
/// nothing else.
pub fn edited(text: &str, format: Format, edits: &[Edit]) -> Result<String, EditError> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let read = |text: &str| {
        as_written(text, format, "").map_err(|error| EditError::Syntax(first_line(&error)))
    };
    // What is there already is not written in another way.
    let now = read(body);
    let is_done = |edit: &Edit| now.as_ref().is_ok_and(|now| edit.is_done(now));
    let edits: Vec<Edit> = edits.iter().filter(|edit| !is_done(edit)).cloned().collect();
    let changed = match format {
        Format::Jsonc => edit_json(body, &edits)?,
        Format::Toml => edit_toml(body, &edits)?,
        Format::Yaml => {
            edits.iter().try_fold(body.to_owned(), |text, edit| yaml::edit(&text, edit))?
        }
    };
    let (mut expected, mut read) = (now?, read(&changed)?);
    for edit in &edits {
        edit.apply(&mut expected);
    }
    for edit in &edits {
        // Without entries, TOML has no table, and YAML has nothing after the key.
        remove_if_empty(&mut expected, edit.container());
        remove_if_empty(&mut read, edit.container());
    }
    if read != expected {
        return Err(EditError::Unsupported);
    }
    Ok(format!("{mark}{changed}"))
}

/// Removes what has no entries.
fn remove_if_empty(object: &mut Map<String, Value>, path: &[String]) {
    let Some((key, rest)) = path.split_first() else { return };
    if let Some(Value::Object(inner)) = object.get_mut(key) {
        remove_if_empty(inner, rest);
    }
    let is_empty = |value: &Value| match value {
        Value::Object(fields) => fields.is_empty(),
        value => value.is_null(),
    };
    if object.get(key).is_some_and(is_empty) {
        object.remove(key);
    }
}

/// The text `now` without the edits that were made to `before`; all else that has changed since stays. `None` if
/// an entry that the edits changed has changed again.
pub(crate) fn taken_back(
    before: &str,
    now: &str,
    format: Format,
    edits: &[Edit],
) -> Option<String> {
    let read =
        |text: &str| as_written(text.strip_prefix('\u{feff}').unwrap_or(text), format, "").ok();
    let before = read(before)?;
    let mut written = before.clone();
    for edit in edits {
        edit.apply(&mut written);
    }
    let now_read = read(now)?;
    let mut reverse: Vec<Edit> = Vec::new();
    for edit in edits {
        let (container, name) = (edit.container().to_vec(), edit.name().to_owned());
        if edit.entry_in(&now_read) == edit.entry_in(&before) {
            // Somebody has taken it back already.
            continue;
        }
        if !edit.is_kept(edit.entry_in(&now_read), edit.entry_in(&written)) {
            return None;
        }
        reverse.push(match edit.entry_in(&before) {
            Some(Value::Object(entry)) => Edit::Set { container, name, entry: entry.clone() },
            Some(Value::Array(items)) => {
                let items = items.iter().map(|item| item.as_str().map(str::to_owned));
                Edit::List { container, name, items: items.collect::<Option<_>>()? }
            }
            Some(_) => return None,
            None => Edit::Remove { container, name },
        });
    }
    reverse.dedup();
    edited(now, format, &reverse).ok()
}

/// Whether a file says nothing: all that it has is empty.
pub(crate) fn is_without_entries(text: &str, format: Format) -> bool {
    fn is_empty(value: &Value) -> bool {
        match value {
            Value::Object(fields) => fields.values().all(is_empty),
            value => value.is_null(),
        }
    }
    as_written(text, format, "").is_ok_and(|root| root.values().all(is_empty))
}

fn first_line(error: &impl ToString) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

impl Edit {
    pub(crate) fn container(&self) -> &[String] {
        match self {
            Self::Set { container, .. }
            | Self::Switch { container, .. }
            | Self::List { container, .. }
            | Self::Remove { container, .. } => container,
        }
    }

    /// The name of the entry, or of the list.
    pub fn name(&self) -> &str {
        match self {
            Self::Set { name, .. }
            | Self::Switch { name, .. }
            | Self::List { name, .. }
            | Self::Remove { name, .. } => name,
        }
    }

    /// Whether the entry is what it would be.
    fn is_done(&self, root: &Map<String, Value>) -> bool {
        match self {
            Self::Set { entry, .. } => {
                self.entry_in(root).and_then(Value::as_object) == Some(entry)
            }
            _ => false,
        }
    }

    /// The entry that it changes.
    fn entry_in<'a>(&self, root: &'a Map<String, Value>) -> Option<&'a Value> {
        let mut object = root;
        for key in self.container() {
            object = object.get(key)?.as_object()?;
        }
        object.get(self.name())
    }

    /// Whether what this edit has written is still there. A client may add its own keys to an entry, and
    /// the token of one is in no record.
    fn is_kept(&self, now: Option<&Value>, written: Option<&Value>) -> bool {
        match (self, now, written) {
            (Self::Set { .. }, Some(Value::Object(now)), Some(Value::Object(written))) => {
                written.iter().all(|(key, value)| now.get(key) == Some(value))
            }
            _ => now == written,
        }
    }

    /// The same change of the content.
    fn apply(&self, root: &mut Map<String, Value>) {
        let mut object = root;
        for key in self.container() {
            if !matches!(self, Self::Set { .. }) && !object.contains_key(key) {
                return;
            }
            let inner = object.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(inner) = inner else { return };
            object = inner;
        }
        match self {
            Self::Set { name, entry, .. } => {
                object.insert(name.clone(), Value::Object(entry.clone()));
            }
            Self::Switch { name, key, value, .. } => {
                if let Some(Value::Object(entry)) = object.get_mut(name) {
                    entry.insert(key.clone(), Value::Bool(*value));
                }
            }
            Self::List { name, items, .. } => {
                if let Some(list) = object.get_mut(name) {
                    *list = items.as_slice().into();
                }
            }
            Self::Remove { name, .. } => drop(object.remove(name)),
        }
    }
}

fn edit_json(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let text = if text.trim().is_empty() { "{\n}\n" } else { text };
    let root = CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| EditError::Syntax(first_line(&error)))?;
    for edit in edits {
        let mut object = root.object_value().ok_or(EditError::Unsupported)?;
        let mut path = String::new();
        let mut is_there = true;
        for key in edit.container() {
            path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let unexpected = || EditError::Unexpected(path.clone());
            object = match last(&object, key) {
                Some(_) => inner(&object, key).ok_or_else(unexpected)?,
                None if matches!(edit, Edit::Set { .. }) => object
                    .append(key, CstInputValue::Object(Vec::new()))
                    .object_value()
                    .ok_or_else(unexpected)?,
                None => {
                    is_there = false;
                    break;
                }
            };
        }
        if !is_there {
            continue;
        }
        match edit {
            Edit::Set { name, entry, .. } => {
                let value = input(&Value::Object(entry.clone()));
                match last(&object, name) {
                    Some(member) => member.set_value(value),
                    None => drop(object.append(name, value)),
                }
            }
            Edit::Switch { name, key, value, .. } => {
                if let Some(entry) = inner(&object, name) {
                    let value = CstInputValue::Bool(*value);
                    match last(&entry, key) {
                        Some(member) => member.set_value(value),
                        None => drop(entry.append(key, value)),
                    }
                }
            }
            Edit::List { name, items, .. } => {
                if let Some(member) = last(&object, name) {
                    member.set_value(input(&items.as_slice().into()));
                }
            }
            Edit::Remove { name, .. } => {
                while let Some(member) = last(&object, name) {
                    member.remove();
                }
            }
        }
    }
    Ok(root.to_string())
}

/// Of several equal keys the last one counts.
fn last(object: &CstObject, key: &str) -> Option<jsonc_parser::cst::CstObjectProp> {
    object.properties().into_iter().rfind(|member| member.decoded_name().as_deref() == Some(key))
}

fn inner(object: &CstObject, key: &str) -> Option<CstObject> {
    last(object, key)?.object_value()
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

fn edit_toml(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let is_windows = text.contains("\r\n");
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        EditError::Syntax(error.message().lines().next().unwrap_or_default().to_owned())
    })?;
    for edit in edits {
        let mut table: &mut dyn TableLike = document.as_table_mut();
        let mut is_there = true;
        for key in edit.container() {
            let is_set = matches!(edit, Edit::Set { .. });
            if table.get(key).is_none() && !is_set {
                is_there = false;
                break;
            }
            let new = || {
                let mut table = Table::new();
                table.set_implicit(true);
                Item::Table(table)
            };
            let item = table.entry(key).or_insert_with(new);
            table = item.as_table_like_mut().ok_or_else(|| EditError::Unexpected(key.clone()))?;
        }
        if !is_there {
            continue;
        }
        match edit {
            Edit::Set { name, entry, .. } => {
                let mut new = Table::new();
                for (key, value) in entry {
                    match value {
                        Value::Object(fields) => {
                            let fields =
                                fields.iter().map(|(key, field)| (key.as_str(), toml_value(field)));
                            new.insert(
                                key,
                                Item::Table(fields.collect::<InlineTable>().into_table()),
                            );
                        }
                        value => drop(new.insert(key, toml_edit::value(toml_value(value)))),
                    }
                }
                if let Some(old) = table.get(name).and_then(Item::as_table) {
                    *new.decor_mut() = old.decor().clone();
                    new.set_position(old.position());
                }
                table.insert(name, Item::Table(new));
            }
            Edit::Switch { name, key, value, .. } => {
                if let Some(entry) = table.get_mut(name).and_then(Item::as_table_like_mut) {
                    match entry.get_mut(key).and_then(Item::as_value_mut) {
                        Some(old) => {
                            let decor = old.decor().clone();
                            *old = (*value).into();
                            *old.decor_mut() = decor;
                        }
                        None => drop(entry.insert(key, toml_edit::value(*value))),
                    }
                }
            }
            Edit::List { name, items, .. } => {
                if table.get(name).is_some() {
                    let items = toml_value(&items.as_slice().into());
                    table.insert(name, toml_edit::value(items));
                }
            }
            Edit::Remove { name, .. } => drop(table.remove(name)),
        }
    }
    let written = document.to_string();
    // The editor writes line feeds alone.
    Ok(if is_windows { written.replace("\r\n", "\n").replace('\n', "\r\n") } else { written })
}
