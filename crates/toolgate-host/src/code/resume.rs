//! Restores a run from its journal.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::value::RawValue;
use thiserror::Error;
use toolgate_broker::{MadeBy, PriorRead, ResultOrigin, SessionContext};
use toolgate_sandbox::{
    CallId, JournalEvent, JournaledCall, RunJournalRecord, RunSeed, ToolException,
};
use toolgate_store::{
    Journal, JournalError, LostCall, NewRun, PastCallRow, RunEntry, RunHistory, RunState,
};

use super::{
    journal::{PastCallState, in_journal},
    value::ToolError,
};

/// How a run resumes.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    /// Corrected code. Its first calls must be those that were made.
    pub code: Option<String>,
    /// What to do with calls whose outcome is unknown.
    pub unknown: UnknownCalls,
}

/// What to do with calls that were sent and whose outcome is unknown. Calls that are safe to
/// repeat, as their servers say, are repeated in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownCalls {
    /// The script gets an error.
    #[default]
    Report,
    /// The calls are repeated. Only a person can choose this.
    Repeat,
}

/// Why a run does not resume. Nothing was done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// No run has this id, or it belongs to another caller.
    #[error("There is no run `{0}`, or no longer.")]
    Unknown(String),
    /// The run has not ended.
    #[error("Run `{0}` is still running.")]
    Running(String),
    /// The run has completed.
    #[error("Run `{0}` has run to its end; there is nothing to resume.")]
    Done(String),
    /// The journal of the run is unreadable.
    #[error("Run `{0}` cannot be resumed: its journal is damaged.")]
    Damaged(String),
    /// The component of its language was removed.
    #[error(
        "The run is written in `{0}`, which does not exist here: `toolgate engines add` adds a language."
    )]
    Language(String),
    /// There is no journal.
    #[error("Runs are not kept here, so that none can be resumed.")]
    NotKept,
    /// The journal cannot be used.
    #[error("The run cannot be resumed: {0}")]
    Journal(String),
}

/// A run, ready to resume.
#[derive(Debug)]
pub(super) struct ResumedRun {
    pub(super) language: String,
    pub(super) code: String,
    /// The identity that the run belongs to.
    pub(super) caller: String,
    pub(super) history: RunJournalRecord,
    pub(super) past: HashMap<CallId, PastCallState>,
    /// Calls that were sent, and that the journal has lost.
    pub(super) lost: Vec<LostCall>,
    pub(super) earlier: EarlierRun,
}

/// What a run has from its earlier part.
#[derive(Debug, Default)]
pub(super) struct EarlierRun {
    /// The data of media handles.
    pub(super) media: Vec<(String, String)>,
    /// What was read before.
    pub(super) before: Vec<PriorRead>,
    /// The identity that began the run; `None` for the caller who runs it.
    pub(super) owner: Option<Arc<str>>,
    /// The script that the run began with.
    pub(super) first_code: Option<String>,
}

impl From<JournalError> for ResumeError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error.to_string())
    }
}

/// Takes over a run, so that nobody else resumes it. A person at a shell can take over any run;
/// others only their own, in the same namespace. `is_repeatable` says whether a call can be made
/// twice.
pub(super) fn take(
    journal: &dyn Journal,
    id: &str,
    (session, namespace): (&SessionContext, Option<&str>),
    resume: &Resume,
    is_repeatable: &dyn Fn(&str, &str) -> bool,
) -> Result<ResumedRun, ResumeError> {
    let caller = session.caller();
    let is_theirs = |run: &NewRun| {
        let is_own =
            run.session == *caller.identity && run.namespace == namespace.unwrap_or_default();
        caller.made_by == MadeBy::Person || is_own
    };
    let known = journal.history(id)?;
    if known.as_ref().map_or_else(|| journal.is_lost(id), |it| it.state == RunState::Damaged) {
        return Err(ResumeError::Damaged(id.to_owned()));
    }
    let known = known.filter(|known| is_theirs(&known.run));
    let state = match known.map(|known| known.state) {
        None => return Err(ResumeError::Unknown(id.to_owned())),
        Some(RunState::Done) => return Err(ResumeError::Done(id.to_owned())),
        Some(state) => state,
    };
    if !journal.resume_run(id)? {
        return Err(ResumeError::Running(id.to_owned()));
    }
    let run = read(journal, id, state, resume.unknown, is_repeatable)
        .and_then(|run| after_reading(journal, id, session, resume, run));
    if let Err(error) = &run {
        // Others can resume it again.
        let error = error.to_string();
        journal.write(RunEntry::ended(id, RunState::Failed, "", Some(&error)))?;
    }
    run
}

fn read(
    journal: &dyn Journal,
    id: &str,
    state: RunState,
    unknown: UnknownCalls,
    is_repeatable: &dyn Fn(&str, &str) -> bool,
) -> Result<ResumedRun, ResumeError> {
    let missing = || ResumeError::Unknown(id.to_owned());
    let mut known = journal.history(id)?.ok_or_else(missing)?;
    known.state = state;
    if unknown == UnknownCalls::Repeat {
        journal.forget_lost(id)?;
    }
    for number in to_be_made_again(&known, unknown, is_repeatable) {
        journal.forget_end(id, number)?;
    }
    known = journal.history(id)?.ok_or_else(missing)?;
    let past = known.calls.iter().map(|call| (call.number, past_state(call))).collect();
    let lost = std::mem::take(&mut known.lost);
    let media = journal.media(id)?;
    let damaged = || ResumeError::Damaged(id.to_owned());
    let language = std::mem::take(&mut known.run.language);
    let code = std::mem::take(&mut known.run.code);
    let first_code = known.first_code.take().or_else(|| Some(code.clone()));
    let caller = std::mem::take(&mut known.run.session);
    let before = match known.run.before.as_str() {
        "" => Vec::new(),
        text => serde_json::from_str(text).map_err(|_| damaged())?,
    };
    let history = history(known).ok_or_else(damaged)?;
    let owner = Some(caller.as_str().into());
    let earlier = EarlierRun { media, before, owner, first_code };
    Ok(ResumedRun { language, code, caller, history, past, lost, earlier })
}

/// Adds what the caller's session has read, because the caller may have written the corrected code.
fn after_reading(
    journal: &dyn Journal,
    id: &str,
    session: &SessionContext,
    resume: &Resume,
    mut run: ResumedRun,
) -> Result<ResumedRun, ResumeError> {
    let here = session.id();
    let mut all: Vec<PriorRead> = Vec::new();
    if resume.code.as_ref().is_some_and(|new| *new != run.code) {
        run.earlier.before.extend(read_by_the_author(session, &run));
    }
    // Only one entry a tool for sessions that are gone, so that the list does not grow with each
    // resume.
    for known in run.earlier.before.into_iter().filter(|known| known.session != *here) {
        match all.iter_mut().find(|other| other.tool == known.tool) {
            Some(other) => other.labels = other.labels.union(known.labels),
            None => all.push(known),
        }
    }
    all.extend(session.read());
    journal.read_before(id, &in_journal(&all))?;
    run.earlier.before = all;
    Ok(run)
}

/// The author of corrected code may have read the results of the script in another session.
fn read_by_the_author(session: &SessionContext, run: &ResumedRun) -> Vec<PriorRead> {
    if session.caller().made_by == MadeBy::Person {
        return Vec::new();
    }
    let here = session.read();
    let is_known_here = |origin: &ResultOrigin| {
        let mut same = here.iter().filter(|read| read.tool == origin.tool);
        same.any(|read| read.labels.is_superset(origin.labels))
    };
    let answer = run.past.values().filter(|past| past.sent && past.answer.is_some());
    answer
        .map(|past| past.origin.clone().unwrap_or_else(|| ResultOrigin::unknown(&past.name)))
        .filter(|origin| !origin.labels.is_empty() && !is_known_here(origin))
        .map(|ResultOrigin { tool, labels }| PriorRead { session: "".into(), tool, labels })
        .collect()
}

/// The calls to repeat: the failure that the run ended with, if it is safe to retry, and what a
/// person wants to be repeated.
fn to_be_made_again(
    known: &RunHistory,
    unknown: UnknownCalls,
    is_repeatable: &dyn Fn(&str, &str) -> bool,
) -> Vec<u64> {
    let mut again: Vec<u64> = Vec::new();
    if unknown == UnknownCalls::Repeat {
        let lost = |call: &&PastCallRow| call.unknown || (call.sent && call.outcome.is_none());
        again.extend(known.calls.iter().filter(lost).map(|call| call.number));
    }
    let last = known.events.last().filter(|_| known.state == RunState::Failed);
    let failure = last.and_then(|event| {
        let call = known.calls.iter().find(|call| Some(call.number) == event.call)?;
        matches!(call.outcome, Some(Err(_))).then_some(call)
    });
    if let Some(call) = failure {
        // The calls that followed the failure would not follow a success.
        let answered = known.calls.iter().any(|later| later.number > call.number && later.sent);
        let harmless = !call.sent || is_repeatable(&call.name, &call.arguments);
        if harmless && !answered {
            again.push(call.number);
        }
    }
    again
}

fn past_state(call: &PastCallRow) -> PastCallState {
    let origin = call.origin.as_deref().map(serde_json::from_str);
    PastCallState {
        name: call.name.clone(),
        arguments: call.arguments.clone(),
        sent: call.sent,
        unknown: call.unknown,
        answer: call
            .outcome
            .clone()
            .map(|outcome| outcome.map_err(|(_, stored)| ToolError::of_stored(stored))),
        origin: origin.map(|it| it.unwrap_or_else(|_| ResultOrigin::unknown(&call.name))),
    }
}

fn history(known: RunHistory) -> Option<RunJournalRecord> {
    let beginning = RunSeed { unix: Duration::from_micros(known.run.began), seed: known.run.seed };
    let calls = known.calls.into_iter().map(past_call).collect::<Option<Vec<_>>>()?;
    let events = known
        .events
        .into_iter()
        .map(|event| {
            let at = Duration::from_micros(event.at);
            event.call.map_or(JournalEvent::Time { at }, |id| JournalEvent::Completed { id, at })
        })
        .collect();
    Some(RunJournalRecord { beginning, calls, events })
}

fn past_call(call: PastCallRow) -> Option<JournaledCall> {
    let outcome = match call.outcome {
        None => None,
        Some(Ok(value)) => Some(Ok(RawValue::from_string(value).ok()?)),
        Some(Err((tool, stored))) => {
            let ToolError { message, content } = ToolError::of_stored(stored);
            Some(Err(ToolException { tool, message, content }))
        }
    };
    let binds = match &outcome {
        None => call.sent,
        Some(outcome) => outcome.is_ok(),
    };
    let arguments = RawValue::from_string(call.arguments).ok()?;
    Some(JournaledCall { id: call.number, name: call.name, arguments, outcome, binds })
}
