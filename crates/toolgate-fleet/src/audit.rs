//! The audit log: one chain for all nodes.
//!
//! The database continues the chain itself, in one statement. So the chain is locked for no round trip, and a node
//! needs one round trip for all records that it has gathered. The nodes verify the chain.
//!
//! While the database is away, a node keeps its records in a file ([`Spool`]), and writes them when it is back.

use std::{
    collections::HashSet,
    io,
    ops::ControlFlow,
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio_postgres::types::ToSql;
use toolgate_store::{
    AuditError, AuditExtent, AuditLimits, AuditLog, AuditPosition, AuditProblem, AuditRecord,
    NumberedRecord,
};

use crate::{
    FleetOptions,
    database::{FleetError, PLACE},
    node::Node,
    spool::{Spool, SpooledLine},
};

/// The node that imported lines name.
pub(crate) const IMPORTED: &str = "imported";
/// A transaction that waits until all transactions before it are on the disk.
const FLUSH: &str = "SELECT pg_logical_emit_message(true, 'toolgate', '')";
/// How many lines are removed at once. The log is locked meanwhile.
const PRUNED: i64 = 1_000;
/// Between two looks at the size of the log.
const LOOK: Duration = Duration::from_secs(30);
/// How many lines are read at once.
const PAGE: i64 = 1_000;
/// How many hashes of lines are read at once.
const HASHES: i64 = 10_000;
/// How many lines that waited are written at once.
const TOGETHER: usize = 200;
/// Between two attempts to write what waits.
const RETRY: Duration = Duration::from_secs(1);

/// The log of the fleet.
#[derive(Debug)]
pub(crate) struct SharedAudit {
    node: Arc<Node>,
    /// Records that could not be written, and that no line reports yet.
    missing: AtomicU64,
    /// The last number of the log that this node knows.
    last: AtomicI64,
    /// Makes each line different from all others.
    sequence: AtomicU64,
    /// Whether the database refused the last records.
    is_refused: AtomicBool,
    spool: Mutex<Option<Spool>>,
    /// How much of the log is kept; all if it is unset.
    limits: Mutex<Option<AuditLimits>>,
}

/// A line that is to be written, as a [`Line`] is read.
#[derive(Serialize)]
struct WrittenLine<'r> {
    /// Milliseconds since 1970.
    time: u64,
    /// The node that wrote it.
    node: &'r str,
    /// How many lines this node has made before.
    sequence: u64,
    #[serde(flatten)]
    record: &'r AuditRecord,
}

/// What a line says. Its record has the node.
#[derive(Deserialize)]
struct Line {
    time: u64,
    #[serde(flatten)]
    record: AuditRecord,
}

impl SharedAudit {
    /// With a folder, what cannot be written waits there. What earlier nodes have left there is written.
    pub(crate) fn new(node: Arc<Node>, options: &FleetOptions) -> Arc<Self> {
        let spool = options.spool.clone().filter(|_| options.is_node);
        let own = spool.as_ref().and_then(|folder| {
            let own = Spool::new(folder, &node.id, options.spool_bytes);
            own.inspect_err(|error| {
                tracing::warn!("{}: records cannot wait there: {error}", folder.display());
            })
            .ok()
        });
        let audit = Arc::new(Self {
            node,
            missing: AtomicU64::new(0),
            last: AtomicI64::new(0),
            sequence: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
            spool: Mutex::new(own),
            limits: Mutex::default(),
        });
        audit.node.database.spawn(keep_to_limit(Arc::downgrade(&audit)));
        if let Some(folder) = spool {
            audit.node.database.spawn(write_what_waits(Arc::downgrade(&audit), folder));
        }
        audit
    }

    /// Keeps about this much of the log.
    pub(crate) fn limit(&self, limits: AuditLimits) {
        *self.limits.lock() = Some(limits);
    }

    /// Bytes that wait for the database.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        // While it is locked, it is being written to the database.
        self.spool.try_lock().and_then(|spool| spool.as_ref().map(Spool::bytes)).unwrap_or_default()
    }

    /// Removes the oldest lines if there are too many, or if they are too old.
    pub(crate) fn prune(&self) -> Result<(), FleetError> {
        let Some(limits) = *self.limits.lock() else { return Ok(()) };
        let most = i64::try_from(limits.bytes()).unwrap_or(i64::MAX);
        self.prune_by("SELECT prune_audit($1, $2)", most)?;
        if let Some(age) = limits.age() {
            let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            self.prune_by("SELECT prune_audit_before($1, $2)", crate::now().saturating_sub(age))?;
        }
        Ok(())
    }

    fn prune_by(&self, prune: &str, limit: i64) -> Result<(), FleetError> {
        loop {
            let removed: i64 = self.node.database.with(|connection| async move {
                Ok(connection.query_one(prune, &[&limit, &PRUNED]).await?.get(0))
            })?;
            if removed < PRUNED {
                return Ok(());
            }
        }
    }

    /// Waits for what is in the file; `true` if nothing is.
    fn drain_own(&self) -> bool {
        let mut spool = self.spool.lock();
        spool.as_mut().is_none_or(|spool| spool.is_empty() || self.drain(spool).is_ok())
    }

    /// Writes what waits in a file to the database. What is there already is left out: a crash, or an answer that did
    /// not come, may have left it in both.
    fn drain(&self, spool: &mut Spool) -> Result<(), FleetError> {
        let system = |error: io::Error| FleetError::System(error.to_string());
        let lines = spool.read().map_err(system)?;
        let after = lines.iter().map(|line| line.after).min().unwrap_or_default();
        let known = self.written_after(after)?;
        let is_new = |line: &&SpooledLine| !known.contains(&Sha256::digest(&line.line).to_vec());
        let new: Vec<&SpooledLine> = lines.iter().filter(is_new).collect();
        for chunk in new.chunks(TOGETHER) {
            let missing = chunk.iter().map(|line| line.missing).sum();
            let chunk: Vec<Vec<u8>> =
                chunk.iter().map(|line| line.line.clone().into_bytes()).collect();
            self.write(&chunk, missing)?;
        }
        spool.clear().map_err(system)
    }

    /// Says that records wait although the database answers, and when they do not any more. That it is away is said by
    /// the node.
    fn note_outcome(&self, written: &Result<(), FleetError>) {
        match written {
            Ok(()) if self.is_refused.swap(false, Ordering::Relaxed) => {
                tracing::warn!("{PLACE} takes records of the audit log again");
            }
            Err(FleetError::Statement(why)) if !self.is_refused.swap(true, Ordering::Relaxed) => {
                tracing::error!("{PLACE} takes no records of the audit log; they wait: {why}");
            }
            _ => {}
        }
    }

    /// The hashes of the lines after a number.
    fn written_after(&self, mut after: i64) -> Result<HashSet<Vec<u8>>, FleetError> {
        let mut hashes = HashSet::new();
        loop {
            let rows = self.node.database.with(|connection| async move {
                let page = "SELECT number, sha256(line) FROM audit WHERE number > $1
                    ORDER BY number LIMIT $2";
                Ok(connection.query(page, &[&after, &HASHES]).await?)
            })?;
            let Some(last) = rows.last() else { return Ok(hashes) };
            after = last.get(0);
            hashes.extend(rows.iter().map(|row| row.get::<_, Vec<u8>>(1)));
        }
    }

    /// Keeps lines until the database is back. `missing` records before them could be kept nowhere.
    fn put_aside(&self, lines: &[Vec<u8>], missing: u64) -> bool {
        let mut spool = self.spool.lock();
        let Some(spool) = spool.as_mut() else { return false };
        let after = self.last.load(Ordering::Relaxed);
        let lines: Vec<SpooledLine> = lines
            .iter()
            .enumerate()
            .map(|(position, line)| SpooledLine {
                after,
                line: String::from_utf8_lossy(line).into_owned(),
                // The first line reports them.
                missing: if position == 0 { missing } else { 0 },
            })
            .collect();
        spool.add(&lines).is_ok()
    }

    /// Notes that records could be kept nowhere, on the disk if that is possible.
    fn note_missing(&self, count: u64) {
        let mut spool = self.spool.lock();
        let noted = spool.as_mut().is_some_and(|spool| {
            let count = spool.missing().saturating_add(count);
            let Ok(lines) = self.lines(&[], count) else { return false };
            let after = self.last.load(Ordering::Relaxed);
            let line = lines.first().map(|line| String::from_utf8_lossy(line).into_owned());
            let line = line.map(|line| SpooledLine { after, line, missing: count });
            line.is_some_and(|line| spool.note_missing(line).is_ok())
        });
        if !noted {
            self.missing.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn lines(&self, records: &[AuditRecord], missing: u64) -> Result<Vec<Vec<u8>>, FleetError> {
        let gap = AuditRecord { kind: "missing".to_owned(), missing, ..AuditRecord::default() };
        let gap = (missing > 0).then_some(&gap);
        let (time, node) = (crate::now().cast_unsigned(), self.node.id.as_str());
        gap.into_iter()
            .chain(records)
            .map(|record| {
                let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
                let line = WrittenLine { time, node, sequence, record };
                serde_json::to_vec(&line).map_err(|error| FleetError::System(error.to_string()))
            })
            .collect()
    }

    /// Appends lines that were written elsewhere, in their order, and notes under `source` that so many of them are there
    /// now. Both happen, or none: an import that breaks off goes on there.
    pub(crate) fn import(
        &self,
        records: &[(u64, AuditRecord)],
        source: &str,
        all: u64,
    ) -> Result<(), FleetError> {
        let lines = records.iter().map(|(time, record)| {
            let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
            let line = WrittenLine { time: *time, node: IMPORTED, sequence, record };
            serde_json::to_vec(&line).map_err(|error| FleetError::System(error.to_string()))
        });
        let lines = lines.collect::<Result<Vec<_>, _>>()?;
        self.node.database.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            transaction.query_one("SELECT append_audit($1, 0)", &[&lines]).await?;
            let note = "INSERT INTO fingerprint (name, value) VALUES ($1, $2)
                ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            transaction.execute(note, &[&source, &all.to_string()]).await?;
            transaction.commit().await?;
            // The lines are on the disk before more is said of them.
            connection.execute(FLUSH, &[]).await?;
            Ok(())
        })
    }

    fn write(&self, lines: &[Vec<u8>], missing: u64) -> Result<(), FleetError> {
        let missing = missing.cast_signed();
        self.node.database.with(|connection| async move {
            let append = connection.prepare_cached("SELECT append_audit($1, $2)").await?;
            let flush = connection.prepare_cached(FLUSH).await?;
            // In one round trip, and two transactions: the chain is not locked while the disk is waited for.
            let values: [&(dyn ToSql + Sync); 2] = [&lines, &missing];
            let appending = connection.query_one(&append, &values);
            let flushing = connection.execute(&flush, &[]);
            let (appended, flushed) = futures::join!(appending, flushing);
            self.last.fetch_max(appended?.get(0), Ordering::Relaxed);
            flushed?;
            Ok(())
        })
    }
}

/// Writes what waits in files while the log is in use: that of this node, and those of nodes that are gone.
async fn write_what_waits(audit: Weak<SharedAudit>, folder: PathBuf) {
    loop {
        let Some(strong) = audit.upgrade() else { return };
        let folder = folder.clone();
        let written = tokio::task::spawn_blocking(move || {
            strong.drain_own();
            for mut left in Spool::left_behind(&folder) {
                if strong.drain(&mut left).is_ok() {
                    left.remove();
                }
            }
        });
        // What is left is tried again.
        let _ = written.await;
        tokio::time::sleep(RETRY).await;
    }
}

/// Removes old lines while the log is in use.
async fn keep_to_limit(audit: Weak<SharedAudit>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(strong) = audit.upgrade() else { return };
        // If it fails, the next look removes them.
        let _ = tokio::task::spawn_blocking(move || strong.prune()).await;
    }
}

impl Drop for SharedAudit {
    fn drop(&mut self) {
        if let Some(spool) = self.spool.get_mut().take().filter(Spool::is_empty) {
            spool.remove();
        }
    }
}

fn failed(error: FleetError) -> AuditError {
    AuditError::of(format!("the audit log in {PLACE}"), error.into_io())
}

impl AuditLog for SharedAudit {
    fn prepare(&self) -> Result<(), AuditError> {
        Ok(())
    }

    fn append_required(&self, record: &AuditRecord) -> Result<(), AuditError> {
        let lines = self.lines(std::slice::from_ref(record), 0).map_err(failed)?;
        // What waits comes first.
        if !self.drain_own() {
            self.node.database.check_known().map_err(failed)?;
        }
        self.write(&lines, 0).map_err(failed)
    }

    fn append_all(&self, records: &[AuditRecord]) -> Result<(), AuditError> {
        let missing = self.missing.swap(0, Ordering::Relaxed);
        let lines = self.lines(records, missing).map_err(failed)?;
        let written = if self.drain_own() {
            self.write(&lines, missing)
        } else {
            Err(FleetError::Away("earlier records wait for it".to_owned()))
        };
        self.note_outcome(&written);
        if written.is_err() && !self.put_aside(&lines, missing) {
            let count = u64::try_from(records.len()).unwrap_or(u64::MAX);
            self.note_missing(missing.saturating_add(count));
            return written.map_err(failed);
        }
        Ok(())
    }

    fn append_at_once(&self, _records: &[AuditRecord]) -> Option<Result<(), AuditError>> {
        // The thread of the writer waits for the database, and gathers the records of that time.
        None
    }

    fn unrecorded(&self) -> u64 {
        let told = self.node.database.with(|connection| async move {
            Ok(connection.query_one("SELECT missing FROM audit_head", &[]).await?.get::<_, i64>(0))
        });
        let waiting = self.spool.lock().as_ref().map_or(0, Spool::missing);
        told.unwrap_or_default().cast_unsigned() + waiting + self.missing.load(Ordering::Relaxed)
    }

    fn damage(&self) -> Option<AuditProblem> {
        let found = self.node.database.with(|connection| async move {
            let heads = "SELECT (SELECT number FROM audit_head), (SELECT max(number) FROM audit)";
            let row = connection.query_one(heads, &[]).await?;
            Ok((row.get::<_, Option<i64>>(0), row.get::<_, Option<i64>>(1)))
        });
        match found.ok()? {
            (None, _) => Some(AuditProblem::HeadMissing),
            (Some(head), None) if head > 0 => Some(AuditProblem::Gone),
            _ => None,
        }
    }

    fn read_back(
        &self,
        before: Option<u64>,
        seen: &mut dyn FnMut(NumberedRecord) -> ControlFlow<()>,
    ) -> Result<(), AuditError> {
        let mut end = before.map_or(i64::MAX, |number| i64::try_from(number).unwrap_or(i64::MAX));
        loop {
            let rows = self.node.database.with(|connection| async move {
                let page = "SELECT number, line FROM audit WHERE number < $1 ORDER BY number DESC LIMIT $2";
                Ok(connection.query(page, &[&end, &PAGE]).await?)
            });
            let rows = rows.map_err(failed)?;
            if rows.is_empty() {
                return Ok(());
            }
            for row in rows {
                let (found, line): (i64, Vec<u8>) = (row.get(0), row.get(1));
                end = found;
                let Ok(Line { time, record, .. }) = serde_json::from_slice::<Line>(&line) else {
                    continue;
                };
                let number = found.cast_unsigned();
                if seen(NumberedRecord { number, time, record }).is_break() {
                    return Ok(());
                }
            }
        }
    }

    fn read(
        &self,
        seen: &mut dyn FnMut(Result<(u64, AuditRecord), AuditProblem>),
    ) -> Result<AuditExtent, AuditError> {
        // The head first: lines may be added meanwhile, and none may be missing.
        let head = self.node.database.with(|connection| async move {
            let head = "SELECT number, hash, first, before_first FROM audit_head";
            let head = connection.query_opt(head, &[]).await?;
            Ok(head.map(|row| {
                let kept: (i64, Vec<u8>) = (row.get(2), row.get(3));
                (row.get::<_, i64>(0), row.get::<_, Vec<u8>>(1), kept)
            }))
        });
        let head = head.map_err(failed)?;
        let (first, before_first) = head.as_ref().map_or((1, Vec::new()), |head| head.2.clone());
        let end = head.as_ref().map_or(i64::MAX, |(number, ..)| *number);
        let mut extent = AuditExtent { files: 1, ..AuditExtent::default() };
        let (mut number, mut before) = (first - 1, before_first);
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
                if number == first - 1 && found > first {
                    let expected = first.cast_unsigned();
                    seen(Err(AuditProblem::StartMissing { found: place, expected }));
                } else if found != number + 1 {
                    seen(Err(AuditProblem::Broken(position())));
                } else if link(&before, found, &line) != *hash {
                    seen(Err(AuditProblem::Changed(position())));
                }
                (number, before) = (found, hash);
                extent.lines += 1;
                let Ok(Line { time, record, .. }) = serde_json::from_slice::<Line>(&line) else {
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
            // The tables are made with one.
            None => seen(Err(AuditProblem::HeadMissing)),
            Some((expected, hash, _)) if expected > number || hash != before => {
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
