//! What a run does and is told, in the journal before it happens.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolgate_broker::{Decided, ReadBefore, ResultOrigin, RunLedger};
use toolgate_sandbox::{CallId, Language, RunEvent};
use toolgate_store::{CallDecision, CallEnd, Journal, JournalError, NewCall, NewRun, RunState};

/// Who writes down one run.
#[derive(Debug)]
pub(super) struct Recorder {
    journal: Arc<Journal>,
    id: String,
    language: Language,
    code: String,
    caller: String,
    /// What was read before it began, as JSON.
    before: String,
    /// The namespace that it belongs to; empty for none.
    place: String,
    /// The calls of an earlier run: whether they may have reached their servers.
    past: HashMap<CallId, PastState>,
    /// Ends the run where it cannot be written down.
    stop: CancellationToken,
    state: Mutex<State>,
}

/// What is known of a call of an earlier run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PastState {
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) sent: bool,
    /// Whether the script was told that nobody knows what came of it.
    pub(super) unknown: bool,
    /// What the script was told of it: a value as JSON, or why there is none.
    pub(super) told: Option<Result<String, String>>,
    /// Where that comes from, where it was written down.
    pub(super) origin: Option<ResultOrigin>,
}

/// A call of which nobody knows what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCall {
    /// Its number in the run.
    pub number: u64,
    /// The tool.
    pub name: String,
}

#[derive(Debug, Default)]
struct State {
    began: bool,
    ended: bool,
    bytes: u64,
    /// Other code, until something happens that it did.
    code_changed: bool,
    broken: Option<String>,
    unknown: Vec<UnknownCall>,
    /// The calls under way.
    made: HashMap<CallId, Made>,
}

/// A call under way.
#[derive(Debug, Clone)]
struct Made {
    name: String,
    arguments: String,
    written: bool,
    /// Whether it may have reached its server.
    sent: bool,
}

/// What one run may write. It is there to protect the disk; no honest run comes near it.
const MAX_BYTES: u64 = 512 * 1024 * 1024;

impl PastState {
    /// Whether it is the same call.
    pub(super) fn is(&self, name: &str, arguments: &RawValue) -> bool {
        self.name == name && self.arguments == arguments.get()
    }
}

impl Recorder {
    /// For a run that begins.
    pub(super) fn new(
        journal: Arc<Journal>,
        id: String,
        language: Language,
        code: String,
        caller: String,
        stop: CancellationToken,
    ) -> Self {
        let (past, state) = (HashMap::new(), Mutex::default());
        let (before, place) = (String::new(), String::new());
        Self { journal, id, language, code, caller, before, place, past, stop, state }
    }

    /// After this was read.
    pub(super) fn after(mut self, read: &[ReadBefore]) -> Self {
        self.before = in_journal(read);
        self
    }

    /// In this namespace.
    pub(super) fn within(mut self, namespace: Option<&str>) -> Self {
        namespace.unwrap_or_default().clone_into(&mut self.place);
        self
    }

    /// For a run that goes on, with these calls behind it.
    pub(super) fn going_on(mut self, past: HashMap<CallId, PastState>, code_changed: bool) -> Self {
        let state = self.state.get_mut();
        // The script comes to these again, and nothing more is said of it. That one was sent must not be
        // forgotten meanwhile, or it could be sent twice.
        state.made = past
            .iter()
            .filter(|(_, past)| past.told.is_none())
            .map(|(call, past)| {
                let (name, arguments) = (past.name.clone(), past.arguments.clone());
                (*call, Made { name, arguments, written: true, sent: past.sent })
            })
            .collect();
        self.past = past;
        state.began = true;
        state.code_changed = code_changed;
        self
    }

    /// The run's id.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// What was known of a call when the run went on.
    pub(super) fn past(&self, call: CallId) -> Option<&PastState> {
        self.past.get(&call)
    }

    /// Why nothing more may happen in this run.
    pub(super) fn broken(&self) -> Option<String> {
        self.state.lock().broken.clone()
    }

    /// The calls of which nobody knows what came of them.
    pub(super) fn unknown(&self) -> Vec<UnknownCall> {
        let mut unknown = self.state.lock().unknown.clone();
        unknown.sort_by_key(|call| call.number);
        unknown
    }

    /// Whether a call is under way that was not sent.
    pub(super) fn is_unsent(&self, call: CallId) -> bool {
        self.state.lock().made.get(&call).is_some_and(|made| !made.sent)
    }

    /// Notes that nobody knows what came of a call, and that it is not repeated.
    pub(super) fn is_unknown(&self, number: CallId, name: &str) {
        self.state.lock().unknown.push(UnknownCall { number, name: name.to_owned() });
    }

    /// Keeps what a handle stands for.
    pub(super) fn media(&self, handle: &str, data: &str) {
        self.write(data.len(), || self.journal.keep_media(&self.id, handle, data));
    }

    /// Writes down what happens.
    pub(super) fn happened(&self, happened: &RunEvent<'_>) {
        let id = &self.id;
        match happened {
            RunEvent::Began(beginning) => {
                let run = NewRun {
                    id: id.clone(),
                    language: language_name(self.language).to_owned(),
                    code: self.code.clone(),
                    session: self.caller.clone(),
                    began: micros(beginning.unix),
                    seed: beginning.seed,
                    before: self.before.clone(),
                    place: self.place.clone(),
                };
                self.write(run.code.len(), || self.journal.begin_run(&run));
                self.state.lock().began = true;
            }
            RunEvent::Called { id: call, name, arguments } => {
                if self.past.contains_key(call) {
                    // Another call in the place of one that failed.
                    self.write(0, || self.journal.forget_end(id, *call).map(|_| ()));
                }
                let (name, arguments) = ((*name).to_owned(), arguments.get().to_owned());
                let made = Made { name, arguments, written: false, sent: false };
                self.state.lock().made.insert(*call, made);
            }
            RunEvent::Repeated { id: call } => {
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
                self.write_made(*call, None);
                self.state.lock().made.remove(call);
                self.write(bytes, || self.journal.call_ended(id, *call, micros(*at), end));
            }
            RunEvent::Time { at } => self.write(0, || self.journal.time_told(id, micros(*at))),
            _ => {}
        }
    }

    /// Writes down how the run ended.
    pub(super) fn end(&self, state: RunState, output: &str, error: Option<&str>) {
        if state == RunState::Done {
            self.take_code();
        }
        let made: Vec<CallId> = self.state.lock().made.keys().copied().collect();
        for call in made {
            self.write_made(call, None);
        }
        let mut known = self.state.lock();
        known.ended = true;
        if !known.began {
            return;
        }
        drop(known);
        // Where it cannot be written, the run is one that was interrupted.
        let _ = self.journal.end_run(&self.id, state, output, error);
    }

    /// Writes down a call that was made: together with what was decided of it, right before it is sent, or
    /// else when it is over. Until then it has done nothing, and whoever goes on with the run makes it anew.
    fn write_made(&self, call: CallId, decision: Option<CallDecision<'_>>) {
        let made = {
            let mut state = self.state.lock();
            let made = state.made.get_mut(&call);
            let Some(made) = made.filter(|made| decision.is_some() || !made.written) else {
                return;
            };
            made.written = true;
            made.sent |= decision.is_some_and(|decision| decision.sent);
            made.clone()
        };
        let Made { name, arguments, .. } = &made;
        let flow = decision.and_then(|decision| decision.flow).map_or(0, str::len);
        let new = NewCall { number: call, name, arguments, decision };
        self.write(arguments.len() + flow, || self.journal.call_made(&self.id, &new));
    }

    /// Writes, unless an earlier write failed: nothing may happen after that.
    fn write(&self, bytes: usize, work: impl FnOnce() -> Result<(), JournalError>) {
        self.take_code();
        let mut state = self.state.lock();
        if state.broken.is_some() {
            return;
        }
        state.bytes = state.bytes.saturating_add(bytes as u64);
        let problem = if state.bytes > MAX_BYTES {
            Some(format!("it would write more than {MAX_BYTES} bytes into the journal"))
        } else {
            work().err().map(|error| error.to_string())
        };
        if problem.is_some() {
            state.broken = problem;
            self.stop.cancel();
        }
    }

    /// Other code counts from the first thing on that it did beyond the history: until then, the
    /// history may turn out not to be its own.
    fn take_code(&self) {
        let changed = std::mem::take(&mut self.state.lock().code_changed);
        if changed {
            self.write(self.code.len(), || self.journal.code_changed(&self.id, &self.code));
        }
    }
}

impl RunLedger for Recorder {
    fn decided(&self, call: u64, decided: &Decided<'_>) -> Result<(), String> {
        if !self.state.lock().made.contains_key(&call) {
            return Err("it is over".to_owned());
        }
        let Decided { verdict, rule, sent, flow, origin } = *decided;
        let origin = Some(origin);
        self.write_made(call, Some(CallDecision { verdict, rule, sent, flow, origin }));
        self.broken().map_or(Ok(()), Err)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.state.get_mut().ended {
            self.end(RunState::Failed, "", Some("nobody waited for its end"));
        }
    }
}

/// What was read before a run, in the journal.
pub(super) fn in_journal(read: &[ReadBefore]) -> String {
    if read.is_empty() { String::new() } else { serde_json::to_string(read).unwrap_or_default() }
}

/// A language in the journal.
pub(super) fn language_name(language: Language) -> &'static str {
    match language {
        Language::TypeScript => "typescript",
        Language::Python => "python",
    }
}

fn micros(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use toolgate_sandbox::{RunSeed, ToolException};
    use toolgate_store::Store;

    use super::*;

    fn recorder(journal: &Arc<Journal>) -> Recorder {
        let stop = CancellationToken::new();
        let (id, code) = ("run_1".to_owned(), "code".to_owned());
        Recorder::new(Arc::clone(journal), id, Language::Python, code, "local".to_owned(), stop)
    }

    fn arguments() -> Box<RawValue> {
        RawValue::from_string("{}".to_owned()).unwrap()
    }

    fn sent(journal: &Journal) -> Vec<bool> {
        journal.history("run_1").unwrap().unwrap().calls.iter().map(|call| call.sent).collect()
    }

    const SENT: Decided<'_> =
        Decided { verdict: "allow", rule: "", sent: true, flow: None, origin: "" };

    #[test]
    fn that_a_call_was_sent_is_known_before_it_is_and_outlives_every_resumption() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Arc::new(Store::new(folder.path().to_owned()).journal().unwrap());
        let arguments = arguments();
        let called = RunEvent::Called { id: 0, name: "mail_send", arguments: &arguments };
        let first = recorder(&journal);
        first.happened(&RunEvent::Began(RunSeed::default()));
        first.happened(&called);
        assert_eq!(sent(&journal), [false; 0], "nothing has happened yet");
        assert!(first.is_unsent(0));
        first.decided(0, &SENT).unwrap();
        assert!(!first.is_unsent(0));
        assert_eq!(sent(&journal), [true]);

        // Killed here; whoever goes on comes to the same call.
        std::mem::forget(first);
        let past = PastState {
            name: "mail_send".to_owned(),
            arguments: "{}".to_owned(),
            sent: true,
            unknown: false,
            told: None,
            origin: None,
        };
        let second = recorder(&journal).going_on(HashMap::from([(0, past)]), false);
        second.is_unknown(0, "mail_send");
        let thrown = ToolException { tool: "mail_send".to_owned(), message: "unknown".to_owned() };
        let at = std::time::Duration::ZERO;
        second.happened(&RunEvent::Completed { id: 0, at, outcome: &Err(thrown) });
        assert_eq!(sent(&journal), [true]);
        assert!(second.decided(0, &SENT).is_err(), "it is over");
    }
}
