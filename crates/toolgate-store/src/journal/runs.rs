//! Runs, their calls, and the events that their scripts received.

use std::collections::{HashMap, HashSet};

use rusqlite::{OptionalExtension, params};

use super::{
    JournalError, JournalFile, LostCall, NewRun, PastEvent, RunCall, RunDetail, RunFilter,
    RunHistory, RunState, RunSummary, Runs, contents,
    row_sum::{CALLS, EVENTS, FLOWS, MEDIA, RUNS},
    rows::{past_call, run_call, summary},
    sent::{DAMAGE, SentDamage, SentKind, SentLine, call_key},
    signed, unsigned,
};

impl Runs for JournalFile {
    fn resume_run(&self, id: &str) -> Result<bool, JournalError> {
        let own = self.life()?;
        self.change(|connection| {
            let found: Option<(String, String)> = connection
                .query_row("SELECT state, life FROM runs WHERE id = ?1", [id], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            let free = found.is_some_and(|(state, life)| {
                RunState::named(&state) != RunState::Running || !self.files.lives.is_running(&life, id)
            });
            if free {
                connection.execute(
                    "UPDATE runs SET state = 'running', process = ?2, life = ?3, ended = NULL, error = NULL
                     WHERE id = ?1",
                    params![id, std::process::id(), own],
                )?;
                RUNS.seal(connection, [id])?;
                self.files.lives.is_not_over(id);
            }
            Ok(free)
        })
    }

    fn is_running(&self, id: &str) -> Result<bool, JournalError> {
        let query = "SELECT life FROM runs WHERE id = ?1 AND state = 'running'";
        let life: Option<String> = self.query(query, [id], |row| row.get(0))?.pop();
        Ok(life.is_some_and(|life| self.files.lives.is_running(&life, id)))
    }

    fn code_changed(&self, id: &str, code: &str) -> Result<(), JournalError> {
        let update =
            "UPDATE runs SET first_code = coalesce(first_code, code), code = ?2 WHERE id = ?1";
        self.write_row((&RUNS, [id]), update, params![id, code])?;
        Ok(())
    }

    fn read_before(&self, id: &str, before: &str) -> Result<(), JournalError> {
        let update = "UPDATE runs SET before = ?2 WHERE id = ?1";
        self.write_row((&RUNS, [id]), update, params![id, before])?;
        Ok(())
    }

    fn forget_end(&self, run: &str, number: u64) -> Result<bool, JournalError> {
        let forgotten = self.change(|connection| {
            let key = params![run, signed(number)];
            let marked: Option<(String, String)> = connection
                .query_row(
                    "SELECT name, arguments FROM calls WHERE run = ?1 AND number = ?2 AND marked",
                    key,
                    |row| Ok((row.get(0)?, contents::load(connection, row.get_ref(1)?)?)),
                )
                .optional()?
                .and_then(|(name, arguments): (String, Option<String>)| Some((name, arguments?)));
            let changed = connection.execute(
                "UPDATE calls SET sent = 0, ended = NULL, failed = 0, tool = NULL, result = NULL, unknown = 0,
                 marked = 0 WHERE run = ?1 AND number = ?2 AND (ended IS NULL OR failed)",
                key,
            )?;
            if changed > 0 {
                CALLS.seal(connection, key)?;
                connection.execute("DELETE FROM events WHERE run = ?1 AND call = ?2", key)?;
            }
            Ok((changed > 0).then_some(marked))
        })?;
        let Some(marked) = forgotten else { return Ok(false) };
        if let Some((tool, arguments)) = marked {
            let (run, key) = (run.to_owned(), call_key(&tool, &arguments));
            self.mark(&SentLine { kind: SentKind::Forgotten, run, number, key, tool })?;
        }
        Ok(true)
    }

    fn forget_lost(&self, run: &str) -> Result<(), JournalError> {
        let lost = self.history(run)?.map(|history| history.lost).unwrap_or_default();
        for LostCall { number, tool, key } in lost {
            let (run, tool) = (run.to_owned(), tool.unwrap_or_default());
            self.mark(&SentLine { kind: SentKind::Forgotten, run, number, key, tool })?;
        }
        Ok(())
    }

    fn keep_media(&self, run: &str, handle: &str, data: &str) -> Result<(), JournalError> {
        let insert = "INSERT OR REPLACE INTO media (run, handle, data) VALUES (?1, ?2, ?3)";
        self.change(|connection| {
            let data = contents::store(connection, run, data)?;
            connection.prepare_cached(insert)?.execute(params![run, handle, data])?;
            MEDIA.seal(connection, [run, handle])
        })
    }

    fn media(&self, run: &str) -> Result<Vec<(String, String)>, JournalError> {
        let query = format!("SELECT handle, data FROM media WHERE run = ?1 AND {}", MEDIA.intact());
        self.with(|connection| {
            let mut rows = connection.prepare_cached(&query)?;
            let media = rows.query_map([run], |row| {
                Ok(contents::load(connection, row.get_ref(1)?)?.map(|data| (row.get(0), data)))
            })?;
            media
                .filter_map(Result::transpose)
                .map(|read| {
                    let (handle, data) = read?;
                    Ok((handle?, data))
                })
                .collect()
        })
    }

    fn history(&self, id: &str) -> Result<Option<RunHistory>, JournalError> {
        let mut lost = Vec::new();
        let history = self.with(|connection| {
            let run = connection
                .query_row(
                    &format!(
                        "SELECT id, language, code, session, began, seed, state, before, place, first_code, {}
                         FROM runs WHERE id = ?1",
                        RUNS.intact()
                    ),
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
                        let state = if row.get(10)? { RunState::named(&row.get::<_, String>(6)?) } else { RunState::Damaged };
                        Ok((run, state, row.get(9)?))
                    },
                )
                .optional()?;
            let Some((run, state, first_code)) = run else { return Ok(None) };
            let mut rows = connection.prepare_cached(&format!(
                "SELECT number, name, arguments, sent, ended, failed, tool, result, unknown, origin, marked, {}
                 FROM calls WHERE run = ?1 ORDER BY number",
                CALLS.intact()
            ))?;
            let mut rows = rows.query([id])?;
            let mut calls = Vec::new();
            let mut accounted: HashMap<String, u64> = HashMap::new();
            while let Some(row) = rows.next()? {
                // Nothing in a damaged row is reliable, not even its types.
                let call = if row.get(11) == Ok(true) { past_call(connection, row)? } else { None };
                if let Some(call) = call {
                    if row.get(10)? {
                        *accounted.entry(call_key(&call.name, &call.arguments)).or_default() += 1;
                    }
                    calls.push(call);
                } else {
                    let number = unsigned(row.get(0)?);
                    lost.push(LostCall { number, tool: None, key: String::new() });
                }
            }
            let (lines, damage) = self.files.sent.index().of_run(id);
            lost.extend(unaccounted(lines, damage, &mut accounted));
            let mut rows = connection.prepare_cached(&format!(
                "SELECT call, at, {} FROM events WHERE run = ?1 ORDER BY position",
                EVENTS.intact()
            ))?;
            let mut rows = rows.query([id])?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                if row.get(2) != Ok(true) {
                    // The order of the following events is unknown.
                    break;
                }
                let call: Option<i64> = row.get(0)?;
                events.push(PastEvent { call: call.map(unsigned), at: unsigned(row.get(1)?) });
            }
            Ok(Some(RunHistory { run, first_code, state, calls, events, lost: Vec::new() }))
        })?;
        Ok(history.map(|history| RunHistory { lost, ..history }))
    }

    fn is_lost(&self, id: &str) -> bool {
        self.files.sent.index().began(id).is_some()
    }

    fn runs(&self, most: u32) -> Result<Vec<RunSummary>, JournalError> {
        self.with(|connection| {
            let index = self.files.sent.index();
            let newest = || {
                let mut rows = connection.prepare_cached(&format!(
                    "{} ORDER BY created DESC, id LIMIT ?1",
                    summaries()
                ))?;
                let rows = rows.query_map([most], summary)?;
                rows.collect::<rusqlite::Result<Vec<RunSummary>>>()
            };
            let mut all = match newest() {
                Ok(all) => all,
                // Runs that can be read one by one are listed.
                Err(error) if index.began_since(0).next().is_none() => return Err(error),
                Err(_) => Vec::new(),
            };
            let listed: HashSet<&str> = all.iter().map(|run| run.id.as_str()).collect();
            let mut missing = Vec::new();
            let oldest =
                all.last().filter(|_| all.len() >= most as usize).map_or(0, |it| it.created);
            let unlisted = index.began_since(oldest).filter(|(id, _)| !listed.contains(id));
            for (id, created) in unlisted {
                let found = connection
                    .query_row(&format!("{} WHERE id = ?1", summaries()), [id], summary)
                    .optional();
                match found {
                    // It was removed meanwhile, or is further down in the list.
                    Ok(Some(run)) => missing.push(run),
                    _ => missing.push(RunSummary::damaged(id, created)),
                }
            }
            all.append(&mut missing);
            for run in all.iter_mut().filter(|run| run.state == RunState::Damaged) {
                run.created = index.began(&run.id).unwrap_or(run.created);
            }
            all.sort_by(|one, other| other.created.cmp(&one.created).then(one.id.cmp(&other.id)));
            all.truncate(most as usize);
            Ok(all)
        })
    }

    fn runs_like(
        &self,
        filter: &RunFilter,
        before: Option<(u64, &str)>,
        most: u32,
    ) -> Result<Vec<RunSummary>, JournalError> {
        let (created, id) = before.unwrap_or((u64::MAX, ""));
        let created = i64::try_from(created).unwrap_or(i64::MAX);
        let RunFilter { state, language, caller, tool } = filter;
        let state = state.map(RunState::name);
        self.with(|connection| {
            let mut rows = connection.prepare_cached(&format!(
                "{} WHERE created <= ?1 AND (created < ?1 OR id > ?2) AND (?4 IS NULL OR state = ?4)
                 AND (?5 IS NULL OR language = ?5) AND (?6 IS NULL OR instr(session, ?6) > 0)
                 AND (?7 IS NULL OR EXISTS (SELECT 1 FROM calls WHERE run = id AND name = ?7))
                 ORDER BY created DESC, id LIMIT ?3",
                summaries()
            ))?;
            let wanted = params![created, id, most, state, language, caller, tool];
            let rows = rows.query_map(wanted, summary)?;
            rows.collect()
        })
    }

    fn run(&self, id: &str) -> Result<Option<RunDetail>, JournalError> {
        let found = self.with(|connection| {
            let text = format!("{} WHERE id >= ?1 AND id < ?2 LIMIT 2", summaries());
            let mut found = connection.prepare_cached(&text)?;
            let range = [id, &format!("{id}{}", char::MAX)];
            let mut found = found.query_map(range, summary)?.collect::<Result<Vec<_>, _>>()?;
            let (Some(summary), 0) = (found.pop(), found.len()) else { return Ok(None) };
            let (code, output, error) = connection.query_row(
                "SELECT code, output, error FROM runs WHERE id = ?1",
                [&summary.id],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )?;
            let mut calls = connection.prepare_cached(&format!(
                "SELECT number, name, arguments, made, verdict, rule, sent, ended, failed, result, flow, unknown
                 FROM calls WHERE run = ?1 AND {} ORDER BY number",
                CALLS.intact()
            ))?;
            let calls = calls.query_map([&summary.id], |row| run_call(connection, row))?;
            let calls = calls.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?;
            let graph = format!("SELECT graph FROM flows WHERE run = ?1 AND {}", FLOWS.intact());
            let graph = connection.query_row(&graph, [&summary.id], |row| row.get(0)).optional()?;
            Ok(Some(RunDetail { summary, code, output, error, calls, graph }))
        });
        let mut detail = match found {
            Ok(Some(detail)) => detail,
            other => {
                let index = self.files.sent.index();
                let mut began = index.began_since(0).filter(|(run, _)| run.starts_with(id));
                match (began.next(), began.next()) {
                    (Some((run, at)), None) => RunDetail {
                        summary: RunSummary::damaged(run, at),
                        code: String::new(),
                        output: String::new(),
                        error: None,
                        calls: Vec::new(),
                        graph: None,
                    },
                    _ => return other,
                }
            }
        };
        // Missing calls are shown too.
        let id = &detail.summary.id;
        let lost = if let Ok(Some(history)) = self.history(id) {
            history.lost
        } else {
            let (lines, damage) = self.files.sent.index().of_run(id);
            unaccounted(lines, damage, &mut HashMap::new())
        };
        let made = detail.summary.created;
        detail.calls.extend(lost.into_iter().map(|lost| RunCall::lost(lost, made)));
        detail.calls.sort_by_key(|call| call.number);
        detail.calls.dedup_by(|later, call| later.number == call.number && later.name.is_empty());
        Ok(Some(detail))
    }
}

/// The sent calls without a row, except those that may be repeated.
///
/// A damaged line is explained by a row without a line. Otherwise it may have listed any call.
fn unaccounted(
    lines: Vec<SentLine>,
    damage: SentDamage,
    accounted: &mut HashMap<String, u64>,
) -> Vec<LostCall> {
    let has_began = lines.iter().any(|line| line.kind == SentKind::Began);
    let decided = lines.iter().filter(|line| line.key == DAMAGE).map(|line| line.number).max();
    let damaged = damage.lines.saturating_sub(decided.unwrap_or_default());
    let forgotten = |line: &&SentLine| line.kind == SentKind::Forgotten && line.key.len() == 16;
    for line in lines.iter().filter(forgotten) {
        *accounted.entry(line.key.clone()).or_default() += 1;
    }
    let mut is_lost = |line: &SentLine| match accounted.get_mut(&line.key) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    let sent = lines.into_iter().filter(|line| line.kind == SentKind::Sent);
    let mut lost: Vec<LostCall> = sent
        .filter(|line| is_lost(line))
        .map(|SentLine { number, key, tool, .. }| LostCall { number, tool: Some(tool), key })
        .collect();
    lost.sort_by_key(|call| call.number);
    let explained = accounted.values().sum::<u64>() + u64::from(!has_began);
    if damaged > if damage.is_countable { explained } else { 0 } {
        lost.push(LostCall { number: damage.lines, tool: None, key: DAMAGE.to_owned() });
    }
    lost
}

fn summaries() -> String {
    format!(
        "SELECT id, created, ended, state, process, language, session,
         (SELECT count(*) FROM calls WHERE run = id),
         (SELECT count(*) FROM calls WHERE run = id AND failed), {} FROM runs",
        RUNS.intact()
    )
}
