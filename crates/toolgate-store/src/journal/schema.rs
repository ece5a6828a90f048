//! The tables, and how an older file becomes a newer one.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

/// Each step brings the file from one version to the next. A step is never changed once it was used.
const STEPS: &[&str] = &[
    include_str!("schema_steps/1.sql"),
    include_str!("schema_steps/2.sql"),
    include_str!("schema_steps/3.sql"),
    include_str!("schema_steps/4.sql"),
    include_str!("schema_steps/5.sql"),
    include_str!("schema_steps/6.sql"),
    include_str!("schema_steps/7.sql"),
    include_str!("schema_steps/8.sql"),
];

/// The `application_id` of a journal beside an audit log. It shows that there was a log.
const BESIDE_AUDIT: i32 = 0x7467_6175;

/// Writes into the journal that there is an audit log beside it.
pub(super) fn note_audit(connection: &Connection) -> rusqlite::Result<()> {
    let id = connection.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0))?;
    if id == BESIDE_AUDIT {
        return Ok(());
    }
    connection.pragma_update(None, "application_id", BESIDE_AUDIT)
}

/// Whether a journal says that there was an audit log beside it.
pub(crate) fn knows_audit(path: &Path) -> bool {
    let read = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(connection) = Connection::open_with_flags(path, read) else { return false };
    let id = connection.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0));
    id.is_ok_and(|id| id == BESIDE_AUDIT)
}

pub(super) fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    // Only a file without tables takes it, and an older file when it is rewritten: `retention`.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A killed process loses nothing; a power failure could lose the last moments. What must not be lost
    // is synced by itself: `JournalFile::sync`.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // The writer that fills the log waits for the disk, so it happens rarely, at 32 MB.
    connection.pragma_update(None, "wal_autocheckpoint", 8_000)?;
    // A large result makes a large log, which would stay as large.
    connection.pragma_update(None, "journal_size_limit", 4 << 20)?;
    let version = |connection: &Connection| {
        let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        Ok::<_, rusqlite::Error>(usize::try_from(version).unwrap_or(usize::MAX))
    };
    if version(connection)? >= STEPS.len() {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have done it meanwhile.
    for step in STEPS.iter().skip(version(&transaction)?) {
        transaction.execute_batch(step)?;
    }
    let newest = u32::try_from(STEPS.len()).unwrap_or(u32::MAX);
    transaction.pragma_update(None, "user_version", newest)?;
    transaction.commit()
}
