//! Questions to a person, and grants.

use std::fmt::{self, Write as _};

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    Approvals, JournalError, JournalFile, now,
    row_sum::{APPROVALS, GRANTS},
    signed, unsigned,
};

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredApproval {
    /// Its id, which answers it. Only a person is shown it; others get [`StoredApproval::reference`].
    pub id: String,
    /// When it was asked, in milliseconds since 1970.
    pub created: u64,
    /// What it is about: `call`, `server`, `definition`.
    pub kind: String,
    /// Identifies the question, so that the same question is found again.
    pub subject: String,
    /// The run that waits for it, and the number of its call.
    pub run: Option<(String, u64)>,
    /// The question, as JSON.
    pub question: String,
    /// Its state.
    pub state: ApprovalState,
    /// The answer, as JSON.
    pub answer: Option<String>,
}

/// How long a call of a run waited for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonWait {
    /// The number of the call.
    pub call: u64,
    /// When the person was asked, in milliseconds since 1970.
    pub asked: u64,
    /// When the person answered; `None` if the question is open.
    pub answered: Option<u64>,
}

/// The state of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApprovalState {
    /// Not answered yet.
    Open,
    /// A person approved it.
    Approved,
    /// A person denied it.
    Denied,
}

/// A grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRow {
    /// Its id.
    pub id: String,
    /// When, in milliseconds since 1970.
    pub created: u64,
    /// Until when.
    pub expires: Option<u64>,
    /// What, as JSON.
    pub text: String,
}

/// The name of a question for models, logs and programs. It does not answer the question: only the id
/// does, which nobody but a person at a terminal is shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QuestionReference(String);

impl QuestionReference {
    /// The name of the question with this id. It does not lead back to the id.
    pub fn of(id: &str) -> Self {
        let hash = blake3::derive_key("toolgate 2026 reference of a question", id.as_bytes());
        let hash = hash[..6].iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        Self(format!("q_{hash}"))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QuestionReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl StoredApproval {
    /// The name of the question for models.
    pub fn reference(&self) -> QuestionReference {
        QuestionReference::of(&self.id)
    }
}

impl ApprovalState {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Approved => "approved",
            Self::Denied => "denied",
        }
    }

    /// The state with this name.
    pub fn named(name: &str) -> Self {
        match name {
            "approved" => Self::Approved,
            "denied" => Self::Denied,
            _ => Self::Open,
        }
    }
}

/// The largest number of open questions. More are refused, so that a model cannot fill the disk.
pub const MOST_OPEN: u64 = 1_000;

impl Approvals for JournalFile {
    fn ask(&self, approval: &StoredApproval) -> Result<Option<String>, JournalError> {
        self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let (run, call) = approval.run.clone().map_or((None, None), |(run, call)| (Some(run), Some(signed(call))));
            let same: Option<String> = transaction
                .query_row(
                    "SELECT id FROM approvals WHERE subject = ?1 AND run IS ?2 AND state = 'open'",
                    params![approval.subject, run],
                    |row| row.get(0),
                )
                .optional()?;
            let open: i64 =
                transaction.query_row("SELECT count(*) FROM approvals WHERE state = 'open'", [], |row| row.get(0))?;
            let id = match same {
                Some(id) => Some(id),
                None if unsigned(open) >= MOST_OPEN => None,
                None => {
                    transaction.execute(
                        "INSERT INTO approvals (id, created, kind, subject, run, call, question, state)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open')",
                        params![approval.id, now(), approval.kind, approval.subject, run, call, approval.question],
                    )?;
                    APPROVALS.seal(&transaction, [&approval.id])?;
                    Some(approval.id.clone())
                }
            };
            transaction.commit()?;
            Ok(id)
        })
    }

    fn answer(
        &self,
        id: &str,
        state: ApprovalState,
        answer: &str,
        grant: Option<&GrantRow>,
    ) -> Result<bool, JournalError> {
        let update = format!(
            "UPDATE approvals SET state = ?2, answer = ?3, answered = ?4
             WHERE id = ?1 AND state = 'open' AND {}",
            APPROVALS.intact()
        );
        self.change(|connection| {
            let values = params![id, state.name(), answer, now()];
            if connection.prepare_cached(&update)?.execute(values)? == 0 {
                return Ok(false);
            }
            APPROVALS.seal(connection, [id])?;
            if let Some(grant) = grant {
                put_grant(connection, grant)?;
            }
            Ok(true)
        })
    }

    fn approval(&self, id: &str) -> Result<Option<StoredApproval>, JournalError> {
        Ok(self.query(&format!("{} AND id = ?1", columns()), [id], approval)?.pop())
    }

    fn answered(
        &self,
        subject: &str,
        run: Option<&str>,
    ) -> Result<Option<StoredApproval>, JournalError> {
        let query = format!(
            "{} AND subject = ?1 AND run IS ?2 AND state != 'open'
             ORDER BY answered DESC LIMIT 1",
            columns()
        );
        Ok(self.query(&query, params![subject, run], approval)?.pop())
    }

    fn answered_in(&self, run: &str) -> Result<Vec<StoredApproval>, JournalError> {
        let query =
            format!("{} AND run = ?1 AND state != 'open' ORDER BY answered DESC", columns());
        self.query(&query, [run], approval)
    }

    fn open_approvals(&self) -> Result<Vec<StoredApproval>, JournalError> {
        self.query(&format!("{} AND state = 'open' ORDER BY created, id", columns()), [], approval)
    }

    fn waits_of(&self, run: &str) -> Result<Vec<PersonWait>, JournalError> {
        let query = format!(
            "SELECT call, created, answered FROM approvals
             WHERE run = ?1 AND call IS NOT NULL AND {} ORDER BY created, id",
            APPROVALS.intact()
        );
        self.query(&query, [run], |row| {
            Ok(PersonWait {
                call: unsigned(row.get(0)?),
                asked: unsigned(row.get(1)?),
                answered: row.get::<_, Option<i64>>(2)?.map(unsigned),
            })
        })
    }

    fn grant(&self, grant: &GrantRow) -> Result<(), JournalError> {
        self.change(|connection| put_grant(connection, grant))
    }

    fn revoke(&self, id: &str) -> Result<bool, JournalError> {
        Ok(self.execute("DELETE FROM grants WHERE id = ?1", [id])? > 0)
    }

    fn grants(&self) -> Result<Vec<GrantRow>, JournalError> {
        let expired = "DELETE FROM grants WHERE expires IS NOT NULL AND expires < ?1";
        self.execute(expired, [now()])?;
        let query = format!(
            "SELECT id, created, expires, text FROM grants WHERE {} ORDER BY created, id",
            GRANTS.intact()
        );
        self.query(&query, [], |row| {
            Ok(GrantRow {
                id: row.get(0)?,
                created: unsigned(row.get(1)?),
                expires: row.get::<_, Option<i64>>(2)?.map(unsigned),
                text: row.get(3)?,
            })
        })
    }

    fn version(&self) -> Result<(u64, u64), JournalError> {
        self.with(|connection| {
            let theirs: i64 =
                connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
            Ok((unsigned(theirs), connection.total_changes()))
        })
    }
}

/// Writes a grant in the transaction of the caller.
fn put_grant(connection: &Connection, grant: &GrantRow) -> rusqlite::Result<()> {
    let insert =
        "INSERT OR REPLACE INTO grants (id, created, expires, text) VALUES (?1, ?2, ?3, ?4)";
    let GrantRow { id, created, expires, text } = grant;
    let values = params![id, signed(*created), expires.map(signed), text];
    connection.prepare_cached(insert)?.execute(values)?;
    GRANTS.seal(connection, [id])
}

/// Only undamaged rows; a damaged answer does not count.
fn columns() -> String {
    let columns = "SELECT id, created, kind, subject, run, call, question, state, answer";
    format!("{columns} FROM approvals WHERE {}", APPROVALS.intact())
}

fn approval(row: &Row<'_>) -> rusqlite::Result<StoredApproval> {
    let run: Option<String> = row.get(4)?;
    let call: Option<i64> = row.get(5)?;
    Ok(StoredApproval {
        id: row.get(0)?,
        created: unsigned(row.get(1)?),
        kind: row.get(2)?,
        subject: row.get(3)?,
        run: run.zip(call.map(unsigned)),
        question: row.get(6)?,
        state: ApprovalState::named(&row.get::<_, String>(7)?),
        answer: row.get(8)?,
    })
}
