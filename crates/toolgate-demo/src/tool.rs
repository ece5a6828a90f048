//! Tools as data: what a tool takes, what it does to which table, and what a client is told.

use serde_json::{Value, json};

use crate::error::Failure;
use crate::field::{Extra, Field, Kind, Object, object_schema};
use crate::store::Store;
use crate::table::Table;

/// A tool of a demo server.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// In the order in which a script passes them.
    pub(crate) inputs: Vec<Field>,
    pub(crate) action: Action,
    pub(crate) output: Output,
}

/// What a call does. Where a row is meant, the tool's first input is its identifier.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// The rows that match the arguments, see [`Rule`](crate::table::Rule).
    List(&'static str, Shape),
    /// One row.
    Get(&'static str),
    /// A new row of the arguments and these values.
    Create(&'static str, &'static [(&'static str, &'static str)]),
    /// A row with the arguments and these values put in.
    Update(&'static str, &'static [(&'static str, &'static str)]),
    /// The same, for what cannot be taken back.
    Destroy(&'static str, &'static [(&'static str, &'static str)]),
    /// A row with the arguments added to this column, a list.
    Append(&'static str, &'static str),
    /// A row is removed.
    Delete(&'static str),
    /// Anything that changes nothing and always succeeds.
    Report(fn(&Store, &Object) -> Value),
    /// Anything that changes nothing.
    Compute(fn(&Store, &Object) -> Result<Value, Failure>),
    /// Anything else.
    Change(fn(&mut Store, &Object) -> Result<Value, Failure>),
}

/// How a list is given.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// As an array.
    Bare,
    /// As an object with the array under this name, and the total before paging.
    Page(&'static str),
}

/// What a client is told of a tool's results.
#[derive(Debug)]
pub(crate) enum Output {
    /// Nothing: results are text alone.
    Untyped,
    /// What the action gives.
    OfAction,
    /// An object of these fields.
    Object(Vec<Field>),
    /// A list of objects of these fields.
    List(Vec<Field>),
}

/// Whether a server tells of its tools' effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Annotations {
    Given,
    Omitted,
}

/// A tool whose results are text alone, until it is [`typed`](Tool::typed).
pub(crate) fn tool(
    name: &'static str,
    about: &'static str,
    inputs: Vec<Field>,
    action: Action,
) -> Tool {
    Tool { name, about, inputs, action, output: Output::Untyped }
}

impl Tool {
    /// Declares the action's own results.
    pub(crate) fn typed(self) -> Self {
        Self { output: Output::OfAction, ..self }
    }

    /// Declares results that are objects of these fields.
    pub(crate) fn returns(self, fields: Vec<Field>) -> Self {
        Self { output: Output::Object(fields), ..self }
    }

    /// Declares results that are lists of objects of these fields.
    pub(crate) fn returns_list(self, fields: Vec<Field>) -> Self {
        Self { output: Output::List(fields), ..self }
    }

    /// Whether results have structured content.
    pub(crate) fn is_typed(&self) -> bool {
        !matches!(self.output, Output::Untyped)
    }

    /// The definition, as `tools/list` has it.
    pub(crate) fn definition(&self, tables: &[Table], annotations: Annotations) -> Value {
        let mut definition = json!({
            "name": self.name,
            "description": self.about,
            "inputSchema": object_schema(&self.inputs, Extra::Forbidden),
        });
        if let Some(schema) = self.output_schema(tables) {
            definition["outputSchema"] = schema;
        }
        if annotations == Annotations::Given {
            definition["annotations"] = self.annotations();
        }
        definition
    }

    fn output_schema(&self, tables: &[Table]) -> Option<Value> {
        match &self.output {
            Output::Untyped => None,
            Output::OfAction => Some(self.action.output_schema(tables)),
            Output::Object(fields) => Some(object_schema(fields, Extra::Unmentioned)),
            Output::List(fields) => Some(wrapped(&object_schema(fields, Extra::Unmentioned))),
        }
    }

    fn annotations(&self) -> Value {
        let title = title(self.name);
        match self.action {
            Action::List(..) | Action::Get(_) | Action::Report(_) | Action::Compute(_) => {
                json!({ "title": title, "readOnlyHint": true, "openWorldHint": false })
            }
            Action::Create(..) | Action::Append(..) | Action::Change(_) => json!({
                "title": title,
                "readOnlyHint": false,
                "destructiveHint": false,
                "idempotentHint": false,
            }),
            Action::Update(..) => json!({
                "title": title,
                "readOnlyHint": false,
                "destructiveHint": false,
                "idempotentHint": true,
            }),
            Action::Destroy(..) | Action::Delete(_) => {
                json!({ "title": title, "readOnlyHint": false, "destructiveHint": true })
            }
        }
    }
}

impl Action {
    /// The table that it is about, if it is about one.
    pub(crate) fn table(&self) -> Option<&'static str> {
        match self {
            Self::List(table, _)
            | Self::Get(table)
            | Self::Create(table, _)
            | Self::Update(table, _)
            | Self::Destroy(table, _)
            | Self::Append(table, _)
            | Self::Delete(table) => Some(table),
            Self::Report(_) | Self::Compute(_) | Self::Change(_) => None,
        }
    }

    fn output_schema(&self, tables: &[Table]) -> Value {
        let table = tables.iter().find(|table| Some(table.name) == self.table());
        let row = object_schema(table.map_or(&[], |table| &table.columns), Extra::Unmentioned);
        match self {
            Self::List(_, Shape::Bare) => wrapped(&row),
            Self::List(_, Shape::Page(name)) => json!({
                "type": "object",
                "properties": {
                    *name: { "type": "array", "items": row },
                    "total": {
                        "type": "integer",
                        "description": "Number of matches before paging.",
                    },
                },
                "required": [name, "total"],
            }),
            Self::Delete(_) => json!({
                "type": "object",
                "properties": {
                    "deleted": Kind::Flag.schema(Extra::Unmentioned),
                    "id": Kind::Text.schema(Extra::Unmentioned),
                },
                "required": ["deleted", "id"],
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
fn wrapped(item: &Value) -> Value {
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
