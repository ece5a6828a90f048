//! The host functions of a script: calls, timers, console, and unhandled rejections.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use rquickjs::{
    Ctx, Error, Exception, Function, Object, Persistent, Promise, Result, Runtime, Value,
};
use scoped_tls_hkt::scoped_thread_local;

use super::{
    json,
    marks::MarkedSource,
    results::{self, LastResults},
    timers::Timers,
};
use crate::world::{CallId, Completion, EngineCall, HostClosed, Stream, World};

scoped_thread_local!(static mut WORLD: dyn World);

/// Lends the world to the script's functions while `run` runs. They are created before the world
/// exists and are called by C code, so it cannot be passed as an argument.
pub(super) fn lend<R>(world: &mut dyn World, run: impl FnOnce() -> R) -> R {
    WORLD.set(world, run)
}

/// Uses the world that was lent. Engines run only within [`lend`].
pub(super) fn with_world<R>(reach: impl FnOnce(&mut dyn World) -> R) -> R {
    WORLD.with(reach)
}

/// The state of a run. It is cleared before the runtime is dropped.
#[derive(Default)]
pub(super) struct Host {
    calls: RefCell<HashMap<CallId, PendingPromise>>,
    next_call: Cell<CallId>,
    pub(super) timers: RefCell<Timers<Persistent<Function<'static>>>>,
    rejections: RefCell<Rejections>,
    pub(super) results: RefCell<LastResults>,
    /// The script as the engine reads it.
    pub(super) source: RefCell<MarkedSource>,
    internals: RefCell<HashMap<String, Persistent<Function<'static>>>>,
    prelude: RefCell<Option<(Persistent<Object<'static>>, Persistent<Object<'static>>)>>,
    closed: Cell<bool>,
    /// The exit code of the script.
    exit_code: Cell<Option<f64>>,
    /// How often the engine has asked whether to go on, which is a measure of its work.
    #[cfg(test)]
    pub(super) ticks: Cell<u64>,
    /// The state of the random number generator, once it was used.
    dice: Cell<Option<u64>>,
}

/// The start of a time measurement.
#[derive(Debug, Clone, Copy)]
pub(super) enum TimeBase {
    Epoch,
    Beginning,
}

/// A call with a pending promise.
struct PendingPromise {
    tool: String,
    resolve: Persistent<Function<'static>>,
    reject: Persistent<Function<'static>>,
    /// Created at the call, for its stack.
    error: Persistent<Value<'static>>,
}

/// Rejected promises without a handler, by identity.
#[derive(Default)]
struct Rejections {
    unhandled: HashMap<Persistent<Value<'static>>, (u64, Persistent<Value<'static>>)>,
    next: u64,
}

impl Host {
    /// Installs the callbacks of the runtime.
    pub(super) fn attach(self: &Rc<Self>, runtime: &Runtime) {
        let host = Rc::clone(self);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, handled| host.track(&ctx, promise, reason, handled),
        )));
        // Time is limited from outside. This only interrupts a script that has lost its host or has
        // exited.
        let host = Rc::clone(self);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            #[cfg(test)]
            host.ticks.set(host.ticks.get() + 1);
            host.closed.get() || host.exit_code.get().is_some()
        })));
    }

    /// Drops everything that belongs to the runtime.
    pub(super) fn clear(&self) {
        self.calls.borrow_mut().clear();
        self.timers.borrow_mut().clear();
        self.rejections.borrow_mut().unhandled.clear();
        self.results.borrow_mut().clear();
        self.internals.borrow_mut().clear();
        self.prelude.borrow_mut().take();
    }

    /// Whether the host is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    pub(super) fn close(&self) {
        self.closed.set(true);
    }

    /// The exit code of the script, if it has exited.
    pub(super) fn exit_code(&self) -> Option<f64> {
        self.exit_code.get()
    }

    /// Ends the script: none of its code runs any more.
    pub(super) fn exit(&self, code: f64) {
        self.exit_code.set(Some(code));
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.borrow().is_empty()
    }

    /// Stores a function of the prelude for the host.
    pub(super) fn keep_internal<'js>(&self, ctx: &Ctx<'js>, name: String, function: Function<'js>) {
        self.internals.borrow_mut().insert(name, Persistent::save(ctx, function));
    }

    /// Stores the arguments for the files of the prelude.
    pub(super) fn keep_prelude<'js>(
        &self,
        ctx: &Ctx<'js>,
        functions: Object<'js>,
        shared: Object<'js>,
    ) {
        let kept = (Persistent::save(ctx, functions), Persistent::save(ctx, shared));
        self.prelude.replace(Some(kept));
    }

    /// The arguments for the files of the prelude.
    pub(super) fn prelude<'js>(&self, ctx: &Ctx<'js>) -> Result<(Object<'js>, Object<'js>)> {
        let (functions, shared) = self.prelude.borrow().clone().ok_or(Error::Unknown)?;
        Ok((functions.restore(ctx)?, shared.restore(ctx)?))
    }

    /// A stored function of the prelude.
    pub(super) fn internal<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Result<Function<'js>> {
        let kept = self.internals.borrow().get(name).cloned();
        kept.ok_or(Error::Unknown)?.restore(ctx)
    }

    /// Submits a call and returns the promise of its result.
    pub(super) fn call<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: String,
        arguments: Value<'js>,
        error: Value<'js>,
        place: Option<u32>,
    ) -> Result<Promise<'js>> {
        let arguments = match json::write(ctx, arguments)? {
            Some(json) if json.get().starts_with('{') => json,
            _ => return Err(Exception::throw_type(ctx, &format!("{name} takes one object"))),
        };
        let (promise, resolve, reject) = ctx.promise()?;
        let id = self.next_call.get();
        self.next_call.set(id + 1);
        let pending = PendingPromise {
            tool: name.clone(),
            resolve: Persistent::save(ctx, resolve),
            reject: Persistent::save(ctx, reject),
            error: Persistent::save(ctx, error),
        };
        self.calls.borrow_mut().insert(id, pending);
        if let Err(HostClosed) =
            with_world(|world| world.submit(EngineCall { id, name, arguments, place }))
        {
            self.close();
        }
        Ok(promise)
    }

    /// The script's time in milliseconds, since 1970 or since the run began.
    pub(super) fn time(since: TimeBase) -> f64 {
        let time = with_world(|world| match since {
            TimeBase::Epoch => world.beginning().unix + world.now(),
            TimeBase::Beginning => world.now(),
        });
        time.as_secs_f64() * 1000.0
    }

    /// A random number from 0 to 1, deterministic for a seed.
    pub(super) fn random(&self) -> f64 {
        let state = self.dice.get().unwrap_or_else(|| with_world(|world| world.beginning().seed));
        let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.dice.set(Some(state));
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let number = ((mixed ^ (mixed >> 31)) >> 11) as f64;
        number / 9_007_199_254_740_992.0
    }

    /// Settles the promise of a call.
    pub(super) fn settle(&self, ctx: &Ctx<'_>, completion: Completion) -> Result<()> {
        let Some(pending) = self.calls.borrow_mut().remove(&completion.id) else {
            return Ok(());
        };
        let PendingPromise { tool, resolve, reject, error } = pending;
        match completion.outcome {
            Ok(json) => {
                let parse_exact = self.internal(ctx, "parseExact")?;
                match json::read(ctx, &parse_exact, json.get()) {
                    Ok(value) => {
                        results::remember(ctx, self, tool, &value, json.get().len());
                        if value.is_array() {
                            let mark = self.internal(ctx, "markResult")?;
                            mark.call::<_, ()>((value.clone(),))?;
                        }
                        resolve.restore(ctx)?.call((value,))
                    }
                    // Too deep or too large for the limits of the script, so the call fails.
                    Err(Error::Exception) => reject.restore(ctx)?.call((ctx.catch(),)),
                    Err(other) => Err(other),
                }
            }
            Err(thrown) => {
                let fail_call = self.internal(ctx, "failCall")?;
                let content = match thrown.content {
                    Some(blocks) => json::read(ctx, &self.internal(ctx, "parseExact")?, &blocks),
                    None => Ok(Value::new_undefined(ctx.clone())),
                };
                // Too deep or too large for the limits of the script: the message is there.
                let content = content.or_else(|error| match error {
                    Error::Exception => {
                        ctx.catch();
                        Ok(Value::new_undefined(ctx.clone()))
                    }
                    other => Err(other),
                })?;
                let (message, tool) = (thrown.message, thrown.tool);
                let error: Value<'_> =
                    fail_call.call((error.restore(ctx)?, message, tool, content))?;
                reject.restore(ctx)?.call((error,))
            }
        }
    }

    /// The reason of the earliest unhandled rejection.
    pub(super) fn first_unhandled<'js>(&self, ctx: &Ctx<'js>) -> Option<Value<'js>> {
        let rejections = self.rejections.borrow();
        let (_, reason) = rejections.unhandled.values().min_by_key(|(order, _)| *order)?;
        reason.clone().restore(ctx).ok()
    }

    pub(super) fn write(stream: Stream, text: &str) {
        with_world(|world| world.write(stream, text));
    }

    pub(super) fn emit<'js>(ctx: &Ctx<'js>, block: Value<'js>) -> Result<()> {
        let Some(block) = json::write(ctx, block)? else {
            return Err(Exception::throw_type(ctx, "emit takes a content block"));
        };
        with_world(|world| world.emit(block));
        Ok(())
    }

    fn track<'js>(&self, ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>, handled: bool) {
        let promise = Persistent::save(ctx, promise);
        let mut rejections = self.rejections.borrow_mut();
        if handled {
            // Dropping a reason runs no code of the script, but may free the promise.
            let gone = rejections.unhandled.remove_entry(&promise);
            drop(rejections);
            drop(gone);
        } else {
            let order = rejections.next;
            rejections.next += 1;
            rejections.unhandled.insert(promise, (order, Persistent::save(ctx, reason)));
        }
    }
}
