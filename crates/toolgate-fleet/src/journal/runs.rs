//! Runs, their calls, and the events that their scripts received.

use tokio_postgres::Row;
use toolgate_store::{
    JournalError, NewRun, PastCallRow, PastEvent, Retention, RunCall, RunDetail, RunFilter,
    RunHistory, RunRetention, RunState, RunSummary, Runs,
};

use std::{borrow::Cow, sync::atomic::Ordering};

use super::SharedJournal;
use crate::{now, plain, text};

/// Whether the owner of a run lives.
const OWNER_LIVES: &str =
    "EXISTS (SELECT 1 FROM node WHERE node.id = run.owner AND node.lease_until > now())";
const SUMMARY: &str = "SELECT id, created, ended, state, process, language, session,
    (SELECT count(*) FROM run_call WHERE run_call.run = run.id),
    (SELECT count(*) FROM run_call WHERE run_call.run = run.id AND failed) FROM run";
/// Removes runs with all that belongs to them.
const REMOVE: &str = "WITH gone AS (DELETE FROM run WHERE id = ANY($1)),
    calls AS (DELETE FROM run_call WHERE run = ANY($1)),
    events AS (DELETE FROM run_event WHERE run = ANY($1))
    DELETE FROM run_media WHERE run = ANY($1)";
/// What nodes that are gone have counted goes to the row without a node.
const FOLD_BYTES: &str = "WITH gone AS (DELETE FROM run_bytes
        WHERE node <> '' AND NOT EXISTS (SELECT 1 FROM node WHERE node.id = run_bytes.node) RETURNING bytes)
    INSERT INTO run_bytes (node, bytes) SELECT '', sum(bytes)::bigint FROM gone HAVING count(*) > 0
    ON CONFLICT (node) DO UPDATE SET bytes = run_bytes.bytes + excluded.bytes";
/// The bytes of all runs that have ended.
const ALL_BYTES: &str = "SELECT coalesce(sum(bytes), 0)::bigint FROM run_bytes";
/// After so many ends of this node, the number of runs is looked at.
const LOOKED_AT_EVERY: u64 = 100;
/// The same after this part of the bytes that are kept. When runs are removed because of their bytes, this part is
/// removed besides, so that not every run removes another one.
const SPARE_PART: u64 = 16;
/// How many runs are removed in one transaction.
const REMOVED_TOGETHER: i64 = 500;

impl Runs for SharedJournal {
    fn resume_run(&self, id: &str) -> Result<bool, JournalError> {
        let node = &self.node.id;
        let process = i64::from(std::process::id());
        let epoch: Option<i64> = self.with(|connection| async move {
            let take = format!(
                "UPDATE run SET state = 'running', owner = $2, epoch = epoch + 1, process = $3, ended = NULL,
                 error = NULL WHERE id = $1 AND (state <> 'running' OR NOT {OWNER_LIVES}) RETURNING epoch"
            );
            let row = connection.query_opt(&take, &[&id, node, &process]).await?;
            Ok(row.map(|row| row.get(0)))
        })?;
        if let Some(epoch) = epoch {
            self.state.owns(id, epoch);
        }
        Ok(epoch.is_some())
    }

    fn is_running(&self, id: &str) -> Result<bool, JournalError> {
        self.with(|connection| async move {
            let lives =
                format!("SELECT 1 FROM run WHERE id = $1 AND state = 'running' AND {OWNER_LIVES}");
            Ok(connection.query_opt(&lives, &[&id]).await?.is_some())
        })
    }

    fn code_changed(&self, id: &str, code: &str) -> Result<(), JournalError> {
        let code = code.as_bytes();
        self.with(|connection| async move {
            let update =
                "UPDATE run SET first_code = coalesce(first_code, code), code = $2 WHERE id = $1";
            connection.execute(update, &[&id, &code]).await?;
            Ok(())
        })
    }

    fn read_before(&self, id: &str, before: &str) -> Result<(), JournalError> {
        let before = before.as_bytes();
        self.with(|connection| async move {
            connection.execute("UPDATE run SET before = $2 WHERE id = $1", &[&id, &before]).await?;
            Ok(())
        })
    }

    fn forget_end(&self, run: &str, number: u64) -> Result<bool, JournalError> {
        let number = number.cast_signed();
        self.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            let update =
                "UPDATE run_call SET sent = false, marked = false, ended = NULL, failed = false,
                tool = NULL, result = NULL, unknown = false
                WHERE run = $1 AND number = $2 AND (ended IS NULL OR failed)";
            let changed = transaction.execute(update, &[&run, &number]).await?;
            if changed > 0 {
                let events = "DELETE FROM run_event WHERE run = $1 AND call = $2";
                transaction.execute(events, &[&run, &number]).await?;
            }
            transaction.commit().await?;
            Ok(changed > 0)
        })
    }

    fn forget_lost(&self, _run: &str) -> Result<(), JournalError> {
        // The database loses no row.
        Ok(())
    }

    fn keep_media(&self, run: &str, handle: &str, data: &str) -> Result<(), JournalError> {
        let (handle, data) = (plain(handle), data.as_bytes());
        self.with(|connection| async move {
            let insert = "INSERT INTO run_media (run, handle, data) VALUES ($1, $2, $3)
                ON CONFLICT (run, handle) DO UPDATE SET data = excluded.data";
            connection.execute(insert, &[&run, &handle, &data]).await?;
            Ok(())
        })
    }

    fn media(&self, run: &str) -> Result<Vec<(String, String)>, JournalError> {
        self.with(|connection| async move {
            let rows = connection
                .query("SELECT handle, data FROM run_media WHERE run = $1", &[&run])
                .await?;
            Ok(rows.iter().map(|row| (row.get(0), text(row.get(1)))).collect())
        })
    }

    fn history(&self, id: &str) -> Result<Option<RunHistory>, JournalError> {
        self.with(|connection| async move {
            let run = "SELECT id, language, code, session, began, seed, state, before, namespace, first_code
                FROM run WHERE id = $1";
            let calls = "SELECT number, name, arguments, sent, ended, failed, tool, result, unknown, origin
                FROM run_call WHERE run = $1 ORDER BY number";
            let events = "SELECT call, at FROM run_event WHERE run = $1 ORDER BY position";
            let Some(row) = connection.query_opt(run, &[&id]).await? else { return Ok(None) };
            let run = NewRun {
                id: row.get(0),
                language: row.get(1),
                code: text(row.get(2)),
                session: row.get(3),
                began: row.get::<_, i64>(4).cast_unsigned(),
                seed: row.get::<_, i64>(5).cast_unsigned(),
                before: text(row.get(7)),
                namespace: row.get(8),
            };
            let calls = connection.query(calls, &[&id]).await?.iter().map(past_call).collect();
            let events = connection.query(events, &[&id]).await?;
            let events = events.iter().map(|row| PastEvent {
                call: row.get::<_, Option<i64>>(0).map(i64::cast_unsigned),
                at: row.get::<_, i64>(1).cast_unsigned(),
            });
            Ok(Some(RunHistory {
                run,
                first_code: row.get::<_, Option<Vec<u8>>>(9).map(text),
                state: RunState::named(row.get(6)),
                calls,
                events: events.collect(),
                lost: Vec::new(),
            }))
        })
    }

    fn is_lost(&self, _id: &str) -> bool {
        false
    }

    fn runs(&self, most: u32) -> Result<Vec<RunSummary>, JournalError> {
        let most = i64::from(most);
        self.with(|connection| async move {
            let query = format!("{SUMMARY} ORDER BY created DESC, id LIMIT $1");
            Ok(connection.query(&query, &[&most]).await?.iter().map(summary).collect())
        })
    }

    fn runs_like(
        &self,
        filter: &RunFilter,
        before: Option<(u64, &str)>,
        most: u32,
    ) -> Result<Vec<RunSummary>, JournalError> {
        let (created, id) = before.unwrap_or((u64::MAX, ""));
        let (created, id) = (i64::try_from(created).unwrap_or(i64::MAX), plain(id));
        let most = i64::from(most);
        let state = filter.state.map(RunState::name);
        let given = |text: &Option<String>| text.as_deref().map(plain).map(Cow::into_owned);
        let (language, caller, tool) =
            (given(&filter.language), given(&filter.caller), given(&filter.tool));
        self.with(|connection| async move {
            let query = format!(
                "{SUMMARY} WHERE created <= $1 AND (created < $1 OR id > $2) AND ($4::text IS NULL OR state = $4)
                 AND ($5::text IS NULL OR language = $5) AND ($6::text IS NULL OR strpos(session, $6) > 0)
                 AND ($7::text IS NULL OR EXISTS (SELECT 1 FROM run_call WHERE run_call.run = run.id AND name = $7))
                 ORDER BY created DESC, id LIMIT $3"
            );
            let rows = connection
                .query(&query, &[&created, &id, &most, &state, &language, &caller, &tool])
                .await?;
            Ok(rows.iter().map(summary).collect())
        })
    }

    fn run(&self, id: &str) -> Result<Option<RunDetail>, JournalError> {
        let (from, until) = (plain(id), format!("{}{}", plain(id), char::MAX));
        self.with(|connection| async move {
            let query = format!("{SUMMARY} WHERE id >= $1 AND id < $2 LIMIT 2");
            let found = connection.query(&query, &[&from, &until]).await?;
            let [row] = &*found else { return Ok(None) };
            let summary = summary(row);
            let texts = "SELECT code, output, error, graph FROM run WHERE id = $1";
            let row = connection.query_one(texts, &[&summary.id]).await?;
            let calls = "SELECT number, name, arguments, made, verdict, rule, sent, ended, failed, result, flow,
                unknown FROM run_call WHERE run = $1 ORDER BY number";
            let calls = connection.query(calls, &[&summary.id]).await?.iter().map(run_call).collect();
            Ok(Some(RunDetail {
                summary,
                code: text(row.get(0)),
                output: text(row.get(1)),
                error: row.get::<_, Option<Vec<u8>>>(2).map(text),
                calls,
                graph: row.get::<_, Option<Vec<u8>>>(3).map(text),
            }))
        })
    }
}

impl RunRetention for SharedJournal {
    fn may_be_beyond(&self, retention: Retention) -> bool {
        self.ends.load(Ordering::Relaxed) >= LOOKED_AT_EVERY
            || self.written.load(Ordering::Relaxed) > retention.bytes / SPARE_PART
    }

    fn is_beyond(&self, retention: Retention) -> Result<bool, JournalError> {
        self.ends.store(0, Ordering::Relaxed);
        self.written.store(0, Ordering::Relaxed);
        let (most, oldest) = (i64::from(retention.runs), oldest(retention));
        let bytes = i64::try_from(retention.bytes).unwrap_or(i64::MAX);
        self.with(|connection| async move {
            // Reads one row behind the limit, the oldest one, and one for each node, not all.
            let beyond = format!(
                "SELECT EXISTS (SELECT 1 FROM run WHERE state NOT IN ('waiting', 'running')
                    ORDER BY created DESC OFFSET $1 LIMIT 1)
                OR EXISTS (SELECT 1 FROM run WHERE created < $2 AND state <> 'running')
                OR ({ALL_BYTES}) > $3"
            );
            Ok(connection.query_one(&beyond, &[&most, &oldest, &bytes]).await?.get(0))
        })
    }

    fn prune(&self, retention: Retention) -> Result<usize, JournalError> {
        let Some(_pruning) = self.pruning.try_lock() else { return Ok(0) };
        let oldest = oldest(retention);
        let most = i64::from(retention.runs);
        let mut removed = 0;
        loop {
            let gone = self.with(|connection| async move {
                let old = format!(
                    "SELECT id FROM run WHERE (state <> 'running' OR NOT {OWNER_LIVES}) AND (created < $1 OR
                     state NOT IN ('waiting', 'running') AND (created, id) < (
                        SELECT created, id FROM run WHERE state NOT IN ('waiting', 'running')
                        ORDER BY created DESC, id DESC OFFSET $2 LIMIT 1)) LIMIT $3"
                );
                let rows = connection.query(&old, &[&oldest, &(most - 1).max(0), &REMOVED_TOGETHER]).await?;
                let ids: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
                if !ids.is_empty() {
                    connection.execute(REMOVE, &[&ids]).await?;
                }
                Ok(ids.len())
            })?;
            removed += gone;
            if gone < usize::try_from(REMOVED_TOGETHER).unwrap_or(usize::MAX) {
                break;
            }
        }
        Ok(removed + self.prune_bytes(retention.bytes)?)
    }
}

impl SharedJournal {
    /// Removes the oldest runs that are over, until the bytes of all of them are within the limit.
    fn prune_bytes(&self, most: u64) -> Result<usize, JournalError> {
        let (most, mut removed) = (i64::try_from(most).unwrap_or(i64::MAX), 0);
        let spare = most / i64::try_from(SPARE_PART).unwrap_or(i64::MAX);
        loop {
            let is_more = removed > 0;
            let gone = self.with(|connection| async move {
                connection.execute(FOLD_BYTES, &[]).await?;
                let all: i64 = connection.query_one(ALL_BYTES, &[]).await?.get(0);
                let kept = most - spare;
                if all <= if is_more { kept } else { most } {
                    return Ok(0);
                }
                let over = "SELECT id, bytes FROM run WHERE state NOT IN ('waiting', 'running')
                    ORDER BY created, id LIMIT $1";
                let rows = connection.query(over, &[&REMOVED_TOGETHER]).await?;
                let (mut left, mut ids) = (all, Vec::new());
                for row in &rows {
                    if left <= kept {
                        break;
                    }
                    left -= row.get::<_, i64>(1);
                    ids.push(row.get::<_, String>(0));
                }
                connection.execute(REMOVE, &[&ids]).await?;
                Ok(ids.len())
            })?;
            removed += gone;
            if gone == 0 {
                return Ok(removed);
            }
        }
    }
}

/// Runs that began before this time are removed.
fn oldest(retention: Retention) -> i64 {
    now() - i64::from(retention.days) * 24 * 60 * 60 * 1000
}

fn summary(row: &Row) -> RunSummary {
    RunSummary {
        id: row.get(0),
        created: row.get::<_, i64>(1).cast_unsigned(),
        ended: row.get::<_, Option<i64>>(2).map(i64::cast_unsigned),
        state: RunState::named(row.get(3)),
        process: u32::try_from(row.get::<_, i64>(4)).unwrap_or_default(),
        language: row.get(5),
        session: row.get(6),
        calls: row.get::<_, i64>(7).cast_unsigned(),
        failed: row.get::<_, i64>(8).cast_unsigned(),
    }
}

fn past_call(row: &Row) -> PastCallRow {
    let result = row.get::<_, Option<Vec<u8>>>(7).map(text).unwrap_or_default();
    let outcome = match (row.get::<_, Option<i64>>(4), row.get(5)) {
        (None, _) => None,
        (Some(_), false) => Some(Ok(result)),
        (Some(_), true) => Some(Err((row.get::<_, Option<String>>(6).unwrap_or_default(), result))),
    };
    PastCallRow {
        number: row.get::<_, i64>(0).cast_unsigned(),
        name: row.get(1),
        arguments: text(row.get(2)),
        sent: row.get(3),
        outcome,
        unknown: row.get(8),
        origin: row.get::<_, Option<Vec<u8>>>(9).map(text),
    }
}

fn run_call(row: &Row) -> RunCall {
    let (verdict, rule): (Option<String>, Option<String>) = (row.get(4), row.get(5));
    let ended: Option<i64> = row.get(7);
    let result = row.get::<_, Option<Vec<u8>>>(9).map(text).unwrap_or_default();
    RunCall {
        number: row.get::<_, i64>(0).cast_unsigned(),
        name: row.get(1),
        arguments: text(row.get(2)),
        made: row.get::<_, i64>(3).cast_unsigned(),
        verdict: verdict.zip(rule),
        sent: row.get(6),
        ended: ended.map(i64::cast_unsigned),
        outcome: ended.map(|_| if row.get(8) { Err(result) } else { Ok(result) }),
        flow: row.get::<_, Option<Vec<u8>>>(10).map(text),
        unknown: row.get(11),
    }
}
