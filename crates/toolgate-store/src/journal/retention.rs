//! Removes old runs.

use rusqlite::{Connection, OptionalExtension};

use super::{
    JournalError, JournalFile, RunEntry, RunRetention, RunState, contents, now,
    row_sum::RUNS,
    sent::{SentKind, SentLine},
    signed, unsigned,
};

/// How much is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Runs that are over.
    pub runs: u32,
    /// The age in days.
    pub days: u32,
    /// Bytes of all of it.
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { runs: 1_000, days: 30, bytes: 1 << 30 }
    }
}

/// What is known of the size of the journal without a look at it.
#[derive(Debug, Default)]
pub(super) struct SizeEstimate {
    /// Runs that are over.
    runs: u64,
    bytes: u64,
    /// How many runs of this process have ended since the last look.
    ends: u64,
    is_known: bool,
}

impl SizeEstimate {
    pub(super) fn grow(&mut self, entry: &RunEntry<'_>) {
        let ended = u64::from(entry.is_end());
        self.runs += ended;
        self.ends += ended;
        self.bytes += u64::try_from(entry.bytes()).unwrap_or_default();
    }

    fn may_be_beyond(&self, retention: Retention) -> bool {
        !self.is_known
            || self.ends >= LOOKED_AT_EVERY
            || self.runs > u64::from(retention.runs)
            || self.bytes > retention.bytes
    }
}

/// After so many runs the journal is looked at, because other processes write too.
const LOOKED_AT_EVERY: u64 = 100;
/// Beyond the limit, this part of the runs is removed besides.
const SPARE_PART: u32 = 16;

const TABLES: [&str; 5] = [
    "DELETE FROM calls WHERE run = ?1",
    "DELETE FROM events WHERE run = ?1",
    "DELETE FROM media WHERE run = ?1",
    "DELETE FROM flows WHERE run = ?1",
    "DELETE FROM runs WHERE id = ?1",
];

/// How many free pages are given back at once: a run that writes waits for no more than these.
const PAGES_AT_ONCE: u64 = 256;
/// Free space up to this stays in the file, for the next runs.
const MAX_FREE_BYTES: u64 = 8 << 20;
/// A file of an older version is rewritten only if that takes a moment.
const MAX_REWRITTEN_BYTES: u64 = 16 << 20;

impl JournalFile {
    fn remove(&self, retention: Retention) -> Result<usize, JournalError> {
        self.files.lives.sweep();
        let oldest = now() - i64::from(retention.days) * 24 * 60 * 60 * 1000;
        // Some more, so that not every run removes another one.
        let most = retention.runs - retention.runs / SPARE_PART;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (mut over, mut gone) = (Vec::new(), Vec::new());
        for ListedRun { id, created, state, life } in self.with(|connection| listed(connection))? {
            let runs_now = state == RunState::Running && self.files.lives.is_running(&life, &id);
            if runs_now {
                continue;
            }
            let is_too_old = created < oldest && {
                // A damaged row does not say when its run began.
                let intact = self.with(|connection| is_intact(connection, &id))?;
                intact || self.files.sent.index().began(&id).map_or(0, signed) < oldest
            };
            if is_too_old || (state != RunState::Waiting && over.len() >= most) {
                self.with(|connection| forget(connection, &id))?;
                gone.push(id);
            } else if state != RunState::Waiting {
                over.push(id);
            }
        }
        // Each in a transaction of its own, so that a run that writes meanwhile does not wait for all.
        while self.with(|connection| Space::of(connection))?.used() > retention.bytes
            && let Some(id) = over.pop()
        {
            self.with(|connection| forget(connection, &id))?;
            gone.push(id);
        }
        for id in &gone {
            self.mark(&SentLine::of_run(SentKind::Removed, id, 0))?;
        }
        let own = self.files.lives.own_if_any();
        self.files.sent.sweep(
            own.as_deref(),
            |life| self.files.lives.is_alive(life),
            unsigned(oldest.max(0)),
        );
        Ok(gone.len())
    }

    /// Gives free pages back to the file system, in small steps.
    fn shrink(&self, retention: Retention) -> Result<(), JournalError> {
        let slack = MAX_FREE_BYTES.min(retention.bytes / 8);
        let is_large = |space: Space| {
            space.free > 0 && (space.free_bytes() > slack || space.total() > retention.bytes)
        };
        let mut space = self.with(|connection| Space::of(connection))?;
        if !is_large(space) {
            return Ok(());
        }
        let is_incremental = self.with(|connection| {
            let mode: i64 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
            Ok(mode == 2)
        })?;
        if !is_incremental {
            if space.used() <= MAX_REWRITTEN_BYTES {
                self.with(|connection| {
                    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
                    connection.execute_batch("VACUUM")
                })?;
            }
            return self.checkpoint();
        }
        while is_large(space) {
            let step = format!("PRAGMA incremental_vacuum({PAGES_AT_ONCE})");
            self.with(|connection| {
                let mut statement = connection.prepare_cached(&step)?;
                let mut rows = statement.query([])?;
                while rows.next()?.is_some() {}
                Ok(())
            })?;
            let now = self.with(|connection| Space::of(connection))?;
            if now.free >= space.free {
                // Other processes write meanwhile. The next time goes on.
                break;
            }
            space = now;
        }
        self.checkpoint()
    }

    /// Brings the log into the file, which then becomes smaller. It has a connection of its own, so
    /// that runs can write meanwhile.
    fn checkpoint(&self) -> Result<(), JournalError> {
        let checkpoint = || {
            let connection = Connection::open(&self.files.path)?;
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
        };
        checkpoint().map_err(|source| JournalError::new(&self.files.path, source))
    }
}

impl RunRetention for JournalFile {
    fn may_be_beyond(&self, retention: Retention) -> bool {
        self.size.lock().may_be_beyond(retention)
    }

    fn is_beyond(&self, retention: Retention) -> Result<bool, JournalError> {
        let (runs, bytes) = self.with(|connection| {
            let count = "SELECT count(*) FROM runs WHERE state NOT IN (?1, ?2)";
            let stay = [RunState::Waiting.name(), RunState::Running.name()];
            let runs: i64 = connection.prepare_cached(count)?.query_row(stay, |row| row.get(0))?;
            Ok((unsigned(runs), Space::of(connection)?.total()))
        })?;
        *self.size.lock() = SizeEstimate { runs, bytes, ends: 0, is_known: true };
        Ok(runs > u64::from(retention.runs) || bytes > retention.bytes)
    }

    fn prune(&self, retention: Retention) -> Result<usize, JournalError> {
        let Some(_pruning) = self.pruning.try_lock() else { return Ok(0) };
        let gone = self.remove(retention)?;
        self.shrink(retention)?;
        Ok(gone)
    }
}

/// The pages of the file.
#[derive(Clone, Copy)]
struct Space {
    pages: u64,
    free: u64,
    page_bytes: u64,
}

impl Space {
    fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let number = |name| {
            connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map(unsigned)
        };
        Ok(Self {
            pages: number("page_count")?,
            free: number("freelist_count")?,
            page_bytes: number("page_size")?,
        })
    }

    fn total(self) -> u64 {
        self.pages.saturating_mul(self.page_bytes)
    }

    fn free_bytes(self) -> u64 {
        self.free.saturating_mul(self.page_bytes)
    }

    /// Free space is reused first.
    fn used(self) -> u64 {
        self.total().saturating_sub(self.free_bytes())
    }
}

/// What decides whether a run is removed.
struct ListedRun {
    id: String,
    created: i64,
    state: RunState,
    life: String,
}

/// All runs, the newest first. Damaged rows may have values of any type.
fn listed(connection: &Connection) -> rusqlite::Result<Vec<ListedRun>> {
    connection
        .prepare_cached("SELECT id, created, state, life FROM runs ORDER BY created DESC, id DESC")?
        .query_map([], |row| {
            let state: String = row.get(2).unwrap_or_default();
            Ok(ListedRun {
                id: row.get(0)?,
                created: row.get(1).unwrap_or_default(),
                state: RunState::named(&state),
                life: row.get(3).unwrap_or_default(),
            })
        })?
        .collect()
}

fn is_intact(connection: &Connection, id: &str) -> rusqlite::Result<bool> {
    let text = format!("SELECT {} FROM runs WHERE id = ?1", RUNS.intact());
    let intact = connection.prepare_cached(&text)?.query_row([id], |row| row.get(0)).optional()?;
    Ok(intact.unwrap_or_default())
}

fn forget(connection: &mut Connection, id: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    contents::forget(&transaction, id)?;
    for delete in TABLES {
        transaction.prepare_cached(delete)?.execute([id])?;
    }
    transaction.commit()
}
