//! Calls that clients have as tasks.

use toolgate_store::{JournalError, TaskRow, Tasks};

use super::SharedJournal;
use crate::{now, text};

impl Tasks for SharedJournal {
    fn write_task(&self, task: &TaskRow) -> Result<(), JournalError> {
        let (expires, state, now) = (task.expires.cast_signed(), task.state.as_bytes(), now());
        let node = &self.node.id;
        self.with(|connection| async move {
            connection.execute("DELETE FROM task WHERE expires <= $1", &[&now]).await?;
            let write =
                "INSERT INTO task (id, owner, expires, node, state) VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, expires = excluded.expires,
                node = excluded.node, state = excluded.state";
            connection.execute(write, &[&task.id, &task.owner, &expires, node, &state]).await?;
            Ok(())
        })
    }

    fn task(&self, id: &str, owner: &str) -> Result<Option<(TaskRow, bool)>, JournalError> {
        let now = now();
        self.with(|connection| async move {
            let query = "SELECT id, owner, expires, state,
                EXISTS (SELECT 1 FROM node WHERE node.id = task.node AND lease_until > now())
                FROM task WHERE id = $1 AND owner = $2 AND expires > $3";
            let row = connection.query_opt(query, &[&id, &owner, &now]).await?;
            Ok(row.map(|row| {
                let expires = row.get::<_, i64>(2).cast_unsigned();
                let task =
                    TaskRow { id: row.get(0), owner: row.get(1), expires, state: text(row.get(3)) };
                (task, row.get(4))
            }))
        })
    }
}
