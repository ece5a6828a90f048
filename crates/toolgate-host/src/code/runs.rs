//! The journal that runs are kept in, and what is said of resuming them.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use toolgate_sandbox::{CallState, RunOutcome, RunReport};
use toolgate_store::{Journal, Retention};

use super::{bridge::WaitingCall, record::UnknownCall};

/// Where runs are kept.
#[derive(Debug)]
pub(super) struct Runs {
    /// Or why they cannot be kept, though there is a place for them.
    journal: Option<Result<Arc<Journal>, String>>,
    asked: AtomicU64,
}

/// What is too old or too much is looked for at the first run, and after so many.
const PRUNED_EVERY: u64 = 100;
/// Calls that are named as unknown, one by one.
const NAMED: usize = 10;

impl Runs {
    pub(super) fn new(journal: Option<Result<Arc<Journal>, String>>) -> Self {
        Self { journal, asked: AtomicU64::new(0) }
    }

    /// The journal; `None` where nothing is kept.
    pub(super) fn journal(&self, retention: Retention) -> Option<Result<Arc<Journal>, String>> {
        let journal = self.journal.clone()?;
        let turn = self.asked.fetch_add(1, Ordering::Relaxed);
        if let (Ok(journal), 0) = (&journal, turn % PRUNED_EVERY) {
            let journal = Arc::clone(journal);
            // Aside: nobody waits for it. What could not be done now is done the next time.
            tokio::task::spawn_blocking(move || journal.prune(retention));
        }
        Some(journal)
    }
}

/// Whether there is something left to do, and something done that need not be done again.
pub(super) fn is_resumable(report: &RunReport) -> bool {
    match report.outcome {
        RunOutcome::Value(_) | RunOutcome::Rejected(_) => false,
        RunOutcome::Suspended | RunOutcome::Diverged(_) => true,
        _ => report.calls.iter().any(|call| !matches!(call.state, CallState::Refused(_))),
    }
}

/// Says how the run goes on, and of which calls nobody knows what came of them.
pub(super) fn add_note(
    text: &mut String,
    report: &RunReport,
    id: &str,
    unknown: &[UnknownCall],
    waiting: &[WaitingCall],
    is_resumable: bool,
) {
    if !unknown.is_empty() {
        let named =
            unknown.iter().take(NAMED).map(|call| format!("{} (call {})", call.name, call.number));
        let named: Vec<String> = named.collect();
        let more = unknown.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = write!(
            text,
            "\nOutcome unknown, not repeated: {}{more}. A person can have it repeated: toolgate runs repeat {id} CALL",
            named.join(", ")
        );
    }
    for call in waiting.iter().take(NAMED) {
        let WaitingCall { name, approval, .. } = call;
        let _ = write!(
            text,
            "\n{name} waits for approval, id {approval}: a person runs `toolgate approve {approval}`."
        );
    }
    if !is_resumable {
        return;
    }
    let note = match report.outcome {
        RunOutcome::Suspended => {
            format!("Once it is approved, resume_run(run_id: \"{id}\") goes on.")
        }
        RunOutcome::Diverged(_) => format!(
            "resume_run(run_id: \"{id}\") takes code that makes the same calls first; \
             run_code begins anew."
        ),
        _ => format!(
            "resume_run(run_id: \"{id}\", code?) goes on, with corrected code if need be; what completed \
             is not repeated."
        ),
    };
    let _ = write!(text, "\n{note}");
}
