//! Runs that somebody began at the page. They go on in the background, and end with the page.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::broadcast::error::RecvError, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use toolgate_broker::{Caller, SessionContext};
use toolgate_host::{HostEvent, Resume, ToolSession, UnknownCalls};
use toolgate_sandbox::Language;
use toolgate_upstream::CallOptions;

use crate::PageState;

/// The runs of the page that have not ended, each with what stops it.
#[derive(Debug, Default)]
pub(crate) struct PageRuns(Mutex<HashMap<String, CancellationToken>>);

/// What is to be run.
#[derive(Debug, Clone)]
pub(crate) enum PageRun {
    /// A script.
    Script(String, Language),
    /// The rest of a run. Calls of unknown outcome are not repeated.
    Resumed(String),
}

/// More runs at once than this are refused.
const MOST: usize = 8;

impl PageRuns {
    /// Stops a run. `false` if it is none of the page, or has ended.
    pub(crate) fn stop(&self, id: &str) -> bool {
        let runs = self.0.lock();
        runs.get(id).inspect(|run| run.cancel()).is_some()
    }

    /// Whether a run of the page goes on.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.0.lock().contains_key(id)
    }
}

/// A session of the person at the page.
pub(crate) fn session(page: &PageState) -> ToolSession {
    page.source.host().session_of(SessionContext::new(Caller::person()))
}

/// Begins a run. Returns its id when it has begun, or why it has not.
pub(crate) async fn begin(page: &Arc<PageState>, what: PageRun) -> Result<String, String> {
    if page.runs.0.lock().len() >= MOST {
        return Err(format!("{MOST} runs of the page have not ended; wait for one, or stop one"));
    }
    let session = session(page);
    let own = Arc::clone(session.context().id());
    let mut events = page.source.host().events().subscribe();
    let stop = page.streams.stop.child_token();
    let options = CallOptions { cancel: stop.clone(), ..CallOptions::default() };
    let running = Arc::clone(page);
    let mut work = tokio::spawn(async move {
        let ended = run(&session, what, options).await;
        // Whoever began it may not have learnt its id yet.
        if let Ok(Some(id)) = &ended {
            running.runs.0.lock().remove(id);
        }
        ended
    });
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Ok(HostEvent::RunStarted { run, session }) if session == own => {
                    let id = run.to_string();
                    page.runs.0.lock().insert(id.clone(), stop);
                    stored(page, &id, &work).await;
                    let (page, ended) = (Arc::clone(page), id.clone());
                    tokio::spawn(async move {
                        let _ = work.await;
                        page.runs.0.lock().remove(&ended);
                    });
                    return Ok(id);
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Err("toolgate stops".to_owned()),
            },
            ended = &mut work => {
                return match ended {
                    Ok(Ok(Some(id))) => Ok(id),
                    Ok(Ok(None)) => Err("the run was not stored".to_owned()),
                    Ok(Err(why)) => Err(why),
                    Err(error) => Err(error.to_string()),
                };
            }
        }
    }
}

/// Waits until the journal has the run, so that it can be shown. A worker is found for it first.
async fn stored<T>(page: &Arc<PageState>, id: &str, work: &JoinHandle<T>) {
    const LOOK: Duration = Duration::from_millis(10);
    while !work.is_finished() {
        let (journal, id) = (page.journal(), id.to_owned());
        let look = move || journal.is_none_or(|journal| !matches!(journal.run(&id), Ok(None)));
        if tokio::task::spawn_blocking(look).await.unwrap_or(true) {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Runs to the end. Returns the id, if the run has one.
async fn run(
    session: &ToolSession,
    what: PageRun,
    options: CallOptions,
) -> Result<Option<String>, String> {
    const OFF: &str = "scripts are switched off: codeMode.enabled is false";
    match what {
        PageRun::Script(code, language) => {
            let run = session.run_code(&code, language, options).await.ok_or(OFF)?;
            if run.id.is_none() && run.is_error { Err(run.closing) } else { Ok(run.id) }
        }
        PageRun::Resumed(id) => {
            let resume = Resume { code: None, unknown: UnknownCalls::Report };
            let run = session.resume_run(&id, resume, options).await.ok_or(OFF)?;
            run.map(|run| run.id).map_err(|error| error.to_string())
        }
    }
}
