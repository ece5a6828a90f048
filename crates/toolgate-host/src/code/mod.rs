//! Scripts that call tools.
//!
//! A script runs in a worker of the sandbox. Its calls come back here and go through the broker like
//! any other call. Their results are converted for the script, and what the script prints and returns
//! is converted for the model.

mod argument;
pub(crate) mod budget;
mod check;
mod complete;
mod cut;
pub(crate) mod extract;
mod graph;
mod journal;
mod media;
mod outputs;
mod reads;
mod report;
mod resume;
mod script_tools;
mod shapes;
mod value;

use std::{any::Any, sync::Arc, time::Duration};

use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use thiserror::Error;
use toolgate_broker::{CallJournal, Pause, RunContext, SessionContext, new_id};
use toolgate_sandbox::{
    CallState, CapturedOutput, ComponentProgram, Language, Pool, PoolSettings, PythonChoice,
    PythonEngine, RunClock, RunLimits, RunOutcome, RunReport, SandboxScript, ScriptLanguage,
    lockdown::LockdownReport, runs_components,
};
use toolgate_store::{ComponentFolder, ComponentRecord, Journal, Retention, RunState, Store};
use toolgate_upstream::CallOptions;

pub(crate) use self::outputs::PageSize;
pub use self::{
    argument::ArgumentKind,
    check::CheckedScript,
    complete::{CodeCompletion, CodeCompletions},
    extract::{ExtractModel, ExtractSettings},
    graph::{GraphCall, GraphEdge, RunGraph},
    journal::UnknownCall,
    resume::{Resume, ResumeError, UnknownCalls},
    script_tools::WaitingCall,
};
use self::{
    extract::ExtractCache,
    journal::RunJournal,
    media::Media,
    outputs::{OutputStore, SessionOutputs},
    resume::{EarlierRun, ResumedRun},
    script_tools::{ScriptContext, ScriptTools},
    shapes::LearnedShapes,
};
use crate::{
    events::HostEvent, meta::PythonKind, session::ToolSession, settings::JournalUnavailable, spans,
};

/// How scripts run.
#[derive(Debug, Clone)]
pub struct CodeSettings {
    /// How workers are started, and how many scripts may run at once.
    pub pool: PoolSettings,
    /// The limits of each script.
    pub limits: RunLimits,
    /// How many calls of all scripts together one server gets at once.
    pub max_parallel_calls: usize,
    /// How long runs are kept in the journal.
    pub retention: Retention,
    /// The model that turns texts into data for scripts.
    pub extract: ExtractSettings,
}

/// What all scripts of a host share.
#[derive(Debug)]
pub struct CodeMode {
    settings: RwLock<Option<Arc<CodeSettings>>>,
    /// Created at the first use: most commands never run a script. Other settings need another one.
    pool: Mutex<Option<(PoolSettings, Arc<Pool>)>>,
    pub(crate) shapes: Arc<LearnedShapes>,
    components: Option<ComponentFolder>,
    outputs: OutputStore,
    extracted: Arc<ExtractCache>,
    journal: Option<Result<Arc<dyn Journal>, JournalUnavailable>>,
}

/// Why no worker can be started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SandboxUnavailable(String);

/// The outcome of a script, as text and as data.
#[derive(Debug)]
pub struct CodeRun {
    /// The text for the model.
    pub text: String,
    /// The output of the script, as far as it was captured.
    pub output: String,
    /// The end of the text: the error, and the calls that were made.
    pub closing: String,
    /// Whether the script failed or was stopped.
    pub is_error: bool,
    /// The returned value, with notes in place of media.
    pub value: Option<Value>,
    /// The value as text without control characters. It exists even if the value is nested too
    /// deeply to be parsed.
    pub value_text: Option<String>,
    /// Media and other content that the script returned or emitted, as MCP content blocks.
    pub content: Vec<Value>,
    /// The id for `read_output`, if a part of the text was left out.
    pub output_id: Option<String>,
    /// The id for `resume_run`; `None` if runs are not kept.
    pub id: Option<String>,
    /// Whether the run can resume, and has made calls that need not be repeated.
    pub is_resumable: bool,
    /// The calls whose outcome is unknown.
    pub unknown: Vec<UnknownCall>,
    /// The calls that wait for an approval.
    pub waiting: Vec<WaitingCall>,
    /// The report of the sandbox.
    pub report: RunReport,
}

impl CodeSettings {
    /// The defaults, with these workers.
    pub fn new(pool: PoolSettings) -> Self {
        Self {
            pool,
            limits: RunLimits::default(),
            max_parallel_calls: 32,
            retention: Retention::default(),
            extract: ExtractSettings::default(),
        }
    }
}

impl CodeMode {
    pub(crate) fn new(
        settings: Option<CodeSettings>,
        store: Option<&Store>,
        journal: Option<Result<Arc<dyn Journal>, JournalUnavailable>>,
    ) -> Self {
        Self {
            settings: RwLock::new(settings.map(Arc::new)),
            pool: Mutex::default(),
            shapes: Arc::new(LearnedShapes::new(store.map(Store::shapes))),
            components: store.map(Store::components),
            outputs: OutputStore::shared_in(store.and_then(Store::shared_values)),
            extracted: Arc::default(),
            journal,
        }
    }

    /// Whether scripts may run.
    pub fn is_enabled(&self) -> bool {
        self.settings.read().is_some()
    }

    /// Whether scripts may ask a model that is configured for them.
    pub(crate) fn has_extract_model(&self) -> bool {
        self.settings().is_some_and(|settings| settings.extract.model.is_some())
    }

    /// Which Python runs, as far as it is known.
    pub(crate) fn python_kind(&self) -> PythonKind {
        let pool = self.pool.lock().as_ref().map(|(_, pool)| Arc::clone(pool));
        match pool.as_deref().and_then(Pool::known_interpreter) {
            Some(python) => PythonKind::CPython {
                version: without_patch(&python.version).into(),
                packages: python.usable_packages().map(str::to_owned).collect(),
            },
            None => PythonKind::Subset,
        }
    }

    /// Finds the Python that runs scripts, so that [`Self::python_kind`] knows it.
    pub(crate) async fn find_python(&self) {
        if let Some(settings) = self.settings()
            && settings.pool.python.choice != PythonChoice::Embedded
        {
            // The description is that of the embedded one if there is none.
            let _ = self.pool(&settings).interpreter().await;
        }
    }

    /// The Python that runs scripts; `None` if scripts are off. The first call starts it.
    pub async fn python(&self) -> Option<PythonEngine> {
        let settings = self.settings()?;
        Some(self.pool(&settings).python().await.clone())
    }

    /// The language with this name: one that is built in, or that of a component.
    pub fn language(&self, name: &str) -> Option<ScriptLanguage> {
        if let Some(language) = built_in_language(name) {
            return Some(language.into());
        }
        let components = self.components.as_ref()?;
        let record = components.get(name)?;
        let file = components.file(&record);
        let ComponentRecord { language, hash, .. } = record;
        Some(ComponentProgram { language, file, hash }.into())
    }

    /// The languages of components, with a hint for each.
    pub(crate) fn further_languages(&self) -> Arc<[(String, Option<String>)]> {
        // Without the engine of components none of them can run.
        let components =
            runs_components().map(|()| self.components()).unwrap_or_default().into_iter();
        components.map(|component| (component.language, component.hint)).collect()
    }

    /// The components that run scripts of further languages.
    pub(crate) fn components(&self) -> Vec<ComponentRecord> {
        self.components.as_ref().map(ComponentFolder::list).unwrap_or_default()
    }

    /// Replaces the settings of later runs. Those that have begun end as they are.
    pub(crate) fn reload(&self, settings: Option<CodeSettings>) {
        let is_used = self.pool.lock().is_some();
        *self.settings.write() = settings.map(Arc::new);
        if is_used {
            self.warm_up();
        }
    }

    fn settings(&self) -> Option<Arc<CodeSettings>> {
        self.settings.read().clone()
    }

    /// Starts workers, so that the first script does not wait for one.
    pub fn warm_up(&self) {
        if let Some(settings) = self.settings() {
            self.pool(&settings).warm_up();
        }
    }

    /// What confines the workers of a language on this system; `None` if scripts are off.
    pub async fn lockdown(
        &self,
        language: impl Into<ScriptLanguage>,
    ) -> Option<Result<LockdownReport, SandboxUnavailable>> {
        let settings = self.settings()?;
        let report = self.pool(&settings).probe(language).await;
        Some(report.map_err(|error| SandboxUnavailable(error.to_string())))
    }

    /// The long outputs of a session's caller.
    pub(crate) fn outputs<'o>(&'o self, session: &'o SessionContext) -> SessionOutputs<'o> {
        self.outputs.of(session)
    }

    fn pool(&self, settings: &CodeSettings) -> Arc<Pool> {
        let mut pool = self.pool.lock();
        match &*pool {
            Some((known, pool)) if *known == settings.pool => Arc::clone(pool),
            _ => {
                let new = Arc::new(Pool::new(settings.pool.clone()));
                *pool = Some((settings.pool.clone(), Arc::clone(&new)));
                new
            }
        }
    }

    /// The journal; `None` if runs are not kept.
    fn journal(
        &self,
        retention: Retention,
    ) -> Option<Result<Arc<dyn Journal>, JournalUnavailable>> {
        let journal = self.journal.clone()?;
        if let Ok(journal) = &journal
            && journal.may_be_beyond(retention)
        {
            let journal = Arc::clone(journal);
            // Nobody waits for it, and the next time removes what is left.
            tokio::task::spawn_blocking(move || {
                let _ = journal.prune(retention);
                let _ = journal.is_beyond(retention);
            });
        }
        Some(journal)
    }
}

impl ToolSession {
    /// The result of a tool as a model gets it: within the budget for output, with an id for the rest.
    /// Structured content that the client checks with a schema stays whole.
    pub(crate) fn within_budget(&self, mut result: Value, is_checked: bool) -> Value {
        let tokens = self.host().settings().max_output_tokens;
        // Most results are short.
        if !cut::surely_fits(&result, tokens)
            && let Value::Object(fields) = &mut result
        {
            let outputs = self.host().code().outputs(self.context());
            let before = cut::text_bytes(fields);
            if cut::cut_result(fields, tokens, is_checked, outputs).is_some() {
                let saved = before.saturating_sub(cut::text_bytes(fields));
                self.live(|live| live.saved(saved));
            }
        }
        result
    }

    /// Runs a script, whose calls go through the broker; `None` if scripts are off.
    pub async fn run_code(
        &self,
        code: &str,
        language: impl Into<ScriptLanguage>,
        options: CallOptions,
    ) -> Option<CodeRun> {
        let language = language.into();
        let settings = self.host().code().settings()?;
        let script = SandboxScript::new(code, language.clone());
        let stop = options.cancel.child_token();
        let journal = match self.host().code().journal(settings.retention) {
            None => None,
            Some(Ok(journal)) => {
                // Nothing is begun that could not be recorded.
                if let Err(error) = journal.check() {
                    let report = no_report(RunOutcome::Crashed(error.to_string()));
                    let media = Media::default();
                    return Some(self.finish_run(report, code, &media, None, Vec::new(), 0));
                }
                let (id, code) = (new_id("run").to_string(), code.to_owned());
                let caller = self.context().caller().identity.to_string();
                let language = language.name().to_owned();
                let journal = RunJournal::new(journal, id, language, code, caller, stop.clone());
                let host = self.host().settings();
                Some(journal.begins_in(&self.context().read(), host.namespace.as_deref()))
            }
            Some(Err(error)) => {
                let report = no_report(RunOutcome::Crashed(error.to_string()));
                return Some(self.finish_run(report, code, &Media::default(), None, Vec::new(), 0));
            }
        };
        let options = CallOptions { cancel: stop, ..options };
        Some(self.drive(&settings, script, journal, EarlierRun::default(), options).await)
    }

    /// Resumes a run that was interrupted, failed or waits, without repeating its calls; `None` if
    /// scripts are off.
    pub async fn resume_run(
        &self,
        id: &str,
        resume: Resume,
        options: CallOptions,
    ) -> Option<Result<CodeRun, ResumeError>> {
        let settings = self.host().code().settings()?;
        let resuming = async {
            let journal = self.host().code().journal(settings.retention);
            let journal = journal.ok_or(ResumeError::NotKept)?;
            let journal = journal.map_err(|error| ResumeError::Journal(error.to_string()))?;
            // The definitions of the tools decide what may be repeated.
            self.host().first_lists().await;
            let repeatable = |name: &str, arguments: &str| {
                script_tools::is_repeatable(self.host(), name, arguments)
            };
            let host = self.host().settings();
            let who = (&**self.context(), host.namespace.as_deref());
            let run = resume::take(&*journal, id, who, &resume, &repeatable)?;
            let ResumedRun { language, code, caller, history, past, lost, earlier } = run;
            let written_in = self.host().code().language(&language);
            let written_in = written_in.ok_or_else(|| ResumeError::Language(language.clone()))?;
            let changed = resume.code.as_ref().is_some_and(|new| *new != code);
            let code = resume.code.unwrap_or(code);
            let script =
                SandboxScript { code: code.clone(), language: written_in, journal: Some(history) };
            let stop = options.cancel.child_token();
            let journal =
                RunJournal::new(journal, id.to_owned(), language, code, caller, stop.clone());
            let journal = Some(journal.resumes(past, lost, changed));
            let options = CallOptions { cancel: stop, ..options };
            Ok(self.drive(&settings, script, journal, earlier, options).await)
        };
        Some(resuming.await)
    }

    async fn drive(
        &self,
        settings: &CodeSettings,
        script: SandboxScript,
        journal: Option<RunJournal>,
        earlier: EarlierRun,
        mut options: CallOptions,
    ) -> CodeRun {
        let mode = self.host().code();
        let journal = journal.map(Arc::new);
        let EarlierRun { media, before, owner, first_code } = earlier;
        let media = Arc::new(Media::new(journal.clone(), media));
        let clock = RunClock::new();
        let id = journal.as_ref().map_or_else(|| new_id("run"), |journal| journal.id().into());
        let first_code = first_code.as_ref().unwrap_or(&script.code);
        let is_corrected = *first_code != script.code;
        let run = RunContext::new(id, first_code).owned_by(owner).after(before);
        let run = run.corrected(is_corrected);
        let run = run.with_pause(Arc::new(ClockPause(clock.clone())));
        let run = Arc::new(match &journal {
            Some(journal) => run.with_journal(Arc::clone(journal) as Arc<dyn CallJournal>),
            None => run,
        });
        if script.journal.is_some() {
            run.set_may_have_grants();
        }
        let span = spans::run(self, &run, &script.language, &mut options);
        let (run_id, session_id) = (Arc::clone(run.id()), Arc::clone(self.context().id()));
        let events = self.host().events();
        events.send(|| HostEvent::RunStarted {
            run: Arc::clone(&run_id),
            session: Arc::clone(&session_id),
        });
        let tools = ScriptTools::new(ScriptContext {
            trace: toolgate_telemetry::trace_of(options.meta.as_ref()),
            session: Self::within(self.host().clone(), Arc::clone(self.context())),
            clock,
            run: Arc::clone(&run),
            input_handler: options.input_handler,
            became_task: options.became_task,
            media: Arc::clone(&media),
            shapes: Arc::clone(&mode.shapes),
            journal: journal.clone(),
            progress: options.progress,
            log: options.log,
            result_bytes: settings.limits.result_bytes,
            extract: settings.extract.clone(),
            extracted: Arc::clone(&mode.extracted),
        });
        let code = script.code.clone();
        let pool = mode.pool(settings);
        let mut report =
            pool.run(script, &settings.limits, Arc::new(tools.clone()), options.cancel).await;
        report.emitted.append(&mut tools.take_emitted());
        if let Some(journal) = &journal {
            // Such as calls that waited for the answer of a person.
            let in_flight =
                report.calls.iter_mut().filter(|call| call.state == CallState::InFlight);
            for call in in_flight.filter(|call| journal.is_unsent(call.id)) {
                call.state = CallState::Refused("the run ended before it was sent".to_owned());
            }
            let is_repeatable = |name: &str, arguments: &str| {
                script_tools::is_repeatable(self.host(), name, arguments)
            };
            if matches!(report.outcome, RunOutcome::Value(_))
                && report.calls_left_out == 0
                && let Some(missing) = journal.unreached(&report.calls, is_repeatable)
            {
                report.outcome = RunOutcome::Diverged(missing);
            }
            if !matches!(report.outcome, RunOutcome::Value(_)) {
                journal.add_earlier(&mut report.calls);
            }
            if let Some(problem) = journal.broken() {
                report.outcome = RunOutcome::Crashed(problem);
            }
        }
        if matches!(report.outcome, RunOutcome::Value(_)) {
            // Other runs may resume, and their grants with them.
            self.host().broker().end_run(&run);
        }
        let journal = journal.as_deref();
        let run =
            self.finish_run(report, &code, &media, journal, tools.waiting(), tools.replaced());
        spans::end_run(span, &run);
        let (is_error, duration) = (run.is_error, run.report.wall);
        let ended = || HostEvent::RunEnded { run: run_id, session: session_id, is_error, duration };
        events.send(ended);
        run
    }

    /// Renders a run for the model, and writes its end to the journal.
    fn finish_run(
        &self,
        report: RunReport,
        code: &str,
        media: &Media,
        journal: Option<&RunJournal>,
        waiting: Vec<WaitingCall>,
        replaced: u64,
    ) -> CodeRun {
        let mode = self.host().code();
        let outputs = mode.outputs(self.context());
        let tokens = self.host().settings().max_output_tokens;
        let rendered = report::render(&report, code, tokens, media, outputs);
        let report::RenderedRun {
            mut text,
            output,
            closing,
            is_error,
            content,
            value,
            value_text,
            output_id,
        } = rendered;
        report::add_replaced(&mut text, replaced);
        let read: u64 = report.calls.iter().map(|call| call.result_bytes).sum();
        self.live(|live| live.saved(read.saturating_sub(text.len() as u64)));
        let unknown = journal.map(RunJournal::unknown).unwrap_or_default();
        // A run whose journal is incomplete cannot resume.
        let is_kept = journal.is_some_and(|journal| journal.broken().is_none());
        let is_resumable = is_kept && report::is_resumable(&report);
        if let Some(journal) = journal {
            let state = match report.outcome {
                RunOutcome::Value(_) => RunState::Done,
                RunOutcome::Suspended => RunState::Waiting,
                _ => RunState::Failed,
            };
            journal.end(state, &text, is_error.then_some(&closing));
            let id = journal.id();
            report::add_note(&mut text, &report, id, &unknown, &waiting, is_resumable);
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
            id: journal.map(|journal| journal.id().to_owned()),
            is_resumable,
            unknown,
            waiting,
            report,
        }
    }
}

/// The languages that are built in, with the names that models use.
pub fn built_in_language(name: &str) -> Option<Language> {
    match name.to_ascii_lowercase().as_str() {
        "typescript" | "ts" | "javascript" | "js" => Some(Language::TypeScript),
        "python" | "py" | "python3" => Some(Language::Python),
        _ => None,
    }
}

/// Stops the clock of a run for the broker.
struct ClockPause(RunClock);

impl Pause for ClockPause {
    fn pause(&self) -> Box<dyn Any + Send> {
        Box::new(self.0.hold())
    }
}

impl CodeRun {
    /// The run as the result of a tool call.
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

    /// Whether the script was rejected, possibly because of an unknown tool.
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
            .map(|call| {
                let question = call.question.as_str();
                json!({ "call": call.number, "name": call.name, "reference": question })
            })
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

/// The report of a run that did not start.
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

/// `3.12` of `3.12.1`.
fn without_patch(version: &str) -> &str {
    let end = version.match_indices('.').nth(1).map_or(version.len(), |(at, _)| at);
    &version[..end]
}

fn round(milliseconds: f64) -> f64 {
    (milliseconds * 100.0).round() / 100.0
}
