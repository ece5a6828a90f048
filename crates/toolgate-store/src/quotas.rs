//! How many calls were made today, for limits that count by the day.
//!
//! One small SQLite file for all processes that use the folder, so that a restart or a second process
//! does not begin a count anew. It holds one day; older counts are removed. A day never comes back: if
//! the clock is set back, the latest day that was counted goes on.
//!
//! Every row has a checksum, and one row has the sum of all of them. So a count that was changed or
//! removed is found. A file beside the database shows that there were counts, even if the database is
//! gone. Counts that cannot be used are an error, never a new allowance.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use thiserror::Error;

use crate::{files, journal::register_row_sum};

/// How many calls were made today.
pub trait Quotas: fmt::Debug + Send + Sync {
    /// Counts a call of this day in all counts, if none is at its limit. Waits for the disk or the database.
    fn count(&self, day: i64, requests: &[QuotaRequest<'_>]) -> Result<QuotaOutcome, QuotaError>;

    /// Takes a count back, of a call that was not made after all. Waits too.
    fn uncount(&self, day: i64, limit: &str, caller: &str) -> Result<(), QuotaError>;

    /// Notes until when calls are refused because of a count by the minute, for `toolgate status`.
    /// Waits too.
    fn refused(&self, day: i64, limit: &str, caller: &str, until: u64) -> Result<(), QuotaError>;

    /// The day whose counts are in force today: today, or a later one that was counted before the clock
    /// was set back. Waits too.
    fn day(&self, today: i64) -> Result<i64, QuotaError>;

    /// The counts that are in force on a day. Nothing is written.
    fn counts(&self, day: i64) -> Result<Vec<QuotaCount>, QuotaError>;

    /// The part of a count by the minute, or of calls at once, that this process may use now, of `most` in all:
    /// everything, unless other nodes share it. Does not wait.
    fn share(&self, most: u32) -> u32 {
        most
    }
}

/// The file. Copies share it.
#[derive(Clone)]
pub struct QuotaFile {
    path: PathBuf,
    connection: Arc<Mutex<Option<Connection>>>,
}

/// The counts could not be read or written.
#[derive(Debug, Error)]
#[error("the counts in {path} cannot be used: {source}")]
pub struct QuotaError {
    path: PathBuf,
    source: CountsProblem,
}

/// Why counts cannot be used.
#[derive(Debug, Error)]
enum CountsProblem {
    #[error("{0}")]
    Database(#[from] rusqlite::Error),
    #[error("{0}")]
    File(#[from] std::io::Error),
    #[error("they are damaged; to begin them anew, remove this file and {0}")]
    Damaged(String),
    #[error("they are gone; to begin them anew, remove this file and {0}")]
    Gone(String),
    #[error("{0}")]
    Shared(String),
}

impl QuotaError {
    /// Counts that are in no file, which `place` names, cannot be used.
    pub fn of(place: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self { path: place.into(), source: CountsProblem::Shared(why.into()) }
    }
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

/// A row as it is stored.
#[derive(Debug, Clone, Copy, Default)]
struct StoredCount {
    used: u32,
    refused_until: i64,
    sum: i64,
}

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// `counts` of earlier versions had no checksums.
const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS counts (
    day INTEGER NOT NULL, \"limit\" TEXT NOT NULL, caller TEXT NOT NULL,
    used INTEGER NOT NULL DEFAULT 0, refused_until INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, \"limit\", caller)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sums (id INTEGER PRIMARY KEY, total INTEGER NOT NULL)";
const SUM: &str = "row_sum(day, \"limit\", caller, used, refused_until)";
/// The version of the tables, in `user_version`.
const VERSION: i64 = 2;

impl QuotaFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, connection: Arc::default() }
    }

    /// Works in one transaction, which is kept if `work` says so.
    fn change<T>(
        &self,
        work: impl FnOnce(&mut Counts<'_>) -> Result<(T, bool), CountsProblem>,
    ) -> Result<T, QuotaError> {
        let mut connection = self.connection.lock();
        let failed = |source| QuotaError { path: self.path.clone(), source };
        let open = match connection.take() {
            Some(open) if self.path.exists() => open,
            _ => open(&self.path).map_err(failed)?,
        };
        let worked = in_transaction(connection.insert(open), &self.path, work);
        if worked.is_err() {
            // The next one looks at the whole file again.
            *connection = None;
        }
        worked.map_err(failed)
    }
}

impl Quotas for QuotaFile {
    fn count(&self, day: i64, requests: &[QuotaRequest<'_>]) -> Result<QuotaOutcome, QuotaError> {
        self.change(|counts| {
            let day = counts.begin(day)?;
            let mut used = Vec::with_capacity(requests.len());
            for (position, QuotaRequest { limit, caller, most }) in requests.iter().enumerate() {
                let row = counts.row(day, limit, caller)?.unwrap_or_default();
                if row.used >= *most {
                    // The transaction is rolled back.
                    return Ok((QuotaOutcome::Full(position), false));
                }
                let counted = StoredCount { used: row.used + 1, ..row };
                counts.store(day, limit, caller, counted)?;
                used.push(counted.used);
            }
            Ok((QuotaOutcome::Counted(used), true))
        })
    }

    fn uncount(&self, day: i64, limit: &str, caller: &str) -> Result<(), QuotaError> {
        self.change(|counts| {
            if let Some(row) = counts.row(day, limit, caller)?.filter(|row| row.used > 0) {
                counts.store(day, limit, caller, StoredCount { used: row.used - 1, ..row })?;
            }
            Ok(((), true))
        })
    }

    fn refused(&self, day: i64, limit: &str, caller: &str, until: u64) -> Result<(), QuotaError> {
        self.change(|counts| {
            let day = counts.begin(day)?;
            let row = counts.row(day, limit, caller)?.unwrap_or_default();
            let refused_until = i64::try_from(until).unwrap_or(i64::MAX);
            counts.store(day, limit, caller, StoredCount { refused_until, ..row })?;
            Ok(((), true))
        })
    }

    fn day(&self, today: i64) -> Result<i64, QuotaError> {
        self.change(|counts| Ok((counts.day(today)?, false)))
    }

    fn counts(&self, day: i64) -> Result<Vec<QuotaCount>, QuotaError> {
        if !self.path.exists() && !began_path(&self.path).exists() {
            return Ok(Vec::new());
        }
        self.change(|counts| {
            let day = counts.day(day)?;
            let mut rows = counts.transaction.prepare(
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
            let rows: Vec<QuotaCount> = rows.collect::<rusqlite::Result<_>>()?;
            counts.verify()?;
            Ok((rows, false))
        })
    }
}

fn in_transaction<T>(
    connection: &mut Connection,
    path: &Path,
    work: impl FnOnce(&mut Counts<'_>) -> Result<(T, bool), CountsProblem>,
) -> Result<T, CountsProblem> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut counts = Counts { transaction, path };
    let (value, is_kept) = work(&mut counts)?;
    if is_kept {
        counts.transaction.commit()?;
    }
    Ok(value)
}

/// The counts within a transaction.
struct Counts<'c> {
    transaction: Transaction<'c>,
    path: &'c Path,
}

impl Counts<'_> {
    /// The day whose counts are in force.
    fn day(&self, today: i64) -> Result<i64, CountsProblem> {
        let mut latest = self.transaction.prepare_cached("SELECT max(day) FROM counts")?;
        let latest: Option<i64> = latest.query_row([], |row| row.get(0))?;
        Ok(latest.map_or(today, |latest| latest.max(today)))
    }

    /// Begins the day, and removes the counts of earlier ones.
    fn begin(&self, today: i64) -> Result<i64, CountsProblem> {
        let day = self.day(today)?;
        let mut old = self.transaction.prepare_cached("SELECT 1 FROM counts WHERE day < ?1")?;
        if old.exists([day])? {
            self.verify()?;
            self.transaction.execute("DELETE FROM counts WHERE day < ?1", [day])?;
            self.seal()?;
        }
        Ok(day)
    }

    /// The row of a count. Its checksum is part of the total.
    fn row(
        &self,
        day: i64,
        limit: &str,
        caller: &str,
    ) -> Result<Option<StoredCount>, CountsProblem> {
        let text = format!(
            "SELECT used, refused_until, {SUM}, sum FROM counts
             WHERE day = ?1 AND \"limit\" = ?2 AND caller = ?3"
        );
        let mut rows = self.transaction.prepare_cached(&text)?;
        let read = rows.query_row(params![day, limit, caller], |row| {
            let stored =
                StoredCount { used: row.get(0)?, refused_until: row.get(1)?, sum: row.get(2)? };
            Ok((stored, row.get::<_, Option<i64>>(3)?))
        });
        let Some((row, sum)) = read.optional()? else { return Ok(None) };
        if sum == Some(row.sum) { Ok(Some(row)) } else { Err(self.damaged()) }
    }

    /// Stores a row, and adds the difference to the total.
    fn store(
        &self,
        day: i64,
        limit: &str,
        caller: &str,
        StoredCount { used, refused_until, sum: before }: StoredCount,
    ) -> Result<(), CountsProblem> {
        let text = "INSERT INTO counts (day, \"limit\", caller, used, refused_until, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, row_sum(?1, ?2, ?3, ?4, ?5))
             ON CONFLICT DO UPDATE SET used = ?4, refused_until = ?5, sum = excluded.sum
             RETURNING sum";
        let row = params![day, limit, caller, used, refused_until];
        let sum: i64 = self.transaction.prepare_cached(text)?.query_row(row, |row| row.get(0))?;
        let total = self.total()?.wrapping_sub(before).wrapping_add(sum);
        self.set_total(total)
    }

    fn total(&self) -> Result<i64, CountsProblem> {
        let mut total = self.transaction.prepare_cached("SELECT total FROM sums WHERE id = 1")?;
        let total = total.query_row([], |row| row.get(0)).optional()?;
        total.ok_or_else(|| self.damaged())
    }

    fn set_total(&self, total: i64) -> Result<(), CountsProblem> {
        let text = "INSERT OR REPLACE INTO sums (id, total) VALUES (1, ?1)";
        self.transaction.prepare_cached(text)?.execute([total])?;
        Ok(())
    }

    /// Refuses counts of which one was changed or removed.
    fn verify(&self) -> Result<(), CountsProblem> {
        let text = format!("SELECT {SUM}, sum FROM counts");
        let mut rows = self.transaction.prepare(&text)?;
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?)))?;
        let mut total = 0_i64;
        for row in rows {
            let (own, sum): (i64, Option<i64>) = row?;
            if sum != Some(own) {
                return Err(self.damaged());
            }
            total = total.wrapping_add(own);
        }
        if total == self.total()? { Ok(()) } else { Err(self.damaged()) }
    }

    /// Writes the checksums of all rows.
    fn seal(&self) -> Result<(), CountsProblem> {
        self.transaction.execute(&format!("UPDATE counts SET sum = {SUM}"), [])?;
        let mut rows = self.transaction.prepare("SELECT sum FROM counts")?;
        let rows = rows.query_map([], |row| row.get::<_, i64>(0))?;
        let mut total = 0_i64;
        for sum in rows {
            total = total.wrapping_add(sum?);
        }
        self.set_total(total)
    }

    fn damaged(&self) -> CountsProblem {
        CountsProblem::Damaged(began_name(self.path))
    }
}

fn open(path: &Path) -> Result<Connection, CountsProblem> {
    if let Some(folder) = path.parent() {
        // If this fails, opening the file fails too and says why.
        let _ = files::make_folder(folder);
    }
    let has_begun = began_path(path).exists();
    let is_there = path.metadata().is_ok_and(|found| !found.is_file() || found.len() > 0);
    if has_begun && !is_there {
        return Err(CountsProblem::Gone(began_name(path)));
    }
    // Made here, because SQLite would let others read it.
    let _ = files::private_options().append(true).create(true).open(path);
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A killed process loses nothing.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    register_row_sum(&connection)?;
    in_transaction(&mut connection, path, |counts| {
        let version: i64 =
            counts.transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('counts', 'sums')";
        let tables: i64 = counts.transaction.query_row(tables, [], |row| row.get(0))?;
        if version >= VERSION || has_begun {
            let is_whole = version >= VERSION && tables == 2;
            if !is_whole {
                return Err(counts.damaged());
            }
            counts.verify()?;
        } else {
            counts.transaction.execute_batch(SCHEMA)?;
            counts.transaction.execute_batch("ALTER TABLE counts ADD COLUMN sum INTEGER")?;
            counts.seal()?;
            counts.transaction.pragma_update(None, "user_version", VERSION)?;
        }
        Ok(((), true))
    })?;
    if !has_begun {
        files::private_options().append(true).create(true).open(began_path(path))?;
    }
    Ok(connection)
}

/// A file beside the database. It shows that there were counts.
fn began_path(path: &Path) -> PathBuf {
    path.with_extension("began")
}

fn began_name(path: &Path) -> String {
    began_path(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
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
        assert!(open().counts(3).unwrap().is_empty(), "only one day is stored");
    }

    #[test]
    fn a_clock_that_is_set_back_renews_no_count() {
        let folder = tempfile::tempdir().unwrap();
        let open = || QuotaFile::new(folder.path().join("quotas.db"));
        assert_eq!(open().count(1, &[request("a", 1)]).unwrap(), QuotaOutcome::Counted(vec![1]));
        // Forward: a new day begins. Back: it goes on.
        assert_eq!(open().count(2, &[request("a", 1)]).unwrap(), QuotaOutcome::Counted(vec![1]));
        assert_eq!(open().count(1, &[request("a", 1)]).unwrap(), QuotaOutcome::Full(0));
        assert_eq!(open().count(2, &[request("a", 1)]).unwrap(), QuotaOutcome::Full(0));
        assert_eq!(open().counts(1).unwrap()[0].used, 1, "the count that is in force");
        assert_eq!(open().count(3, &[request("a", 1)]).unwrap(), QuotaOutcome::Counted(vec![1]));
    }

    #[test]
    fn a_damaged_count_is_not_used() {
        let edits: [fn(&Path); 6] = [
            |path| edit(path, "UPDATE counts SET used = 0"),
            |path| edit(path, "UPDATE counts SET day = day - 1"),
            |path| edit(path, "DELETE FROM counts"),
            |path| edit(path, "DROP TABLE counts"),
            |path| std::fs::write(path, "").unwrap(),
            |path| std::fs::remove_file(path).unwrap(),
        ];
        for (number, damage) in edits.iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("quotas.db");
            let file = QuotaFile::new(path.clone());
            for _ in 0..2 {
                let both = [request("a", 9), request("b", 9)];
                assert!(matches!(file.count(1, &both).unwrap(), QuotaOutcome::Counted(_)));
            }
            drop(file);
            damage(&path);
            let refused = QuotaFile::new(path.clone()).count(1, &[request("a", 9)]);
            let Err(refused) = refused else { panic!("edit {number}: {refused:?}") };
            let refused = refused.to_string();
            assert!(refused.contains("damaged") || refused.contains("gone"), "{refused}");
            assert!(QuotaFile::new(path.clone()).counts(1).is_err(), "edit {number}");
        }
        // An edit under a gateway that runs.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quotas.db");
        let file = QuotaFile::new(path.clone());
        file.count(1, &[request("a", 9)]).unwrap();
        edit(&path, "UPDATE counts SET used = 0");
        assert!(file.count(1, &[request("a", 9)]).is_err());
    }

    /// Changes the file as somebody else would.
    fn edit(path: &Path, change: &str) {
        let connection = Connection::open(path).unwrap();
        connection.execute_batch(change).unwrap();
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
