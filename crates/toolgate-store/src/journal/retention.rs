//! Removes old runs.

use rusqlite::{Connection, OptionalExtension};

use super::{
    Journal, JournalError, RunState, contents, now,
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

const TABLES: [&str; 5] = [
    "DELETE FROM calls WHERE run = ?1",
    "DELETE FROM events WHERE run = ?1",
    "DELETE FROM media WHERE run = ?1",
    "DELETE FROM flows WHERE run = ?1",
    "DELETE FROM runs WHERE id = ?1",
];

impl Journal {
    /// Removes runs beyond the limits, the oldest first. Returns how many. Active runs stay, and
    /// waiting runs stay until they are too old.
    pub fn prune(&self, retention: Retention) -> Result<usize, JournalError> {
        self.lives.sweep();
        let oldest = now() - i64::from(retention.days) * 24 * 60 * 60 * 1000;
        let most = usize::try_from(retention.runs).unwrap_or(usize::MAX);
        let began = self.sent.runs();
        let (mut over, mut gone) = (Vec::new(), Vec::new());
        for ListedRun { id, created, state, life } in self.with(|connection| listed(connection))? {
            let runs_now = state == RunState::Running && self.lives.is_running(&life, &id);
            if runs_now {
                continue;
            }
            let is_too_old = created < oldest && {
                // A damaged row does not say when its run began.
                let intact = self.with(|connection| is_intact(connection, &id))?;
                intact || began.get(&id).copied().map_or(0, signed) < oldest
            };
            if is_too_old || (state != RunState::Waiting && over.len() >= most) {
                self.with(|connection| forget(connection, &id))?;
                gone.push(id);
            } else if state != RunState::Waiting {
                over.push(id);
            }
        }
        // Each in a transaction of its own, so that a run that writes meanwhile does not wait for all.
        while self.with(|connection| used(connection))? > retention.bytes
            && let Some(id) = over.pop()
        {
            self.with(|connection| forget(connection, &id))?;
            gone.push(id);
        }
        for id in &gone {
            self.mark(&SentLine::of_run(SentKind::Removed, id, 0))?;
        }
        let own = self.lives.own_if_any();
        self.sent.sweep(own.as_deref(), |life| self.lives.is_alive(life), unsigned(oldest.max(0)));
        Ok(gone.len())
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
        .prepare_cached("SELECT id, created, state, life FROM runs ORDER BY created DESC, id")?
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

/// The used bytes of the file. Free space is reused first.
fn used(connection: &Connection) -> rusqlite::Result<u64> {
    let number =
        |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map(unsigned);
    let pages = number("page_count")?.saturating_sub(number("freelist_count")?);
    Ok(pages.saturating_mul(number("page_size")?))
}
