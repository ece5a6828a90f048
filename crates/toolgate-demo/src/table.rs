//! Tables: a server's small data, and how lists of it are filtered.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::field::{Field, Kind, Object};
use crate::generator::LogSettings;
use crate::moment::Moment;

/// A kind of thing that a server stores.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Table {
    /// What tools call it.
    pub(crate) name: String,
    /// One of it, for messages.
    pub(crate) singular: String,
    /// Its columns; the first is the identifier.
    pub(crate) columns: Vec<Field>,
    /// What identifiers of new rows start with; a number follows.
    #[serde(default)]
    pub(crate) id_prefix: String,
    /// The column that `since` and `until` are about.
    pub(crate) time: Option<String>,
    /// The first rows: cells in the order of the columns with `|` between, items of a list with
    /// `;`, lines of a text with `//`. An empty cell of an optional column is left out of the row.
    #[serde(default)]
    rows: Vec<String>,
    /// How the first rows are made instead.
    pub(crate) generate: Option<LogSettings>,
}

impl Table {
    /// The identifier's column.
    pub(crate) fn id(&self) -> &str {
        self.columns.first().map_or("id", |column| &column.name)
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<&Field> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The rows that are written in the file.
    pub(crate) fn first_rows(&self) -> Vec<Object> {
        self.rows.iter().map(|line| self.read_line(line)).collect()
    }

    /// Whether a row is one that these arguments ask for. What an argument asks for comes from its
    /// name alone, so that list tools need no formulas:
    ///
    /// - a column's name: equal to it, or among it where the column is a list
    /// - `limit`, `offset`: all rows; paging comes after
    /// - `query`: every word occurs somewhere in the row
    /// - `since`, `from`: not before this; `until`, `to`: before this
    /// - `min_price`, `minPrice`, `max_price`, `maxPrice`: bounds of a column
    pub(crate) fn matches(&self, row: &Object, arguments: &Object) -> bool {
        arguments.iter().all(|(name, wanted)| {
            if self.column(name).is_some() {
                return row.get(name).is_some_and(|value| includes(value, wanted));
            }
            let number = |bound: &str| {
                let column = bounded(name, bound).filter(|name| self.column(name).is_some())?;
                Some(row.get(&column).and_then(Value::as_f64))
            };
            match name.as_str() {
                "query" => has_words(row, wanted.as_str().unwrap_or_default()),
                _ if self.is_since(name) => self.time_of(row) >= moment_of(wanted),
                "until" | "to" if self.time.is_some() => self.time_of(row) < moment_of(wanted),
                _ => {
                    number("min").is_none_or(|number| number >= wanted.as_f64())
                        && number("max").is_none_or(|number| number <= wanted.as_f64())
                }
            }
        })
    }

    /// Whether an argument of this name is the earliest time of the rows.
    pub(crate) fn is_since(&self, name: &str) -> bool {
        matches!(name, "since" | "from") && self.time.is_some() && self.column(name).is_none()
    }

    /// The time that `since` and `until` are compared with.
    pub(crate) fn time_of(&self, row: &Object) -> Option<Moment> {
        self.time.as_ref().and_then(|column| row.get(column)).and_then(moment_of)
    }

    fn read_line(&self, line: &str) -> Object {
        let mut cells = line.split('|').map(str::trim);
        let mut row = Object::new();
        for column in &self.columns {
            let cell = cells.next().unwrap_or_default();
            if !cell.is_empty() {
                row.insert(column.name.clone(), read_cell(&column.kind, cell));
            } else if column.is_required() {
                row.insert(column.name.clone(), column.kind.empty());
            }
        }
        row
    }
}

/// A cell that does not fit its column becomes null, which the tests notice.
fn read_cell(kind: &Kind, cell: &str) -> Value {
    match kind {
        Kind::Integer { .. } => json!(cell.parse::<i64>().ok()),
        // Whole numbers stay whole: a client sees 8000, not 8000.0.
        Kind::Number | Kind::Amount => match cell.parse::<i64>() {
            Ok(whole) => json!(whole),
            Err(_) => json!(cell.parse::<f64>().ok()),
        },
        Kind::Boolean => json!(cell.parse::<bool>().ok()),
        Kind::List { of: item } => {
            cell.split(';').map(|part| read_cell(item, part.trim())).collect()
        }
        // The parts of an object are in the order of its fields, with commas.
        Kind::Object { fields } => {
            let parts = cell.split(',').map(str::trim);
            let named = fields.iter().zip(parts);
            named
                .map(|(field, part)| (field.name.clone(), read_cell(&field.kind, part)))
                .collect::<Object>()
                .into()
        }
        Kind::Map { of: item } => {
            let pairs = cell.split(',').filter_map(|pair| pair.split_once('='));
            pairs
                .map(|(name, part)| (name.trim().to_owned(), read_cell(item, part.trim())))
                .collect::<Object>()
                .into()
        }
        Kind::Text => json!(cell.replace(" // ", "\n")),
        Kind::Choice { .. } | Kind::Date | Kind::Time | Kind::Since => json!(cell),
    }
}

/// The column's name behind `min_price` or `minPrice`.
fn bounded(name: &str, bound: &str) -> Option<String> {
    let rest = name.strip_prefix(bound)?;
    if let Some(column) = rest.strip_prefix('_') {
        return Some(column.to_owned());
    }
    let first = rest.chars().next().filter(char::is_ascii_uppercase)?;
    Some(format!("{}{}", first.to_ascii_lowercase(), &rest[1..]))
}

fn moment_of(value: &Value) -> Option<Moment> {
    value.as_str().and_then(Moment::parse_since)
}

fn includes(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Array(_), Value::Array(wanted)) => wanted.iter().all(|one| includes(value, one)),
        (Value::Array(values), _) => values.iter().any(|value| includes(value, wanted)),
        (_, Value::Array(wanted)) => wanted.iter().any(|one| includes(value, one)),
        (Value::String(value), Value::String(wanted)) => value.eq_ignore_ascii_case(wanted),
        (Value::Number(value), Value::Number(wanted)) => value.as_f64() == wanted.as_f64(),
        _ => value == wanted,
    }
}

/// Whether every word of `query` occurs in some text of the row, whatever its case.
fn has_words(row: &Object, query: &str) -> bool {
    let mut haystack = String::new();
    row.values().for_each(|value| gather(value, &mut haystack));
    query.to_lowercase().split_whitespace().all(|word| haystack.contains(word))
}

fn gather(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(&text.to_lowercase());
            into.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, into)),
        Value::Object(fields) => fields.values().for_each(|field| gather(field, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        serde_json::from_value(json!({
            "name": "things",
            "singular": "thing",
            "columns": [
                { "name": "id", "type": "text", "about": "" },
                { "name": "unitPrice", "type": "amount", "about": "" },
                { "name": "tags", "type": "list", "of": { "type": "text" }, "about": "" },
                { "name": "at", "type": "time", "about": "" },
                { "name": "old", "type": "boolean", "about": "", "optional": true },
            ],
            "time": "at",
            "rows": [
                "T-1 | 2.5 | red;blue | 2026-10-01T00:00:00Z | true",
                "T-2 | 10  |          | 2026-10-14T00:00:00Z |",
            ],
        }))
        .unwrap()
    }

    fn ids(arguments: &Value) -> Vec<String> {
        let table = table();
        let arguments = arguments.as_object().unwrap();
        let rows = table.first_rows().into_iter().filter(|row| table.matches(row, arguments));
        rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn lines_become_rows() {
        let rows = table().first_rows();
        assert_eq!(rows[0]["tags"], json!(["red", "blue"]));
        assert_eq!(rows[0]["old"], json!(true));
        assert_eq!(rows[1]["tags"], json!([]));
        assert!(!rows[1].contains_key("old"));
    }

    #[test]
    fn names_of_arguments_say_how_to_filter() {
        assert_eq!(ids(&json!({})).len(), 2);
        assert_eq!(ids(&json!({ "minUnitPrice": 3 })), ["T-2"]);
        assert_eq!(ids(&json!({ "maxUnitPrice": 3 })), ["T-1"]);
        assert_eq!(ids(&json!({ "tags": ["BLUE", "red"] })), ["T-1"]);
        assert_eq!(ids(&json!({ "tags": "green" })).len(), 0);
        assert_eq!(ids(&json!({ "since": "2d" })), ["T-2"]);
        assert_eq!(ids(&json!({ "until": "2026-10-10" })), ["T-1"]);
        assert_eq!(ids(&json!({ "query": "Red t-1" })), ["T-1"]);
        assert_eq!(ids(&json!({ "old": true })), ["T-1"]);
        assert_eq!(ids(&json!({ "limit": 1, "dry": true })).len(), 2);
        assert_eq!(ids(&json!({ "miné": 1 })).len(), 2);
    }
}
