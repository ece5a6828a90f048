//! Questions to a person, and grants.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;
use toolgate_store::{
    ApprovalState, Approvals, GrantRow, JournalError, MOST_OPEN, PersonWait, StoredApproval,
};

use super::SharedJournal;
use crate::{database::FleetError, node::BUMP, now, plain, text};

/// The topic of answers.
const ANSWERS: &str = "approvals";
/// The topic of grants.
const GRANTS: &str = "grants";
const COLUMNS: &str =
    "SELECT id, created, kind, subject, run, call, question, state, answer FROM approval";
/// Held while a question is added, so that the same one is not added twice.
const ASK_LOCK: i64 = 0x746f_6f6c_6173_6b00;

impl Approvals for SharedJournal {
    fn ask(&self, asked: &StoredApproval) -> Result<Option<String>, JournalError> {
        let run = asked.run.as_ref().map(|(run, _)| run);
        let call = asked.run.as_ref().map(|(_, call)| call.cast_signed());
        let (question, created, most) = (asked.question.as_bytes(), now(), MOST_OPEN.cast_signed());
        let (kind, subject) = (plain(&asked.kind), plain(&asked.subject));
        self.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&ASK_LOCK]).await?;
            let same = "SELECT id FROM approval
                WHERE subject = $1 AND run IS NOT DISTINCT FROM $2 AND state = 'open'";
            if let Some(row) = transaction.query_opt(same, &[&subject, &run]).await? {
                return Ok(Some(row.get(0)));
            }
            let insert =
                "INSERT INTO approval (id, created, kind, subject, run, call, question, state)
                SELECT $1, $2, $3, $4, $5, $6, $7, 'open'
                WHERE (SELECT count(*) FROM approval WHERE state = 'open') < $8";
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 8] =
                [&asked.id, &created, &kind, &subject, &run, &call, &question, &most];
            let added = transaction.execute(insert, &values).await?;
            transaction.commit().await?;
            Ok((added > 0).then(|| asked.id.clone()))
        })
    }

    fn answer(
        &self,
        id: &str,
        state: ApprovalState,
        answer: &str,
        grant: Option<&GrantRow>,
    ) -> Result<bool, JournalError> {
        let (state, answer, answered) = (state.name(), answer.as_bytes(), now());
        self.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            let update = "UPDATE approval SET state = $2, answer = $3, answered = $4
                WHERE id = $1 AND state = 'open'";
            if transaction.execute(update, &[&id, &state, &answer, &answered]).await? == 0 {
                return Ok(false);
            }
            let granted = match grant {
                Some(grant) => Some(put_grant(&transaction, grant).await?),
                None => None,
            };
            let number: i64 = transaction.query_one(BUMP, &[&ANSWERS]).await?.get(0);
            transaction.commit().await?;
            if let Some(number) = granted {
                self.node.made(GRANTS, number);
            }
            self.node.made(ANSWERS, number);
            Ok(true)
        })
    }

    fn approval(&self, id: &str) -> Result<Option<StoredApproval>, JournalError> {
        self.with(|connection| async move {
            let query = format!("{COLUMNS} WHERE id = $1");
            Ok(connection.query_opt(&query, &[&id]).await?.as_ref().map(approval))
        })
    }

    fn answered(
        &self,
        subject: &str,
        run: Option<&str>,
    ) -> Result<Option<StoredApproval>, JournalError> {
        let subject = plain(subject);
        self.with(|connection| async move {
            let query = format!(
                "{COLUMNS} WHERE subject = $1 AND run IS NOT DISTINCT FROM $2 AND state <> 'open'
                 ORDER BY answered DESC LIMIT 1"
            );
            Ok(connection.query_opt(&query, &[&subject, &run]).await?.as_ref().map(approval))
        })
    }

    fn answered_in(&self, run: &str) -> Result<Vec<StoredApproval>, JournalError> {
        let run = plain(run);
        self.with(|connection| async move {
            let query =
                format!("{COLUMNS} WHERE run = $1 AND state <> 'open' ORDER BY answered DESC");
            Ok(connection.query(&query, &[&run]).await?.iter().map(approval).collect())
        })
    }

    fn open_approvals(&self) -> Result<Vec<StoredApproval>, JournalError> {
        self.with(|connection| async move {
            let query = format!("{COLUMNS} WHERE state = 'open' ORDER BY created, id");
            Ok(connection.query(&query, &[]).await?.iter().map(approval).collect())
        })
    }

    fn waits_of(&self, run: &str) -> Result<Vec<PersonWait>, JournalError> {
        let run = plain(run);
        self.with(|connection| async move {
            let query = "SELECT call, created, answered FROM approval
                WHERE run = $1 AND call IS NOT NULL ORDER BY created, id";
            let wait = |row: &Row| PersonWait {
                call: row.get::<_, i64>(0).cast_unsigned(),
                asked: row.get::<_, i64>(1).cast_unsigned(),
                answered: row.get::<_, Option<i64>>(2).map(i64::cast_unsigned),
            };
            Ok(connection.query(query, &[&run]).await?.iter().map(wait).collect())
        })
    }

    fn grant(&self, grant: &GrantRow) -> Result<(), JournalError> {
        self.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            let number = put_grant(&transaction, grant).await?;
            transaction.commit().await?;
            self.node.made(GRANTS, number);
            Ok(())
        })
    }

    fn revoke(&self, id: &str) -> Result<bool, JournalError> {
        self.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            let gone =
                transaction.execute("DELETE FROM access_grant WHERE id = $1", &[&id]).await?;
            if gone > 0 {
                let number: i64 = transaction.query_one(BUMP, &[&GRANTS]).await?.get(0);
                transaction.commit().await?;
                self.node.made(GRANTS, number);
            }
            Ok(gone > 0)
        })
    }

    fn grants(&self) -> Result<Vec<GrantRow>, JournalError> {
        let now = now();
        self.with(|connection| async move {
            let select = "SELECT id, created, expires, content FROM access_grant
                WHERE expires IS NULL OR expires >= $1 ORDER BY created, id";
            let rows = connection.query(select, &[&now]).await?;
            connection.execute("DELETE FROM access_grant WHERE expires < $1", &[&now]).await?;
            let grant = |row: &Row| GrantRow {
                id: row.get(0),
                created: row.get::<_, i64>(1).cast_unsigned(),
                expires: row.get::<_, Option<i64>>(2).map(i64::cast_unsigned),
                text: text(row.get(3)),
            };
            Ok(rows.iter().map(grant).collect())
        })
    }

    fn version(&self) -> Result<(u64, u64), JournalError> {
        Ok((self.node.version(GRANTS), 0))
    }

    fn on_answer(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.node.on_change(ANSWERS, wake);
    }
}

/// Writes a grant in the transaction of the caller. Returns the new version of the grants.
async fn put_grant(transaction: &Transaction<'_>, grant: &GrantRow) -> Result<i64, FleetError> {
    let (created, expires) = (grant.created.cast_signed(), grant.expires.map(u64::cast_signed));
    let content = grant.text.as_bytes();
    let insert = "INSERT INTO access_grant (id, created, expires, content) VALUES ($1, $2, $3, $4)
        ON CONFLICT (id) DO UPDATE SET created = excluded.created, expires = excluded.expires,
        content = excluded.content";
    transaction.execute(insert, &[&grant.id, &created, &expires, &content]).await?;
    Ok(transaction.query_one(BUMP, &[&GRANTS]).await?.get(0))
}

fn approval(row: &Row) -> StoredApproval {
    let (run, call): (Option<String>, Option<i64>) = (row.get(4), row.get(5));
    StoredApproval {
        id: row.get(0),
        created: row.get::<_, i64>(1).cast_unsigned(),
        kind: row.get(2),
        subject: row.get(3),
        run: run.zip(call.map(i64::cast_unsigned)),
        question: text(row.get(6)),
        state: ApprovalState::named(row.get(7)),
        answer: row.get::<_, Option<Vec<u8>>>(8).map(text),
    }
}
