//! Makes the tables, and brings older ones to the version of this program.
//!
//! By hand and not by `refinery`: that has no lock against another node that does the same, and brings the crates
//! `time`, `walkdir` and `log` with macros for these few lines.

use crate::database::{Database, FleetError};

/// Each step brings the tables from one version to the next. A step is never changed once it was used, and the
/// program of the version before must work with its tables: two versions run side by side during an update.
const STEPS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
];
/// Identifies the lock, among those of other programs: `toolgate` in ASCII.
pub(crate) const LOCK: i64 = 0x746f_6f6c_6761_7465;

/// The newest version that this program knows.
pub(crate) fn newest() -> i32 {
    i32::try_from(STEPS.len()).unwrap_or(i32::MAX)
}

/// The version of the tables; 0 if there are none.
pub(crate) fn version(database: &Database) -> Result<i32, FleetError> {
    database.with(|connection| async move {
        let has_any = "SELECT to_regclass('schema_version') IS NOT NULL";
        if !connection.query_one(has_any, &[]).await?.get::<_, bool>(0) {
            return Ok(0);
        }
        let version = "SELECT coalesce(max(version), 0) FROM schema_version";
        Ok(connection.query_one(version, &[]).await?.get(0))
    })
}

/// Fails unless this program can work with the tables: they are of its version, or one step further.
pub(crate) fn check(database: &Database) -> Result<i32, FleetError> {
    let (found, known) = (version(database)?, newest());
    if found < known {
        return Err(FleetError::TooOld { found, known });
    }
    if found > known + 1 {
        return Err(FleetError::TooNew { found, known });
    }
    Ok(found)
}

/// Makes the missing steps. Returns the versions before and after. Other nodes wait meanwhile.
pub(crate) fn migrate(database: &Database) -> Result<(i32, i32), FleetError> {
    database.with_long(|mut connection| async move {
        let transaction = connection.transaction().await?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        let table = "CREATE TABLE IF NOT EXISTS schema_version (
            version integer PRIMARY KEY, migrated timestamptz NOT NULL DEFAULT now())";
        transaction.batch_execute(table).await?;
        let version = "SELECT coalesce(max(version), 0) FROM schema_version";
        let before: i32 = transaction.query_one(version, &[]).await?.get(0);
        if before > newest() + 1 {
            return Err(FleetError::TooNew { found: before, known: newest() });
        }
        let steps = STEPS.iter().zip(1..);
        for (step, number) in steps.filter(|(_, number)| *number > before) {
            transaction.batch_execute(step).await?;
            transaction
                .execute("INSERT INTO schema_version (version) VALUES ($1)", &[&number])
                .await?;
        }
        transaction.commit().await?;
        Ok((before, before.max(newest())))
    })
}
