//! Tools: what a tool takes, what it does to which table, and its definition.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::field::{Field, Object, object_schema};
use crate::formula::Formula;
use crate::store::Store;

/// A tool of a demo server.
#[derive(Debug, Deserialize)]
pub(crate) struct Tool {
    pub(crate) name: String,
    about: String,
    /// In the order in which a script passes them.
    pub(crate) input: Vec<Field>,
    #[serde(flatten)]
    pub(crate) action: Action,
    /// What its results are; without it, they are text alone.
    output: Option<Output>,
}

/// What a call does. Where a row is meant, the tool's first input is its identifier.
#[derive(Debug, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub(crate) enum Action {
    /// The rows that match the arguments, see [`Table::matches`](crate::table::Table::matches): an array, or an object
    /// with the array under the name of `page` and the total before paging.
    List { table: String, page: Option<String> },
    /// One row.
    Get { table: String },
    /// A new row of the arguments and the values of `set`.
    Create {
        table: String,
        #[serde(default)]
        set: Object,
    },
    /// A row with the arguments and the values of `set` put in.
    Update {
        table: String,
        #[serde(default)]
        set: Object,
    },
    /// The same, for what cannot be taken back.
    Destroy {
        table: String,
        #[serde(default)]
        set: Object,
    },
    /// A row with the arguments added to a column that is a list.
    Append { table: String, column: String },
    /// A row is removed.
    Delete { table: String },
    /// Formulas that change nothing; the last one is the result.
    Compute { r#do: Vec<Formula> },
    /// Formulas that change rows.
    Change { r#do: Vec<Formula> },
}

/// What the definition says of a tool's results.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Output {
    /// What the action gives for the columns of its table.
    Row,
    /// An object of these fields.
    Object(Vec<Field>),
    /// A list of objects of these fields.
    List(Vec<Field>),
}

impl Tool {
    /// Whether results have structured content.
    pub(crate) fn is_typed(&self) -> bool {
        self.output.is_some()
    }

    /// The definition, as `tools/list` has it.
    pub(crate) fn definition(&self, store: &Store, annotated: bool) -> Value {
        let mut definition = json!({
            "name": self.name,
            "description": self.about,
            "inputSchema": object_schema(&self.input, true),
        });
        if let Some(output) = &self.output {
            definition["outputSchema"] = match output {
                Output::Row => self.action.output_schema(store),
                Output::Object(fields) => object_schema(fields, false),
                Output::List(fields) => list_schema(&object_schema(fields, false)),
            };
        }
        if annotated {
            let mut annotations = self.action.annotations();
            annotations.shift_insert(0, "title".to_owned(), json!(title(&self.name)));
            definition["annotations"] = annotations.into();
        }
        definition
    }
}

impl Action {
    fn table(&self) -> Option<&str> {
        match self {
            Self::List { table, .. }
            | Self::Get { table }
            | Self::Create { table, .. }
            | Self::Update { table, .. }
            | Self::Destroy { table, .. }
            | Self::Append { table, .. }
            | Self::Delete { table } => Some(table),
            Self::Compute { .. } | Self::Change { .. } => None,
        }
    }

    fn annotations(&self) -> Object {
        let hints: &[(&str, bool)] = match self {
            Self::List { .. } | Self::Get { .. } | Self::Compute { .. } => {
                &[("readOnlyHint", true), ("openWorldHint", false)]
            }
            Self::Create { .. } | Self::Append { .. } | Self::Change { .. } => {
                &[("readOnlyHint", false), ("destructiveHint", false), ("idempotentHint", false)]
            }
            Self::Update { .. } => {
                &[("readOnlyHint", false), ("destructiveHint", false), ("idempotentHint", true)]
            }
            Self::Destroy { .. } | Self::Delete { .. } => {
                &[("readOnlyHint", false), ("destructiveHint", true)]
            }
        };
        hints.iter().map(|(name, hint)| ((*name).to_owned(), json!(hint))).collect()
    }

    fn output_schema(&self, store: &Store) -> Value {
        let table = self.table().and_then(|name| store.table(name));
        let row = object_schema(table.map_or(&[], |table| &table.columns), false);
        match self {
            Self::List { page: None, .. } => list_schema(&row),
            Self::List { page: Some(name), .. } => json!({
                "type": "object",
                "properties": {
                    name: { "type": "array", "items": row },
                    "total": {
                        "type": "integer",
                        "description": "Number of matches before paging.",
                    },
                },
                "required": [name, "total"],
            }),
            _ => row,
        }
    }
}

/// The value as structured content: an array is wrapped, since it must be an object.
pub(crate) fn structured(value: Value) -> Value {
    if value.is_object() { value } else { json!({ "result": value }) }
}

/// The schema of [`structured`] for a list.
fn list_schema(item: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "result": { "type": "array", "items": item } },
        "required": ["result"],
    })
}

/// `getLogStats`, `get_log_stats` and `get-log-stats` as "Get log stats".
fn title(name: &str) -> String {
    let mut title = String::new();
    for character in name.chars() {
        match character {
            '_' | '-' => title.push(' '),
            character if title.is_empty() => title.push(character.to_ascii_uppercase()),
            character if character.is_ascii_uppercase() => {
                title.push(' ');
                title.push(character.to_ascii_lowercase());
            }
            character => title.push(character),
        }
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_words() {
        for name in ["getLogStats", "get_log_stats", "get-log-stats"] {
            assert_eq!(title(name), "Get log stats");
        }
    }
}
