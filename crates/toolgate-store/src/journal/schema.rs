//! The tables, and how an older file becomes a newer one.

use rusqlite::Connection;

/// Each step brings the file from one version to the next. A step is never changed once it was used.
const STEPS: &[&str] = &[
    include_str!("schema_steps/1.sql"),
    include_str!("schema_steps/2.sql"),
    include_str!("schema_steps/3.sql"),
    include_str!("schema_steps/4.sql"),
    include_str!("schema_steps/5.sql"),
];

pub(super) fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A killed process loses nothing; a power failure could lose the last moments. What must not be lost
    // is synced by itself: `Journal::sync`.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // The writer that fills the log waits for the disk, so it happens rarely, at 32 MB.
    connection.pragma_update(None, "wal_autocheckpoint", 8_000)?;
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
