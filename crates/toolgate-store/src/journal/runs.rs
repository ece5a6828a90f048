//! Runs, their calls, and what they were told.

use rusqlite::{OptionalExtension, Row, params};

use super::{Journal, JournalError, now, signed, unsigned};

/// A run that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its id.
    pub id: String,
    /// `typescript` or `python`.
    pub language: String,
    /// The script.
    pub code: String,
    /// Whose it is.
    pub session: String,
    /// When its clock began, in microseconds since 1970.
    pub began: u64,
    /// What its random numbers are made of.
    pub seed: u64,
}

/// How it stands with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunState {
    /// It runs, or the process that ran it is gone.
    Running,
    /// It waits for an approval.
    Waiting,
    /// It ran to its end.
    Done,
    /// It ended with an error; with other code it may go on.
    Failed,
}

/// A run, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// When it ended.
    pub ended: Option<u64>,
    /// How it stands.
    pub state: RunState,
    /// Whether the process that runs it is still there.
    pub process: u32,
    /// `typescript` or `python`.
    pub language: String,
    /// Whose it is.
    pub session: String,
    /// How many calls it made.
    pub calls: u64,
    /// How many of them failed.
    pub failed: u64,
}

/// A run, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDetail {
    /// In short.
    pub summary: RunSummary,
    /// The script.
    pub code: String,
    /// What it gave, as it was shown.
    pub output: String,
    /// Why it failed.
    pub error: Option<String>,
    /// Its calls, in their order.
    pub calls: Vec<RunCall>,
}

/// A call of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCall {
    /// Its number, from 0.
    pub number: u64,
    /// The tool.
    pub name: String,
    /// Its arguments, as JSON.
    pub arguments: String,
    /// When it was made, in milliseconds since 1970.
    pub made: u64,
    /// What was decided of it, and by which rule.
    pub verdict: Option<(String, String)>,
    /// Whether it was sent to its server.
    pub sent: bool,
    /// When it ended.
    pub ended: Option<u64>,
    /// Its result, or what it failed with.
    pub outcome: Option<Result<String, String>>,
    /// Where its arguments came from, as JSON.
    pub flow: Option<String>,
}

/// What a run needs to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHistory {
    /// How it began.
    pub run: NewRun,
    /// How it stands.
    pub state: RunState,
    /// Its calls, in their order.
    pub calls: Vec<PastCallRow>,
    /// What it was told, in the order of telling.
    pub events: Vec<PastEvent>,
}

/// A call that a run made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCallRow {
    /// Its number.
    pub number: u64,
    /// The tool.
    pub name: String,
    /// Its arguments, as the script gave them.
    pub arguments: String,
    /// Whether it may have reached its server.
    pub sent: bool,
    /// What came of it: a value as JSON, or the tool and message that were thrown.
    pub outcome: Option<Result<String, (String, String)>>,
}

/// Something that a run was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastEvent {
    /// The call that it is about; none where it is the time.
    pub call: Option<u64>,
    /// When, in microseconds since the run began.
    pub at: u64,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Runs that have ended.
    pub runs: u32,
    /// Days.
    pub days: u32,
}

impl RunState {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    fn named(name: &str) -> Self {
        match name {
            "waiting" => Self::Waiting,
            "done" => Self::Done,
            "failed" => Self::Failed,
            _ => Self::Running,
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { runs: 1_000, days: 30 }
    }
}

const SUMMARY: &str = "SELECT id, created, ended, state, process, language, session,
    (SELECT count(*) FROM calls WHERE run = id), (SELECT count(*) FROM calls WHERE run = id AND failed)
    FROM runs";

impl Journal {
    /// Writes down that a run begins.
    pub fn begin_run(&self, run: &NewRun) -> Result<(), JournalError> {
        self.with(|connection| {
            let mut insert = connection.prepare_cached(
                "INSERT INTO runs (id, created, state, language, code, session, began, seed, process)
                 VALUES (?1, ?2, 'running', ?3, ?4, ?5, ?6, ?7, ?8)",
            )?;
            let process = std::process::id();
            insert.execute(params![
                run.id, now(), run.language, run.code, run.session, signed(run.began), signed(run.seed), process
            ])?;
            Ok(())
        })
    }

    /// Writes down that a run goes on, perhaps with other code. `false` where it runs already, in a
    /// process that is still there, or is not known.
    pub fn resume_run(&self, id: &str, code: Option<&str>) -> Result<bool, JournalError> {
        self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let found: Option<(String, u32)> = transaction
                .query_row("SELECT state, process FROM runs WHERE id = ?1", [id], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            let free = found.is_some_and(|(state, process)| {
                RunState::named(&state) != RunState::Running || !is_alive(process)
            });
            if free {
                transaction.execute(
                    "UPDATE runs SET state = 'running', process = ?2, ended = NULL, error = NULL,
                     code = coalesce(?3, code) WHERE id = ?1",
                    params![id, std::process::id(), code],
                )?;
            }
            transaction.commit()?;
            Ok(free)
        })
    }

    /// Writes down that a run has come to an end, or waits.
    pub fn end_run(
        &self,
        id: &str,
        state: RunState,
        output: &str,
        error: Option<&str>,
    ) -> Result<(), JournalError> {
        self.with(|connection| {
            let mut update = connection.prepare_cached(
                "UPDATE runs SET state = ?2, ended = ?3, output = ?4, error = ?5 WHERE id = ?1",
            )?;
            update.execute(params![id, state.name(), now(), output, error])?;
            Ok(())
        })
    }

    /// Writes down that a call is about to be made.
    pub fn call_made(
        &self,
        run: &str,
        number: u64,
        name: &str,
        arguments: &str,
    ) -> Result<(), JournalError> {
        self.with(|connection| {
            let mut insert = connection.prepare_cached(
                "INSERT OR REPLACE INTO calls (run, number, name, arguments, made) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            insert.execute(params![run, signed(number), name, arguments, now()])?;
            Ok(())
        })
    }

    /// Writes down what was decided of a call, right before it is sent where it is.
    pub fn call_decided(
        &self,
        run: &str,
        number: u64,
        verdict: &str,
        rule: &str,
        sent: bool,
        flow: Option<&str>,
    ) -> Result<(), JournalError> {
        self.with(|connection| {
            let mut update = connection.prepare_cached(
                "UPDATE calls SET verdict = ?3, rule = ?4, sent = ?5, flow = ?6 WHERE run = ?1 AND number = ?2",
            )?;
            update.execute(params![run, signed(number), verdict, rule, sent, flow])?;
            Ok(())
        })
    }

    /// Writes down what came of a call, before the script is told.
    pub fn call_ended(
        &self,
        run: &str,
        number: u64,
        at: u64,
        outcome: Result<&str, (&str, &str)>,
    ) -> Result<(), JournalError> {
        let (failed, tool, result) = match outcome {
            Ok(result) => (false, None, result),
            Err((tool, message)) => (true, Some(tool), message),
        };
        self.with(|connection| {
            let transaction = connection.transaction()?;
            transaction
                .prepare_cached(
                    "UPDATE calls SET ended = ?3, failed = ?4, tool = ?5, result = ?6 WHERE run = ?1 AND number = ?2",
                )?
                .execute(params![run, signed(number), now(), failed, tool, result])?;
            tell(&transaction, run, Some(number), at)?;
            transaction.commit()
        })
    }

    /// Writes down that the script is told the time.
    pub fn time_told(&self, run: &str, at: u64) -> Result<(), JournalError> {
        self.with(|connection| tell(connection, run, None, at))
    }

    /// What a run needs to go on.
    pub fn history(&self, id: &str) -> Result<Option<RunHistory>, JournalError> {
        self.with(|connection| {
            let run = connection
                .query_row(
                    "SELECT id, language, code, session, began, seed, state FROM runs WHERE id = ?1",
                    [id],
                    |row| {
                        let run = NewRun {
                            id: row.get(0)?,
                            language: row.get(1)?,
                            code: row.get(2)?,
                            session: row.get(3)?,
                            began: unsigned(row.get(4)?),
                            seed: unsigned(row.get(5)?),
                        };
                        Ok((run, RunState::named(&row.get::<_, String>(6)?)))
                    },
                )
                .optional()?;
            let Some((run, state)) = run else { return Ok(None) };
            let mut calls = connection.prepare_cached(
                "SELECT number, name, arguments, sent, ended, failed, tool, result FROM calls
                 WHERE run = ?1 ORDER BY number",
            )?;
            let calls = calls.query_map([id], past_call)?.collect::<Result<Vec<_>, _>>()?;
            let mut events =
                connection.prepare_cached("SELECT call, at FROM events WHERE run = ?1 ORDER BY position")?;
            let events = events
                .query_map([id], |row| {
                    let call: Option<i64> = row.get(0)?;
                    Ok(PastEvent { call: call.map(unsigned), at: unsigned(row.get(1)?) })
                })?
                .collect::<Result<Vec<_>, _>>()?;
            Ok(Some(RunHistory { run, state, calls, events }))
        })
    }

    /// The last runs, newest first.
    pub fn runs(&self, most: u32) -> Result<Vec<RunSummary>, JournalError> {
        self.with(|connection| {
            let mut rows = connection
                .prepare_cached(&format!("{SUMMARY} ORDER BY created DESC, id LIMIT ?1"))?;
            let rows = rows.query_map([most], summary)?;
            rows.collect()
        })
    }

    /// A run, by its id or by the beginning of it if only one run has that.
    pub fn run(&self, id: &str) -> Result<Option<RunDetail>, JournalError> {
        self.with(|connection| {
            let mut found =
                connection.prepare_cached(&format!("{SUMMARY} WHERE substr(id, 1, length(?1)) = ?1 LIMIT 2"))?;
            let mut found = found.query_map([id], summary)?.collect::<Result<Vec<_>, _>>()?;
            let (Some(summary), 0) = (found.pop(), found.len()) else { return Ok(None) };
            let (code, output, error) = connection.query_row(
                "SELECT code, output, error FROM runs WHERE id = ?1",
                [&summary.id],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )?;
            let mut calls = connection.prepare_cached(
                "SELECT number, name, arguments, made, verdict, rule, sent, ended, failed, result, flow
                 FROM calls WHERE run = ?1 ORDER BY number",
            )?;
            let calls = calls.query_map([&summary.id], run_call)?.collect::<Result<Vec<_>, _>>()?;
            Ok(Some(RunDetail { summary, code, output, error, calls }))
        })
    }

    /// Forgets what is too old or too much. Runs that wait, or whose process is still there, stay.
    pub fn prune(&self, retention: Retention) -> Result<usize, JournalError> {
        let oldest = now() - i64::from(retention.days) * 24 * 60 * 60 * 1000;
        self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let gone: Vec<String> = {
                let mut ended = transaction.prepare(
                    "SELECT id, created FROM runs WHERE state IN ('done', 'failed') ORDER BY created DESC",
                )?;
                let rows = ended.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
                let rows = rows.collect::<Result<Vec<_>, _>>()?;
                let kept = usize::try_from(retention.runs).unwrap_or(usize::MAX);
                let too_many = rows.iter().enumerate();
                too_many
                    .filter(|(index, (_, created))| *index >= kept || *created < oldest)
                    .map(|(_, (id, _))| id.clone())
                    .collect()
            };
            for id in &gone {
                for table in ["DELETE FROM calls WHERE run = ?1", "DELETE FROM events WHERE run = ?1", "DELETE FROM runs WHERE id = ?1"] {
                    transaction.prepare_cached(table)?.execute([id])?;
                }
            }
            transaction.commit()?;
            Ok(gone.len())
        })
    }
}

fn tell(
    connection: &rusqlite::Connection,
    run: &str,
    call: Option<u64>,
    at: u64,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (run, position, call, at)
         VALUES (?1, (SELECT coalesce(max(position), 0) + 1 FROM events WHERE run = ?1), ?2, ?3)",
    )?;
    insert.execute(params![run, call.map(signed), signed(at)])?;
    Ok(())
}

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    Ok(RunSummary {
        id: row.get(0)?,
        created: unsigned(row.get(1)?),
        ended: row.get::<_, Option<i64>>(2)?.map(unsigned),
        state: RunState::named(&row.get::<_, String>(3)?),
        process: row.get(4)?,
        language: row.get(5)?,
        session: row.get(6)?,
        calls: unsigned(row.get(7)?),
        failed: unsigned(row.get(8)?),
    })
}

fn past_call(row: &Row<'_>) -> rusqlite::Result<PastCallRow> {
    let ended: Option<i64> = row.get(4)?;
    let outcome = match (ended, row.get(5)?) {
        (None, _) => None,
        (Some(_), false) => Some(Ok(row.get::<_, Option<String>>(7)?.unwrap_or_default())),
        (Some(_), true) => {
            let tool: Option<String> = row.get(6)?;
            let message: Option<String> = row.get(7)?;
            Some(Err((tool.unwrap_or_default(), message.unwrap_or_default())))
        }
    };
    Ok(PastCallRow {
        number: unsigned(row.get(0)?),
        name: row.get(1)?,
        arguments: row.get(2)?,
        sent: row.get(3)?,
        outcome,
    })
}

fn run_call(row: &Row<'_>) -> rusqlite::Result<RunCall> {
    let verdict: Option<String> = row.get(4)?;
    let rule: Option<String> = row.get(5)?;
    let ended: Option<i64> = row.get(7)?;
    let result: Option<String> = row.get(9)?;
    let result = result.unwrap_or_default();
    let failed: bool = row.get(8)?;
    Ok(RunCall {
        number: unsigned(row.get(0)?),
        name: row.get(1)?,
        arguments: row.get(2)?,
        made: unsigned(row.get(3)?),
        verdict: verdict.zip(rule),
        sent: row.get(6)?,
        ended: ended.map(unsigned),
        outcome: ended.map(|_| if failed { Err(result) } else { Ok(result) }),
        flow: row.get(10)?,
    })
}

/// Whether a process is there. Where the system does not tell, it is taken to be: a run is rather not
/// resumed than run twice.
fn is_alive(process: u32) -> bool {
    if process == 0 || process == std::process::id() {
        // Our own runs are known to whoever resumes them.
        return false;
    }
    if cfg!(target_os = "linux") {
        return std::path::Path::new("/proc").join(process.to_string()).exists();
    }
    true
}
