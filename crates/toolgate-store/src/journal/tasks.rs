//! Calls that clients have as tasks.

use rusqlite::params;

use super::{JournalError, JournalFile, Tasks, now, signed, unsigned};

/// A task, as its client last could see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// Its id.
    pub id: String,
    /// The identity of the caller that it belongs to.
    pub owner: String,
    /// When it is removed, in milliseconds since 1970.
    pub expires: u64,
    /// Its state, as JSON.
    pub state: String,
}

impl Tasks for JournalFile {
    fn write_task(&self, task: &TaskRow) -> Result<(), JournalError> {
        let TaskRow { id, owner, expires, state } = task;
        let life = self.life()?;
        self.change(|connection| {
            connection
                .prepare_cached("DELETE FROM tasks WHERE expires <= ?1")?
                .execute(params![now()])?;
            let write = "INSERT OR REPLACE INTO tasks (id, owner, expires, life, state) \
                         VALUES (?1, ?2, ?3, ?4, ?5)";
            connection.prepare_cached(write)?.execute(params![
                id,
                owner,
                signed(*expires),
                life,
                state
            ])?;
            Ok(())
        })
    }

    fn task(&self, id: &str, owner: &str) -> Result<Option<(TaskRow, bool)>, JournalError> {
        let query = "SELECT id, owner, expires, state, life FROM tasks \
                     WHERE id = ?1 AND owner = ?2 AND expires > ?3";
        let rows = self.query(query, params![id, owner, now()], |row| {
            let task = TaskRow {
                id: row.get(0)?,
                owner: row.get(1)?,
                expires: unsigned(row.get(2)?),
                state: row.get(3)?,
            };
            Ok((task, row.get::<_, String>(4)?))
        });
        let found = rows?.into_iter().next();
        Ok(found.map(|(task, life)| (task, self.files.lives.is_alive(&life))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_kept_for_its_owner_until_it_expires() {
        let folder = tempfile::tempdir().unwrap();
        let journal = JournalFile::open(&folder.path().join("journal.db")).unwrap();
        let row = |id: &str, expires: i64, state: &str| TaskRow {
            id: id.to_owned(),
            owner: "ada".to_owned(),
            expires: unsigned(expires),
            state: state.to_owned(),
        };
        let later = now() + 3_600_000;
        journal.write_task(&row("one", later, "working")).unwrap();
        journal.write_task(&row("one", later, "completed")).unwrap();
        journal.write_task(&row("gone", now() - 1, "working")).unwrap();
        let one = row("one", later, "completed");
        assert_eq!(journal.task("one", "ada").unwrap(), Some((one.clone(), true)));
        assert_eq!(journal.task("one", "bob").unwrap(), None);
        assert_eq!(journal.task("gone", "ada").unwrap(), None);
        journal.write_task(&row("two", later, "working")).unwrap();
        let left = journal.query("SELECT count(*) FROM tasks", [], |row| row.get::<_, i64>(0));
        assert_eq!(left.unwrap(), [2], "what has expired is removed");
        drop(journal);
        let journal = JournalFile::open(&folder.path().join("journal.db")).unwrap();
        assert_eq!(journal.task("one", "ada").unwrap(), Some((one, false)));
    }
}
