//! A checksum in each row, which detects damage.

use rusqlite::{
    Connection, Params,
    functions::{Context, FunctionFlags},
    types::ValueRef,
};

/// A table with its key columns and the columns that the checksum covers.
pub(super) struct SealedTable {
    name: &'static str,
    key: &'static str,
    columns: &'static str,
}

pub(super) const RUNS: SealedTable = SealedTable {
    name: "runs",
    key: "id = ?1",
    columns: "id, created, ended, state, language, code, session, began, seed, output, error, process, life, \
              before, place, first_code",
};
pub(super) const CALLS: SealedTable = SealedTable {
    name: "calls",
    key: "run = ?1 AND number = ?2",
    columns: "run, number, name, arguments, made, verdict, rule, sent, ended, failed, tool, result, flow, \
              unknown, origin, marked",
};
pub(super) const EVENTS: SealedTable = SealedTable {
    name: "events",
    key: "run = ?1 AND position = ?2",
    columns: "run, position, call, at",
};
pub(super) const MEDIA: SealedTable =
    SealedTable { name: "media", key: "run = ?1 AND handle = ?2", columns: "run, handle, data" };
pub(super) const FLOWS: SealedTable =
    SealedTable { name: "flows", key: "run = ?1", columns: "run, graph" };
pub(super) const APPROVALS: SealedTable = SealedTable {
    name: "approvals",
    key: "id = ?1",
    columns: "id, created, kind, subject, run, call, question, state, answer, answered",
};
pub(super) const GRANTS: SealedTable =
    SealedTable { name: "grants", key: "id = ?1", columns: "id, created, expires, text" };

impl SealedTable {
    /// Inserts or replaces a row with its checksum. The values are those of all columns, in their
    /// order.
    pub(super) fn insert(&self, connection: &Connection, row: impl Params) -> rusqlite::Result<()> {
        let Self { name, columns, .. } = self;
        let values: Vec<String> =
            (1..=columns.split(',').count()).map(|number| format!("?{number}")).collect();
        let values = values.join(", ");
        let text = format!(
            "INSERT OR REPLACE INTO {name} ({columns}, sum) VALUES ({values}, row_sum({values}))"
        );
        connection.prepare_cached(&text)?.execute(row)?;
        Ok(())
    }

    /// Writes the checksum of a row, in the transaction that has changed it.
    pub(super) fn seal(&self, connection: &Connection, key: impl Params) -> rusqlite::Result<()> {
        let Self { name, key: is, columns } = self;
        let text = format!("UPDATE {name} SET sum = row_sum({columns}) WHERE {is}");
        connection.prepare_cached(&text)?.execute(key)?;
        Ok(())
    }

    /// The condition that a row is as it was written. Rows of older versions have no checksum.
    pub(super) fn intact(&self) -> String {
        format!("(sum IS NULL OR sum = row_sum({}))", self.columns)
    }
}

/// Makes `row_sum` known to SQLite.
pub(crate) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function(c"row_sum", -1, flags, row_sum)
}

#[expect(clippy::unnecessary_wraps, reason = "SQLite calls functions of this type")]
fn row_sum(values: &Context<'_>) -> rusqlite::Result<i64> {
    let mut hasher = blake3::Hasher::new();
    let mut add = |kind: u8, bytes: &[u8]| {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        hasher.update(&[kind]).update(&length.to_le_bytes()).update(bytes);
    };
    for index in 0..values.len() {
        match values.get_raw(index) {
            ValueRef::Null => add(0, &[]),
            ValueRef::Integer(number) => add(1, &number.to_le_bytes()),
            ValueRef::Real(number) => add(2, &number.to_le_bytes()),
            ValueRef::Text(text) => add(3, text),
            ValueRef::Blob(bytes) => add(4, bytes),
        }
    }
    let mut sum = [0; 8];
    hasher.finalize_xof().fill(&mut sum);
    Ok(i64::from_le_bytes(sum))
}
