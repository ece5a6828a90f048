//! The audit log: every decision and call, in a hash chain that shows missing lines.
//!
//! The log is an append-only file of JSON lines. Each line contains its own hash and that of the
//! line before. So a line that was changed, removed or inserted breaks the chain. The head file
//! contains the end of the chain, so that a missing end is found too. A long file is renamed, and
//! the chain continues in a new one. The oldest files are removed, and the head file contains the
//! number of the first line that must exist. Somebody who can write all of these files can write a
//! new chain. To detect that, store copies elsewhere (`export`).

mod backwards;
mod chain;
mod read;
#[cfg(test)]
mod tests;
mod unwritten;
mod write;

use std::{
    fmt, io,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::{unwritten::UnwrittenMark, write::OpenAuditLog};

/// One decision or call. Fields that are unknown or do not apply are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AuditRecord {
    /// The kind: `call`; `decision` before a call; `approval`, `grant`, `definition`, `login`,
    /// `logout`, `repeat`, `server`, `token` for actions of a person; `missing` for records that
    /// could not be written.
    pub kind: String,
    /// The caller.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// The node of a fleet that wrote it; empty without a fleet. Set when it is read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// The session.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The run of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The tool, by its exposed name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// `allow`, `ask`, `deny`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub verdict: String,
    /// The rule, grant or answer that decided.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// The hash of the arguments.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arguments_hash: String,
    /// The arguments without secrets, if the configuration requires them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
    /// Bytes of the arguments.
    pub argument_bytes: u64,
    /// Bytes of the result.
    pub result_bytes: u64,
    /// How long it took, in microseconds.
    pub duration: u64,
    /// `ok`, `error`, `refused`, `waiting`, `unknown`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// How many records could not be written before this line, for the kind `missing`.
    #[serde(skip_serializing_if = "is_zero")]
    pub missing: u64,
}

/// A record with its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedRecord {
    /// The number of its line in the chain, from 1.
    pub number: u64,
    /// When it was written, in milliseconds since 1970.
    pub time: u64,
    /// The record.
    pub record: AuditRecord,
}

/// Which records somebody wants to see. What is not given does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of this tool.
    pub tool: Option<String>,
    /// Of this server.
    pub server: Option<String>,
    /// Of this session.
    pub session: Option<String>,
    /// Of this run.
    pub run: Option<String>,
    /// Of callers whose names contain this.
    pub caller: Option<String>,
    /// With this verdict.
    pub verdict: Option<String>,
    /// From this time on, in milliseconds since 1970.
    pub since: Option<u64>,
    /// Before this time.
    pub until: Option<u64>,
}

impl AuditFilter {
    /// Whether a record of this time is wanted.
    pub fn fits(&self, time: u64, record: &AuditRecord) -> bool {
        let is =
            |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|it| it == value);
        is(&self.tool, &record.tool)
            && is(&self.server, &record.server)
            && is(&self.session, &record.session)
            && is(&self.run, record.run.as_deref().unwrap_or_default())
            && self.caller.as_deref().is_none_or(|part| record.caller.contains(part))
            && is(&self.verdict, &record.verdict)
            && self.since.is_none_or(|since| time >= since)
            && self.until.is_none_or(|until| time < until)
    }
}

/// A log of every decision and call, in a hash chain that shows missing lines.
pub trait AuditLog: fmt::Debug + Send + Sync {
    /// Makes what is needed to count records that cannot be written later. Does nothing if there is, or was, a
    /// log.
    fn prepare(&self) -> Result<(), AuditError>;

    /// Appends a record.
    fn append(&self, record: &AuditRecord) -> Result<(), AuditError> {
        self.append_all(std::slice::from_ref(record))
    }

    /// Appends a record without which a call is not made. If this fails, the call is refused, so that nothing has
    /// happened that could be missing in the log.
    fn append_required(&self, record: &AuditRecord) -> Result<(), AuditError> {
        self.append(record)
    }

    /// Appends all records, or none if that fails.
    fn append_all(&self, records: &[AuditRecord]) -> Result<(), AuditError>;

    /// Appends all records without waiting for others, or none if that fails; `None` if somebody else appends at the
    /// moment, or if it would wait for a network.
    fn append_at_once(&self, records: &[AuditRecord]) -> Option<Result<(), AuditError>>;

    /// How many records are missing between the existing lines. Reads one line.
    fn unrecorded(&self) -> u64;

    /// Whether the log or its head is missing, without reading the lines.
    fn damage(&self) -> Option<AuditProblem>;

    /// Reads records, the newest first, from before the one with this number. Ends when `seen` breaks. Lines that
    /// cannot be read are left out, and the chain is not checked: [`AuditLog::read`] does that.
    fn read_back(
        &self,
        before: Option<u64>,
        seen: &mut dyn FnMut(NumberedRecord) -> ControlFlow<()>,
    ) -> Result<(), AuditError>;

    /// Reads the whole chain, and calls `seen` with each record and each problem. Writers do not
    /// wait.
    fn read(
        &self,
        seen: &mut dyn FnMut(Result<(u64, AuditRecord), AuditProblem>),
    ) -> Result<AuditExtent, AuditError>;
}

/// The log. Clones are the same log.
#[derive(Debug, Clone)]
pub struct AuditFile {
    path: PathBuf,
    limits: AuditLimits,
    open: Arc<Mutex<AuditState>>,
}

#[derive(Debug, Default)]
struct AuditState {
    log: Option<OpenAuditLog>,
    /// Records that could not be written, and that are not counted in the head file.
    missing: u64,
    /// The file whose name says so.
    mark: UnwrittenMark,
}

/// How much of the log is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditLimits {
    /// A file that has so many bytes is put aside, and the next one begun.
    pub file_bytes: u64,
    /// How many of those put aside stay.
    pub files: usize,
    /// After how many days lines are removed; 0 for never.
    pub days: u32,
}

impl AuditLimits {
    /// How many bytes are stored at most.
    pub fn bytes(self) -> u64 {
        let files = u64::try_from(self.files).unwrap_or(u64::MAX);
        self.file_bytes.saturating_mul(files.saturating_add(1))
    }

    /// How old a line may be.
    pub fn age(self) -> Option<Duration> {
        (self.days > 0).then(|| Duration::from_hours(24) * self.days)
    }
}

/// The extent of the log that was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditExtent {
    /// The number and the time of the first line.
    pub first: Option<(u64, u64)>,
    /// How many lines there are.
    pub lines: u64,
    /// In how many files.
    pub files: usize,
}

/// The log could not be read or written. Its content did not change.
#[derive(Debug, Error)]
#[error("{place} cannot be used: {source}")]
pub struct AuditError {
    place: String,
    source: io::Error,
}

impl AuditError {
    /// A log that is in no file, which `place` names, cannot be used.
    pub fn of(place: impl Into<String>, source: io::Error) -> Self {
        Self { place: place.into(), source }
    }

    fn new(path: &Path, source: io::Error) -> Self {
        Self::of(format!("the audit log {}", path.display()), source)
    }
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line} of {file}")]
pub struct AuditPosition {
    /// The name of the file.
    pub file: String,
    /// From 1.
    pub line: u64,
}

/// Something that is wrong with the chain.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AuditProblem {
    /// A line that cannot be read.
    #[error("{0} cannot be read")]
    Unreadable(AuditPosition),
    /// A line that was changed.
    #[error("{0} was changed: its hash is not its own")]
    Changed(AuditPosition),
    /// A line that does not follow the one before it.
    #[error("before {0} something is missing, or was put in: it follows another line")]
    Broken(AuditPosition),
    /// The beginning is missing.
    #[error("the log begins with number {found}, but what was kept of it begins with {expected}")]
    StartMissing {
        /// The first number that is there.
        found: u64,
        /// The first number that should be there.
        expected: u64,
    },
    /// The end is missing.
    #[error("the log ends at number {found}, but went on to number {expected}")]
    Cut {
        /// The last number that is there.
        found: u64,
        /// The last number that was written.
        expected: u64,
    },
    /// Records that could not be written, such as on a full disk.
    #[error("before {position} {count} records are missing: they could not be written")]
    Unwritten {
        /// The position of the line.
        position: AuditPosition,
        /// How many.
        count: u64,
    },
    /// The same at the end of the log.
    #[error("at the end of the log {0} records are missing: they could not be written")]
    UnwrittenEnd(u64),
    /// There is a place for the log, and nothing was ever written there.
    #[error(
        "records are missing, and it is not known how many: not even the first could be written"
    )]
    NeverWritten,
    /// There was a log, and nothing of it is there.
    #[error("the log is gone: there was one, but neither its lines nor its head file exist")]
    Gone,
    /// There are lines, but not what says how many there were.
    #[error("how far the log went is not known: what says so is missing or damaged")]
    HeadMissing,
}

impl AuditFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, limits: AuditLimits::default(), open: Arc::default() }
    }

    /// With other limits.
    #[must_use]
    pub fn with_limits(self, limits: AuditLimits) -> Self {
        Self { limits, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Counts records that could not be appended.
    fn count_missing(
        &self,
        state: &mut AuditState,
        records: usize,
        appended: io::Result<()>,
    ) -> Result<(), AuditError> {
        let AuditState { log, missing, mark } = state;
        if appended.is_err() {
            *missing = mark.left_of(&self.path, *missing);
            *missing = missing.saturating_add(u64::try_from(records).unwrap_or(u64::MAX));
            // Counting them needs no disk space if the head file has a content. Otherwise the name
            // of an empty file counts them.
            if let Some(open) = log {
                let _ = open.note_missing(missing, mark);
            }
            mark.set(&self.path, *missing);
            // The next write starts from the actual content of the file.
            *log = None;
        }
        appended.map_err(|source| AuditError::new(&self.path, source))
    }
}

impl AuditLog for AuditFile {
    fn prepare(&self) -> Result<(), AuditError> {
        OpenAuditLog::new(&self.path)
            .and_then(|mut log| log.prepare())
            .map_err(|source| AuditError::new(&self.path, source))
    }

    fn append_all(&self, records: &[AuditRecord]) -> Result<(), AuditError> {
        let mut state = self.open.lock();
        let AuditState { log, missing, mark } = &mut *state;
        let appended = OpenAuditLog::of(log, &self.path).and_then(|open| {
            open.lock()?;
            open.append(records, missing, mark, self.limits)
        });
        self.count_missing(&mut state, records.len(), appended)
    }

    fn append_at_once(&self, records: &[AuditRecord]) -> Option<Result<(), AuditError>> {
        let mut state = self.open.try_lock()?;
        let AuditState { log, missing, mark } = &mut *state;
        let appended = OpenAuditLog::of(log, &self.path).and_then(|open| {
            if !open.try_lock()? {
                return Ok(false);
            }
            open.append(records, missing, mark, self.limits).map(|()| true)
        });
        match appended {
            Ok(false) => None,
            appended => Some(self.count_missing(&mut state, records.len(), appended.map(drop))),
        }
    }

    fn unrecorded(&self) -> u64 {
        let head = std::fs::read(chain::head_path(&self.path)).unwrap_or_default();
        let head = chain::ChainHead::read(&head).unwrap_or_default();
        let AuditState { missing, mark, .. } = &mut *self.open.lock();
        *missing = mark.left_of(&self.path, *missing);
        let unmarked = missing.saturating_sub(mark.count(&self.path));
        head.unrecorded().saturating_add(unwritten::count(&self.path)).saturating_add(unmarked)
    }

    fn damage(&self) -> Option<AuditProblem> {
        let head = std::fs::read(chain::head_path(&self.path)).unwrap_or_default();
        if chain::ChainHead::read(&head).is_some() {
            return None;
        }
        let has_lines = std::fs::metadata(&self.path).is_ok_and(|file| file.len() > 0);
        let problem = read::without_head(&self.path, has_lines)?;
        // How many are missing is known then, and said.
        let is_counted = problem == AuditProblem::NeverWritten && self.unrecorded() > 0;
        (!is_counted).then_some(problem)
    }

    fn read_back(
        &self,
        before: Option<u64>,
        seen: &mut dyn FnMut(NumberedRecord) -> ControlFlow<()>,
    ) -> Result<(), AuditError> {
        backwards::read(&self.path, before, seen)
            .map_err(|source| AuditError::new(&self.path, source))
    }

    fn read(
        &self,
        seen: &mut dyn FnMut(Result<(u64, AuditRecord), AuditProblem>),
    ) -> Result<AuditExtent, AuditError> {
        read::read(&self.path, seen).map_err(|source| AuditError::new(&self.path, source))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Default for AuditLimits {
    fn default() -> Self {
        Self { file_bytes: 64 * 1024 * 1024, files: 15, days: 0 }
    }
}
