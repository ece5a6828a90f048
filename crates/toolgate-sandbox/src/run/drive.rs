//! The conversation with one worker.

mod answers;
mod pending;

use std::{
    io,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::value::RawValue;
use tokio::time::{Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_bindings::check::Finding;
use toolgate_engines::{Call, Thrown};

use self::{
    answers::bytes_of,
    pending::{Describing, Ended, InFlight, maybe},
};
use super::{
    ledger::Ledger,
    timeline::{Past, Timeline},
    wire::Wire,
};
use crate::{
    captured::Capture,
    clock::RunClock,
    frame::{Done, FromWorker, Start, ToWorker, Wait, cut},
    history::{Happened, PastCall},
    limits::{RunLimits, Stop},
    pool::Worker,
    report::CallState,
    script::Script,
    system::clock::CpuClock,
    tools::{Answer, Tools},
};

/// A moment that is after every run.
const NEVER: Duration = Duration::from_hours(24 * 365);

/// How a conversation ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// The worker said so.
    Done(Done),
    /// A limit was met.
    Stop(Stop),
    /// Nobody wants the result any more.
    Cancelled,
    /// Nothing more can happen before calls are made that may not be made yet.
    Suspended,
    /// The script does not do what it did before.
    Diverged(String),
    /// The worker closed its end.
    Gone,
    /// The worker said what it may not say, or that it cannot go on.
    Broke(String),
}

/// One run.
pub(super) struct Drive<'a> {
    pub(super) worker: Worker,
    pub(super) wire: Wire,
    pub(super) limits: &'a RunLimits,
    pub(super) started: Instant,
    pub(super) is_ready: bool,
    /// Whether the worker said anything of the script.
    pub(super) has_begun: bool,
    /// Whether the script runs: before that, the worker has questions of its own.
    runs: bool,
    pub(super) ledger: Ledger,
    pub(super) capture: Capture,
    pub(super) emitted: Vec<Box<RawValue>>,
    emitted_bytes: u64,
    pub(super) warnings: Vec<Finding>,
    pub(super) calls: FuturesUnordered<InFlight>,
    describing: Option<Describing>,
    timeline: Timeline,
    /// Calls that ended before the script was told all of its past.
    held: Vec<Ended>,
    /// Calls that may not be made yet.
    suspended: usize,
    /// How often the script was told something.
    told: u64,
    tools: Arc<dyn Tools>,
    cancel: &'a CancellationToken,
    /// What calls are cancelled by.
    pub(super) token: CancellationToken,
    /// Cancels them however this ends.
    _guard: DropGuard,
    cpu_clock: Option<CpuClock>,
    /// CPU time that the worker used before it got the script.
    before: Duration,
}

impl<'a> Drive<'a> {
    pub(super) fn new(
        mut worker: Worker,
        script: &Script,
        limits: &'a RunLimits,
        tools: Arc<dyn Tools>,
        cancel: &'a CancellationToken,
        started: Instant,
        clock: &RunClock,
    ) -> io::Result<Self> {
        let cpu_clock = worker.clock();
        let before = cpu_clock.and_then(CpuClock::used).unwrap_or_default();
        let mut wire = Wire::new(worker.stream()?);
        let timeline = Timeline::new(script.history.clone(), clock.clone());
        if script.history.is_none() {
            tools.happened(&Happened::Began(timeline.beginning));
        }
        wire.send(&ToWorker::Start(start(script, &timeline, limits)));
        wire.try_send();
        let token = cancel.child_token();
        Ok(Self {
            worker,
            wire,
            limits,
            started,
            is_ready: false,
            has_begun: false,
            runs: false,
            ledger: Ledger::new(started),
            capture: Capture::new(limits.output_bytes),
            emitted: Vec::new(),
            emitted_bytes: 0,
            warnings: Vec::new(),
            calls: FuturesUnordered::new(),
            describing: None,
            timeline,
            held: Vec::new(),
            suspended: 0,
            told: 0,
            tools,
            cancel,
            _guard: token.clone().drop_guard(),
            token,
            cpu_clock,
            before,
        })
    }

    /// Talks until there is nothing more to say.
    pub(super) async fn converse(&mut self) -> Ending {
        let cancelled = self.cancel.cancelled();
        tokio::pin!(cancelled);
        let wall = self.timeline.clock().reach(self.limits.wall.min(NEVER));
        tokio::pin!(wall);
        // Set when the worker is ready: what it used before is not the script's.
        let cpu = sleep_until((self.started + NEVER).into());
        tokio::pin!(cpu);
        loop {
            if let Some(ending) = self.hear(cpu.as_mut()) {
                return ending;
            }
            self.tell_past();
            self.wire.try_send();
            let describing = self.describing.is_some();
            let alarmed = self.timeline.alarm_at().filter(|_| !self.timeline.is_replaying());
            let alarm = self.timeline.clock().reach(alarmed.unwrap_or(NEVER));
            tokio::select! {
                biased;
                () = &mut cancelled => return Ending::Cancelled,
                () = &mut wall => return Ending::Stop(Stop::Wall { limit: self.limits.wall }),
                () = &mut cpu => {
                    let left = self.limits.cpu.saturating_sub(self.cpu_used());
                    if left.is_zero() {
                        return Ending::Stop(Stop::Cpu { limit: self.limits.cpu });
                    }
                    // One thread's time cannot pass faster than time: until then there is
                    // nothing to look at.
                    cpu.as_mut().reset((Instant::now() + left).into());
                }
                Some(ended) = self.calls.next(), if !self.calls.is_empty() => {
                    self.answer_together(ended);
                }
                () = alarm, if alarmed.is_some() => self.tell_time(),
                Some(found) = maybe(&mut self.describing), if describing => {
                    self.describing = None;
                    self.wire.send(&ToWorker::Described(found));
                }
                open = self.wire.progress() => {
                    if !open {
                        return Ending::Gone;
                    }
                }
            }
        }
    }

    /// CPU time that the script used.
    pub(super) fn cpu_used(&self) -> Duration {
        let used = self.cpu_clock.and_then(CpuClock::used).unwrap_or_default();
        used.saturating_sub(self.before)
    }

    /// Takes a content block, unless they are too much together.
    pub(super) fn take_block(&mut self, block: Box<RawValue>) -> Option<Ending> {
        self.emitted_bytes = self.emitted_bytes.saturating_add(bytes_of(&block));
        if self.emitted_bytes > self.limits.result_bytes {
            return Some(Ending::Stop(Stop::Emitted { limit: self.limits.result_bytes }));
        }
        self.emitted.push(block);
        None
    }

    /// Acts on what the worker said, as far as it has come.
    fn hear(&mut self, mut cpu: Pin<&mut Sleep>) -> Option<Ending> {
        // A worker that does not read its answers gets no further ones.
        while self.wire.has_room() {
            let frame = match self.wire.next_frame() {
                Ok(frame) => frame?,
                Err(error) => return Some(broke(&error)),
            };
            match frame {
                FromWorker::Ready(report) if !self.is_ready => {
                    if let Some(lacking) = report.lacking() {
                        return Some(Ending::Broke(format!(
                            "the worker cannot give up what it must on this system: {lacking}"
                        )));
                    }
                    self.is_ready = true;
                    self.wire.allow(self.limits.result_bytes);
                    // One that was still starting when it was sent the script has begun with it
                    // only now, unless it has even finished meanwhile.
                    if !self.wire.has_more() {
                        self.before = self.cpu_clock.and_then(CpuClock::used).unwrap_or_default();
                    }
                    if self.cpu_clock.is_some() {
                        let limit = self.limits.cpu.min(NEVER);
                        cpu.as_mut().reset((Instant::now() + limit).into());
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
    fn act_on(&mut self, frame: FromWorker) -> Option<Ending> {
        self.runs |= !matches!(frame, FromWorker::Describe(_) | FromWorker::Warned(_));
        match frame {
            FromWorker::Ready(_) => return Some(broke(&"ready a second time")),
            FromWorker::Describe(_) if self.describing.is_some() => {
                return Some(broke(&"a question before the last one was answered"));
            }
            FromWorker::Describe(names) => {
                self.describing = Some(Describing(self.tools.describe(names)));
            }
            FromWorker::Call(call) if !self.ledger.is_new(call.id) => {
                return Some(broke(&"the number of an earlier call"));
            }
            FromWorker::Call(call) => return self.call(call),
            FromWorker::Waits(wait) => return self.waits(wait),
            FromWorker::Output(_, text) => {
                self.capture.push(&text);
                let limit = self.limits.flood_bytes();
                if self.capture.total() > limit {
                    return Some(Ending::Stop(Stop::Output { limit }));
                }
            }
            FromWorker::Emit(block) => return self.take_block(block),
            FromWorker::Warned(_) if !self.warnings.is_empty() => {
                return Some(broke(&"warnings a second time"));
            }
            FromWorker::Warned(findings) => self.warnings = findings,
            FromWorker::Done(done) => return Some(Ending::Done(done)),
            FromWorker::Panicked(message) => {
                return Some(Ending::Broke(format!("the engine failed: {message}")));
            }
        }
        None
    }

    fn call(&mut self, call: Call) -> Option<Ending> {
        let past = self.timeline.look_up(&call);
        if let Past::Differs(past) = &past {
            return Some(Ending::Diverged(difference(past, &call)));
        }
        let arguments = call.arguments.get();
        let entry = match self.ledger.begin(&call.name, arguments, self.calls.len(), self.limits) {
            Ok(entry) => entry,
            Err(refusal) => {
                let thrown = Thrown { tool: call.name.clone(), message: refusal.to_string() };
                if matches!(past, Past::New) {
                    self.note_call(&call);
                }
                let outcome = match past {
                    // What came of it before is told again in its turn.
                    Past::Answered { .. } => return None,
                    Past::Overdue(outcome) => outcome,
                    Past::New | Past::Unknown | Past::Differs(_) => Err(thrown),
                };
                let at = self.timeline.stamp();
                self.complete(call.id, at, false, outcome);
                return None;
            }
        };
        match past {
            Past::Answered { failed } => {
                let state = failed.map_or(CallState::Completed, CallState::Failed);
                self.ledger.end(entry, state, 0);
                self.tools.happened(&Happened::Repeated { id: call.id });
                return None;
            }
            Past::Overdue(outcome) => {
                self.tools.happened(&Happened::Repeated { id: call.id });
                let (id, name, answer) = (call.id, call.name, Answer::Ended(outcome));
                self.held.push(Ended { id, entry, name, answer });
                return None;
            }
            Past::New => self.note_call(&call),
            Past::Unknown | Past::Differs(_) => {}
        }
        let token = self.token.child_token();
        let future = self.tools.call(call.id, call.name.clone(), call.arguments, token);
        self.calls.push(InFlight { id: call.id, entry, name: call.name, future });
        None
    }

    fn note_call(&self, call: &Call) {
        let Call { id, name, arguments } = call;
        self.tools.happened(&Happened::Called { id: *id, name, arguments });
    }

    /// The script can do nothing more until it is told something.
    fn waits(&mut self, wait: Wait) -> Option<Ending> {
        self.timeline.alarm = wait.until.map(Duration::from_micros);
        self.tell_past();
        if wait.told < self.told {
            // There is something on its way to it.
            return None;
        }
        self.timeline.skip_absent();
        self.tell_past();
        // Timers do not go off while a person is waited for, so that they cannot change its course.
        let nothing_comes = self.told == wait.told && self.calls.is_empty();
        (self.suspended > 0 && nothing_comes).then_some(Ending::Suspended)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn difference(past: &PastCall, call: &Call) -> String {
    let shown = |name: &str, arguments: &str| format!("{name}({})", cut(arguments, SHOWN_BYTES));
    format!(
        "call {} was {} and is now {}",
        call.id + 1,
        shown(&past.name, past.arguments.get()),
        shown(&call.name, call.arguments.get()),
    )
}

/// What is shown of a call's arguments.
const SHOWN_BYTES: usize = 200;

fn start(script: &Script, timeline: &Timeline, limits: &RunLimits) -> Start {
    // The system counts in seconds, and from the start of the worker.
    let cpu_seconds = limits.cpu.as_secs().saturating_add(2);
    Start {
        code: script.code.clone(),
        language: script.language,
        memory_bytes: limits.memory_bytes,
        stack_bytes: limits.stack_bytes,
        cpu_seconds,
        value_bytes: limits.result_bytes,
        began: micros(timeline.beginning.unix),
        seed: timeline.beginning.seed,
        tells: script.history.is_some(),
    }
}

fn broke(what: &dyn std::fmt::Display) -> Ending {
    Ending::Broke(format!("the worker broke the protocol: {what}"))
}
