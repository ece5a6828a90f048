//! Scripts that call tools.
//!
//! A script runs in a worker of the sandbox. Its calls come back here, go through the broker like
//! any other, and what they return is shaped for the script; what the script prints and returns is
//! shaped for the model.

mod bridge;
pub(crate) mod budget;
mod learned;
mod ledger;
mod media;
mod outputs;
mod record;
mod render;
mod resume;
mod runs;
mod settings;
mod value;

use std::{
    any::Any,
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde_json::{Value, json};
use toolgate_broker::{Pause, RunContext, RunLedger, SessionContext, new_id};
use toolgate_sandbox::{
    CallState, CapturedOutput, Language, Pool, RunClock, RunOutcome, RunReport, SandboxScript,
    lockdown::LockdownReport,
};
use toolgate_store::{Journal, RunState, Store};
use toolgate_upstream::CallOptions;

pub use self::{
    bridge::WaitingCall,
    record::UnknownCall,
    resume::{NotResumed, Resume, UnknownCalls},
    settings::CodeSettings,
};
use self::{
    bridge::{Bridge, Wiring},
    media::Media,
    record::Recorder,
    resume::{Kept, Taken},
    runs::Runs,
};
pub(crate) use self::{
    learned::Learned,
    outputs::{Drawer, Outputs, Unreadable},
};
use crate::{host::Host, session::Session, traced};

/// Everything that scripts share.
#[derive(Debug)]
pub(crate) struct CodeMode {
    settings: Option<CodeSettings>,
    /// Made when it is first needed: most commands of a shell never run a script.
    pool: OnceLock<Result<Pool, String>>,
    learned: Arc<Learned>,
    outputs: Outputs,
    runs: Runs,
}

/// What came of a script, as it is shown and as data.
#[derive(Debug)]
pub struct CodeRun {
    /// What a model is shown.
    pub text: String,
    /// All that the script wrote, as far as it was kept.
    pub output: String,
    /// The end of the text: the error, if there is one, and the calls that were made.
    pub closing: String,
    /// Whether the script did not run to its end.
    pub is_error: bool,
    /// What the script returned, with words in the place of media.
    pub value: Option<Value>,
    /// The same as text, safe to be shown; there even where the value is nested too deeply to be
    /// read.
    pub value_text: Option<String>,
    /// Images and other content that it returned or emitted, as MCP content blocks.
    pub content: Vec<Value>,
    /// With what `read_output` reads what was left out of the text.
    pub output_id: Option<String>,
    /// With what the run can be resumed; nothing where runs are not kept.
    pub id: Option<String>,
    /// Whether it can go on from where it is, and has done something that need not be repeated.
    pub is_resumable: bool,
    /// The calls of which nobody knows what came of them.
    pub unknown: Vec<UnknownCall>,
    /// The calls that wait for a person.
    pub waiting: Vec<WaitingCall>,
    /// The details.
    pub report: RunReport,
}

impl CodeMode {
    pub(crate) fn new(
        settings: Option<CodeSettings>,
        store: Option<&Store>,
        journal: Option<Result<Arc<Journal>, String>>,
    ) -> Self {
        Self {
            settings,
            pool: OnceLock::new(),
            learned: Arc::new(Learned::new(store.map(Store::shapes))),
            outputs: Outputs::default(),
            runs: Runs::new(journal),
        }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.settings.is_some()
    }

    pub(crate) fn learned(&self) -> &Learned {
        &self.learned
    }

    /// Starts workers before the first script comes.
    pub(crate) fn warm_up(&self) {
        if let Some(Ok(pool)) = self.settings.as_ref().map(|settings| self.pool(settings)) {
            pool.warm_up();
        }
    }

    /// What confines workers here; `None` where scripts are off.
    pub(crate) async fn probe(&self) -> Option<Result<LockdownReport, String>> {
        let settings = self.settings.as_ref()?;
        Some(match self.pool(settings) {
            Ok(pool) => pool.probe().await.map_err(|error| error.to_string()),
            Err(problem) => Err(problem.to_owned()),
        })
    }

    /// Runs a script for a host. `None` where scripts are off.
    pub(crate) async fn run(
        &self,
        host: &Host,
        session: &Arc<SessionContext>,
        code: &str,
        language: Language,
        options: CallOptions,
    ) -> Option<CodeRun> {
        let settings = self.settings.as_ref()?;
        let script = SandboxScript::new(code, language);
        let stop = options.cancel.child_token();
        let recorder = match self.runs.journal(settings.retention) {
            None => None,
            Some(Ok(journal)) => {
                let (id, code) = (new_id("run").to_string(), code.to_owned());
                let caller = session.caller().identity.to_string();
                let recorder = Recorder::new(journal, id, language, code, caller, stop.clone());
                let namespace = host.settings().namespace.as_deref();
                Some(recorder.after(&session.read()).within(namespace))
            }
            Some(Err(problem)) => {
                let report = no_report(RunOutcome::Crashed(problem));
                return Some(self.shown(session, report, code, &Media::default(), None, &[]));
            }
        };
        let options = CallOptions { cancel: stop, ..options };
        let session = Session::within(host.clone(), Arc::clone(session));
        Some(self.drive(settings, session, script, recorder, Kept::default(), options).await)
    }

    /// Goes on with a run. `None` where scripts are off.
    pub(crate) async fn resume(
        &self,
        host: &Host,
        session: &Arc<SessionContext>,
        id: &str,
        resume: Resume,
        options: CallOptions,
    ) -> Option<Result<CodeRun, NotResumed>> {
        let settings = self.settings.as_ref()?;
        let journal = match self.runs.journal(settings.retention) {
            None => return Some(Err(NotResumed::NotKept)),
            Some(Ok(journal)) => journal,
            Some(Err(problem)) => return Some(Err(NotResumed::Journal(problem))),
        };
        // What its tools say of themselves decides what may be repeated.
        host.first_answers().await;
        let harmless = |name: &str, arguments: &str| bridge::is_harmless(host, name, arguments);
        let who = (&**session, host.settings().namespace.as_deref());
        let taken = match resume::take(&journal, id, who, &resume, &harmless) {
            Ok(taken) => taken,
            Err(error) => return Some(Err(error)),
        };
        let Taken { language, code, caller, history, past, kept } = taken;
        let changed = resume.code.as_ref().is_some_and(|new| *new != code);
        let code = resume.code.unwrap_or(code);
        let script = SandboxScript { code: code.clone(), language, journal: Some(history) };
        let stop = options.cancel.child_token();
        let recorder = Recorder::new(journal, id.to_owned(), language, code, caller, stop.clone());
        let recorder = Some(recorder.going_on(past, changed));
        let options = CallOptions { cancel: stop, ..options };
        let session = Session::within(host.clone(), Arc::clone(session));
        Some(Ok(self.drive(settings, session, script, recorder, kept, options).await))
    }

    async fn drive(
        &self,
        settings: &CodeSettings,
        session: Session,
        script: SandboxScript,
        recorder: Option<Recorder>,
        kept: Kept,
        mut options: CallOptions,
    ) -> CodeRun {
        let recorder = recorder.map(Arc::new);
        let Kept { media, before, owner: began, first_code } = kept;
        let media = Arc::new(Media::new(recorder.clone(), media));
        let host = session.host().clone();
        let context = Arc::clone(session.context());
        let clock = RunClock::new();
        let id = recorder.as_ref().map_or_else(|| new_id("run"), |recorder| recorder.id().into());
        let pause = Arc::new(Paused(clock.clone()));
        let first_code = first_code.as_ref().unwrap_or(&script.code);
        let run = RunContext::new(id, first_code).owned_by(began);
        let run = run.after(before).with_pause(pause);
        let run = Arc::new(match &recorder {
            Some(recorder) => run.with_ledger(Arc::clone(recorder) as Arc<dyn RunLedger>),
            None => run,
        });
        let span = traced::run(&host, session.context(), &run, script.language, &mut options);
        let bridge = Bridge::new(Wiring {
            trace: toolgate_telemetry::trace_of(options.meta.as_ref()),
            session,
            clock,
            run: Arc::clone(&run),
            input_handler: options.input_handler,
            media: Arc::clone(&media),
            learned: Arc::clone(&self.learned),
            recorder: recorder.clone(),
            progress: options.progress,
        });
        let tools = Arc::new(bridge.clone());
        let code = script.code.clone();
        let mut report = match self.pool(settings) {
            Ok(pool) => pool.run(script, &settings.limits, tools, options.cancel).await,
            Err(problem) => {
                no_report(RunOutcome::Crashed(format!("no worker could be started: {problem}")))
            }
        };
        report.emitted.append(&mut bridge.take_emitted());
        if let Some(recorder) = &recorder {
            // Such as those about which a person was being asked.
            let in_flight =
                report.calls.iter_mut().filter(|call| call.state == CallState::InFlight);
            for call in in_flight.filter(|call| recorder.is_unsent(call.id)) {
                call.state = CallState::Refused("the run ended before it was sent".to_owned());
            }
        }
        if let Some(problem) = recorder.as_ref().and_then(|recorder| recorder.broken()) {
            report.outcome = RunOutcome::Crashed(problem);
        }
        if matches!(report.outcome, RunOutcome::Value(_)) {
            // Any other may go on, and what was granted for it with it.
            host.broker().end_run(&run);
        }
        let waiting = bridge.waiting();
        let mut run = self.shown(&context, report, &code, &media, recorder.as_deref(), &waiting);
        run.waiting = waiting;
        traced::ran(span, &run);
        run
    }

    /// What is shown of a run, which is written down.
    fn shown(
        &self,
        session: &SessionContext,
        report: RunReport,
        code: &str,
        media: &Media,
        recorder: Option<&Recorder>,
        waiting: &[WaitingCall],
    ) -> CodeRun {
        let shown =
            render::render(&report, code, self.output_tokens(), media, self.drawer(session));
        let render::Shown {
            mut text,
            output,
            closing,
            is_error,
            content,
            value,
            value_text,
            output_id,
        } = shown;
        let unknown = recorder.map(Recorder::unknown).unwrap_or_default();
        // What was not written down cannot be gone on with.
        let is_kept = recorder.is_some_and(|recorder| recorder.broken().is_none());
        let is_resumable = is_kept && runs::is_resumable(&report);
        if let Some(recorder) = recorder {
            let state = match report.outcome {
                RunOutcome::Value(_) => RunState::Done,
                RunOutcome::Suspended => RunState::Waiting,
                _ => RunState::Failed,
            };
            recorder.end(state, &text, is_error.then_some(&closing));
            runs::add_note(&mut text, &report, recorder.id(), &unknown, waiting, is_resumable);
        }
        CodeRun {
            text,
            output,
            closing,
            is_error,
            value,
            value_text,
            content,
            output_id,
            id: recorder.map(|recorder| recorder.id().to_owned()),
            is_resumable,
            unknown,
            waiting: Vec::new(),
            report,
        }
    }

    /// The long texts of whoever is at the other end of a session.
    pub(crate) fn drawer<'o>(&'o self, session: &'o SessionContext) -> Drawer<'o> {
        self.outputs.of(session)
    }

    /// How much of a text is shown at once.
    pub(crate) fn output_tokens(&self) -> usize {
        self.settings.as_ref().map_or(4_000, |settings| settings.max_output_tokens)
    }

    fn pool(&self, settings: &CodeSettings) -> Result<&Pool, &str> {
        let made = || Pool::new(settings.pool.clone()).map_err(|error| error.to_string());
        self.pool.get_or_init(made).as_ref().map_err(String::as_str)
    }
}

/// The clock of a run, as the broker knows it.
struct Paused(RunClock);

impl Pause for Paused {
    fn pause(&self) -> Box<dyn Any + Send> {
        Box::new(self.0.hold())
    }
}

impl CodeRun {
    /// The run as the result of a tool.
    pub fn to_result(&self) -> Value {
        let mut content = Vec::new();
        if !self.text.is_empty() || self.content.is_empty() {
            content.push(json!({ "type": "text", "text": self.text }));
        }
        content.extend(self.content.iter().cloned());
        let mut result = json!({ "content": content });
        if self.is_error {
            result["isError"] = json!(true);
        }
        result["_meta"] = json!({ "toolgate/run": self.figures() });
        result
    }

    /// Whether it was rejected, and a tool that does not exist may be why.
    pub(crate) fn is_unknown_tool(&self) -> bool {
        matches!(self.report.outcome, RunOutcome::Rejected(_))
    }

    /// The figures of the run, for programs.
    pub fn figures(&self) -> Value {
        const LISTED: usize = 500;
        let RunReport { calls, cpu, wall, output, calls_left_out, .. } = &self.report;
        let rows: Vec<Value> = calls
            .iter()
            .take(LISTED)
            .map(|call| {
                let state = match &call.state {
                    CallState::Completed => "completed",
                    CallState::Failed(_) => "failed",
                    CallState::Undelivered(_) => "undelivered",
                    CallState::InFlight => "inFlight",
                    CallState::Refused(_) => "refused",
                    CallState::Suspended => "suspended",
                };
                let milliseconds = round(call.duration.as_secs_f64() * 1_000.0);
                json!({
                    "name": call.name, "state": state, "milliseconds": milliseconds,
                    "resultBytes": call.result_bytes,
                })
            })
            .collect();
        let unknown: Vec<Value> = self
            .unknown
            .iter()
            .map(|call| json!({ "call": call.number, "name": call.name }))
            .collect();
        let waiting: Vec<Value> = self
            .waiting
            .iter()
            .map(|call| json!({ "call": call.number, "name": call.name, "id": call.approval }))
            .collect();
        let left_out = calls.len().saturating_sub(LISTED) as u64 + calls_left_out;
        json!({
            "wallMilliseconds": round(wall.as_secs_f64() * 1_000.0),
            "cpuMilliseconds": round(cpu.as_secs_f64() * 1_000.0),
            "outputBytes": output.total,
            "outputId": self.output_id,
            "id": self.id,
            "unknown": unknown,
            "waiting": waiting,
            "calls": rows,
            "callsLeftOut": left_out,
        })
    }
}

/// A run that did not begin.
fn no_report(outcome: RunOutcome) -> RunReport {
    RunReport {
        outcome,
        output: CapturedOutput::default(),
        emitted: Vec::new(),
        warnings: Vec::new(),
        calls: Vec::new(),
        calls_left_out: 0,
        cpu: Duration::ZERO,
        wall: Duration::ZERO,
    }
}

fn round(milliseconds: f64) -> f64 {
    (milliseconds * 100.0).round() / 100.0
}
