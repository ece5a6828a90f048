//! What is forgotten, and when.

use rusqlite::Connection;

use super::{Journal, JournalError, RunState, now, unsigned};

/// How much is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Runs that are over.
    pub runs: u32,
    /// Days, whatever became of them.
    pub days: u32,
    /// Bytes of all of it.
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { runs: 1_000, days: 30, bytes: 1 << 30 }
    }
}

const TABLES: [&str; 4] = [
    "DELETE FROM calls WHERE run = ?1",
    "DELETE FROM events WHERE run = ?1",
    "DELETE FROM media WHERE run = ?1",
    "DELETE FROM runs WHERE id = ?1",
];

impl Journal {
    /// Forgets what is too old or too much, the oldest first; gives how many runs that were. What runs
    /// now stays, and what waits stays until it is too old.
    pub fn prune(&self, retention: Retention) -> Result<usize, JournalError> {
        self.lives.sweep();
        let oldest = now() - i64::from(retention.days) * 24 * 60 * 60 * 1000;
        let most = usize::try_from(retention.runs).unwrap_or(usize::MAX);
        self.with(|connection| {
            let runs: Vec<(String, i64, RunState, String)> = connection
                .prepare_cached(
                    "SELECT id, created, state, life FROM runs ORDER BY created DESC, id",
                )?
                .query_map([], |row| {
                    let state: String = row.get(2)?;
                    Ok((row.get(0)?, row.get(1)?, RunState::named(&state), row.get(3)?))
                })?
                .collect::<Result<_, _>>()?;
            let mut over = Vec::new();
            let mut gone = 0;
            for (id, created, state, life) in runs {
                let runs_now = state == RunState::Running && self.lives.is_alive(&life);
                if runs_now {
                    continue;
                }
                if created < oldest || (state != RunState::Waiting && over.len() >= most) {
                    forget(connection, &id)?;
                    gone += 1;
                } else if state != RunState::Waiting {
                    over.push(id);
                }
            }
            while used(connection)? > retention.bytes
                && let Some(id) = over.pop()
            {
                forget(connection, &id)?;
                gone += 1;
            }
            Ok(gone)
        })
    }
}

fn forget(connection: &mut Connection, id: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for delete in TABLES {
        transaction.prepare_cached(delete)?.execute([id])?;
    }
    transaction.commit()
}

/// Bytes of the file that hold something; what was forgotten is used again first.
fn used(connection: &Connection) -> rusqlite::Result<u64> {
    let number =
        |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map(unsigned);
    let pages = number("page_count")?.saturating_sub(number("freelist_count")?);
    Ok(pages.saturating_mul(number("page_size")?))
}
