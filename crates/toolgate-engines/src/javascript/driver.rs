//! The life of a script: from its first line until nothing is left to do.

use rquickjs::{
    Context, Ctx, Error, Function, Persistent, Promise, Runtime, Value,
    context::EvalOptions,
    loader::{ImportAttributes, Loader, Resolver},
    module::{Declared, Module},
    promise::PromiseState,
};
use serde_json::value::RawValue;

use super::{
    failure,
    host::{self, Host},
    json,
};
use crate::engine::{EngineLimits, EngineOutcome, EngineScript, Function as Tool};

/// What stacks call the script.
pub(super) const FILE: &str = "script.js";
/// What stacks call the function that is the script's top level. No script can say it.
pub(super) const MAIN: &str = "<main>";
/// What makes a function body of a script. A method, because that has a name without binding one.
/// It is a line of its own, which stacks are told without: in the first line of a source QuickJS
/// is not sure of its columns.
const PREFIX: &str = "({async\"<main>\"(){\n";
const SUFFIX: &str = "\n}})[\"<main>\"]";

/// QuickJS ends the process when it cannot even make its own objects.
const LEAST_MEMORY: u64 = 1 << 20;
/// What the engine and the prelude take themselves.
const OWN_MEMORY: u64 = 1 << 20;
/// Given to a run that ended, to say what ended it.
const MEMORY_TO_TELL: usize = 8 << 20;
const LEAST_STACK: u64 = 64 << 10;

/// How a script ended, before anybody has put it into words.
pub(super) enum Ending {
    Value(Option<Box<RawValue>>),
    /// It has a NUL character, which no C string can.
    Unreadable,
    /// It does not parse.
    Syntax(Persistent<Value<'static>>),
    Threw(Persistent<Value<'static>>),
    /// It returned what has no JSON.
    Unwritable(Persistent<Value<'static>>),
    Stalled,
    Memory,
    /// It ended itself, with a code that says that it failed.
    Exited(f64),
    Abandoned,
}

impl Ending {
    /// What it comes to that a script ended itself with a code.
    fn of_exit(code: f64) -> Self {
        if code == 0.0 { Self::Value(None) } else { Self::Exited(code) }
    }
}

/// Runs a script within [`host::lend`].
pub(super) fn run(
    runtime: &Runtime,
    context: &Context,
    host: &Host,
    script: &EngineScript<'_>,
    limits: &EngineLimits,
) -> EngineOutcome {
    let memory = limits.memory_bytes.max(LEAST_MEMORY).saturating_add(OWN_MEMORY);
    let memory = usize::try_from(memory).unwrap_or(usize::MAX);
    let stack = limits.stack_bytes.max(LEAST_STACK);
    runtime.set_loader(NoModules, NoModules);
    runtime.set_max_stack_size(usize::try_from(stack).unwrap_or(usize::MAX));
    runtime.set_memory_limit(memory);
    let ending = Driver { runtime, context, host }.drive(script);
    // However the interrupted script looks.
    let ending = match host.exit_code() {
        _ if host.is_closed() => Ending::Abandoned,
        Some(code) => Ending::of_exit(code),
        None => ending,
    };
    if let Ending::Value(value) = ending {
        return EngineOutcome::Value(value);
    }
    let used = usize::try_from(runtime.memory_usage().malloc_size).unwrap_or(0);
    runtime.set_memory_limit(memory.saturating_add(MEMORY_TO_TELL));
    context.with(|ctx| {
        let outcome = failure::outcome(&ctx, host, script, ending, used > memory / 2);
        host.clear();
        outcome
    })
}

struct Driver<'a> {
    runtime: &'a Runtime,
    context: &'a Context,
    host: &'a Host,
}

/// What to do after a turn of the script's.
enum Next {
    /// Something can still happen.
    Wait,
    End(Ending),
}

impl Driver<'_> {
    fn drive(&self, script: &EngineScript<'_>) -> Ending {
        let main = match self.context.with(|ctx| self.start(&ctx, script)) {
            Ok(main) => main,
            Err(ending) => return ending,
        };
        loop {
            if let Err(ending) = self.run_jobs() {
                return ending;
            }
            match self.context.with(|ctx| self.look(&ctx, &main)) {
                Next::End(ending) => return ending,
                Next::Wait => {}
            }
            if let Err(ending) = self.wait() {
                return ending;
            }
        }
    }

    /// Runs the script until it first waits, and gives the promise of its end.
    fn start(
        &self,
        ctx: &Ctx<'_>,
        script: &EngineScript<'_>,
    ) -> Result<Persistent<Promise<'static>>, Ending> {
        self.define(ctx, script.functions).map_err(|error| ending_of(ctx, &error))?;
        let source = [PREFIX, script.source, SUFFIX].concat();
        let mut options = EvalOptions::default();
        options.filename = Some(FILE.to_owned());
        let main: Function<'_> =
            ctx.eval_with_options(source, options).map_err(|error| match error {
                // Nothing of the script has run: whatever it is, it is about its text.
                Error::Exception => Ending::Syntax(Persistent::save(ctx, ctx.catch())),
                Error::InvalidString(_) => Ending::Unreadable,
                other => ending_of(ctx, &other),
            })?;
        let promise: Promise<'_> = main.call(()).map_err(|error| ending_of(ctx, &error))?;
        check_lost(ctx)?;
        Ok(Persistent::save(ctx, promise))
    }

    fn define(&self, ctx: &Ctx<'_>, tools: &[Tool]) -> rquickjs::Result<()> {
        let define = self.host.internal(ctx, "define")?;
        for tool in tools {
            let example = format!("{}({{ {} }})", tool.name, tool.parameters.join(", "));
            define.call::<_, ()>((tool.name.as_str(), example))?;
        }
        Ok(())
    }

    /// Runs what promises have scheduled.
    fn run_jobs(&self) -> Result<(), Ending> {
        loop {
            if self.host.is_closed() {
                return Err(Ending::Abandoned);
            }
            if let Some(code) = self.host.exit_code() {
                return Err(Ending::of_exit(code));
            }
            match self.runtime.execute_pending_job() {
                Ok(true) => self.context.with(|ctx| check_lost(&ctx))?,
                Ok(false) => return Ok(()),
                // What scripts throw becomes a rejection. A job itself fails when it was
                // interrupted, or when there was no memory to make that rejection.
                Err(failed) => {
                    failed.0.with(|ctx| drop(ctx.catch()));
                    return Err(if self.host.is_closed() {
                        Ending::Abandoned
                    } else {
                        Ending::Memory
                    });
                }
            }
        }
    }

    /// Whether that was all. Like Node, a script ends when its calls and timers have, not before:
    /// what it started without waiting for it is meant to happen.
    fn look(&self, ctx: &Ctx<'_>, main: &Persistent<Promise<'static>>) -> Next {
        let main = match main.clone().restore(ctx) {
            Ok(main) => main,
            Err(error) => return Next::End(ending_of(ctx, &error)),
        };
        let state = main.state();
        // Not borrowed any longer than this: writing the value may run the script's code again.
        let timers_done = match (state, self.host.timers.borrow()) {
            (PromiseState::Pending, timers) => timers.is_empty(),
            (_, timers) => timers.lets_end(),
        };
        let idle = timers_done && !self.host.has_calls();
        match state {
            PromiseState::Rejected => Next::End(match main.result::<Value<'_>>() {
                Some(Err(error)) => ending_of(ctx, &error),
                _ => Ending::Stalled,
            }),
            _ if !idle => Next::Wait,
            state => Next::End(match (self.host.first_unhandled(ctx), state) {
                (Some(reason), _) => Ending::Threw(Persistent::save(ctx, reason)),
                (None, PromiseState::Resolved) => finish(ctx, &main),
                (None, _) => Ending::Stalled,
            }),
        }
    }

    /// Waits until something happens, and lets it happen.
    fn wait(&self) -> Result<(), Ending> {
        let deadline = self.host.timers.borrow().next_deadline();
        let completion = host::with_world(|world| world.wait(deadline)).map_err(|_| {
            self.host.close();
            Ending::Abandoned
        })?;
        let now = host::with_world(|world| world.now());
        self.host.timers.borrow_mut().reach(now);
        self.context.with(|ctx| {
            if let Some(completion) = completion {
                let settled = self.host.settle(&ctx, completion);
                settled.map_err(|error| ending_of(&ctx, &error))?;
            }
            check_lost(&ctx)?;
            // One: what it schedules comes before the next.
            let due = self.host.timers.borrow_mut().take_due();
            let Some(callback) = due else { return Ok(()) };
            let called =
                callback.restore(&ctx).and_then(|callback| callback.call::<_, Value<'_>>(()));
            called.map_err(|error| ending_of(&ctx, &error))?;
            check_lost(&ctx)
        })
    }
}

fn finish<'js>(ctx: &Ctx<'js>, main: &Promise<'js>) -> Ending {
    let value = match main.result::<Value<'js>>() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return ending_of(ctx, &error),
        None => return Ending::Stalled,
    };
    match json::write(ctx, value) {
        Ok(json) => Ending::Value(json),
        Err(Error::Exception) => Ending::Unwritable(Persistent::save(ctx, ctx.catch())),
        Err(other) => ending_of(ctx, &other),
    }
}

/// The binding fails without an exception where it could not allocate.
fn ending_of(ctx: &Ctx<'_>, error: &Error) -> Ending {
    match error {
        Error::Exception => Ending::Threw(Persistent::save(ctx, ctx.catch())),
        _ => Ending::Memory,
    }
}

/// Where QuickJS has no memory to go on after a promise was settled, it goes on without, and leaves
/// the exception behind: what waits for that promise would wait for ever.
fn check_lost(ctx: &Ctx<'_>) -> Result<(), Ending> {
    if ctx.has_exception() {
        drop(ctx.catch());
        return Err(Ending::Memory);
    }
    Ok(())
}

/// Answers every `import()`.
struct NoModules;

const NO_MODULES: &str = "there are no modules here: every tool is a global function, and what \
                          the language has is there without an import";

impl Resolver for NoModules {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        _base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        let message = format!("cannot import {name:?}: {NO_MODULES}");
        Err(rquickjs::Exception::throw_type(ctx, &message))
    }
}

impl Loader for NoModules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        _name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        Err(rquickjs::Exception::throw_type(ctx, NO_MODULES))
    }
}
