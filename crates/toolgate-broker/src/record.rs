//! Every decision and call goes into the audit log.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, SyncSender, TrySendError},
    },
    time::Duration,
};

use serde_json::Value;
use toolgate_policy::Decision;
use toolgate_store::{AuditLog, AuditRecord};
use toolgate_upstream::Redactor;

use crate::{ask, guard::Permit};

/// Where and how calls are recorded.
#[derive(Debug)]
pub struct Audit {
    /// The log. Without one nothing can be recorded, and what has to be is refused.
    pub log: Option<AuditLog>,
    /// Whether arguments are kept as they are, and not by their hash alone.
    pub arguments: bool,
    /// Whether a call is refused that cannot be recorded.
    pub required: bool,
    /// Take the servers' secrets out of arguments.
    pub redactors: Vec<Redactor>,
}

/// Writes the log, off the way of calls.
pub(crate) struct Recorder {
    audit: Audit,
    lines: SyncSender<Line>,
    told: Arc<AtomicBool>,
}

enum Line {
    Record(Box<AuditRecord>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    /// With a result of so many bytes.
    Result {
        bytes: u64,
        is_error: bool,
    },
    /// Without one, or it was never made.
    Error,
    Refused,
    Waiting,
    /// It may have had an effect.
    Unknown,
}

/// Records that wait to be written; when there are more, whoever calls writes.
const WAITING: usize = 1_024;
/// How long a record waits for others to be written with.
const LINGER: Duration = Duration::from_millis(5);
/// Records that are written at once.
const BATCH: usize = 256;
const FLUSHING_PATIENCE: Duration = Duration::from_secs(2);
/// Words in the names of arguments whose values are never written down.
const SECRET_WORDS: [&str; 8] =
    ["password", "passwd", "secret", "token", "apikey", "api_key", "authorization", "credential"];
const HIDDEN: &str = "[hidden]";

impl Recorder {
    pub(crate) fn new(audit: Audit) -> Self {
        let (lines, waiting) = mpsc::sync_channel::<Line>(WAITING);
        let told = Arc::new(AtomicBool::new(false));
        let (log, once) = (audit.log.clone(), Arc::clone(&told));
        let write_all = move || {
            while let Ok(line) = waiting.recv() {
                // What comes meanwhile is written with it: one lock, and calls wake nobody.
                std::thread::sleep(LINGER);
                let more = waiting.try_iter().take(BATCH);
                let (mut records, mut flushed) = (Vec::new(), Vec::new());
                for line in std::iter::once(line).chain(more) {
                    match line {
                        Line::Record(record) => records.push(*record),
                        Line::Flush(done) => flushed.push(done),
                    }
                }
                report(log.as_ref(), &records, &once);
                // Answered by being dropped.
                drop(flushed);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("audit".to_owned()).spawn(write_all) {
            tracing::warn!("the audit log is written by whoever calls: {error}");
        }
        Self { audit, lines, told }
    }

    /// The arguments as they are kept, where they are.
    pub(crate) fn kept(&self, arguments: &Value) -> Option<Value> {
        self.audit.arguments.then(|| {
            let mut arguments = arguments.clone();
            hide(&mut arguments);
            for redactor in &self.audit.redactors {
                redactor.clean_value(&mut arguments);
            }
            arguments
        })
    }

    /// Writes that a call is about to be made, where a call must not be made without that. `false`
    /// where it could not be written.
    pub(crate) async fn before(&self, record: &AuditRecord) -> bool {
        if !self.audit.required {
            return true;
        }
        let record = AuditRecord { kind: "decision".to_owned(), ..record.clone() };
        let Some(log) = self.audit.log.clone() else { return false };
        let told = Arc::clone(&self.told);
        let written = tokio::task::spawn_blocking(move || {
            log.append(&record).inspect_err(|error| tell(&told, error)).is_ok()
        });
        written.await.unwrap_or(false)
    }

    /// Writes how a call ended.
    pub(crate) fn after(&self, mut record: AuditRecord, outcome: Outcome, duration: Duration) {
        record.duration = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        if let Outcome::Result { bytes, .. } = outcome {
            record.result_bytes = bytes;
        }
        outcome.name().clone_into(&mut record.outcome);
        self.write(record);
    }

    /// Writes down something that is no call.
    pub(crate) fn note(&self, record: AuditRecord) {
        self.write(record);
    }

    /// Waits until everything so far is written.
    pub(crate) fn flush(&self) {
        let (done, written) = mpsc::sync_channel(1);
        if self.lines.send(Line::Flush(done)).is_ok() {
            // Answered by being dropped.
            let _ = written.recv_timeout(FLUSHING_PATIENCE);
        }
    }

    fn write(&self, record: AuditRecord) {
        let sent = self.lines.try_send(Line::Record(Box::new(record)));
        if let Err(TrySendError::Full(line) | TrySendError::Disconnected(line)) = sent
            && let Line::Record(record) = line
        {
            report(self.audit.log.as_ref(), &[*record], &self.told);
        }
    }
}

impl Outcome {
    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Result { is_error: false, .. } => "ok",
            Self::Result { is_error: true, .. } | Self::Error => "error",
            Self::Refused => "refused",
            Self::Waiting => "waiting",
            Self::Unknown => "unknown",
        }
    }
}

/// Which rule decided, and who let the call through.
pub(crate) fn rule_of(decision: &Decision, permit: Option<&Permit>) -> String {
    let rule = ask::rule(decision);
    match permit {
        Some(permit) => permitted(rule, permit),
        None => rule,
    }
}

/// The rule that decided, with who let the call through.
pub(crate) fn permitted(rule: String, permit: &Permit) -> String {
    match permit {
        Permit::Policy => rule,
        Permit::Grant(id) => format!("{rule}; grant {id}"),
        Permit::Person => format!("{rule}; a person said yes"),
    }
}

/// How many bytes a value has as JSON.
pub(crate) fn size(value: &Value) -> u64 {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

fn report(log: Option<&AuditLog>, records: &[AuditRecord], told: &AtomicBool) {
    if let Some(log) = log
        && !records.is_empty()
        && let Err(error) = log.append_all(records)
    {
        tell(told, &error);
    }
}

/// Told once: a disk that is full would fill the log of the program too.
fn tell(told: &AtomicBool, error: &toolgate_store::AuditError) {
    if !told.swap(true, Ordering::Relaxed) {
        tracing::error!("{error}");
    }
}

/// Takes out the values whose names say that they are secret.
fn hide(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.to_ascii_lowercase().replace('-', "_");
                if SECRET_WORDS.iter().any(|word| name.contains(word)) {
                    *field = Value::String(HIDDEN.to_owned());
                } else {
                    hide(field);
                }
            }
        }
        _ => {}
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.flush();
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Recorder").field("log", &self.audit.log).finish_non_exhaustive()
    }
}
