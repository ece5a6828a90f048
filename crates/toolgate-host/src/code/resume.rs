//! From the journal of a run to a run that goes on.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::value::RawValue;
use thiserror::Error;
use toolgate_broker::{MadeBy, ReadBefore, ResultOrigin, SessionContext};
use toolgate_sandbox::{
    CallId, JournalEvent, JournaledCall, Language, RunJournalRecord, RunSeed, ToolException,
};
use toolgate_store::{Journal, JournalError, NewRun, PastCallRow, RunHistory, RunState};

use super::record::{PastState, in_journal};

/// How a run is to go on.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    /// Other code than before; its calls have to be those that were made.
    pub code: Option<String>,
    /// What is done about calls of which nobody knows what came of them.
    pub unknown: UnknownCalls,
}

/// What is done about calls that were sent, and of which nobody knows what came of them. Those that can
/// be repeated without harm, as their servers say, are made again in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownCalls {
    /// The script is told so.
    #[default]
    Report,
    /// They are made again. Only a person can want that.
    Repeat,
}

/// Why a run does not go on. Nothing was done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NotResumed {
    /// There is none of this id, or it is somebody else's.
    #[error("There is no run `{0}`, or no longer.")]
    Unknown(String),
    /// It runs.
    #[error("Run `{0}` is still running.")]
    Running(String),
    /// It has nothing more to do.
    #[error("Run `{0}` has run to its end; there is nothing to resume.")]
    Done(String),
    /// What was written down of it cannot be read.
    #[error("Run `{0}` cannot be resumed: what was written down of it is damaged.")]
    Damaged(String),
    /// There is no journal here.
    #[error("Runs are not kept here, so that none can be resumed.")]
    NotKept,
    /// The journal cannot be used.
    #[error("The run cannot be resumed: {0}")]
    Journal(String),
}

/// A run, ready to go on.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) language: Language,
    pub(super) code: String,
    /// Whose it is.
    pub(super) caller: String,
    pub(super) history: RunJournalRecord,
    pub(super) past: HashMap<CallId, PastState>,
    pub(super) kept: Kept,
}

/// What a run has from before.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// What handles stand for.
    pub(super) media: Vec<(String, String)>,
    /// What was read before it.
    pub(super) before: Vec<ReadBefore>,
    /// Who began it; who runs it now, where unset.
    pub(super) owner: Option<Arc<str>>,
    /// The script that it began with, where it has begun.
    pub(super) first_code: Option<String>,
}

impl From<JournalError> for NotResumed {
    fn from(error: JournalError) -> Self {
        Self::Journal(error.to_string())
    }
}

/// Takes a run over, so that nobody else does. A person at a shell can take over any; others their own, of
/// the same namespace. `is_harmless` says whether a call can be made twice.
pub(super) fn take(
    journal: &Journal,
    id: &str,
    (session, namespace): (&SessionContext, Option<&str>),
    resume: &Resume,
    is_harmless: &dyn Fn(&str, &str) -> bool,
) -> Result<Taken, NotResumed> {
    let caller = session.caller();
    let is_theirs = |run: &NewRun| {
        let is_own = run.session == *caller.identity && run.place == namespace.unwrap_or_default();
        caller.made_by == MadeBy::Person || is_own
    };
    let known = journal.history(id)?.filter(|known| is_theirs(&known.run));
    let state = match known.map(|known| known.state) {
        None => return Err(NotResumed::Unknown(id.to_owned())),
        Some(RunState::Done) => return Err(NotResumed::Done(id.to_owned())),
        Some(state) => state,
    };
    if !journal.resume_run(id)? {
        return Err(NotResumed::Running(id.to_owned()));
    }
    let taken = read(journal, id, state, resume.unknown, is_harmless)
        .and_then(|taken| after_reading(journal, id, session, resume, taken));
    if let Err(error) = &taken {
        // It is nobody's again.
        journal.end_run(id, RunState::Failed, "", Some(&error.to_string()))?;
    }
    taken
}

fn read(
    journal: &Journal,
    id: &str,
    state: RunState,
    unknown: UnknownCalls,
    is_harmless: &dyn Fn(&str, &str) -> bool,
) -> Result<Taken, NotResumed> {
    let missing = || NotResumed::Unknown(id.to_owned());
    let mut known = journal.history(id)?.ok_or_else(missing)?;
    known.state = state;
    for number in to_be_made_again(&known, unknown, is_harmless) {
        journal.forget_end(id, number)?;
    }
    known = journal.history(id)?.ok_or_else(missing)?;
    let past = known.calls.iter().map(|call| (call.number, past_state(call))).collect();
    let media = journal.media(id)?;
    let damaged = || NotResumed::Damaged(id.to_owned());
    let language = match known.run.language.as_str() {
        "typescript" => Language::TypeScript,
        "python" => Language::Python,
        _ => return Err(damaged()),
    };
    let code = std::mem::take(&mut known.run.code);
    let first_code = known.first_code.take().or_else(|| Some(code.clone()));
    let caller = std::mem::take(&mut known.run.session);
    let before = match known.run.before.as_str() {
        "" => Vec::new(),
        text => serde_json::from_str(text).map_err(|_| damaged())?,
    };
    let history = history(known).ok_or_else(damaged)?;
    let owner = Some(caller.as_str().into());
    let kept = Kept { media, before, owner, first_code };
    Ok(Taken { language, code, caller, history, past, kept })
}

/// Whoever has a run go on has read what is in their session, and may have written other code.
fn after_reading(
    journal: &Journal,
    id: &str,
    session: &SessionContext,
    resume: &Resume,
    mut taken: Taken,
) -> Result<Taken, NotResumed> {
    let here = session.id();
    let mut all: Vec<ReadBefore> = Vec::new();
    if resume.code.as_ref().is_some_and(|new| *new != taken.code) {
        taken.kept.before.extend(read_by_the_author(session, &taken));
    }
    // Of sessions that are gone, each tool once: so it does not grow with each time.
    for known in taken.kept.before.into_iter().filter(|known| known.session != *here) {
        match all.iter_mut().find(|other| other.tool == known.tool) {
            Some(other) => other.labels = other.labels.union(known.labels),
            None => all.push(known),
        }
    }
    all.extend(session.read());
    journal.read_before(id, &in_journal(&all))?;
    taken.kept.before = all;
    Ok(taken)
}

/// Whoever corrects a script may have read what it was told, in a session that is not this one.
fn read_by_the_author(session: &SessionContext, taken: &Taken) -> Vec<ReadBefore> {
    if session.caller().made_by == MadeBy::Person {
        return Vec::new();
    }
    let here = session.read();
    let is_known_here = |origin: &ResultOrigin| {
        let mut same = here.iter().filter(|read| read.tool == origin.tool);
        same.any(|read| read.labels.is_superset(origin.labels))
    };
    let told = taken.past.values().filter(|past| past.sent && past.told.is_some());
    told.map(|past| past.origin.clone().unwrap_or_else(|| ResultOrigin::unknown(&past.name)))
        .filter(|origin| !origin.labels.is_empty() && !is_known_here(origin))
        .map(|ResultOrigin { tool, labels }| ReadBefore { session: "".into(), tool, labels })
        .collect()
}

/// The calls whose end is forgotten: the failure that the run ended with, where it can be tried again
/// without harm, and what a person wants to be repeated.
fn to_be_made_again(
    known: &RunHistory,
    unknown: UnknownCalls,
    is_harmless: &dyn Fn(&str, &str) -> bool,
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
        // What the script did in answer to the failure would not fit a success.
        let answered = known.calls.iter().any(|later| later.number > call.number && later.sent);
        let harmless = !call.sent || is_harmless(&call.name, &call.arguments);
        if harmless && !answered {
            again.push(call.number);
        }
    }
    again
}

fn past_state(call: &PastCallRow) -> PastState {
    let origin = call.origin.as_deref().map(serde_json::from_str);
    PastState {
        name: call.name.clone(),
        arguments: call.arguments.clone(),
        sent: call.sent,
        unknown: call.unknown,
        told: call.outcome.clone().map(|outcome| outcome.map_err(|(_, message)| message)),
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
        Some(Err((tool, message))) => Some(Err(ToolException { tool, message })),
    };
    let binds = match &outcome {
        None => call.sent,
        Some(outcome) => outcome.is_ok(),
    };
    let arguments = RawValue::from_string(call.arguments).ok()?;
    Some(JournaledCall { id: call.number, name: call.name, arguments, outcome, binds })
}
