//! A server's state: its tables' rows, in memory, until the server ends.

use serde_json::{Value, json};

use crate::error::DemoError;
use crate::field::Object;
use crate::moment::Moment;
use crate::table::Table;

/// A client cannot make a demo server grow without end.
const MAX_CREATED: u32 = 1_000;

/// The rows of all tables of one server.
#[derive(Debug)]
pub(crate) struct Store {
    tables: Vec<StoredTable>,
    created: u32,
    changes: i64,
}

#[derive(Debug)]
struct StoredTable {
    table: Table,
    rows: Vec<Object>,
    next_id: usize,
}

impl Store {
    /// The state at the start.
    pub(crate) fn open(tables: Vec<Table>) -> Self {
        let written: Vec<Vec<Object>> = tables.iter().map(Table::first_rows).collect();
        let rows_of = |table: &Table, index: usize| match &table.generate {
            Some(settings) => {
                let messages = tables.iter().position(|table| table.name == settings.messages);
                settings.entries(messages.map_or(&[], |index| &written[index]))
            }
            None => written[index].clone(),
        };
        let rows: Vec<_> =
            tables.iter().enumerate().map(|(index, table)| rows_of(table, index)).collect();
        let stored = tables.into_iter().zip(rows).map(|(table, rows)| {
            // Clear of every identifier that the first rows have.
            StoredTable { table, next_id: 1_001.max(rows.len() + 1), rows }
        });
        Self { tables: stored.collect(), created: 0, changes: 0 }
    }

    pub(crate) fn table(&self, name: &str) -> Option<&Table> {
        Some(&self.tables.iter().find(|stored| stored.table.name == name)?.table)
    }

    /// The rows of a table; none where there is no such table.
    pub(crate) fn rows(&self, name: &str) -> &[Object] {
        let stored = self.tables.iter().find(|stored| stored.table.name == name);
        stored.map_or(&[], |stored| &stored.rows)
    }

    /// The row of a table with this identifier.
    pub(crate) fn find(&self, name: &str, id: &Value) -> Result<&Object, DemoError> {
        let id_column = self.table(name).map_or("id", Table::id);
        let row = self.rows(name).iter().find(|row| row.get(id_column) == Some(id));
        row.ok_or_else(|| missing(self.table(name), id))
    }

    /// Puts values into the columns of a row; its identifier stays. Gives the changed row.
    pub(crate) fn update(
        &mut self,
        name: &str,
        id: &Value,
        values: Object,
    ) -> Result<Value, DemoError> {
        let now = self.tick();
        let (stored, position) = self.position(name, id)?;
        let row = &mut stored.rows[position];
        for column in ["updatedAt", "updated_at"] {
            if stored.table.column(column).is_some() {
                row.insert(column.to_owned(), json!(now.to_string()));
            }
        }
        for (column, value) in values {
            if column != stored.table.id() && stored.table.column(&column).is_some() {
                row.insert(column, value);
            }
        }
        Ok(row.clone().into())
    }

    /// Adds a row of these values; the rest of its columns are made up.
    pub(crate) fn insert(&mut self, name: &str, values: &Object) -> Result<Object, DemoError> {
        if self.created >= MAX_CREATED {
            let full = "The demo keeps no more new records; restart it";
            return Err(DemoError::Refused(full.to_owned()));
        }
        self.created += 1;
        let now = self.tick();
        let Some(stored) = self.tables.iter_mut().find(|stored| stored.table.name == name) else {
            return Err(missing(None, &Value::Null));
        };
        let mut row = Object::new();
        for (index, column) in stored.table.columns.iter().enumerate() {
            let value = if index == 0 && !values.contains_key(&column.name) {
                Some(json!(format!("{}{}", stored.table.id_prefix, stored.next_id)))
            } else if let Some(value) = values.get(&column.name).or(column.default.as_ref()) {
                Some(value.clone())
            } else if is_stamp(&stored.table, &column.name) {
                Some(json!(now.to_string()))
            } else {
                column.is_required().then(|| column.kind.empty())
            };
            if let Some(value) = value {
                row.insert(column.name.clone(), value);
            }
        }
        let id = row.get(stored.table.id());
        if stored.rows.iter().any(|other| other.get(stored.table.id()) == id) {
            let (what, id) = (&stored.table.singular, id.unwrap_or(&Value::Null));
            return Err(DemoError::Refused(format!("There is a {what} with id {id} already")));
        }
        stored.next_id += 1;
        stored.rows.push(row.clone());
        Ok(row)
    }

    /// Removes a row.
    pub(crate) fn remove(&mut self, name: &str, id: &Value) -> Result<(), DemoError> {
        let (stored, position) = self.position(name, id)?;
        stored.rows.remove(position);
        Ok(())
    }

    /// The time of a change: each is a second after the one before.
    pub(crate) fn tick(&mut self) -> Moment {
        self.changes += 1;
        Moment::now().plus(self.changes)
    }

    fn position(&mut self, name: &str, id: &Value) -> Result<(&mut StoredTable, usize), DemoError> {
        self.find(name, id)?;
        let stored = self.tables.iter_mut().find(|stored| stored.table.name == name);
        let position = |stored: &StoredTable| {
            stored.rows.iter().position(|row| row.get(stored.table.id()) == Some(id))
        };
        stored
            .and_then(|stored| position(stored).map(|position| (stored, position)))
            .ok_or_else(|| missing(None, id))
    }
}

/// Whether a column holds the time at which its row was made.
fn is_stamp(table: &Table, column: &str) -> bool {
    let stamps = ["createdAt", "created_at", "updatedAt", "updated_at", "at", "sent_at"];
    table.time.as_deref() == Some(column) || stamps.contains(&column)
}

fn missing(table: Option<&Table>, id: &Value) -> DemoError {
    let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let what = table.map_or("record", |table| &table.singular);
    DemoError::Refused(format!("No {what} with id `{id}`"))
}
