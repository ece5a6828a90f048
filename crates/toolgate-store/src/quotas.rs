//! How many calls were made today, for limits that count by the day.
//!
//! One small SQLite file for all processes that use the folder, so that a restart or a second process
//! does not begin a count anew. It holds one day; older counts are removed.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use thiserror::Error;

use crate::files;

/// The file. Copies share it.
#[derive(Clone)]
pub struct QuotaFile {
    path: PathBuf,
    connection: std::sync::Arc<Mutex<Option<Connection>>>,
}

/// The counts could not be read or written.
#[derive(Debug, Error)]
#[error("the counts in {path} cannot be used: {source}")]
pub struct QuotaError {
    path: PathBuf,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// A count that a call adds to.
#[derive(Debug, Clone, Copy)]
pub struct QuotaRequest<'a> {
    /// The limit.
    pub limit: &'a str,
    /// Whose count it is.
    pub caller: &'a str,
    /// The most calls of the day.
    pub most: u32,
}

/// What became of a call that was to be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotaOutcome {
    /// It is counted. These are the counts after it, in the order of the requests.
    Counted(Vec<u32>),
    /// The count with this position is at its limit. Nothing is counted.
    Full(usize),
}

/// A count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaCount {
    /// The limit.
    pub limit: String,
    /// Whose count it is.
    pub caller: String,
    /// How many calls were made today.
    pub used: u32,
    /// Until when calls are refused because of another count of the limit, in seconds since 1970; 0 if
    /// they are not.
    pub refused_until: u64,
}

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS counts (
    day INTEGER NOT NULL, \"limit\" TEXT NOT NULL, caller TEXT NOT NULL,
    used INTEGER NOT NULL DEFAULT 0, refused_until INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, \"limit\", caller)
) WITHOUT ROWID";
const COUNT: &str = "INSERT INTO counts (day, \"limit\", caller, used) VALUES (?1, ?2, ?3, 1)
    ON CONFLICT DO UPDATE SET used = used + 1 WHERE used < ?4 RETURNING used";

impl QuotaFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, connection: std::sync::Arc::default() }
    }

    /// Counts a call of this day in all counts, if none is at its limit. Touches the disk.
    pub fn count(
        &self,
        day: i64,
        requests: &[QuotaRequest<'_>],
    ) -> Result<QuotaOutcome, QuotaError> {
        self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut counts = Vec::with_capacity(requests.len());
            for (position, QuotaRequest { limit, caller, most }) in requests.iter().enumerate() {
                let counted = transaction
                    .prepare_cached(COUNT)?
                    .query_row(params![day, limit, caller, most], |row| row.get(0))
                    .optional()?;
                match counted.filter(|_| *most > 0) {
                    Some(used) => counts.push(used),
                    // The transaction is rolled back.
                    None => return Ok(QuotaOutcome::Full(position)),
                }
            }
            transaction.execute("DELETE FROM counts WHERE day < ?1", [day])?;
            transaction.commit()?;
            Ok(QuotaOutcome::Counted(counts))
        })
    }

    /// Takes a count back, of a call that was not made after all. Touches the disk.
    pub fn uncount(&self, day: i64, limit: &str, caller: &str) -> Result<(), QuotaError> {
        self.with(|connection| {
            connection.execute(
                "UPDATE counts SET used = used - 1
                 WHERE day = ?1 AND \"limit\" = ?2 AND caller = ?3 AND used > 0",
                params![day, limit, caller],
            )?;
            Ok(())
        })
    }

    /// Notes until when calls are refused because of a count by the minute, for `toolgate status`.
    /// Touches the disk.
    pub fn refused(
        &self,
        day: i64,
        limit: &str,
        caller: &str,
        until: u64,
    ) -> Result<(), QuotaError> {
        self.with(|connection| {
            connection.execute(
                "INSERT INTO counts (day, \"limit\", caller, refused_until) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET refused_until = ?4",
                params![day, limit, caller, i64::try_from(until).unwrap_or(i64::MAX)],
            )?;
            Ok(())
        })
    }

    /// The counts of a day. Nothing is written, and a file that does not exist is not made.
    pub fn counts(&self, day: i64) -> Result<Vec<QuotaCount>, QuotaError> {
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        self.with(|connection| {
            let mut rows = connection.prepare(
                "SELECT \"limit\", caller, used, refused_until FROM counts WHERE day = ?1
                 ORDER BY \"limit\", caller",
            )?;
            let rows = rows.query_map([day], |row| {
                let refused: i64 = row.get(3)?;
                Ok(QuotaCount {
                    limit: row.get(0)?,
                    caller: row.get(1)?,
                    used: row.get(2)?,
                    refused_until: u64::try_from(refused).unwrap_or_default(),
                })
            })?;
            rows.collect()
        })
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, QuotaError> {
        let mut connection = self.connection.lock();
        let failed = |source| QuotaError { path: self.path.clone(), source: Box::new(source) };
        if connection.is_none() {
            *connection = Some(open(&self.path).map_err(failed)?);
        }
        match connection.as_mut() {
            Some(connection) => work(connection).map_err(failed),
            None => Err(failed(rusqlite::Error::InvalidQuery)),
        }
    }
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    if let Some(folder) = path.parent() {
        // If this fails, opening the file fails too and says why.
        let _ = files::make_folder(folder);
    }
    // Made here, because SQLite would let others read it.
    let _ = files::private_options().append(true).create(true).open(path);
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A killed process loses nothing.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

impl fmt::Debug for QuotaFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("QuotaFile").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(limit: &str, most: u32) -> QuotaRequest<'_> {
        QuotaRequest { limit, caller: "ada", most }
    }

    #[test]
    fn counts_of_a_day_survive_and_end_with_the_day() {
        let folder = tempfile::tempdir().unwrap();
        let open = || QuotaFile::new(folder.path().join("quotas.db"));
        assert!(open().counts(1).unwrap().is_empty(), "reading makes no file");
        assert_eq!(open().count(1, &[request("a", 2)]).unwrap(), QuotaOutcome::Counted(vec![1]));
        assert_eq!(open().count(1, &[request("a", 2)]).unwrap(), QuotaOutcome::Counted(vec![2]));
        assert_eq!(open().count(1, &[request("a", 2)]).unwrap(), QuotaOutcome::Full(0));
        open().uncount(1, "a", "ada").unwrap();
        assert_eq!(open().counts(1).unwrap()[0].used, 1);
        assert_eq!(open().count(2, &[request("a", 2)]).unwrap(), QuotaOutcome::Counted(vec![1]));
        assert!(open().counts(1).unwrap().is_empty(), "only one day is stored");
    }

    #[test]
    fn where_one_count_is_full_none_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = QuotaFile::new(folder.path().join("quotas.db"));
        let both = [request("a", 5), request("b", 1)];
        assert_eq!(file.count(1, &both).unwrap(), QuotaOutcome::Counted(vec![1, 1]));
        assert_eq!(file.count(1, &both).unwrap(), QuotaOutcome::Full(1));
        assert_eq!(file.counts(1).unwrap()[0].used, 1);
        assert_eq!(file.count(1, &[request("none", 0)]).unwrap(), QuotaOutcome::Full(0));
        file.refused(1, "a", "ada", 77).unwrap();
        assert_eq!(file.counts(1).unwrap()[0].refused_until, 77);
    }
}
