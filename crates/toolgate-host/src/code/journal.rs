//! Writes what a run does to the journal: what has an effect before it happens, the rest a moment later.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolgate_broker::{CallJournal, CallJournalError, PriorRead, ResultOrigin};
use toolgate_sandbox::{CallId, CallRecord, CallState, ProgramFlow, RunEvent};
use toolgate_store::{
    CallDecision, CallEnd, Journal, JournalError, LostCall, NewCall, NewRun, RunEntry, RunState,
};

use super::{graph::RunGraph, value::ToolError};

/// The journal of one run.
#[derive(Debug)]
pub(super) struct RunJournal {
    journal: Arc<dyn Journal>,
    id: String,
    language: String,
    code: String,
    caller: String,
    /// What was read before the run began, as JSON.
    before: String,
    /// The namespace that the run belongs to; empty for none.
    namespace: String,
    /// The calls of the earlier part of a resumed run.
    past: HashMap<CallId, PastCallState>,
    /// Ends the run if the journal cannot be written.
    stop: CancellationToken,
    state: Mutex<JournalState>,
}

/// A call of the earlier part of a resumed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PastCallState {
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) sent: bool,
    /// Whether the script was told that the outcome is unknown.
    pub(super) unknown: bool,
    /// What the script got: a value as JSON, or an error.
    pub(super) answer: Option<Result<String, ToolError>>,
    /// Where the value comes from, if the journal says it.
    pub(super) origin: Option<ResultOrigin>,
}

/// A call whose outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCall {
    /// The number of the call in the run.
    pub number: u64,
    /// The name of the tool.
    pub name: String,
}

#[derive(Debug, Default)]
struct JournalState {
    stage: RunStage,
    /// Whether a call was sent that must not be repeated.
    has_effects: bool,
    bytes: u64,
    /// Whether the code was corrected and the corrected code has not done anything yet.
    code_changed: bool,
    /// The flows of the script, until it does something.
    graph: Option<String>,
    broken: Option<String>,
    unknown: Vec<UnknownCall>,
    /// Calls that were sent, and that the journal has lost.
    lost: Vec<LostCall>,
    under_way: HashMap<CallId, CallUnderWay>,
}

/// How far a run is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum RunStage {
    #[default]
    New,
    Began,
    Ended,
}

/// Whether a call may have reached its server, and what that means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SentState {
    Unsent,
    /// It may be sent again.
    Repeatable,
    /// It must not be sent again.
    Once,
}

/// A call that has not ended.
#[derive(Debug, Clone)]
struct CallUnderWay {
    name: String,
    arguments: String,
    written: bool,
    sent: SentState,
    /// Whether it is one that the journal had lost.
    lost: bool,
}

/// How much of the arguments of an earlier call is told.
const EARLIER_CHARACTERS: usize = 500;
/// The most that one run may write. It protects the disk; no honest run comes near it.
const MAX_BYTES: u64 = 512 * 1024 * 1024;

impl PastCallState {
    /// Whether it is the same call.
    pub(super) fn is(&self, name: &str, arguments: &RawValue) -> bool {
        self.name == name && self.arguments == arguments.get()
    }
}

impl RunJournal {
    /// A journal for a run that begins.
    pub(super) fn new(
        journal: Arc<dyn Journal>,
        id: String,
        language: String,
        code: String,
        caller: String,
        stop: CancellationToken,
    ) -> Self {
        let (past, state) = (HashMap::new(), Mutex::default());
        let (before, namespace) = (String::new(), String::new());
        Self { journal, id, language, code, caller, before, namespace, past, stop, state }
    }

    /// Sets what was read before the run, and its namespace.
    pub(super) fn begins_in(mut self, read: &[PriorRead], namespace: Option<&str>) -> Self {
        self.before = in_journal(read);
        namespace.unwrap_or_default().clone_into(&mut self.namespace);
        self
    }

    /// Adds the calls of the earlier part that the script did not reach again. Their effects have
    /// happened.
    pub(super) fn add_earlier(&self, calls: &mut Vec<CallRecord>) {
        let known: HashSet<CallId> = calls.iter().map(|call| call.id).collect();
        let missing = self.past.iter().filter(|(id, past)| past.sent && !known.contains(id));
        calls.extend(missing.map(|(id, past)| CallRecord {
            id: *id,
            name: past.name.clone(),
            arguments: past.arguments.chars().take(EARLIER_CHARACTERS).collect(),
            state: match &past.answer {
                Some(Ok(_)) => CallState::Completed,
                Some(Err(error)) => CallState::Failed(error.to_string()),
                None => CallState::InFlight,
            },
            started: Duration::ZERO,
            duration: Duration::ZERO,
            result_bytes: 0,
        }));
        calls.sort_by_key(|call| call.id);
    }

    /// The first call of the earlier part that was sent and that the script did not make again, although
    /// it ran to its end. `is_repeatable` says which calls do not matter.
    pub(super) fn unreached(
        &self,
        calls: &[CallRecord],
        is_repeatable: impl Fn(&str, &str) -> bool,
    ) -> Option<String> {
        let known: HashSet<CallId> = calls.iter().map(|call| call.id).collect();
        // What failed may be done in another way.
        let counts = |past: &PastCallState| {
            past.sent && (past.unknown || !matches!(past.answer, Some(Err(_))))
        };
        let missing = self.past.iter().filter(|(id, past)| {
            counts(past) && !known.contains(id) && !is_repeatable(&past.name, &past.arguments)
        });
        let (id, past) = missing.min_by_key(|(id, _)| **id)?;
        let arguments: String = past.arguments.chars().take(EARLIER_CHARACTERS).collect();
        Some(format!("call {id} was {}({arguments}), and it ends without it", past.name))
    }

    /// Continues the journal of a resumed run with these earlier calls.
    pub(super) fn resumes(
        mut self,
        past: HashMap<CallId, PastCallState>,
        lost: Vec<LostCall>,
        code_changed: bool,
    ) -> Self {
        let state = self.state.get_mut();
        // The script makes these calls again without a new entry. That a call was sent must stay
        // known meanwhile, or it could be sent twice.
        state.under_way = past
            .iter()
            .filter(|(_, past)| past.answer.is_none())
            .map(|(call, past)| {
                let (name, arguments) = (past.name.clone(), past.arguments.clone());
                let sent = if past.sent { SentState::Once } else { SentState::Unsent };
                (*call, CallUnderWay { name, arguments, written: true, sent, lost: false })
            })
            .collect();
        self.past = past;
        state.lost = lost;
        state.stage = RunStage::Began;
        state.has_effects = true;
        state.code_changed = code_changed;
        self
    }

    /// The id of the run.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The state of a call when the run resumed.
    pub(super) fn past(&self, call: CallId) -> Option<&PastCallState> {
        self.past.get(&call)
    }

    /// Why the run must stop.
    pub(super) fn broken(&self) -> Option<String> {
        self.state.lock().broken.clone()
    }

    /// The calls whose outcome is unknown.
    pub(super) fn unknown(&self) -> Vec<UnknownCall> {
        let mut unknown = self.state.lock().unknown.clone();
        unknown.sort_by_key(|call| call.number);
        unknown
    }

    /// Whether a call is under way that was not sent.
    pub(super) fn is_unsent(&self, call: CallId) -> bool {
        self.state.lock().under_way.get(&call).is_some_and(|call| call.sent == SentState::Unsent)
    }

    /// Whether a call may be one that was sent and that the journal has lost. A call of the same tool
    /// with other arguments may be one as well, because the time or chance may have made its arguments.
    pub(super) fn may_be_lost(&self, call: CallId, name: &str, arguments: &RawValue) -> bool {
        let mut state = self.state.lock();
        let found = state.lost.iter().position(|lost| lost.is(call, name, arguments.get()));
        let Some(found) = found else {
            return state.lost.iter().any(|lost| lost.may_be(name));
        };
        state.lost.swap_remove(found);
        if let Some(under_way) = state.under_way.get_mut(&call) {
            // The entry says that it was sent, in place of the one that is gone.
            (under_way.lost, under_way.sent, under_way.written) = (true, SentState::Once, false);
        }
        true
    }

    /// Notes that the outcome of a call is unknown and that it is not repeated.
    pub(super) fn is_unknown(&self, number: CallId, name: &str) {
        self.state.lock().unknown.push(UnknownCall { number, name: name.to_owned() });
    }

    /// Stores the data of a media handle.
    pub(super) fn media(&self, handle: &str, data: &str) {
        self.write(data.len(), || self.journal.keep_media(&self.id, handle, data));
    }

    /// Stores the flows of the script with its first new event.
    pub(super) fn flows(&self, flow: &ProgramFlow) {
        if !flow.flows.is_empty() {
            self.state.lock().graph = serde_json::to_string(&RunGraph::of(flow)).ok();
        }
    }

    /// Writes an event of the run.
    pub(super) fn happened(&self, happened: &RunEvent<'_>) {
        let id = &self.id;
        match happened {
            RunEvent::Began(beginning) => {
                let run = NewRun {
                    id: id.clone(),
                    language: self.language.clone(),
                    code: self.code.clone(),
                    session: self.caller.clone(),
                    began: microseconds(beginning.unix),
                    seed: beginning.seed,
                    before: self.before.clone(),
                    namespace: self.namespace.clone(),
                };
                self.write(run.code.len(), || self.journal.write_soon(RunEntry::began(&run)));
                self.state.lock().stage = RunStage::Began;
            }
            RunEvent::Called { id: call, name, arguments } => {
                if self.past.contains_key(call) {
                    // Another call replaces one that failed.
                    self.write(0, || self.journal.forget_end(id, *call).map(|_| ()));
                }
                let (name, arguments) = ((*name).to_owned(), arguments.get().to_owned());
                let (written, sent, lost) = (false, SentState::Unsent, false);
                let under_way = CallUnderWay { name, arguments, written, sent, lost };
                self.state.lock().under_way.insert(*call, under_way);
            }
            RunEvent::Repeated { id: call, .. } => {
                if let Some(past) = self.past.get(call).filter(|past| past.unknown) {
                    self.is_unknown(*call, &past.name);
                }
            }
            RunEvent::Completed { id: call, at, outcome } => {
                let unknown = self.state.lock().unknown.iter().any(|each| each.number == *call);
                let (bytes, end) = match outcome {
                    Ok(value) => (value.get().len(), CallEnd::Returned(value.get())),
                    Err(thrown) => {
                        let (tool, message) = (&thrown.tool, &thrown.message);
                        let end = if unknown {
                            CallEnd::Unknown { tool, message }
                        } else {
                            CallEnd::Threw { tool, message }
                        };
                        (message.len(), end)
                    }
                };
                self.write_call(*call, None);
                let under_way = self.state.lock().under_way.remove(call);
                let entry = RunEntry::answered(id, *call, microseconds(*at), end);
                // The result of a call that only reads can be had again.
                let once = under_way.is_none_or(|under_way| under_way.sent == SentState::Once);
                self.write(bytes, || self.write_entry(entry, once));
            }
            RunEvent::Time { at } => {
                let entry = RunEntry::time(id, microseconds(*at));
                self.write(0, || self.journal.write_soon(entry));
            }
            _ => {}
        }
    }

    /// Writes how the run ended.
    pub(super) fn end(&self, state: RunState, output: &str, error: Option<&str>) {
        if state == RunState::Done {
            self.take_code();
        }
        let under_way: Vec<CallId> = self.state.lock().under_way.keys().copied().collect();
        for call in under_way {
            self.write_call(call, None);
        }
        let mut known = self.state.lock();
        if std::mem::replace(&mut known.stage, RunStage::Ended) == RunStage::New {
            return;
        }
        // Somebody may want to resume the run, or know what became of its effects.
        let now = state != RunState::Done || known.has_effects;
        drop(known);
        // If this fails, the run counts as interrupted.
        let _ = self.write_entry(RunEntry::ended(&self.id, state, output, error), now);
    }

    /// Writes an entry now, or a moment later.
    fn write_entry(&self, entry: RunEntry<'_>, now: bool) -> Result<(), JournalError> {
        if now { self.journal.write(entry) } else { self.journal.write_soon(entry) }
    }

    /// Writes a call: with its decision right before it is sent, or else when it has ended. A call
    /// without an entry has done nothing and is made again by a resumed run.
    fn write_call(&self, call: CallId, decision: Option<CallDecision<'_>>) {
        let (under_way, before) = {
            let mut state = self.state.lock();
            let under_way = state.under_way.get_mut(&call);
            let Some(under_way) =
                under_way.filter(|under_way| decision.is_some() || !under_way.written)
            else {
                return;
            };
            let before = under_way.sent;
            under_way.written = true;
            let sent = match decision {
                Some(CallDecision { sent: true, once: true, .. }) => SentState::Once,
                Some(CallDecision { sent: true, once: false, .. }) => SentState::Repeatable,
                _ => SentState::Unsent,
            };
            under_way.sent = under_way.sent.max(sent);
            let under_way = under_way.clone();
            state.has_effects |= under_way.sent == SentState::Once;
            (under_way, before)
        };
        let CallUnderWay { name, arguments, lost, sent, .. } = &under_way;
        let flow = decision.and_then(|decision| decision.flow).map_or(0, str::len);
        let new = NewCall { number: call, name, arguments, decision, lost: *lost };
        let entry = RunEntry::called(&self.id, &new);
        let is_effect = *sent == SentState::Once;
        let written = self.write(arguments.len() + flow, || self.write_entry(entry, is_effect));
        if !written && let Some(under_way) = self.state.lock().under_way.get_mut(&call) {
            // A call that could not be recorded is not sent.
            under_way.sent = before;
        }
    }

    /// Writes, unless an earlier write failed: after that nothing may happen. `false` if nothing was written.
    fn write(&self, bytes: usize, work: impl FnOnce() -> Result<(), JournalError>) -> bool {
        self.take_code();
        let mut state = self.state.lock();
        if state.broken.is_some() {
            return false;
        }
        state.bytes = state.bytes.saturating_add(bytes as u64);
        let problem = if state.bytes > MAX_BYTES {
            Some(format!("it would write more than {MAX_BYTES} bytes into the journal"))
        } else {
            work().err().map(|error| error.to_string())
        };
        let is_written = problem.is_none();
        if !is_written {
            state.broken = problem;
            self.stop.cancel();
        }
        is_written
    }

    /// Stores corrected code, and the flows of the script, with the first new event. Until then the
    /// earlier calls may turn out not to match them.
    fn take_code(&self) {
        let mut state = self.state.lock();
        let changed = std::mem::take(&mut state.code_changed);
        let graph = state.graph.take();
        drop(state);
        if changed {
            self.write(self.code.len(), || self.journal.code_changed(&self.id, &self.code));
        }
        if let Some(graph) = graph {
            let entry = RunEntry::flows(&self.id, &graph);
            self.write(graph.len(), || self.journal.write_soon(entry));
        }
    }
}

impl CallJournal for RunJournal {
    fn decided(&self, call: u64, decision: CallDecision<'_>) -> Result<(), CallJournalError> {
        if !self.state.lock().under_way.contains_key(&call) {
            return Err(CallJournalError("it is over".to_owned()));
        }
        self.write_call(call, Some(decision));
        self.broken().map_or(Ok(()), |problem| Err(CallJournalError(problem)))
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), CallJournalError>> {
        let journal = Arc::clone(&self.journal);
        Box::pin(async move {
            let synced = tokio::task::spawn_blocking(move || journal.sync()).await;
            let problem = match synced {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            self.state.lock().broken.get_or_insert_with(|| problem.clone());
            self.stop.cancel();
            Err(CallJournalError(problem))
        })
    }
}

impl Drop for RunJournal {
    fn drop(&mut self) {
        if self.state.get_mut().stage != RunStage::Ended {
            self.end(RunState::Failed, "", Some("nobody waited for its end"));
        }
    }
}

/// What was read before a run, in the format of the journal.
pub(super) fn in_journal(read: &[PriorRead]) -> String {
    if read.is_empty() { String::new() } else { serde_json::to_string(read).unwrap_or_default() }
}

fn microseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use toolgate_sandbox::{RunSeed, ToolException};
    use toolgate_store::Store;

    use super::*;

    fn recorder(journal: &Arc<dyn Journal>) -> RunJournal {
        let stop = CancellationToken::new();
        let (id, code) = ("run_1".to_owned(), "code".to_owned());
        RunJournal::new(
            Arc::clone(journal),
            id,
            "python".to_owned(),
            code,
            "local".to_owned(),
            stop,
        )
    }

    fn arguments() -> Box<RawValue> {
        RawValue::from_string("{}".to_owned()).unwrap()
    }

    fn sent(journal: &dyn Journal) -> Vec<bool> {
        journal.history("run_1").unwrap().unwrap().calls.iter().map(|call| call.sent).collect()
    }

    const SENT: CallDecision<'_> = CallDecision {
        verdict: "allow",
        rule: "",
        sent: true,
        once: true,
        flow: None,
        origin: Some(""),
    };

    #[test]
    fn a_call_that_could_not_be_recorded_is_not_of_unknown_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Store::new(folder.path().to_owned()).journal().unwrap();
        let arguments = arguments();
        let run = recorder(&journal);
        run.happened(&RunEvent::Began(RunSeed::default()));
        run.happened(&RunEvent::Called { id: 0, name: "mail_send", arguments: &arguments });
        run.state.lock().bytes = MAX_BYTES;
        assert!(run.decided(0, SENT).is_err(), "it is not sent");
        assert!(run.is_unsent(0));
    }

    #[test]
    fn what_an_earlier_part_did_is_told_though_the_script_did_not_reach_it() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Store::new(folder.path().to_owned()).journal().unwrap();
        let past = |name: &str, sent, answer| PastCallState {
            name: name.to_owned(),
            arguments: "{}".to_owned(),
            sent,
            unknown: false,
            answer,
            origin: None,
        };
        let failed = Err(ToolError::new("no"));
        let past = HashMap::from([
            (0, past("a_done", true, Some(Ok("1".to_owned())))),
            (1, past("b_failed", true, Some(failed))),
            (2, past("c_open", true, None)),
            (3, past("d_unsent", false, None)),
        ]);
        let resumed = recorder(&journal).resumes(past, Vec::new(), true);
        let mut calls = Vec::new();
        resumed.add_earlier(&mut calls);
        let told: Vec<_> = calls.iter().map(|call| (&*call.name, &call.state)).collect();
        assert_eq!(
            told,
            [
                ("a_done", &CallState::Completed),
                ("b_failed", &CallState::Failed("no".to_owned())),
                ("c_open", &CallState::InFlight),
            ]
        );
        // Not twice.
        resumed.add_earlier(&mut calls);
        assert_eq!(calls.len(), 3);
    }

    #[test]
    fn a_call_is_recorded_before_it_is_sent_and_stays_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Store::new(folder.path().to_owned()).journal().unwrap();
        let arguments = arguments();
        let called = RunEvent::Called { id: 0, name: "mail_send", arguments: &arguments };
        let first = recorder(&journal);
        first.happened(&RunEvent::Began(RunSeed::default()));
        first.happened(&called);
        assert_eq!(sent(&*journal), [false; 0], "nothing has happened yet");
        assert!(first.is_unsent(0));
        first.decided(0, SENT).unwrap();
        assert!(!first.is_unsent(0));
        assert_eq!(sent(&*journal), [true]);

        // Killed here; whoever goes on comes to the same call.
        std::mem::forget(first);
        let past = PastCallState {
            name: "mail_send".to_owned(),
            arguments: "{}".to_owned(),
            sent: true,
            unknown: false,
            answer: None,
            origin: None,
        };
        let second = recorder(&journal).resumes(HashMap::from([(0, past)]), Vec::new(), false);
        second.is_unknown(0, "mail_send");
        let thrown = ToolException::new("mail_send", "unknown");
        let at = std::time::Duration::ZERO;
        second.happened(&RunEvent::Completed { id: 0, at, outcome: &Err(thrown) });
        assert_eq!(sent(&*journal), [true]);
        assert!(second.decided(0, SENT).is_err(), "it is over");
    }
}
