//! The audit log: one chain for all nodes.
//!
//! The database continues the chain itself, in one statement. So the chain is locked for no round trip, and a node
//! needs one round trip for all records that it has gathered. The nodes verify the chain.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio_postgres::types::ToSql;
use toolgate_store::{AuditError, AuditExtent, AuditLog, AuditPosition, AuditProblem, AuditRecord};

use crate::{
    database::{FleetError, PLACE},
    node::Node,
};

/// A transaction that waits until all transactions before it are on the disk.
const FLUSH: &str = "SELECT pg_logical_emit_message(true, 'toolgate', '')";
/// How many lines are read at once.
const PAGE: i64 = 1_000;

/// The log of the fleet.
#[derive(Debug)]
pub(crate) struct SharedAudit {
    node: Arc<Node>,
    /// Records that could not be written, and that no line reports yet.
    missing: AtomicU64,
}

/// What a line says.
#[derive(Serialize, Deserialize)]
struct Line<R> {
    /// Milliseconds since 1970.
    time: u64,
    /// The node that wrote it.
    node: String,
    #[serde(flatten)]
    record: R,
}

impl SharedAudit {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, missing: AtomicU64::new(0) }
    }

    fn lines(&self, records: &[AuditRecord], missing: u64) -> Result<Vec<Vec<u8>>, FleetError> {
        let gap = AuditRecord { kind: "missing".to_owned(), missing, ..AuditRecord::default() };
        let gap = (missing > 0).then_some(&gap);
        let (time, node) = (crate::now().cast_unsigned(), &self.node.id);
        gap.into_iter()
            .chain(records)
            .map(|record| {
                let line = Line { time, node: node.clone(), record };
                serde_json::to_vec(&line).map_err(|error| FleetError::System(error.to_string()))
            })
            .collect()
    }

    /// Appends lines that were written elsewhere, in their order.
    pub(crate) fn import(&self, records: &[(u64, AuditRecord)]) -> Result<(), FleetError> {
        let lines = records.iter().map(|(time, record)| {
            let line = Line { time: *time, node: "imported".to_owned(), record };
            serde_json::to_vec(&line).map_err(|error| FleetError::System(error.to_string()))
        });
        self.write(&lines.collect::<Result<Vec<_>, _>>()?, 0)
    }

    fn write(&self, lines: &[Vec<u8>], missing: u64) -> Result<(), FleetError> {
        let missing = missing.cast_signed();
        self.node.database.with(|connection| async move {
            let append = connection.prepare_cached("SELECT append_audit($1, $2)").await?;
            let flush = connection.prepare_cached(FLUSH).await?;
            // In one round trip, and two transactions: the chain is not locked while the disk is waited for.
            let values: [&(dyn ToSql + Sync); 2] = [&lines, &missing];
            let appending = connection.execute(&append, &values);
            let flushing = connection.execute(&flush, &[]);
            let (appended, flushed) = futures::join!(appending, flushing);
            appended?;
            flushed?;
            Ok(())
        })
    }
}

fn failed(error: FleetError) -> AuditError {
    AuditError::of(format!("the audit log in {PLACE}"), error.into_io())
}

impl AuditLog for SharedAudit {
    fn prepare(&self) -> Result<(), AuditError> {
        Ok(())
    }

    fn append_all(&self, records: &[AuditRecord]) -> Result<(), AuditError> {
        let missing = self.missing.swap(0, Ordering::Relaxed);
        let written = self.lines(records, missing).and_then(|lines| self.write(&lines, missing));
        if written.is_err() {
            let count = u64::try_from(records.len()).unwrap_or(u64::MAX);
            self.missing.fetch_add(missing.saturating_add(count), Ordering::Relaxed);
        }
        written.map_err(failed)
    }

    fn append_at_once(&self, _record: &AuditRecord) -> Option<Result<(), AuditError>> {
        // The thread of the writer waits for the database, and gathers the records of that time.
        None
    }

    fn unrecorded(&self) -> u64 {
        let told = self.node.database.with(|connection| async move {
            Ok(connection.query_one("SELECT missing FROM audit_head", &[]).await?.get::<_, i64>(0))
        });
        told.unwrap_or_default().cast_unsigned() + self.missing.load(Ordering::Relaxed)
    }

    fn damage(&self) -> Option<AuditProblem> {
        let found = self.node.database.with(|connection| async move {
            let heads = "SELECT (SELECT number FROM audit_head), (SELECT max(number) FROM audit)";
            let row = connection.query_one(heads, &[]).await?;
            Ok((row.get::<_, Option<i64>>(0), row.get::<_, Option<i64>>(1)))
        });
        match found.ok()? {
            (None, Some(_)) => Some(AuditProblem::HeadMissing),
            (Some(head), None) if head > 0 => Some(AuditProblem::Gone),
            _ => None,
        }
    }

    fn read(
        &self,
        seen: &mut dyn FnMut(Result<(u64, AuditRecord), AuditProblem>),
    ) -> Result<AuditExtent, AuditError> {
        // The head first: lines may be added meanwhile, and none may be missing.
        let head = self.node.database.with(|connection| async move {
            let head = connection.query_opt("SELECT number, hash FROM audit_head", &[]).await?;
            Ok(head.map(|row| (row.get::<_, i64>(0), row.get::<_, Vec<u8>>(1))))
        });
        let head = head.map_err(failed)?;
        let end = head.as_ref().map_or(i64::MAX, |(number, _)| *number);
        let mut extent = AuditExtent { files: 1, ..AuditExtent::default() };
        let (mut number, mut before) = (0_i64, Vec::new());
        loop {
            let rows = self.node.database.with(|connection| async move {
                let page = "SELECT number, hash, line FROM audit WHERE number > $1 AND number <= $2
                    ORDER BY number LIMIT $3";
                Ok(connection.query(page, &[&number, &end, &PAGE]).await?)
            });
            let rows = rows.map_err(failed)?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                let (found, hash, line): (i64, Vec<u8>, Vec<u8>) =
                    (row.get(0), row.get(1), row.get(2));
                let place = found.cast_unsigned();
                let position = || AuditPosition { file: PLACE.to_owned(), line: place };
                if number == 0 && found > 1 {
                    seen(Err(AuditProblem::StartMissing { found: place, expected: 1 }));
                } else if found != number + 1 {
                    seen(Err(AuditProblem::Broken(position())));
                } else if link(&before, found, &line) != *hash {
                    seen(Err(AuditProblem::Changed(position())));
                }
                (number, before) = (found, hash);
                extent.lines += 1;
                let Ok(Line { time, record, .. }) =
                    serde_json::from_slice::<Line<AuditRecord>>(&line)
                else {
                    seen(Err(AuditProblem::Unreadable(position())));
                    continue;
                };
                extent.first.get_or_insert((place, time));
                if record.missing > 0 {
                    seen(Err(AuditProblem::Unwritten {
                        position: position(),
                        count: record.missing,
                    }));
                }
                seen(Ok((time, record)));
            }
        }
        match head {
            None if extent.lines > 0 => seen(Err(AuditProblem::HeadMissing)),
            Some((expected, hash)) if expected > number || hash != before => {
                let (found, expected) = (number.cast_unsigned(), expected.cast_unsigned());
                seen(Err(AuditProblem::Cut { found, expected }));
            }
            _ => {}
        }
        let missing = self.missing.load(Ordering::Relaxed);
        if missing > 0 {
            seen(Err(AuditProblem::UnwrittenEnd(missing)));
        }
        Ok(extent)
    }
}

/// The hash of a line that follows another one.
fn link(before: &[u8], number: i64, line: &[u8]) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(before);
    hash.update(number.to_be_bytes());
    hash.update(line);
    hash.finalize().to_vec()
}
