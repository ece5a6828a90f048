//! The exchange of frames with one worker.

mod answers;

use std::{
    io,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt},
};
use serde_json::value::RawValue;
use tokio::time::{Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_bindings::check::CheckFinding;
use toolgate_engines::{EngineCall, ToolException};
use toolgate_wait::QuickWait;

use self::answers::{Describing, Ended, bytes_of, described};
use super::{
    call_table::CallTable,
    replay::{JournalReplay, ReplayedCall},
    wire::Wire,
};
use crate::{
    captured::OutputCapture,
    clock::RunClock,
    frame::{
        Done, FromWorker, InterpreterFacts, PreparedRun, RunBounds, RunStart, ToWorker, Wait, cut,
    },
    journal::{JournaledCall, RunEvent, SandboxScript},
    language::ScriptLanguage,
    limits::{LimitReached, RunLimits},
    pool::{Pool, Worker, WorkerKind},
    report::CallState,
    system::clock::CpuClock,
    tools::{CallResponse, Tools},
};

/// A time that is later than the end of every run.
const NEVER: Duration = Duration::from_hours(24 * 365);

/// How the exchange ended.
#[derive(Debug)]
pub(super) enum RunEnding {
    /// The worker reported the end of the script.
    Done(Done),
    /// The worker has checked the script, and another one runs it.
    Prepared(Box<RawValue>),
    /// The run reached a limit.
    Stop(LimitReached),
    /// The caller cancelled the run.
    Cancelled,
    /// The script waits for calls that may not be made yet, and for nothing else.
    Suspended,
    /// The script does not do what its journal says.
    Diverged(String),
    /// The worker closed its end.
    Gone,
    /// The worker sent an invalid frame, or reported that it cannot continue.
    Broke(String),
}

/// What holds for a run, whichever worker takes it.
pub(super) struct RunAttempt<'a> {
    pub(super) limits: &'a RunLimits,
    pub(super) cancel: &'a CancellationToken,
    pub(super) started: Instant,
    pub(super) clock: RunClock,
    /// Whether the script is only checked.
    pub(super) only_checks: bool,
}

/// One run.
#[expect(clippy::struct_excessive_bools, reason = "each says whether one thing has happened")]
pub(super) struct RunDriver<'a> {
    pub(super) worker: Worker,
    /// Where the worker comes from.
    pub(super) kind: WorkerKind,
    pub(super) wire: Wire,
    bounds: RunBounds,
    /// Whether a worker of Python's own interpreter runs the script.
    is_interpreted: bool,
    /// Whether the script is only checked.
    pub(super) only_checks: bool,
    pub(super) limits: &'a RunLimits,
    pub(super) started: Instant,
    pub(super) is_ready: bool,
    /// Whether the worker has sent a frame about the script.
    pub(super) has_begun: bool,
    /// Whether the script runs. Before that, the worker checks it and looks up names.
    runs: bool,
    /// Whether the worker has said how data moves in the script.
    has_flow: bool,
    pub(super) call_table: CallTable,
    pub(super) capture: OutputCapture,
    pub(super) emitted: Vec<Box<RawValue>>,
    emitted_bytes: u64,
    pub(super) warnings: Vec<CheckFinding>,
    pub(super) calls: FuturesUnordered<BoxFuture<'static, Ended>>,
    describing: Option<Describing>,
    replay: JournalReplay,
    /// Calls that ended before the replay of the journal was complete.
    deferred: Vec<Ended>,
    /// Calls that may not be made yet.
    suspended: usize,
    /// How many deliveries the script had got when it last said that it waits.
    waiting_since: Option<u64>,
    /// The number of deliveries to the script.
    delivered: u64,
    tools: Arc<dyn Tools>,
    cancel: &'a CancellationToken,
    /// Cancels the calls.
    pub(super) token: CancellationToken,
    /// Cancels the calls when the driver is dropped.
    _guard: DropGuard,
    cpu_clock: Option<CpuClock>,
    /// CPU time that the worker had used when it got the script.
    before: Duration,
    /// CPU time of the worker that checked the script.
    earlier: Duration,
}

impl<'a> RunDriver<'a> {
    pub(super) fn new(
        mut worker: Worker,
        script: &SandboxScript,
        interpreter: Option<&InterpreterFacts>,
        tools: Arc<dyn Tools>,
        attempt: &RunAttempt<'a>,
    ) -> io::Result<Self> {
        let RunAttempt { limits, cancel, started, ref clock, only_checks } = *attempt;
        let cpu_clock = worker.clock();
        let before = cpu_clock.and_then(CpuClock::used).unwrap_or_default();
        let mut wire = Wire::new(worker.stream()?);
        let replay = JournalReplay::new(script.journal.clone(), clock.clone());
        if script.journal.is_none() && !only_checks {
            tools.on_event(&RunEvent::Began(replay.beginning));
        }
        let bounds = bounds(script, &replay, limits);
        let (kind, language) = match &script.language {
            ScriptLanguage::BuiltIn(language) => (WorkerKind::Own, Some(*language)),
            ScriptLanguage::Component(component) => {
                (WorkerKind::Component(Arc::clone(component)), None)
            }
        };
        wire.send(&ToWorker::Start(RunStart {
            code: script.code.clone(),
            language,
            interpreter: interpreter.cloned(),
            only_checks,
            bounds,
        }));
        wire.try_send();
        let token = cancel.child_token();
        Ok(Self {
            worker,
            kind,
            wire,
            bounds,
            is_interpreted: interpreter.is_some(),
            only_checks,
            limits,
            started,
            is_ready: false,
            has_begun: false,
            runs: false,
            has_flow: false,
            call_table: CallTable::new(started),
            capture: OutputCapture::new(limits.output_bytes),
            emitted: Vec::new(),
            emitted_bytes: 0,
            warnings: Vec::new(),
            calls: FuturesUnordered::new(),
            describing: None,
            replay,
            deferred: Vec::new(),
            suspended: 0,
            waiting_since: None,
            delivered: 0,
            tools,
            cancel,
            _guard: token.clone().drop_guard(),
            token,
            cpu_clock,
            before,
            earlier: Duration::ZERO,
        })
    }

    /// Continues with a worker of Python's own interpreter, which gets the script that was checked.
    pub(super) fn move_to(&mut self, mut worker: Worker, script: Box<RawValue>) -> io::Result<()> {
        self.earlier = self.cpu_used();
        let wire = Wire::new(worker.stream()?);
        let checker = std::mem::replace(&mut self.worker, worker);
        checker.retire(std::mem::replace(&mut self.wire, wire));
        self.kind = WorkerKind::Interpreter;
        self.cpu_clock = self.worker.clock();
        self.before = self.cpu_clock.and_then(CpuClock::used).unwrap_or_default();
        self.is_ready = false;
        self.has_begun = false;
        self.wire.send(&ToWorker::Run(PreparedRun { script, bounds: self.bounds }));
        self.wire.try_send();
        Ok(())
    }

    /// Exchanges frames until the run ends.
    pub(super) async fn exchange(&mut self) -> RunEnding {
        let cancelled = self.cancel.cancelled();
        tokio::pin!(cancelled);
        let wall = self.replay.clock().reach(self.limits.wall.min(NEVER));
        tokio::pin!(wall);
        // Set when the worker is ready, because time that it used before does not count for the
        // script.
        let cpu = sleep_until((self.started + NEVER).into());
        tokio::pin!(cpu);
        let mut waits = QuickWait::new();
        loop {
            if let Some(ending) = self.handle_frames(cpu.as_mut()) {
                return ending;
            }
            self.deliver_past();
            if self.is_suspended() {
                return RunEnding::Suspended;
            }
            self.wire.try_send();
            let alarmed = self.replay.alarm_at().filter(|_| !self.replay.is_replaying());
            let alarm = self.replay.clock().reach(alarmed.unwrap_or(NEVER));
            let event = async {
                tokio::select! {
                    biased;
                    () = &mut cancelled => return Some(RunEnding::Cancelled),
                    () = &mut wall => {
                        let limit = self.limits.wall;
                        return Some(RunEnding::Stop(LimitReached::Wall { limit }));
                    }
                    () = &mut cpu => {
                        let limit = self.limits.cpu;
                        let left = limit.saturating_sub(self.cpu_used());
                        if left.is_zero() {
                            return Some(RunEnding::Stop(LimitReached::Cpu { limit }));
                        }
                        // The CPU time of one thread cannot pass faster than real time, so it is not
                        // read before this.
                        cpu.as_mut().reset((Instant::now() + left).into());
                    }
                    Some(ended) = self.calls.next(), if !self.calls.is_empty() => {
                        self.answer_together(ended);
                    }
                    () = alarm, if alarmed.is_some() => self.deliver_time(),
                    found = described(&mut self.describing) => {
                        self.describing = None;
                        self.wire.send(&ToWorker::Described(found));
                    }
                    open = self.wire.progress() => return (!open).then_some(RunEnding::Gone),
                }
                None
            };
            if let Some(ending) = waits.wait(event).await {
                return ending;
            }
        }
    }

    /// Waits for a worker of Python's own interpreter, or for the end of the run.
    pub(super) fn interpreter<'p>(
        &self,
        pool: &'p Pool,
    ) -> impl Future<Output = Result<io::Result<Worker>, RunEnding>> + use<'p> {
        let (cancel, clock, limit) = (self.cancel.clone(), self.replay.clock(), self.limits.wall);
        async move {
            tokio::select! {
                taken = pool.take_interpreter() => Ok(taken),
                () = cancel.cancelled() => Err(RunEnding::Cancelled),
                () = clock.reach(limit.min(NEVER)) => Err(RunEnding::Stop(LimitReached::Wall { limit })),
            }
        }
    }

    /// CPU time that the script used.
    pub(super) fn cpu_used(&self) -> Duration {
        let used = self.cpu_clock.and_then(CpuClock::used).unwrap_or_default();
        self.earlier + used.saturating_sub(self.before)
    }

    /// Adds a content block, unless all blocks together are too large.
    pub(super) fn take_block(&mut self, block: Box<RawValue>) -> Option<RunEnding> {
        self.emitted_bytes = self.emitted_bytes.saturating_add(bytes_of(&block));
        if self.emitted_bytes > self.limits.result_bytes {
            return Some(RunEnding::Stop(LimitReached::Emitted {
                limit: self.limits.result_bytes,
            }));
        }
        self.emitted.push(block);
        None
    }

    /// Handles the frames that have arrived.
    fn handle_frames(&mut self, mut cpu: Pin<&mut Sleep>) -> Option<RunEnding> {
        // A worker that does not read its responses gets no further ones.
        while self.wire.has_room() {
            let frame = match self.wire.next_frame() {
                Ok(frame) => frame?,
                Err(error) => return Some(broke(&error)),
            };
            match frame {
                FromWorker::Ready(report) if !self.is_ready => {
                    if let Some(lacking) = report.lacking() {
                        return Some(RunEnding::Broke(format!(
                            "the worker cannot give up what it must on this system: {lacking}"
                        )));
                    }
                    self.is_ready = true;
                    self.wire.allow(self.limits.result_bytes);
                    // A worker that was still starting when it got the script starts it only now,
                    // unless it has already finished.
                    if !self.wire.has_more() {
                        self.before = self.cpu_clock.and_then(CpuClock::used).unwrap_or_default();
                    }
                    if self.cpu_clock.is_some() {
                        let left = self.limits.cpu.saturating_sub(self.earlier).min(NEVER);
                        cpu.as_mut().reset((Instant::now() + left).into());
                    }
                }
                _ if !self.is_ready => return Some(broke(&"a frame before it was ready")),
                other => {
                    self.has_begun = true;
                    if let Some(ending) = self.act_on(other) {
                        return Some(ending);
                    }
                }
            }
        }
        None
    }

    /// Acts on one frame.
    fn act_on(&mut self, frame: FromWorker) -> Option<RunEnding> {
        let is_unchecked = match (&self.kind, &frame) {
            (WorkerKind::Own, _) => false,
            // A component has to know the tools of its script.
            (WorkerKind::Component(_), FromWorker::Describe(_)) => self.runs,
            (_, frame) => matches!(
                frame,
                FromWorker::Describe(_) | FromWorker::Warned(_) | FromWorker::Flow(_)
            ),
        };
        if is_unchecked {
            // The script itself may have sent it.
            return Some(broke(&"a result of the check from a worker that does not check"));
        }
        let is_of_check = matches!(
            frame,
            FromWorker::Describe(_)
                | FromWorker::Warned(_)
                | FromWorker::Flow(_)
                | FromWorker::Prepared(_)
                | FromWorker::Done(Done::Rejected(_))
                | FromWorker::Panicked(_)
        );
        if self.only_checks && !is_of_check {
            return Some(broke(&"an act of a script that is only checked"));
        }
        let has_run = self.runs;
        self.runs |= !matches!(
            frame,
            FromWorker::Describe(_)
                | FromWorker::Warned(_)
                | FromWorker::Flow(_)
                | FromWorker::Prepared(_)
        );
        match frame {
            FromWorker::Ready(_) => return Some(broke(&"ready a second time")),
            FromWorker::Describe(_) if self.describing.is_some() => {
                return Some(broke(&"a question before the last one was answered"));
            }
            FromWorker::Describe(names) => {
                self.describing = Some(self.tools.describe(names));
            }
            FromWorker::Call(call) if !self.call_table.is_new(call.id) => {
                return Some(broke(&"the number of an earlier call"));
            }
            FromWorker::Call(call) => return self.call(call),
            FromWorker::Waits(wait) => self.waits(wait),
            FromWorker::Output(_, text) => {
                self.capture.push(&text);
                let limit = self.limits.flood_bytes();
                if self.capture.total() > limit {
                    return Some(RunEnding::Stop(LimitReached::Output { limit }));
                }
            }
            FromWorker::Emit(block) => return self.take_block(block),
            FromWorker::Warned(_) if !self.warnings.is_empty() => {
                return Some(broke(&"warnings a second time"));
            }
            FromWorker::Warned(findings) => self.warnings = findings,
            FromWorker::Flow(_) if self.has_flow => return Some(broke(&"flows a second time")),
            FromWorker::Flow(_) if has_run => {
                return Some(broke(&"the flows of a script that runs"));
            }
            FromWorker::Flow(flow) => {
                self.has_flow = true;
                self.tools.on_flow(flow);
            }
            FromWorker::Prepared(script)
                if (self.is_interpreted || self.only_checks)
                    && self.kind == WorkerKind::Own
                    && !self.runs =>
            {
                return Some(RunEnding::Prepared(script));
            }
            FromWorker::Prepared(_) => return Some(broke(&"a script for another worker")),
            FromWorker::Done(done) => return Some(RunEnding::Done(done)),
            FromWorker::Panicked(message) => {
                return Some(RunEnding::Broke(format!("the engine failed: {message}")));
            }
        }
        None
    }

    fn call(&mut self, call: EngineCall) -> Option<RunEnding> {
        let past = self.replay.look_up(&call);
        if let ReplayedCall::Differs(past) = &past {
            return Some(RunEnding::Diverged(difference(past, &call)));
        }
        let arguments = call.arguments.get();
        let entry =
            match self.call_table.begin(&call.name, arguments, self.calls.len(), self.limits) {
                Ok(entry) => entry,
                Err(refusal) => {
                    let thrown = ToolException::new(&*call.name, refusal.to_string());
                    if matches!(past, ReplayedCall::New) {
                        self.note_call(&call);
                    }
                    let outcome = match past {
                        // The script receives the recorded outcome when it is due.
                        ReplayedCall::Answered { .. } => return None,
                        ReplayedCall::Overdue(outcome) => outcome,
                        ReplayedCall::New | ReplayedCall::Unknown | ReplayedCall::Differs(_) => {
                            Err(thrown)
                        }
                    };
                    let at = self.replay.stamp();
                    self.complete(call.id, at, false, outcome);
                    return None;
                }
            };
        match past {
            ReplayedCall::Answered { failed } => {
                let state = failed.map_or(CallState::Completed, CallState::Failed);
                self.call_table.end(entry, state, 0);
                self.tools.on_event(&RunEvent::Repeated { id: call.id, place: call.place });
                return None;
            }
            ReplayedCall::Overdue(outcome) => {
                self.tools.on_event(&RunEvent::Repeated { id: call.id, place: call.place });
                let (id, name, answer) = (call.id, call.name, CallResponse::Ended(outcome));
                self.deferred.push(Ended { id, entry, name, answer });
                return None;
            }
            ReplayedCall::New => self.note_call(&call),
            ReplayedCall::Unknown | ReplayedCall::Differs(_) => {}
        }
        let token = self.token.child_token();
        let (id, name) = (call.id, call.name.clone());
        let response = self.tools.call(call, token);
        self.calls.push(response.map(move |answer| Ended { id, entry, name, answer }).boxed());
        None
    }

    fn note_call(&self, call: &EngineCall) {
        let EngineCall { id, name, arguments, .. } = call;
        self.tools.on_event(&RunEvent::Called { id: *id, name, arguments });
    }

    /// Handles a script that cannot continue before it receives something.
    fn waits(&mut self, wait: Wait) {
        self.replay.alarm = wait.until.map(Duration::from_micros);
        self.deliver_past();
        if wait.delivered < self.delivered {
            // A delivery is on its way.
            return;
        }
        self.replay.skip_absent();
        self.deliver_past();
        self.waiting_since = Some(wait.delivered);
    }

    /// Whether the script waits for calls that may not be made yet, and for nothing else. Such a call can end after the
    /// script has said that it waits.
    fn is_suspended(&self) -> bool {
        // Timers do not go off while a call waits for a person, so that they cannot change the
        // course of the script.
        let nothing_comes = self.waiting_since == Some(self.delivered) && self.calls.is_empty();
        self.suspended > 0 && nothing_comes
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn difference(past: &JournaledCall, call: &EngineCall) -> String {
    let shown = |name: &str, arguments: &str| format!("{name}({})", cut(arguments, SHOWN_BYTES));
    format!(
        "call {} was {} and is now {}",
        call.id,
        shown(&past.name, past.arguments.get()),
        shown(&call.name, call.arguments.get()),
    )
}

/// Bytes of the arguments that messages show.
const SHOWN_BYTES: usize = 200;

fn bounds(script: &SandboxScript, replay: &JournalReplay, limits: &RunLimits) -> RunBounds {
    // The system counts whole seconds, from the start of the worker.
    let cpu_seconds = limits.cpu.as_secs().saturating_add(2);
    RunBounds {
        memory_bytes: limits.memory_bytes,
        stack_bytes: limits.stack_bytes,
        cpu_seconds,
        value_bytes: limits.result_bytes,
        began: micros(replay.beginning.unix),
        seed: replay.beginning.seed,
        reports_waits: script.journal.is_some(),
    }
}

fn broke(what: &dyn std::fmt::Display) -> RunEnding {
    RunEnding::Broke(format!("the worker broke the protocol: {what}"))
}
