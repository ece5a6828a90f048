//! Which results of a run went into which arguments. Long results are compared in the background: it takes longer than a
//! page may.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use toolgate_host::RunFlow;
use toolgate_store::RunDetail;

use crate::PageState;

/// So many bytes of a run are compared at once.
const AT_ONCE: usize = 8 * 1024;
/// So many runs are remembered.
const KEPT: usize = 16;

/// The flows of the runs that were looked at last.
#[derive(Debug, Default)]
pub(crate) struct RunFlows {
    known: Mutex<VecDeque<KnownRun>>,
    /// Changes when flows were found.
    version: AtomicU64,
}

#[derive(Debug)]
struct KnownRun {
    id: String,
    /// The content of the run that was compared.
    content: Option<Content>,
    flows: Option<Arc<Vec<RunFlow>>>,
    is_looking: bool,
}

/// How many calls a run has, and how many bytes. Both only grow.
type Content = (usize, usize);

impl RunFlows {
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// What was found last, and whether somebody has to look again.
    fn look_up(&self, id: &str, content: Content) -> (Option<Arc<Vec<RunFlow>>>, bool) {
        let mut known = self.known.lock();
        if !known.iter().any(|run| run.id == id) {
            if known.len() >= KEPT {
                known.pop_front();
            }
            let id = id.to_owned();
            known.push_back(KnownRun { id, content: None, flows: None, is_looking: false });
        }
        let Some(run) = known.iter_mut().find(|run| run.id == id) else { return (None, false) };
        let is_due = run.content != Some(content) && !run.is_looking;
        run.is_looking |= is_due;
        (run.flows.clone(), is_due)
    }

    fn found(&self, id: &str, detail: Option<&RunDetail>) {
        let flows = detail.map(|detail| Arc::new(RunFlow::observed(detail)));
        if let Some(run) = self.known.lock().iter_mut().find(|run| run.id == id) {
            run.content = detail.map(content);
            run.flows = flows;
            run.is_looking = false;
        }
        self.version.fetch_add(1, Ordering::Relaxed);
    }
}

/// The flows of a run as they were found last; `None` if nobody has looked yet. Called from threads of the runtime.
pub(crate) fn latest(page: &PageState, detail: &RunDetail) -> Option<Arc<Vec<RunFlow>>> {
    let content = content(detail);
    if content.1 <= AT_ONCE {
        return Some(Arc::new(RunFlow::observed(detail)));
    }
    let id = &detail.summary.id;
    let (flows, is_due) = page.flows.look_up(id, content);
    if is_due {
        let (all, journal, id) = (Arc::clone(&page.flows), page.journal(), id.clone());
        tokio::task::spawn_blocking(move || {
            let detail = journal.and_then(|journal| journal.run(&id).ok()).flatten();
            all.found(&id, detail.as_ref());
        });
    }
    flows
}

fn content(detail: &RunDetail) -> Content {
    let results = detail.calls.iter().filter_map(|call| match &call.outcome {
        Some(Ok(text) | Err(text)) => Some(text.len()),
        None => None,
    });
    let arguments = detail.calls.iter().map(|call| call.arguments.len());
    (detail.calls.len(), results.chain(arguments).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_looks_at_a_time_and_few_runs_are_kept() {
        let runs = RunFlows::default();
        let is_due = |id: &str, content| runs.look_up(id, content).1;
        assert!(is_due("a", (1, 10)) && !is_due("a", (1, 10)) && !is_due("a", (2, 20)));
        // It was not found, so that nothing is known of it.
        runs.found("a", None);
        assert!(is_due("a", (2, 20)), "it has changed meanwhile");
        assert_eq!(runs.version(), 1);
        for number in 0..2 * KEPT {
            is_due(&number.to_string(), (1, 10));
        }
        assert_eq!(runs.known.lock().len(), KEPT);
    }
}
