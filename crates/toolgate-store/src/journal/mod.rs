//! Runs with their calls and events, approvals, and grants.
//!
//! One SQLite file in write-ahead mode, for all processes that use the folder. What has an effect is
//! written before it happens: a call before it is sent, and its result before the script gets it.
//! What a resumed run can do again (calls that only read) is written some milliseconds later, or
//! before the next effect: [`RunEntries::write_soon`]. A killed process loses nothing that it had
//! written. After a power cut the last entries may be missing. The order stays correct, and calls
//! that must not be repeated are never missing: [`RunEntries::sync`].
//!
//! Every row has a checksum, and the sent calls are also listed beside the database. So damage is
//! found: a lost call has an unknown outcome, and does not count as never sent.

mod approvals;
mod contents;
#[cfg(test)]
mod damage_tests;
mod deferred;
mod entries;
mod group_sync;
mod process_lock;
mod retention;
mod row_sum;
mod rows;
mod runs;
mod schema;
mod sent;
mod sent_index;
mod tasks;
#[cfg(test)]
mod tests;
mod traits;

use std::{
    fmt,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Params, Row, TransactionBehavior, config::DbConfig,
};
use thiserror::Error;

use crate::files;
pub use approvals::{
    ApprovalState, GrantRow, MOST_OPEN, PersonWait, QuestionReference, StoredApproval,
};
use deferred::DeferredEntries;
pub use entries::{AnsweredEntry, CalledEntry, EndedEntry, RunEntry, RunEntryKind};
use group_sync::GroupSync;
use process_lock::ProcessLocks;
pub use retention::Retention;
use retention::SizeEstimate;
use row_sum::SealedTable;
pub(crate) use row_sum::register as register_row_sum;
pub use rows::{
    CallDecision, CallEnd, LostCall, NewCall, NewRun, PastCallRow, PastEvent, RunCall, RunDetail,
    RunFilter, RunHistory, RunState, RunSummary,
};
pub(crate) use schema::knows_audit;

use sent::{SentLine, SentLog};
pub use tasks::TaskRow;
pub use traits::{Approvals, Journal, RunEntries, RunRetention, Runs, Tasks};

/// The journal of one folder.
pub struct JournalFile {
    files: Arc<JournalFiles>,
    group: GroupSync,
    size: Mutex<SizeEstimate>,
    /// Held while old runs are removed.
    pruning: Mutex<()>,
}

/// What is on the disk, and what will be.
struct JournalFiles {
    connection: Mutex<Connection>,
    path: PathBuf,
    lives: ProcessLocks,
    sent: SentLog,
    deferred: DeferredEntries,
    /// Ends of runs that could not be written yet.
    unwritten: Mutex<Vec<EndedEntry<'static>>>,
}

/// The journal could not be read or written. Its content did not change.
#[derive(Debug, Error)]
#[error("{place} cannot be used: {source}")]
pub struct JournalError {
    place: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// The hint for a state folder that cannot be written.
pub const WRITABLE: &str = "set TOOLGATE_HOME to a folder that you can write";

/// How many statements stay prepared: more than there are.
const STATEMENTS: usize = 64;
/// How long one process waits for another that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

impl JournalFile {
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        if let Some(folder) = path.parent() {
            // If this fails, opening the file fails too and says why.
            let _ = files::make_folder(folder);
        }
        // Made here, because SQLite would let others read it.
        let _ = files::private_options().append(true).create(true).open(path);
        let failed = |source: rusqlite::Error| JournalError::new(path, source);
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        // Otherwise SQLite prepares a statement again whenever it gets other values.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        row_sum::register(&connection).map_err(failed)?;
        schema::prepare(&mut connection).map_err(failed)?;
        if path.with_file_name("audit.began").exists() {
            // If this fails, the next process does it.
            let _ = schema::note_audit(&connection);
        }
        let files = JournalFiles {
            connection: Mutex::new(connection),
            path: path.to_owned(),
            lives: ProcessLocks::new(path.with_extension("lives")),
            sent: SentLog::new(path.with_extension("sent")),
            deferred: DeferredEntries::default(),
            unwritten: Mutex::default(),
        };
        Ok(Self {
            files: Arc::new(files),
            group: GroupSync::default(),
            size: Mutex::default(),
            pruning: Mutex::default(),
        })
    }

    /// Fails if an earlier entry of the run could not be written. The end of the run is written
    /// nevertheless, so that it does not count as running.
    fn check_failed(&self, entry: &RunEntry<'_>) -> Result<(), JournalError> {
        let deferred = &self.files.deferred;
        match deferred.failure(entry.run()) {
            Some(_) if entry.is_end() => deferred.forget(entry.run()),
            Some(why) => return Err(JournalError::new(&self.files.path, why)),
            None => {}
        }
        Ok(())
    }

    /// Writes a line beside the database.
    fn mark(&self, line: &SentLine) -> Result<(), JournalError> {
        self.files.mark(line)
    }

    /// Runs `work` in a transaction that writes.
    fn change<R>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<R>,
    ) -> Result<R, JournalError> {
        self.with(|connection| {
            self.files.write_ends(connection);
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        })
    }

    /// Runs a statement that changes one row, and writes the checksum of that row. Returns the
    /// number of changed rows.
    fn write_row(
        &self,
        (table, key): (&SealedTable, impl Params),
        statement: &str,
        values: impl Params,
    ) -> Result<usize, JournalError> {
        self.change(|connection| {
            let changed = connection.prepare_cached(statement)?.execute(values)?;
            if changed > 0 {
                table.seal(connection, key)?;
            }
            Ok(changed)
        })
    }

    /// Runs `work` on the connection, after the entries that wait.
    fn with<R>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<R>,
    ) -> Result<R, JournalError> {
        let failed = |source| JournalError::new(&self.files.path, source);
        self.files.with(|connection| work(connection).map_err(failed))
    }

    /// Runs a statement. Returns the number of changed rows.
    fn execute(&self, statement: &str, values: impl Params) -> Result<usize, JournalError> {
        self.with(|connection| connection.prepare_cached(statement)?.execute(values))
    }

    /// Reads the rows of a query.
    fn query<R>(
        &self,
        query: &str,
        values: impl Params,
        read: fn(&Row<'_>) -> rusqlite::Result<R>,
    ) -> Result<Vec<R>, JournalError> {
        self.with(|connection| connection.prepare_cached(query)?.query_map(values, read)?.collect())
    }

    /// The name of our own lock file.
    fn life(&self) -> Result<String, JournalError> {
        self.files.life()
    }
}

impl RunEntries for JournalFile {
    fn write(&self, entry: RunEntry<'_>) -> Result<(), JournalError> {
        self.check_failed(&entry)?;
        self.size.lock().grow(&entry);
        let written = self.files.with(|connection| {
            self.files.write_ends(connection);
            self.files.write_entries(connection, std::slice::from_ref(&entry))
        });
        if written.is_err() {
            self.files.keep_end(entry);
        }
        written
    }

    fn write_soon(&self, entry: RunEntry<'_>) -> Result<(), JournalError> {
        self.check_failed(&entry)?;
        self.size.lock().grow(&entry);
        let deferred = &self.files.deferred;
        deferred.start_writer(&self.files);
        if deferred.push(entry.into_owned()) {
            self.flush();
        }
        Ok(())
    }

    fn flush(&self) {
        self.files.write_deferred(&mut self.files.connection.lock());
    }

    fn sync(&self) -> Result<(), JournalError> {
        let deferred = &self.files.deferred;
        deferred.start_writer(&self.files);
        let synced = self.group.wait(|| self.files.sent.sync());
        deferred.sync_soon();
        synced.map_err(|source| JournalError::new(&self.files.path, source))
    }
}

impl Drop for JournalFile {
    fn drop(&mut self) {
        self.flush();
        self.files.deferred.end();
    }
}

impl JournalFiles {
    /// Runs `work` on the connection, after the entries that wait.
    fn with<R>(&self, work: impl FnOnce(&mut Connection) -> R) -> R {
        let mut connection = self.connection.lock();
        self.write_deferred(&mut connection);
        work(&mut connection)
    }

    /// Writes the entries that wait. Runs whose entries cannot be written are remembered.
    fn write_deferred(&self, connection: &mut Connection) {
        let entries = self.deferred.take();
        if entries.is_empty() {
            return;
        }
        self.write_ends(connection);
        if let Err(error) = self.write_entries(connection, &entries) {
            let why = error.source.to_string();
            for entry in entries {
                self.deferred.failed(entry.run(), &why);
                self.keep_end(entry);
            }
        }
    }

    /// Writes entries in one transaction.
    fn write_entries(
        &self,
        connection: &mut Connection,
        entries: &[RunEntry<'_>],
    ) -> Result<(), JournalError> {
        let failed = |source| JournalError::new(&self.path, source);
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        for entry in entries {
            entry.write(self, &transaction)?;
        }
        transaction.commit().map_err(failed)?;
        // Afterwards, or a run that could not be written would count as lost.
        entries.iter().filter_map(RunEntry::line).try_for_each(|line| self.mark(&line))
    }

    /// Keeps the end of a run that could not be written.
    fn keep_end(&self, entry: RunEntry<'_>) {
        if let Some(end) = entry.into_end() {
            self.lives.is_over(&end.run);
            self.unwritten.lock().push(end);
        }
    }

    /// Writes the ends that could not be written before. They may still not be.
    fn write_ends(&self, connection: &mut Connection) {
        let mut unwritten = self.unwritten.lock();
        if unwritten.is_empty() {
            return;
        }
        let Some(own) = self.lives.own_if_any() else { return };
        let mut write = |end: &EndedEntry<'_>| {
            let transaction = connection.transaction()?;
            // Somebody else may have resumed it meanwhile.
            let ours = "SELECT 1 FROM runs WHERE id = ?1 AND life = ?2 AND state = 'running'";
            if transaction.query_row(ours, [&*end.run, &own], |_| Ok(())).optional()?.is_some() {
                end.write(&transaction)?;
            }
            transaction.commit()
        };
        while let Some(end) = unwritten.last()
            && write(end).is_ok()
        {
            self.lives.is_not_over(&end.run);
            unwritten.pop();
        }
    }

    /// Syncs the log of the database.
    fn sync_log(&self) -> io::Result<()> {
        let mut path = self.path.clone().into_os_string();
        path.push("-wal");
        let path = PathBuf::from(path);
        match File::options().append(true).open(&path) {
            Ok(log) => files::sync(&log, &path),
            // Where SQLite cannot have such a log, it syncs by itself.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes a line beside the database.
    fn mark(&self, line: &SentLine) -> Result<(), JournalError> {
        let process = self.life()?;
        self.sent.append(&process, line).map_err(|source| JournalError::new(&self.path, source))
    }

    /// The name of our own lock file.
    fn life(&self) -> Result<String, JournalError> {
        self.lives.own().map_err(|source| JournalError::new(&self.path, source))
    }
}

impl fmt::Debug for JournalFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("JournalFiles").field("path", &self.path).finish_non_exhaustive()
    }
}

impl JournalError {
    fn new(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::of(format!("the journal {}", path.display()), source)
    }

    /// A journal that is in no file, which `place` names, cannot be used.
    pub fn of(
        place: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { place: place.into(), source: source.into() }
    }

    /// What a person can do, if that is known.
    pub fn remedy(&self) -> Option<&'static str> {
        let failure = self.source.downcast_ref::<rusqlite::Error>()?;
        match failure.sqlite_error_code()? {
            ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => Some(
                "move the file away: a new one is made, without its runs, open questions and grants",
            ),
            ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
                Some(WRITABLE)
            }
            _ => None,
        }
    }
}

impl fmt::Debug for JournalFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JournalFile")
            .field("path", &self.files.path)
            .finish_non_exhaustive()
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    i64::try_from(crate::since_epoch().as_millis()).unwrap_or(i64::MAX)
}

/// Converts a number for SQLite, whose integers are signed.
fn signed(number: u64) -> i64 {
    number.cast_signed()
}

fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}
