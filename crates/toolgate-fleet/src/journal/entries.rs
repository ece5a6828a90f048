//! The statements of entries, all in one round trip.

use std::{future::Future, pin::Pin};

use deadpool_postgres::Object;
use futures::poll;
use tokio_postgres::{Statement, types::ToSql};
use toolgate_store::{RunEntry, RunEntryKind, RunState};

use crate::{database::FleetError, plain};

/// A run that had only begun is replaced.
const BEGAN: &str = "INSERT INTO run
    (id, created, state, language, code, session, began, seed, process, before, namespace, owner, epoch)
    VALUES ($1, $2, 'running', $3, $4, $5, $6, $7, $8, $9, $10, $11, 1)
    ON CONFLICT (id) DO UPDATE SET created = excluded.created, state = 'running', language = excluded.language,
        code = excluded.code, session = excluded.session, began = excluded.began, seed = excluded.seed,
        process = excluded.process, before = excluded.before, namespace = excluded.namespace,
        owner = excluded.owner, epoch = 1, ended = NULL, error = NULL, output = '', first_code = NULL
    WHERE NOT EXISTS (SELECT 1 FROM run_call WHERE run_call.run = excluded.id)";
const CALLED: &str = "INSERT INTO run_call
    (run, number, name, arguments, made, verdict, rule, sent, marked, ended, failed, unknown, tool, result, flow, origin)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16
    FROM run WHERE id = $1 AND owner = $17 AND epoch = $18
    ON CONFLICT (run, number) DO UPDATE SET name = excluded.name, arguments = excluded.arguments,
        made = excluded.made, verdict = excluded.verdict, rule = excluded.rule, sent = excluded.sent,
        marked = excluded.marked, ended = excluded.ended, failed = excluded.failed, unknown = excluded.unknown,
        tool = excluded.tool, result = excluded.result, flow = excluded.flow, origin = excluded.origin";
const ANSWERED: &str = "UPDATE run_call SET ended = $3, failed = $4, unknown = $5, tool = $6, result = $7
    FROM run WHERE run.id = $1 AND run.owner = $8 AND run.epoch = $9 AND run_call.run = $1 AND number = $2";
const TOLD: &str = "INSERT INTO run_event (run, call, at)
    SELECT $1, $2, $3 FROM run WHERE id = $1 AND owner = $4 AND epoch = $5";
const FLOWS: &str = "UPDATE run SET graph = $2 WHERE id = $1 AND owner = $3 AND epoch = $4";
/// Ends a run, and counts its bytes as they are stored, with what rows and indexes add to each. It reads the rows of this
/// run, and no long values. A run that was resumed adds what it has become longer by.
const ENDED: &str = "WITH before AS (SELECT bytes FROM run WHERE id = $1), ended AS (
        UPDATE run SET state = $2, ended = $3, output = $4::bytea, error = $5::bytea, bytes = 500
            + octet_length($4::bytea) + coalesce(octet_length($5::bytea), 0) + pg_column_size(code) + pg_column_size(before)
            + coalesce(pg_column_size(graph), 0)
            + (SELECT coalesce(sum(200 + pg_column_size(arguments) + coalesce(pg_column_size(result), 0)
                + coalesce(pg_column_size(flow), 0) + coalesce(pg_column_size(origin), 0)), 0)
                FROM run_call WHERE run_call.run = $1)
            + (SELECT 100 * count(*) FROM run_event WHERE run_event.run = $1)
            + (SELECT coalesce(sum(100 + pg_column_size(data)), 0) FROM run_media WHERE run_media.run = $1)
        WHERE id = $1 AND owner = $6::text AND epoch = $7 AND state = 'running' RETURNING bytes)
    INSERT INTO run_bytes (node, bytes) SELECT $6::text, ended.bytes - before.bytes FROM ended, before
    ON CONFLICT (node) DO UPDATE SET bytes = run_bytes.bytes + excluded.bytes";

type Sending<'s> = Pin<Box<dyn Future<Output = Result<u64, tokio_postgres::Error>> + Send + 's>>;

/// The prepared statements, which a connection prepares once.
struct Statements {
    began: Statement,
    called: Statement,
    answered: Statement,
    told: Statement,
    flows: Statement,
    ended: Statement,
}

/// A statement with its values. `must_change` is whether it fails if it changes nothing.
struct Bound<'s> {
    statement: &'s Statement,
    values: Vec<Box<dyn ToSql + Sync + Send + 's>>,
    must_change: bool,
}

/// Writes entries in one transaction, and returns the outcome of each. An entry of a run that another node has taken
/// over changes nothing.
pub(super) async fn write(
    connection: &Object,
    node: &str,
    entries: &[RunEntry<'_>],
    epoch: impl Fn(&str) -> i64,
) -> Result<Vec<Result<(), FleetError>>, FleetError> {
    let statements = Statements::of(connection).await?;
    let bound: Vec<Vec<Bound<'_>>> =
        entries.iter().map(|entry| statements.bind(entry, node, epoch(entry.run()))).collect();
    let is_durable = entries.iter().any(|entry| match entry.kind() {
        RunEntryKind::Called(call) => call.marked,
        RunEntryKind::Ended(end) => end.state != RunState::Done,
        _ => false,
    });
    let begin = if is_durable { "BEGIN" } else { "BEGIN; SET LOCAL synchronous_commit TO off" };
    let values: Vec<Vec<Vec<&(dyn ToSql + Sync)>>> =
        bound.iter().map(|all| all.iter().map(Bound::values).collect()).collect();
    let mut sending: Vec<Sending<'_>> =
        vec![Box::pin(async { connection.batch_execute(begin).await.map(|()| 0) })];
    for (all, values) in bound.iter().zip(&values) {
        for (bound, values) in all.iter().zip(values) {
            sending.push(Box::pin(connection.execute(bound.statement, values)));
        }
    }
    sending.push(Box::pin(async { connection.batch_execute("COMMIT").await.map(|()| 0) }));
    let mut changed = in_one_round_trip(sending).await?.into_iter();
    // That of `BEGIN`.
    changed.next();
    let mut outcomes = Vec::with_capacity(entries.len());
    for all in &bound {
        let mut is_taken_over = false;
        for bound in all {
            let changed = changed.next().unwrap_or_default();
            is_taken_over |= bound.must_change && changed == 0;
        }
        outcomes.push(if is_taken_over { Err(FleetError::TakenOver) } else { Ok(()) });
    }
    Ok(outcomes)
}

/// Sends everything before it waits for the first answer. A failure undoes the transaction, because what follows it
/// fails too.
async fn in_one_round_trip(mut sending: Vec<Sending<'_>>) -> Result<Vec<u64>, FleetError> {
    let mut early = Vec::with_capacity(sending.len());
    for each in &mut sending {
        early.push(match poll!(each.as_mut()) {
            std::task::Poll::Ready(outcome) => Some(outcome),
            std::task::Poll::Pending => None,
        });
    }
    let (mut done, mut failure) = (Vec::with_capacity(sending.len()), None);
    for (each, early) in sending.into_iter().zip(early) {
        let outcome = match early {
            Some(outcome) => outcome,
            None => each.await,
        };
        match outcome {
            Ok(changed) => done.push(changed),
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
    }
    failure.map_or(Ok(done), |error| Err(error.into()))
}

impl Statements {
    async fn of(connection: &Object) -> Result<Self, FleetError> {
        Ok(Self {
            began: connection.prepare_cached(BEGAN).await?,
            called: connection.prepare_cached(CALLED).await?,
            answered: connection.prepare_cached(ANSWERED).await?,
            told: connection.prepare_cached(TOLD).await?,
            flows: connection.prepare_cached(FLOWS).await?,
            ended: connection.prepare_cached(ENDED).await?,
        })
    }

    fn bind<'s>(&'s self, entry: &'s RunEntry<'_>, node: &'s str, epoch: i64) -> Vec<Bound<'s>> {
        let told = |run: &'s str, call: Option<i64>, at: u64| Bound {
            statement: &self.told,
            values: values([
                Box::new(run) as Value<'s>,
                Box::new(call),
                Box::new(at.cast_signed()),
                Box::new(node),
                Box::new(epoch),
            ]),
            must_change: true,
        };
        match entry.kind() {
            RunEntryKind::Began { run, created } => vec![Bound {
                statement: &self.began,
                values: values([
                    Box::new(&*run.id) as Value<'s>,
                    Box::new(*created),
                    Box::new(plain(&run.language)),
                    Box::new(run.code.as_bytes()),
                    Box::new(plain(&run.session)),
                    Box::new(run.began.cast_signed()),
                    Box::new(run.seed.cast_signed()),
                    Box::new(i64::from(std::process::id())),
                    Box::new(run.before.as_bytes()),
                    Box::new(plain(&run.namespace)),
                    Box::new(node),
                ]),
                must_change: true,
            }],
            RunEntryKind::Called(call) => {
                let answer = call.answer.as_ref();
                vec![Bound {
                    statement: &self.called,
                    values: values([
                        Box::new(&*call.run) as Value<'s>,
                        Box::new(call.number.cast_signed()),
                        Box::new(plain(&call.name)),
                        Box::new(call.arguments.as_bytes()),
                        Box::new(call.made),
                        Box::new(call.verdict.as_deref().map(plain)),
                        Box::new(call.rule.as_deref().map(plain)),
                        Box::new(call.sent),
                        Box::new(call.marked),
                        Box::new(answer.map(|answer| answer.ended)),
                        Box::new(answer.is_some_and(|answer| answer.failed)),
                        Box::new(answer.is_some_and(|answer| answer.unknown)),
                        Box::new(answer.and_then(|answer| answer.tool.as_deref()).map(plain)),
                        Box::new(answer.map(|answer| answer.result.as_bytes())),
                        Box::new(call.flow.as_ref().map(|flow| flow.as_bytes())),
                        Box::new(call.origin.as_ref().map(|origin| origin.as_bytes())),
                        Box::new(node),
                        Box::new(epoch),
                    ]),
                    must_change: true,
                }]
            }
            RunEntryKind::Answered { run, number, at, answer } => {
                let number = number.cast_signed();
                let answered = answer.as_ref().map(|answer| Bound {
                    statement: &self.answered,
                    values: values([
                        Box::new(&**run) as Value<'s>,
                        Box::new(number),
                        Box::new(answer.ended),
                        Box::new(answer.failed),
                        Box::new(answer.unknown),
                        Box::new(answer.tool.as_deref().map(plain)),
                        Box::new(answer.result.as_bytes()),
                        Box::new(node),
                        Box::new(epoch),
                    ]),
                    must_change: false,
                });
                answered.into_iter().chain([told(run, Some(number), *at)]).collect()
            }
            RunEntryKind::Time { run, at } => vec![told(run, None, *at)],
            RunEntryKind::Flows { run, graph } => vec![Bound {
                statement: &self.flows,
                values: values([
                    Box::new(&**run) as Value<'s>,
                    Box::new(graph.as_bytes()),
                    Box::new(node),
                    Box::new(epoch),
                ]),
                must_change: true,
            }],
            RunEntryKind::Ended(end) => vec![Bound {
                statement: &self.ended,
                values: values([
                    Box::new(&*end.run) as Value<'s>,
                    Box::new(end.state.name()),
                    Box::new(end.ended),
                    Box::new(end.output.as_bytes()),
                    Box::new(end.error.as_ref().map(|error| error.as_bytes())),
                    Box::new(node),
                    Box::new(epoch),
                ]),
                must_change: true,
            }],
        }
    }
}

type Value<'s> = Box<dyn ToSql + Sync + Send + 's>;

fn values<const COUNT: usize>(values: [Value<'_>; COUNT]) -> Vec<Value<'_>> {
    values.into()
}

impl Bound<'_> {
    fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}
