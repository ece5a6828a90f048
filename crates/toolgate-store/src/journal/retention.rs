//! Removes old runs.

use rusqlite::Connection;

use super::{
    Journal, JournalError, RunState, now,
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
        let gone = self.with(|connection| {
            let runs: Vec<(String, i64, RunState, String)> = connection
                .prepare_cached(&format!(
                    "SELECT id, created, state, life, {} FROM runs ORDER BY created DESC, id",
                    RUNS.intact()
                ))?
                .query_map([], |row| {
                    let id: String = row.get(0)?;
                    if row.get(4) != Ok(true) {
                        let created = began.get(&id).copied().map(signed).unwrap_or_default();
                        return Ok((id, created, RunState::Damaged, String::new()));
                    }
                    let state: String = row.get(2)?;
                    Ok((id, row.get(1)?, RunState::named(&state), row.get(3)?))
                })?
                .collect::<Result<_, _>>()?;
            let mut over = Vec::new();
            let mut gone = Vec::new();
            for (id, created, state, life) in runs {
                let runs_now = state == RunState::Running && self.lives.is_running(&life, &id);
                if runs_now {
                    continue;
                }
                if created < oldest || (state != RunState::Waiting && over.len() >= most) {
                    forget(connection, &id)?;
                    gone.push(id);
                } else if state != RunState::Waiting {
                    over.push(id);
                }
            }
            while used(connection)? > retention.bytes
                && let Some(id) = over.pop()
            {
                forget(connection, &id)?;
                gone.push(id);
            }
            Ok(gone)
        })?;
        for id in &gone {
            self.mark(&SentLine::of_run(SentKind::Removed, id, 0))?;
        }
        let own = self.lives.own_if_any();
        self.sent.sweep(own.as_deref(), |life| self.lives.is_alive(life), unsigned(oldest.max(0)));
        Ok(gone.len())
    }
}

fn forget(connection: &mut Connection, id: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
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
