//! A server's state: its tables' rows, in memory, until the server ends.

use serde_json::{Value, json};

use crate::error::Failure;
use crate::field::{Object, Presence};
use crate::moment::Moment;
use crate::table::Table;

/// A client cannot make a demo server grow without end.
const MAX_CREATED: u32 = 1_000;

/// Reading of rows and arguments that are known to fit their fields.
pub(crate) trait Read {
    /// The text of this name; empty where there is none.
    fn text(&self, name: &str) -> &str;
    /// The integer of this name; 0 where there is none.
    fn integer(&self, name: &str) -> i64;
    /// The number of this name; 0 where there is none.
    fn number(&self, name: &str) -> f64;
    /// The boolean of this name; false where there is none.
    fn flag(&self, name: &str) -> bool;
    /// The items of this name; none where it is no list.
    fn items(&self, name: &str) -> &[Value];
}

impl Read for Object {
    fn text(&self, name: &str) -> &str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn integer(&self, name: &str) -> i64 {
        self.get(name).and_then(Value::as_i64).unwrap_or_default()
    }

    fn number(&self, name: &str) -> f64 {
        self.get(name).and_then(Value::as_f64).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    fn items(&self, name: &str) -> &[Value] {
        self.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

/// The rows of all tables of one server.
#[derive(Debug)]
pub(crate) struct Store {
    tables: Vec<Shelf>,
    created: u32,
    changes: i64,
}

#[derive(Debug)]
struct Shelf {
    table: &'static Table,
    rows: Vec<Object>,
    next_id: usize,
}

impl Store {
    /// The state at the start.
    pub(crate) fn open(tables: &'static [Table]) -> Self {
        let open = |table: &'static Table| {
            let rows = table.first_rows();
            // Clear of every identifier that the first rows have.
            Shelf { table, next_id: 1_001.max(rows.len() + 1), rows }
        };
        Self { tables: tables.iter().map(open).collect(), created: 0, changes: 0 }
    }

    /// The rows of a table; none where there is no such table.
    pub(crate) fn rows(&self, name: &str) -> &[Object] {
        self.table(name).map_or(&[], |table| table.rows.as_slice())
    }

    /// The row of a table with this identifier.
    pub(crate) fn find(&self, name: &str, id: &Value) -> Result<&Object, Failure> {
        let rows = self.table(name).ok_or_else(|| missing(None, id))?;
        let position = rows.position(id)?;
        rows.rows.get(position).ok_or_else(|| missing(Some(rows.table), id))
    }

    /// The same, to be changed.
    pub(crate) fn find_mut(&mut self, name: &str, id: &Value) -> Result<&mut Object, Failure> {
        let now = self.tick();
        let rows = self.table_mut(name).ok_or_else(|| missing(None, id))?;
        let (position, table) = (rows.position(id)?, rows.table);
        let row = rows.rows.get_mut(position).ok_or_else(|| missing(Some(table), id))?;
        for column in ["updatedAt", "updated_at"] {
            if table.column(column).is_some() {
                row.insert(column.to_owned(), json!(now.to_string()));
            }
        }
        Ok(row)
    }

    /// Adds a row of these values; the rest of its columns are made up.
    pub(crate) fn insert(&mut self, name: &str, values: &Object) -> Result<Object, Failure> {
        if self.created >= MAX_CREATED {
            return Err(Failure::Refused("The demo keeps no more new records; restart it".into()));
        }
        self.created += 1;
        let now = self.tick();
        let rows = self.table_mut(name).ok_or_else(|| missing(None, &Value::Null))?;
        let mut row = Object::new();
        for (index, column) in rows.table.columns.iter().enumerate() {
            let value = if index == 0 && !values.contains_key(column.name) {
                Some(json!(format!("{}{}", rows.table.id_prefix, rows.next_id)))
            } else if let Some(value) = values.get(column.name).or(column.default.as_ref()) {
                Some(value.clone())
            } else if is_stamp(rows.table, column.name) {
                Some(json!(now.to_string()))
            } else {
                (column.presence == Presence::Required).then(|| column.kind.empty())
            };
            if let Some(value) = value {
                row.insert(column.name.to_owned(), value);
            }
        }
        let id = row.get(rows.table.id()).cloned().unwrap_or_default();
        if rows.position(&id).is_ok() {
            let what = rows.table.singular;
            return Err(Failure::Refused(format!("There is a {what} with id {id} already")));
        }
        rows.next_id += 1;
        rows.rows.push(row.clone());
        Ok(row)
    }

    /// Removes a row.
    pub(crate) fn remove(&mut self, name: &str, id: &Value) -> Result<Object, Failure> {
        let rows = self.table_mut(name).ok_or_else(|| missing(None, id))?;
        let position = rows.position(id)?;
        Ok(rows.rows.remove(position))
    }

    /// The time of a change: each is a second after the one before.
    pub(crate) fn tick(&mut self) -> Moment {
        self.changes += 1;
        Moment::now().plus(self.changes)
    }

    fn table(&self, name: &str) -> Option<&Shelf> {
        self.tables.iter().find(|rows| rows.table.name == name)
    }

    fn table_mut(&mut self, name: &str) -> Option<&mut Shelf> {
        self.tables.iter_mut().find(|rows| rows.table.name == name)
    }
}

impl Shelf {
    fn position(&self, id: &Value) -> Result<usize, Failure> {
        let column = self.table.id();
        let position = self.rows.iter().position(|row| row.get(column) == Some(id));
        position.ok_or_else(|| missing(Some(self.table), id))
    }
}

/// Whether a column holds the time at which its row was made.
fn is_stamp(table: &Table, column: &str) -> bool {
    let stamps = ["createdAt", "created_at", "updatedAt", "updated_at", "at", "sent_at"];
    table.time == Some(column) || stamps.contains(&column)
}

fn missing(table: Option<&Table>, id: &Value) -> Failure {
    let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    Failure::not_found(table.map_or("record", |table| table.singular), id)
}
