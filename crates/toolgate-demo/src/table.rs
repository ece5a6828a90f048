//! Tables: a server's small data, and how lists of it are filtered.

use serde_json::{Value, json};

use crate::field::{Field, Kind, Object, Presence};
use crate::moment::Moment;

/// A kind of thing that a server keeps.
#[derive(Debug)]
pub(crate) struct Table {
    /// What tools call it.
    pub(crate) name: &'static str,
    /// One of it, for messages.
    pub(crate) singular: &'static str,
    /// Its columns; the first is the identifier.
    pub(crate) columns: Vec<Field>,
    /// What identifiers of new rows start with; a number follows.
    pub(crate) id_prefix: &'static str,
    /// The column that `since` and `until` are about.
    pub(crate) time: Option<&'static str>,
    /// What is in it at the start.
    pub(crate) source: Source,
}

/// Where a table's first rows come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// A row a line, cells in the order of the columns with `|` between, items of a list with `;`,
    /// lines of a text with `//`.
    /// An empty cell of an optional column is left out of the row.
    Lines(&'static str),
    /// Made by a function.
    Made(fn() -> Vec<Object>),
}

/// What an argument of a list tool does, from its name alone: tools need no code of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule<'a> {
    /// `limit`, `offset`: after filtering.
    Paging,
    /// `query`: every word occurs somewhere in the row.
    Words,
    /// `since`, `after`, `from`: not before this.
    Since,
    /// `until`, `before`, `to`: before this.
    Until,
    /// `min_price`, `minPrice`.
    AtLeast(&'a Field),
    /// `max_price`, `maxPrice`.
    AtMost(&'a Field),
    /// A column's name: equal to it, or among it where the column is a list.
    Equals(&'a Field),
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Field {}

impl Table {
    /// The identifier's column.
    pub(crate) fn id(&self) -> &'static str {
        self.columns.first().map_or("id", |column| column.name)
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<&Field> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The rows at the start.
    pub(crate) fn first_rows(&self) -> Vec<Object> {
        match self.source {
            Source::Made(make) => make(),
            Source::Lines(lines) => {
                let lines = lines.lines().filter(|line| !line.trim().is_empty());
                lines.map(|line| self.read_line(line)).collect()
            }
        }
    }

    /// What an argument named so means for a list of this table.
    pub(crate) fn rule(&self, name: &str) -> Option<Rule<'_>> {
        if let Some(column) = self.column(name) {
            return Some(Rule::Equals(column));
        }
        match name {
            "limit" | "offset" => Some(Rule::Paging),
            "query" => Some(Rule::Words),
            "since" | "after" | "from" => self.time.map(|_| Rule::Since),
            "until" | "before" | "to" => self.time.map(|_| Rule::Until),
            _ => {
                let minimum = bounded(name, "min").and_then(|column| self.column(&column));
                let maximum = bounded(name, "max").and_then(|column| self.column(&column));
                minimum.map(Rule::AtLeast).or(maximum.map(Rule::AtMost))
            }
        }
    }

    /// Whether a row is one that these arguments ask for.
    pub(crate) fn matches(&self, row: &Object, arguments: &Object) -> bool {
        arguments.iter().all(|(name, wanted)| match self.rule(name) {
            None | Some(Rule::Paging) => true,
            Some(Rule::Words) => has_words(row, wanted.as_str().unwrap_or_default()),
            Some(Rule::Since) => self.time_of(row) >= moment_of(wanted),
            Some(Rule::Until) => self.time_of(row) < moment_of(wanted),
            Some(Rule::AtLeast(column)) => number_of(row.get(column.name)) >= wanted.as_f64(),
            Some(Rule::AtMost(column)) => number_of(row.get(column.name)) <= wanted.as_f64(),
            Some(Rule::Equals(column)) => {
                row.get(column.name).is_some_and(|value| includes(value, wanted))
            }
        })
    }

    fn time_of(&self, row: &Object) -> Option<Moment> {
        self.time.and_then(|column| row.get(column)).and_then(moment_of)
    }

    fn read_line(&self, line: &str) -> Object {
        let mut cells = line.split('|').map(str::trim);
        let mut row = Object::new();
        for column in &self.columns {
            let cell = cells.next().unwrap_or_default();
            if !cell.is_empty() {
                row.insert(column.name.to_owned(), read_cell(&column.kind, cell));
            } else if column.presence == Presence::Required {
                row.insert(column.name.to_owned(), column.kind.empty());
            }
        }
        row
    }
}

/// A cell that does not fit its column becomes null, which the tests notice.
fn read_cell(kind: &Kind, cell: &str) -> Value {
    match kind {
        Kind::Integer(_) => json!(cell.parse::<i64>().ok()),
        // Whole numbers stay whole: a client sees 8000, not 8000.0.
        Kind::Number | Kind::Amount => match cell.parse::<i64>() {
            Ok(whole) => json!(whole),
            Err(_) => json!(cell.parse::<f64>().ok()),
        },
        Kind::Flag => json!(cell.parse::<bool>().ok()),
        Kind::List(item) => cell.split(';').map(|part| read_cell(item, part.trim())).collect(),
        // The parts of an object are in the order of its fields, with commas.
        Kind::Object(fields) => {
            let parts = cell.split(',').map(str::trim);
            let named = fields.iter().zip(parts);
            named
                .map(|(field, part)| (field.name.to_owned(), read_cell(&field.kind, part)))
                .collect::<Object>()
                .into()
        }
        Kind::Map(item) => {
            let pairs = cell.split(',').filter_map(|pair| pair.split_once('='));
            pairs
                .map(|(name, part)| (name.trim().to_owned(), read_cell(item, part.trim())))
                .collect::<Object>()
                .into()
        }
        Kind::Text => json!(cell.replace(" // ", "\n")),
        Kind::Choice(_) | Kind::Date | Kind::Moment | Kind::Since => json!(cell),
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

fn number_of(value: Option<&Value>) -> Option<f64> {
    value.and_then(Value::as_f64)
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
pub(crate) fn has_words(row: &Object, query: &str) -> bool {
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
    use crate::field::{amount, flag, moment, text, texts};

    fn table() -> Table {
        Table {
            name: "things",
            singular: "thing",
            columns: vec![
                text("id", ""),
                amount("unitPrice", ""),
                texts("tags", ""),
                moment("at", ""),
                flag("old", "").optional(),
            ],
            id_prefix: "T-",
            time: Some("at"),
            source: Source::Lines(
                "T-1 | 2.5 | red;blue | 2026-10-01T00:00:00Z | true
                 T-2 | 10  |          | 2026-10-14T00:00:00Z |",
            ),
        }
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
        assert_eq!(table().rule("dry"), None);
        assert_eq!(table().rule("miné"), None);
    }
}
