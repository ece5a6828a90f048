//! The tables, and how an older file becomes a newer one.

use rusqlite::Connection;

/// Each step brings the file from one version to the next. A step is never changed once it was used.
const STEPS: &[&str] = &[
    "
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        created INTEGER NOT NULL,
        ended INTEGER,
        state TEXT NOT NULL,
        language TEXT NOT NULL,
        code TEXT NOT NULL,
        session TEXT NOT NULL,
        began INTEGER NOT NULL,
        seed INTEGER NOT NULL,
        output TEXT NOT NULL DEFAULT '',
        error TEXT,
        process INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE INDEX runs_created ON runs (created);
    CREATE TABLE calls (
        run TEXT NOT NULL,
        number INTEGER NOT NULL,
        name TEXT NOT NULL,
        arguments TEXT NOT NULL,
        made INTEGER NOT NULL,
        verdict TEXT,
        rule TEXT,
        sent INTEGER NOT NULL DEFAULT 0,
        ended INTEGER,
        failed INTEGER NOT NULL DEFAULT 0,
        tool TEXT,
        result TEXT,
        flow TEXT,
        PRIMARY KEY (run, number)
    ) WITHOUT ROWID;
    CREATE TABLE events (
        run TEXT NOT NULL,
        position INTEGER NOT NULL,
        call INTEGER,
        at INTEGER NOT NULL,
        PRIMARY KEY (run, position)
    ) WITHOUT ROWID;
    CREATE TABLE approvals (
        id TEXT PRIMARY KEY,
        created INTEGER NOT NULL,
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        run TEXT,
        call INTEGER,
        question TEXT NOT NULL,
        state TEXT NOT NULL,
        answer TEXT,
        answered INTEGER
    ) WITHOUT ROWID;
    CREATE INDEX approvals_subject ON approvals (subject);
    CREATE TABLE grants (
        id TEXT PRIMARY KEY,
        created INTEGER NOT NULL,
        expires INTEGER,
        text TEXT NOT NULL
    ) WITHOUT ROWID;
",
    "
    ALTER TABLE runs ADD COLUMN life TEXT NOT NULL DEFAULT '';
    ALTER TABLE calls ADD COLUMN unknown INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE media (
        run TEXT NOT NULL,
        handle TEXT NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (run, handle)
    ) WITHOUT ROWID;
",
    "
    ALTER TABLE runs ADD COLUMN before TEXT NOT NULL DEFAULT '';
",
    "
    ALTER TABLE runs ADD COLUMN place TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN first_code TEXT;
    ALTER TABLE calls ADD COLUMN origin TEXT;
",
    "
    ALTER TABLE runs ADD COLUMN sum INTEGER;
    ALTER TABLE calls ADD COLUMN sum INTEGER;
    ALTER TABLE calls ADD COLUMN marked INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE events ADD COLUMN sum INTEGER;
    ALTER TABLE media ADD COLUMN sum INTEGER;
    ALTER TABLE approvals ADD COLUMN sum INTEGER;
    ALTER TABLE grants ADD COLUMN sum INTEGER;
",
];

pub(super) fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A killed process loses nothing; a power failure could lose the last moments. What must not be lost
    // is synced by itself: `Journal::sync`.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // Whoever fills the log waits until the disk has it: rather seldom, at 32 MB.
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
