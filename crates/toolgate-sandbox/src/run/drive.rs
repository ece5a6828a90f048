//! The conversation with one worker.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
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
use toolgate_bindings::check::{Finding, Found};
use toolgate_engines::{Call, CallId, Completion, Thrown};

use super::{
    ledger::{Entry, Ledger},
    wire::Wire,
};
use crate::{
    captured::Capture,
    frame::{Done, FromWorker, Start, ToWorker},
    limits::{Refusal, RunLimits, Stop},
    pool::Worker,
    report::CallState,
    script::Script,
    system::clock::CpuClock,
    tools::Tools,
};

/// Completions that are sent together at most, if so many are there.
const BATCH: usize = 64;
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
    pub(super) ledger: Ledger,
    pub(super) capture: Capture,
    pub(super) emitted: Vec<Box<RawValue>>,
    emitted_bytes: u64,
    pub(super) warnings: Vec<Finding>,
    pub(super) calls: FuturesUnordered<InFlight>,
    describing: Option<Describing>,
    tools: Arc<dyn Tools>,
    cancel: &'a CancellationToken,
    /// What calls are cancelled by.
    pub(super) token: CancellationToken,
    /// Cancels them however this ends.
    _guard: DropGuard,
    clock: Option<CpuClock>,
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
    ) -> io::Result<Self> {
        let clock = worker.clock();
        let before = clock.and_then(CpuClock::used).unwrap_or_default();
        let mut wire = Wire::new(worker.stream()?);
        wire.send(&ToWorker::Start(start(script, limits)));
        wire.try_send();
        let token = cancel.child_token();
        Ok(Self {
            worker,
            wire,
            limits,
            started,
            is_ready: false,
            has_begun: false,
            ledger: Ledger::new(started),
            capture: Capture::new(limits.output_bytes),
            emitted: Vec::new(),
            emitted_bytes: 0,
            warnings: Vec::new(),
            calls: FuturesUnordered::new(),
            describing: None,
            tools,
            cancel,
            _guard: token.clone().drop_guard(),
            token,
            clock,
            before,
        })
    }

    /// Talks until there is nothing more to say.
    pub(super) async fn converse(&mut self) -> Ending {
        let cancelled = self.cancel.cancelled();
        tokio::pin!(cancelled);
        let wall = sleep_until((self.started + self.limits.wall.min(NEVER)).into());
        tokio::pin!(wall);
        // Set when the worker is ready: what it used before is not the script's.
        let cpu = sleep_until((self.started + NEVER).into());
        tokio::pin!(cpu);
        loop {
            if let Some(ending) = self.hear(cpu.as_mut()) {
                return ending;
            }
            self.wire.try_send();
            let describing = self.describing.is_some();
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
                    self.answer(ended);
                    self.answer_more();
                }
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
        let used = self.clock.and_then(CpuClock::used).unwrap_or_default();
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
                        self.before = self.clock.and_then(CpuClock::used).unwrap_or_default();
                    }
                    if self.clock.is_some() {
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
            FromWorker::Call(call) => self.call(call),
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

    fn call(&mut self, call: Call) {
        let arguments = call.arguments.get();
        match self.ledger.begin(&call.name, arguments, self.calls.len(), self.limits) {
            Ok(entry) => {
                let token = self.token.child_token();
                let future = self.tools.call(call.name.clone(), call.arguments, token);
                self.calls.push(InFlight { id: call.id, entry, name: call.name, future });
            }
            Err(refusal) => {
                let thrown = Thrown { tool: call.name, message: refusal.to_string() };
                self.complete(call.id, Err(thrown));
            }
        }
    }

    /// Passes on what came of a call.
    fn answer(&mut self, ended: Ended) {
        let Ended { id, entry, name, result } = ended;
        let (state, bytes, outcome) = match result {
            Ok(value) => {
                let (bytes, limit) = (bytes_of(&value), self.limits.result_bytes);
                if bytes > limit {
                    let message = Refusal::Result { bytes, limit }.to_string();
                    let state = CallState::Undelivered(message.clone());
                    (state, bytes, Err(Thrown { tool: name, message }))
                } else {
                    (CallState::Completed, bytes, Ok(value))
                }
            }
            Err(thrown) => (CallState::Failed(thrown.message.clone()), 0, Err(thrown)),
        };
        self.ledger.end(entry, state, bytes);
        self.complete(id, outcome);
    }

    /// Others that have come to their end by now, to be sent together.
    fn answer_more(&mut self) {
        for _ in 1..BATCH {
            if self.calls.is_empty() || !self.wire.has_room() {
                return;
            }
            match self.calls.next().now_or_never() {
                Some(Some(ended)) => self.answer(ended),
                _ => return,
            }
        }
    }

    fn complete(&mut self, id: CallId, outcome: Result<Box<RawValue>, Thrown>) {
        self.wire.send(&ToWorker::Completed(Completion { id, outcome }));
    }
}

fn start(script: &Script, limits: &RunLimits) -> Start {
    // The system counts in seconds, and from the start of the worker.
    let cpu_seconds = limits.cpu.as_secs().saturating_add(2);
    Start {
        code: script.code.clone(),
        language: script.language,
        memory_bytes: limits.memory_bytes,
        stack_bytes: limits.stack_bytes,
        cpu_seconds,
        value_bytes: limits.result_bytes,
    }
}

fn broke(what: &dyn std::fmt::Display) -> Ending {
    Ending::Broke(format!("the worker broke the protocol: {what}"))
}

fn bytes_of(value: &RawValue) -> u64 {
    u64::try_from(value.get().len()).unwrap_or(u64::MAX)
}

/// The answer to a question that was asked; to be awaited only if there is one.
async fn maybe(describing: &mut Option<Describing>) -> Option<Vec<Found>> {
    match describing {
        Some(Describing(future)) => Some(future.await),
        None => None,
    }
}

/// A question that the host is looking into.
struct Describing(BoxFuture<'static, Vec<Found>>);

impl std::fmt::Debug for Describing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Describing")
    }
}

/// A call that has no answer yet.
pub(super) struct InFlight {
    id: CallId,
    entry: Entry,
    name: String,
    future: BoxFuture<'static, Result<Box<RawValue>, Thrown>>,
}

impl std::fmt::Debug for InFlight {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("InFlight").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A call that has one.
#[derive(Debug)]
pub(super) struct Ended {
    id: CallId,
    entry: Entry,
    name: String,
    result: Result<Box<RawValue>, Thrown>,
}

impl Future for InFlight {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended> {
        let this = &mut *self;
        this.future.as_mut().poll(context).map(|result| Ended {
            id: this.id,
            entry: this.entry,
            name: std::mem::take(&mut this.name),
            result,
        })
    }
}
