//! The audit log: every decision and the end of every call, with the spans of telemetry.

use std::{
    fmt, slice,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, SyncSender, TrySendError},
    },
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use toolgate_catalog::{Fingerprint, Tool};
use toolgate_mcp::json_size;
use toolgate_policy::{Decision, Verdict};
use toolgate_store::{AuditLog, AuditRecord};
use toolgate_telemetry::{CallSpan, CallSpanEnd, Telemetry};
use toolgate_upstream::{CallError, Redactor};

use crate::{
    approval, authorize::Permit, context::CallContext, error::BrokerError, limits::CallLimitReached,
};

/// Where and how calls are recorded.
#[derive(Debug)]
pub struct AuditOptions {
    /// The log. Without one nothing is recorded, and calls that require a record are refused.
    pub log: Option<Arc<dyn AuditLog>>,
    /// Whether the arguments themselves are recorded, and not only their hash.
    pub arguments: bool,
    /// Whether a call is refused if it cannot be recorded.
    pub required: bool,
    /// Remove the secrets of servers from arguments.
    pub redactors: Vec<Redactor>,
}

/// Writes the audit log: right away, or on a thread of its own while others write.
///
/// A thread costs a lone call more than the few system calls of a line. With many calls at once the
/// thread writes many lines together.
pub(crate) struct AuditWriter {
    options: AuditOptions,
    /// Remove the secrets of servers that came later.
    redactors: RwLock<Vec<Redactor>>,
    queue: SyncSender<AuditMessage>,
    /// How many records are in the queue or are being written by the thread.
    queued: Arc<AtomicUsize>,
    /// How many calls have begun and have not ended.
    open_calls: AtomicUsize,
    /// Records of calls that ended while others are open. The one that came first writes all.
    together: Mutex<(Vec<AuditRecord>, Vec<oneshot::Sender<()>>)>,
    error_logged: Arc<AtomicBool>,
}

enum AuditMessage {
    /// A record, and what is dropped once it is written.
    Record(Box<AuditRecord>, Option<oneshot::Sender<()>>),
    /// Dropped once everything before it is written.
    Flush(SyncSender<()>),
}

/// Waits until a record is written. A call is not answered before: what was answered is in the log,
/// even if the process is killed then.
#[derive(Debug, Default)]
#[must_use = "the call is not answered before its record is written"]
pub(crate) enum AuditWritten {
    /// There is nothing to write.
    #[default]
    Nothing,
    /// It is written, or somebody else writes it.
    Soon(oneshot::Receiver<()>),
    /// Whoever waits for this writes it, with those that came later.
    Together(WriteTogether),
}

/// Writes the records of calls that ended together, when it is dropped.
#[derive(Debug)]
pub(crate) struct WriteTogether(Arc<AuditWriter>);

impl Drop for WriteTogether {
    fn drop(&mut self) {
        self.0.write_together();
    }
}

impl AuditWritten {
    pub(crate) async fn wait(self) {
        match self {
            Self::Nothing => {}
            // The sender is dropped, whatever became of the record.
            Self::Soon(written) => drop(written.await),
            Self::Together(first) => {
                // Calls that are answered at the same time add their records meanwhile.
                tokio::task::yield_now().await;
                drop(first);
            }
        }
    }
}

/// The audit entry of one call while it is made. However the call ends, the entry is written: if
/// this is dropped before the end, it is unknown whether the call had an effect.
#[derive(Debug)]
pub(crate) struct CallAudit {
    writer: Option<Arc<AuditWriter>>,
    span: Option<CallSpan>,
    record: AuditRecord,
    verdict: Option<Verdict>,
    /// Set once the call may be sent: whether a person was asked for it.
    permitted_by_person: Option<bool>,
    started: Instant,
    ended: bool,
}

/// How a call ended.
#[derive(Debug, Clone, Copy)]
enum AuditOutcome {
    Result {
        bytes: u64,
        is_error: bool,
    },
    Error,
    Refused,
    Waiting,
    /// The call may have had an effect.
    Unknown,
}

/// Records that wait to be written. When the queue is full, the caller writes.
const QUEUED_RECORDS: usize = 1_024;
/// Records that are written together.
const BATCH: usize = 256;
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// The most characters recorded of the name of an unknown tool.
const MAX_NAME: usize = 128;
/// Words in the names of arguments whose values are never recorded.
const SECRET_WORDS: [&str; 8] =
    ["password", "passwd", "secret", "token", "apikey", "api_key", "authorization", "credential"];
const HIDDEN: &str = "[hidden]";

impl AuditWriter {
    pub(crate) fn new(options: AuditOptions) -> Self {
        let (queue, waiting) = mpsc::sync_channel::<AuditMessage>(QUEUED_RECORDS);
        let error_logged = Arc::new(AtomicBool::new(false));
        let (log, logged) = (options.log.clone(), Arc::clone(&error_logged));
        let queued = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&queued);
        let write_all = move || {
            // If this fails, the first record fails too, and that is said.
            let _ = log.as_ref().map(|log| log.prepare());
            while let Ok(message) = waiting.recv() {
                // Records that came while others were written are written together.
                let more = waiting.try_iter().take(BATCH);
                let (mut records, mut written, mut flushed) = (Vec::new(), Vec::new(), Vec::new());
                for message in std::iter::once(message).chain(more) {
                    match message {
                        AuditMessage::Record(record, done) => {
                            records.push(*record);
                            written.extend(done);
                        }
                        AuditMessage::Flush(done) => flushed.push(done),
                    }
                }
                write_records(log.as_deref(), &records, &logged);
                left.fetch_sub(records.len(), Ordering::Relaxed);
                // Dropping them wakes those who wait.
                drop((written, flushed));
            }
        };
        if let Err(error) = std::thread::Builder::new().name("audit".to_owned()).spawn(write_all) {
            tracing::warn!("the audit log is written by the callers themselves: {error}");
        }
        Self {
            options,
            redactors: RwLock::default(),
            queue,
            queued,
            open_calls: AtomicUsize::new(0),
            together: Mutex::default(),
            error_logged,
        }
    }

    /// Keeps the secrets of the servers of now out of the log, besides those of the start.
    pub(crate) fn guard(&self, redactors: Vec<Redactor>) {
        *self.redactors.write() = redactors;
    }

    /// The arguments without secrets, if arguments are recorded.
    fn recorded_arguments(&self, arguments: &Value) -> Option<Value> {
        self.options.arguments.then(|| {
            let mut arguments = arguments.clone();
            hide_secrets(&mut arguments);
            let later = self.redactors.read();
            for redactor in self.options.redactors.iter().chain(&*later) {
                redactor.clean_value(&mut arguments);
            }
            arguments
        })
    }

    /// Writes that a call is about to be sent, if the record is required. Says why it could not be written.
    async fn write_before_send(&self, record: &AuditRecord) -> Result<(), String> {
        if !self.options.required {
            return Ok(());
        }
        let record = AuditRecord { kind: "decision".to_owned(), ..record.clone() };
        let log = self.options.log.clone().ok_or("there is no audit log")?;
        let logged = Arc::clone(&self.error_logged);
        let written = tokio::task::spawn_blocking(move || {
            let written = log.append_required(&record);
            log_once(&logged, &written);
            written.map_err(|error| error.to_string())
        });
        written.await.map_err(|error| error.to_string())?
    }

    /// Queues a record.
    pub(crate) fn write(&self, record: AuditRecord) {
        self.queue(record, None);
    }

    /// Writes a record, or lets others write it, and says when it is written.
    fn write_and_tell(self: &Arc<Self>, record: AuditRecord) -> AuditWritten {
        let mut together = self.together.lock();
        let is_first = together.0.is_empty();
        let is_alone = is_first && self.open_calls.load(Ordering::Relaxed) == 0;
        if is_alone || self.is_busy() {
            drop(together);
            if is_alone && self.write_at_once(slice::from_ref(&record)) {
                return AuditWritten::Nothing;
            }
            let (done, written) = oneshot::channel();
            self.queue(record, Some(done));
            return AuditWritten::Soon(written);
        }
        let (done, written) = oneshot::channel();
        together.0.push(record);
        together.1.push(done);
        if is_first {
            AuditWritten::Together(WriteTogether(Arc::clone(self)))
        } else {
            AuditWritten::Soon(written)
        }
    }

    /// Writes the records of calls that ended together.
    fn write_together(&self) {
        let (records, waiting) = std::mem::take(&mut *self.together.lock());
        // Dropping the senders wakes those who wait.
        if !self.write_at_once(&records) {
            for (record, done) in records.into_iter().zip(waiting) {
                self.queue(record, Some(done));
            }
        }
    }

    /// Writes records right away. Returns `false` if others write at the moment.
    fn write_at_once(&self, records: &[AuditRecord]) -> bool {
        let log = self.options.log.as_ref().filter(|_| !self.is_busy());
        let written = log.and_then(|log| log.append_at_once(records));
        written.inspect(|written| log_once(&self.error_logged, written)).is_some()
    }

    /// Whether the thread writes. Records of one caller stay in their order: what is queued comes first.
    fn is_busy(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0
    }

    fn queue(&self, record: AuditRecord, done: Option<oneshot::Sender<()>>) {
        self.queued.fetch_add(1, Ordering::Relaxed);
        let queued = self.queue.try_send(AuditMessage::Record(Box::new(record), done));
        if let Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) = queued
            && let AuditMessage::Record(record, _done) = message
        {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            write_records(self.options.log.as_deref(), &[*record], &self.error_logged);
        }
    }

    /// Waits until everything so far is written.
    pub(crate) fn flush(&self) {
        let (done, written) = mpsc::sync_channel(1);
        if self.queue.send(AuditMessage::Flush(done)).is_ok() {
            let _ = written.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

impl CallAudit {
    /// Starts the entry of a call. `tool` is `None` if no tool has this name.
    pub(crate) fn start(
        writer: Option<Arc<AuditWriter>>,
        telemetry: &Telemetry,
        context: &CallContext,
        (name, tool): (&str, Option<&Tool>),
        arguments: &Value,
        meta: Option<&Map<String, Value>>,
    ) -> Self {
        let (session, run) = (context.session.id(), context.run_id());
        let span = telemetry.is_on().then(|| {
            let tool = tool.map(|tool| (tool.id.server.as_str(), tool.name.as_str()));
            telemetry.call(tool, session, run, meta)
        });
        let mut record = AuditRecord::default();
        if let Some(writer) = &writer {
            writer.open_calls.fetch_add(1, Ordering::Relaxed);
            "call".clone_into(&mut record.kind);
            record.caller = context.session.caller().name.to_string();
            record.session = session.to_string();
            record.run = run.map(str::to_owned);
            record.tool = tool.map_or_else(
                || name.chars().take(MAX_NAME).collect(),
                |tool| tool.name.to_string(),
            );
            record.server = tool.map(|tool| tool.id.server.to_string()).unwrap_or_default();
            record.arguments_hash = Fingerprint::of(arguments).to_string();
            // The arguments of unknown tools may have any size.
            record.arguments = tool.and_then(|_| writer.recorded_arguments(arguments));
        }
        if writer.is_some() || span.is_some() {
            record.argument_bytes = json_size(arguments) as u64;
        }
        let started = Instant::now();
        let (verdict, permitted_by_person) = (None, None);
        Self { writer, span, record, verdict, permitted_by_person, started, ended: false }
    }

    /// Adds the trace of the call to the `_meta` for the server.
    pub(crate) fn add_trace(&self, meta: &mut Option<Map<String, Value>>) {
        if let Some(span) = &self.span {
            span.pass_on(meta);
        }
    }

    /// Records the decision of the policy.
    pub(crate) fn decided(&mut self, decision: &Decision) {
        self.verdict = Some(decision.verdict);
        if self.is_recorded() {
            self.record.rule = approval::rule(decision);
        }
    }

    /// Records that a limit does not allow the call.
    pub(crate) fn limited(&mut self, reached: &CallLimitReached) {
        self.verdict = Some(Verdict::Deny);
        if self.is_recorded() {
            self.record.rule = reached.to_string();
        }
    }

    /// Records that the call may be sent. Says why not, if that has to be written first and could not be.
    pub(crate) async fn permitted(&mut self, permit: &Permit) -> Result<(), String> {
        self.permitted_by_person = Some(matches!(permit, Permit::Person));
        if self.is_recorded() {
            self.record.rule = permit.add_to(std::mem::take(&mut self.record.rule));
        }
        match &self.writer {
            Some(writer) => {
                self.record.verdict = self.verdict();
                writer.write_before_send(&self.record).await
            }
            None => Ok(()),
        }
    }

    /// Records how the call ended.
    pub(crate) fn end(mut self, outcome: Result<&Value, &BrokerError>) -> AuditWritten {
        if !self.is_recorded() {
            self.ended = true;
            return AuditWritten::default();
        }
        if self.verdict.is_none() {
            let rule = undecided_reason(outcome, !self.record.server.is_empty());
            rule.clone_into(&mut self.record.rule);
        }
        let ended = match AuditOutcome::of(outcome) {
            // A call that was cancelled before it was permitted was not sent.
            AuditOutcome::Unknown if self.permitted_by_person.is_none() => AuditOutcome::Refused,
            ended => ended,
        };
        self.finish(ended, failure_name(outcome))
    }

    fn is_recorded(&self) -> bool {
        self.writer.is_some() || self.span.is_some()
    }

    fn verdict(&self) -> String {
        self.verdict.unwrap_or(Verdict::Deny).as_str().to_owned()
    }

    fn finish(&mut self, outcome: AuditOutcome, error: Option<&'static str>) -> AuditWritten {
        self.ended = true;
        let mut record = std::mem::take(&mut self.record);
        record.verdict = self.verdict();
        let result_bytes = match outcome {
            AuditOutcome::Result { bytes, .. } => Some(bytes),
            _ => None,
        };
        if let Some(span) = self.span.take() {
            let question = match (self.verdict, self.permitted_by_person, outcome) {
                (Some(Verdict::Ask), Some(true), _) => Some("allow"),
                (Some(Verdict::Ask), None, AuditOutcome::Waiting) => Some("waiting"),
                (Some(Verdict::Ask), None, _) => Some("deny"),
                _ => None,
            };
            span.end(&CallSpanEnd {
                verdict: self.verdict.unwrap_or(Verdict::Deny).as_str(),
                rule: &record.rule,
                outcome: outcome.name(),
                error,
                argument_bytes: record.argument_bytes,
                result_bytes,
                question,
            });
        }
        let Some(writer) = &self.writer else { return AuditWritten::default() };
        writer.open_calls.fetch_sub(1, Ordering::Relaxed);
        let duration = self.started.elapsed().as_micros();
        record.duration = u64::try_from(duration).unwrap_or(u64::MAX);
        record.result_bytes = result_bytes.unwrap_or(record.result_bytes);
        outcome.name().clone_into(&mut record.outcome);
        writer.write_and_tell(record)
    }
}

impl Drop for CallAudit {
    fn drop(&mut self) {
        if !self.ended && self.is_recorded() {
            // Nothing is sent before the call is permitted.
            let outcome = match self.permitted_by_person {
                Some(_) => AuditOutcome::Unknown,
                None => AuditOutcome::Refused,
            };
            if self.verdict.is_none() {
                "it was cancelled".clone_into(&mut self.record.rule);
            }
            // Nobody waits for an answer.
            drop(self.finish(outcome, Some("cancelled")));
        }
    }
}

impl AuditOutcome {
    fn of(outcome: Result<&Value, &BrokerError>) -> Self {
        match outcome {
            Ok(result) => {
                let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
                Self::Result { bytes: json_size(result) as u64, is_error }
            }
            Err(BrokerError::Waiting { .. }) => Self::Waiting,
            Err(BrokerError::Call(error)) => match **error {
                CallError::Stopped { .. } | CallError::TimedOut { .. } | CallError::Cancelled => {
                    Self::Unknown
                }
                CallError::DefinitionChanged { .. } | CallError::DefinitionUnknown { .. } => {
                    Self::Refused
                }
                _ => Self::Error,
            },
            Err(BrokerError::Raw(_)) => Self::Error,
            Err(_) => Self::Refused,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Result { is_error: false, .. } => "ok",
            Self::Result { is_error: true, .. } | Self::Error => "error",
            Self::Refused => "refused",
            Self::Waiting => "waiting",
            Self::Unknown => "unknown",
        }
    }
}

/// The name of a failure in telemetry.
fn failure_name(outcome: Result<&Value, &BrokerError>) -> Option<&'static str> {
    Some(match outcome {
        Ok(result) if result.get("isError").and_then(Value::as_bool) == Some(true) => "tool_error",
        Ok(_) => return None,
        Err(BrokerError::UnknownTool { .. }) => "unknown_tool",
        Err(BrokerError::UnknownMethod(_)) => "unknown_method",
        Err(BrokerError::NoAnswer { .. }) => "no_answer",
        Err(BrokerError::InvalidArguments(_)) => "invalid_arguments",
        Err(BrokerError::Uncheckable(_)) => "broken_schema",
        Err(BrokerError::Denied { .. }) => "denied",
        Err(BrokerError::Waiting { .. }) => "waiting_for_approval",
        Err(BrokerError::Limited { .. }) => "limited",
        Err(BrokerError::Unrecorded { .. } | BrokerError::Unwritten { .. }) => "not_recorded",
        Err(BrokerError::Raw(_)) => "refused_by_server",
        Err(BrokerError::Call(error)) => match **error {
            CallError::UnknownServer(_) | CallError::NotConnected { .. } => "not_connected",
            CallError::DefinitionChanged { .. } => "definition_changed",
            CallError::DefinitionUnknown { .. } => "definition_unknown",
            CallError::Unauthorized { .. } => "unauthorized",
            CallError::Stopped { .. } => "server_stopped",
            CallError::TimedOut { .. } => "timeout",
            CallError::Cancelled => "cancelled",
            CallError::Refused { .. } => "refused_by_server",
            _ => "_OTHER",
        },
    })
}

/// Why a call was refused before the policy decided.
fn undecided_reason(outcome: Result<&Value, &BrokerError>, exists: bool) -> &'static str {
    match outcome {
        Err(BrokerError::UnknownTool { .. }) if exists => "all its calls are denied",
        Err(BrokerError::UnknownTool { .. }) => "there is no such tool",
        Err(BrokerError::InvalidArguments(_)) => "its arguments do not fit",
        Err(BrokerError::Uncheckable(_)) => "its schema is broken",
        _ => "",
    }
}

fn write_records(log: Option<&dyn AuditLog>, records: &[AuditRecord], logged: &AtomicBool) {
    if let Some(log) = log
        && !records.is_empty()
    {
        log_once(logged, &log.append_all(records));
    }
}

/// Logs only the first error of an outage, and its end: a full disk would also fill the log of the program.
fn log_once(logged: &AtomicBool, written: &Result<(), toolgate_store::AuditError>) {
    match written {
        Err(error) if !logged.swap(true, Ordering::Relaxed) => tracing::error!("{error}"),
        Ok(()) if logged.load(Ordering::Relaxed) && logged.swap(false, Ordering::Relaxed) => {
            tracing::warn!("the audit log is written again");
        }
        _ => {}
    }
}

/// Replaces values whose names say that they are secret.
fn hide_secrets(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide_secrets),
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.to_ascii_lowercase().replace('-', "_");
                if SECRET_WORDS.iter().any(|word| name.contains(word)) {
                    *field = Value::String(HIDDEN.to_owned());
                } else {
                    hide_secrets(field);
                }
            }
        }
        _ => {}
    }
}

impl Drop for AuditWriter {
    fn drop(&mut self) {
        self.flush();
    }
}

impl fmt::Debug for AuditWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AuditWriter")
            .field("log", &self.options.log)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use toolgate_store::{AuditError, AuditExtent, AuditProblem, NumberedRecord};

    use super::*;

    /// Remembers the tools of the records that were appended together.
    #[derive(Debug, Default)]
    struct Appended(Mutex<Vec<Vec<String>>>);

    impl AuditLog for Appended {
        fn prepare(&self) -> Result<(), AuditError> {
            Ok(())
        }

        fn append_all(&self, records: &[AuditRecord]) -> Result<(), AuditError> {
            self.0.lock().push(records.iter().map(|record| record.tool.clone()).collect());
            Ok(())
        }

        fn append_at_once(&self, records: &[AuditRecord]) -> Option<Result<(), AuditError>> {
            Some(self.append_all(records))
        }

        fn unrecorded(&self) -> u64 {
            0
        }

        fn damage(&self) -> Option<AuditProblem> {
            None
        }

        fn read_back(
            &self,
            _before: Option<u64>,
            _seen: &mut dyn FnMut(NumberedRecord) -> ControlFlow<()>,
        ) -> Result<(), AuditError> {
            Ok(())
        }

        fn read(
            &self,
            _seen: &mut dyn FnMut(Result<(u64, AuditRecord), AuditProblem>),
        ) -> Result<AuditExtent, AuditError> {
            Ok(AuditExtent::default())
        }
    }

    fn of(tool: &str) -> AuditRecord {
        AuditRecord { tool: tool.to_owned(), ..AuditRecord::default() }
    }

    #[tokio::test]
    async fn calls_that_end_together_are_written_together() {
        let log = Arc::new(Appended::default());
        let (arguments, required, redactors) = (false, false, Vec::new());
        let options = AuditOptions { log: Some(log.clone()), arguments, required, redactors };
        let writer = Arc::new(AuditWriter::new(options));
        writer.write_and_tell(of("alone")).wait().await;
        assert_eq!(*log.0.lock(), [["alone"]]);

        writer.open_calls.store(1, Ordering::Relaxed);
        let (first, second) =
            (writer.write_and_tell(of("first")), writer.write_and_tell(of("second")));
        assert_eq!(log.0.lock().len(), 1, "nothing is written before the others had their turn");
        tokio::join!(first.wait(), second.wait());
        assert_eq!(log.0.lock()[1], ["first", "second"]);

        // Nobody waits for the first one any more.
        let (first, second) =
            (writer.write_and_tell(of("third")), writer.write_and_tell(of("fourth")));
        drop(first);
        second.wait().await;
        assert_eq!(log.0.lock()[2], ["third", "fourth"]);
    }
}
