//! Runs, their calls, and the events that their scripts received.

use rusqlite::{OptionalExtension, params};

use super::{
    CallEnd, Journal, JournalError, NewCall, NewRun, PastEvent, RunDetail, RunHistory, RunState,
    RunSummary, now,
    rows::{past_call, run_call, summary},
    signed, unsigned,
};

const SUMMARY: &str = "SELECT id, created, ended, state, process, language, session,
    (SELECT count(*) FROM calls WHERE run = id), (SELECT count(*) FROM calls WHERE run = id AND failed)
    FROM runs";

impl Journal {
    /// Writes down that a run begins. It replaces one of the same id that had only begun.
    pub fn begin_run(&self, run: &NewRun) -> Result<(), JournalError> {
        let life = self.life()?;
        let insert = "INSERT OR REPLACE INTO runs
             (id, created, state, language, code, session, began, seed, process, life, before, place)
             VALUES (?1, ?2, 'running', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        let NewRun { id, language, code, session, began, seed, before, namespace } = run;
        let (began, seed, process) = (signed(*began), signed(*seed), std::process::id());
        let values = params![
            id,
            now(),
            language,
            code,
            session,
            began,
            seed,
            process,
            life,
            before,
            namespace
        ];
        self.execute(insert, values)?;
        Ok(())
    }

    /// Writes down that a run goes on. `false` where it runs already, by somebody who is still there,
    /// or is not known.
    pub fn resume_run(&self, id: &str) -> Result<bool, JournalError> {
        let own = self.life()?;
        self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let found: Option<(String, String)> = transaction
                .query_row("SELECT state, life FROM runs WHERE id = ?1", [id], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            let free = found.is_some_and(|(state, life)| {
                RunState::named(&state) != RunState::Running || !self.lives.is_alive(&life)
            });
            if free {
                transaction.execute(
                    "UPDATE runs SET state = 'running', process = ?2, life = ?3, ended = NULL, error = NULL
                     WHERE id = ?1",
                    params![id, std::process::id(), own],
                )?;
            }
            transaction.commit()?;
            Ok(free)
        })
    }

    /// Whether a run that is said to be running is: that whoever runs it is still there.
    pub fn is_running(&self, id: &str) -> Result<bool, JournalError> {
        let query = "SELECT life FROM runs WHERE id = ?1 AND state = 'running'";
        let life: Option<String> = self.query(query, [id], |row| row.get(0))?.pop();
        Ok(life.is_some_and(|life| self.lives.is_alive(&life)))
    }

    /// Writes down that a run goes on with other code.
    pub fn code_changed(&self, id: &str, code: &str) -> Result<(), JournalError> {
        let update =
            "UPDATE runs SET first_code = coalesce(first_code, code), code = ?2 WHERE id = ?1";
        self.execute(update, params![id, code])?;
        Ok(())
    }

    /// Writes down what was read before a run goes on.
    pub fn read_before(&self, id: &str, before: &str) -> Result<(), JournalError> {
        self.execute("UPDATE runs SET before = ?2 WHERE id = ?1", params![id, before])?;
        Ok(())
    }

    /// Writes down that a run has come to an end, or waits.
    pub fn end_run(
        &self,
        id: &str,
        state: RunState,
        output: &str,
        error: Option<&str>,
    ) -> Result<(), JournalError> {
        let update =
            "UPDATE runs SET state = ?2, ended = ?3, output = ?4, error = ?5 WHERE id = ?1";
        self.execute(update, params![id, state.name(), now(), output, error])?;
        Ok(())
    }

    /// Writes down that a call is about to be made, and what was decided of it.
    pub fn call_made(&self, run: &str, call: &NewCall<'_>) -> Result<(), JournalError> {
        let NewCall { number, name, arguments, decision } = *call;
        let (verdict, rule) = decision.map(|it| (it.verdict, it.rule)).unzip();
        let sent = decision.is_some_and(|decision| decision.sent);
        let flow = decision.and_then(|decision| decision.flow);
        let origin = decision.and_then(|decision| decision.origin);
        let insert = "INSERT OR REPLACE INTO calls
             (run, number, name, arguments, made, verdict, rule, sent, flow, origin)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let number = signed(number);
        let values =
            params![run, number, name, arguments, now(), verdict, rule, sent, flow, origin];
        self.execute(insert, values)?;
        Ok(())
    }

    /// Writes down what came of a call, before the script receives it.
    pub fn call_ended(
        &self,
        run: &str,
        number: u64,
        at: u64,
        end: CallEnd<'_>,
    ) -> Result<(), JournalError> {
        let (failed, tool, result) = match end {
            CallEnd::Returned(result) => (false, None, result),
            CallEnd::Threw { tool, message } | CallEnd::Unknown { tool, message } => {
                (true, Some(tool), message)
            }
        };
        let unknown = matches!(end, CallEnd::Unknown { .. });
        self.with(|connection| {
            let transaction = connection.transaction()?;
            transaction
                .prepare_cached(
                    "UPDATE calls SET ended = ?3, failed = ?4, tool = ?5, result = ?6, unknown = ?7
                     WHERE run = ?1 AND number = ?2",
                )?
                .execute(params![run, signed(number), now(), failed, tool, result, unknown])?;
            tell(&transaction, run, Some(number), at)?;
            transaction.commit()
        })
    }

    /// Forgets what came of a call and that it was sent, so that it is made again when the run goes
    /// on. `false` where there is no such call, or it returned something.
    pub fn forget_end(&self, run: &str, number: u64) -> Result<bool, JournalError> {
        self.with(|connection| {
            let transaction = connection.transaction()?;
            let changed = transaction.execute(
                "UPDATE calls SET sent = 0, ended = NULL, failed = 0, tool = NULL, result = NULL, unknown = 0
                 WHERE run = ?1 AND number = ?2 AND (ended IS NULL OR failed)",
                params![run, signed(number)],
            )?;
            if changed > 0 {
                let deleted = "DELETE FROM events WHERE run = ?1 AND call = ?2";
                transaction.execute(deleted, params![run, signed(number)])?;
            }
            transaction.commit()?;
            Ok(changed > 0)
        })
    }

    /// Stores what a handle stands for in a run's results.
    pub fn keep_media(&self, run: &str, handle: &str, data: &str) -> Result<(), JournalError> {
        let insert = "INSERT OR REPLACE INTO media (run, handle, data) VALUES (?1, ?2, ?3)";
        self.execute(insert, params![run, handle, data])?;
        Ok(())
    }

    /// What the handles of a run's results stand for.
    pub fn media(&self, run: &str) -> Result<Vec<(String, String)>, JournalError> {
        let query = "SELECT handle, data FROM media WHERE run = ?1";
        self.query(query, [run], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Writes down that the script reads the time.
    pub fn time_told(&self, run: &str, at: u64) -> Result<(), JournalError> {
        self.with(|connection| tell(connection, run, None, at))
    }

    /// What a run needs to go on.
    pub fn history(&self, id: &str) -> Result<Option<RunHistory>, JournalError> {
        self.with(|connection| {
            let run = connection
                .query_row(
                    "SELECT id, language, code, session, began, seed, state, before, place, first_code
                     FROM runs WHERE id = ?1",
                    [id],
                    |row| {
                        let run = NewRun {
                            id: row.get(0)?,
                            language: row.get(1)?,
                            code: row.get(2)?,
                            session: row.get(3)?,
                            began: unsigned(row.get(4)?),
                            seed: unsigned(row.get(5)?),
                            before: row.get(7)?,
                            namespace: row.get(8)?,
                        };
                        Ok((run, RunState::named(&row.get::<_, String>(6)?), row.get(9)?))
                    },
                )
                .optional()?;
            let Some((run, state, first_code)) = run else { return Ok(None) };
            let mut calls = connection.prepare_cached(
                "SELECT number, name, arguments, sent, ended, failed, tool, result, unknown, origin FROM calls
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
            Ok(Some(RunHistory { run, first_code, state, calls, events }))
        })
    }

    /// The last runs, newest first.
    pub fn runs(&self, most: u32) -> Result<Vec<RunSummary>, JournalError> {
        self.query(&format!("{SUMMARY} ORDER BY created DESC, id LIMIT ?1"), [most], summary)
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
                "SELECT number, name, arguments, made, verdict, rule, sent, ended, failed, result, flow, unknown
                 FROM calls WHERE run = ?1 ORDER BY number",
            )?;
            let calls = calls.query_map([&summary.id], run_call)?.collect::<Result<Vec<_>, _>>()?;
            Ok(Some(RunDetail { summary, code, output, error, calls }))
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
