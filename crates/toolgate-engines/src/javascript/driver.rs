//! Runs a script from its first line until nothing is left to do.

use rquickjs::{
    Array, Context, Ctx, Error, Function, Persistent, Promise, Runtime, Value,
    context::EvalOptions,
    function::Args,
    loader::{ImportAttributes, Loader, Resolver},
    module::{Declared, Module},
    promise::PromiseState,
};
use serde_json::value::RawValue;

use super::{
    failure,
    host::{self, Host},
    json,
    marks::MarkedSource,
};
use crate::engine::{EngineLimits, EngineOutcome, EngineScript, Function as Tool};

/// The name of the script in stacks.
pub(super) const FILE: &str = "script.js";
/// The name of the script's top-level function in stacks. No script can use it.
pub(super) const MAIN: &str = "<main>";
/// Turns a script into the body of an async function. It is a method, because that has a name
/// without binding one. The prefix is a line of its own, which stacks leave out, because QuickJS
/// reports wrong columns in the first line of a source. The variable of the marks is a parameter around
/// it: a statement would come before `"use strict"`. With the script comes a function that forgets its
/// value.
const PREFIX: [&str; 2] = ["((", ")=>[({async\"<main>\"(){\n"];
const SUFFIX: [&str; 2] = ["\n}})[\"<main>\"],()=>{", "=0}])()"];
/// What is around that, if places of the script have names of their own. They are parameters, so
/// that a script cannot reach them as properties.
const PLACES: [&str; 3] = ["((", ")=>", ")"];

/// QuickJS ends the process when it cannot allocate its own objects.
const LEAST_MEMORY: u64 = 1 << 20;
/// Memory that the engine and the prelude use.
const OWN_MEMORY: u64 = 1 << 20;
/// Extra memory for describing the failure of a run that has ended.
const MEMORY_FOR_FAILURE: usize = 8 << 20;
const LEAST_STACK: u64 = 64 << 10;

/// How a script ended, before it is converted to an outcome.
pub(super) enum Ending {
    Value(Option<Box<RawValue>>),
    /// The source contains a NUL character, which QuickJS cannot read.
    Unreadable,
    /// It does not parse.
    Syntax(Persistent<Value<'static>>),
    Threw(Persistent<Value<'static>>),
    /// The script returned a value that has no JSON form.
    Unwritable(Persistent<Value<'static>>),
    Stalled,
    Memory,
    /// The script exited with a code that means failure.
    Exited(f64),
    Abandoned,
}

impl Ending {
    /// The ending for an exit code.
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
    if !host.is_closed() {
        context.with(|ctx| {
            let told = host.internal(&ctx, "tellReads").and_then(|tell| tell.call::<_, ()>(()));
            if told.is_err() {
                // There is no memory for it, or the script has exited.
                drop(ctx.catch());
            }
        });
    }
    // The exit code counts, whatever state the interrupted script is in.
    let ending = match host.exit_code() {
        _ if host.is_closed() => Ending::Abandoned,
        Some(code) => Ending::of_exit(code),
        None => ending,
    };
    if let Ending::Value(value) = ending {
        return EngineOutcome::Value(value);
    }
    let used = usize::try_from(runtime.memory_usage().malloc_size).unwrap_or(0);
    runtime.set_memory_limit(memory.saturating_add(MEMORY_FOR_FAILURE));
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

/// A script that runs.
struct StartedScript {
    /// The promise of its end.
    main: Persistent<Promise<'static>>,
    /// Forgets the last argument, which the marks keep.
    forget: Persistent<Function<'static>>,
}

/// What to do after running the scheduled jobs.
enum Next {
    /// Something can still happen.
    Wait,
    End(Ending),
}

impl Driver<'_> {
    fn drive(&self, script: &EngineScript<'_>) -> Ending {
        let StartedScript { main, forget } = match self.context.with(|ctx| self.start(&ctx, script))
        {
            Ok(started) => started,
            Err(ending) => return ending,
        };
        loop {
            if let Err(ending) = self.run_jobs() {
                return ending;
            }
            // Otherwise what was passed last would stay while the script waits.
            let forgotten = self.context.with(|ctx| {
                let called = forget.clone().restore(&ctx).and_then(|it| it.call::<_, ()>(()));
                called.map_err(|error| ending_of(&ctx, &error))
            });
            if let Err(ending) = forgotten {
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

    /// Runs the script until it first waits.
    fn start(&self, ctx: &Ctx<'_>, script: &EngineScript<'_>) -> Result<StartedScript, Ending> {
        self.define(ctx, script).map_err(|error| ending_of(ctx, &error))?;
        let names: Vec<&str> = script.places.iter().map(|place| place.alias.as_str()).collect();
        let [open, arrow, close] = PLACES;
        let (before, after) = if names.is_empty() {
            (String::new(), "")
        } else {
            ([open, &names.join(","), arrow].concat(), close)
        };
        let marked = MarkedSource::of(script.source);
        let [head, body] = PREFIX;
        let [end, forgets] = SUFFIX;
        // A script that does not parse has no marks.
        let variable = if marked.variable.is_empty() { "$_" } else { &marked.variable };
        let source =
            [&before, head, variable, body, &marked.text, end, variable, forgets, after].concat();
        self.host.source.replace(marked);
        let mut options = EvalOptions::default();
        options.filename = Some(FILE.to_owned());
        let mut made: Value<'_> =
            ctx.eval_with_options(source, options).map_err(|error| match error {
                // Nothing of the script has run, so the error is about its source.
                Error::Exception => Ending::Syntax(Persistent::save(ctx, ctx.catch())),
                Error::InvalidString(_) => Ending::Unreadable,
                other => ending_of(ctx, &other),
            })?;
        let failed = |error| ending_of(ctx, &error);
        if !names.is_empty() {
            let script_of = made.get().map_err(failed)?;
            made = self.with_places(ctx, &script_of, script).map_err(failed)?;
        }
        let made: Array<'_> = made.get().map_err(failed)?;
        let main: Function<'_> = made.get(0).map_err(failed)?;
        let forget: Function<'_> = made.get(1).map_err(failed)?;
        let promise: Promise<'_> = main.call(()).map_err(failed)?;
        check_lost(ctx)?;
        Ok(StartedScript {
            main: Persistent::save(ctx, promise),
            forget: Persistent::save(ctx, forget),
        })
    }

    fn define(&self, ctx: &Ctx<'_>, script: &EngineScript<'_>) -> rquickjs::Result<()> {
        let define = self.host.internal(ctx, "define")?;
        for tool in script.functions {
            define.call::<_, ()>((tool.name.as_str(), example(tool)))?;
        }
        if computes_globals(script.source) {
            self.host.internal(ctx, "openGlobal")?.call::<_, ()>(())?;
        }
        Ok(())
    }

    /// Gives the script the functions of its places.
    fn with_places<'js>(
        &self,
        ctx: &Ctx<'js>,
        script_of: &Function<'js>,
        script: &EngineScript<'_>,
    ) -> rquickjs::Result<Value<'js>> {
        let define = self.host.internal(ctx, "definePlace")?;
        let mut functions = Args::new(ctx.clone(), script.places.len());
        for (number, place) in (0_u32..).zip(script.places) {
            let tool = script.functions.iter().find(|tool| tool.name == place.function);
            let example = tool.map_or_else(|| format!("{}({{ … }})", place.function), example);
            let made: Value<'js> = define.call((place.function.as_str(), example, number))?;
            functions.push_arg(made)?;
        }
        script_of.call_arg(functions)
    }

    /// Runs the jobs that promises have scheduled.
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
                // What scripts throw becomes a rejection. A job itself fails only if it was
                // interrupted, or if there was no memory for that rejection.
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

    /// Whether the script has ended. As in Node, it ends only when its calls and timers have ended:
    /// what it started without waiting is meant to happen.
    fn look(&self, ctx: &Ctx<'_>, main: &Persistent<Promise<'static>>) -> Next {
        let main = match main.clone().restore(ctx) {
            Ok(main) => main,
            Err(error) => return Next::End(ending_of(ctx, &error)),
        };
        let state = main.state();
        // Borrowed no longer than this, because writing the value may run code of the script.
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

    /// Waits for the next event and handles it.
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
            // Only one, because jobs that it schedules run before the next one.
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
    match json::write_shown(ctx, value) {
        Ok(json) => Ending::Value(json),
        Err(Error::Exception) => Ending::Unwritable(Persistent::save(ctx, ctx.catch())),
        Err(other) => ending_of(ctx, &other),
    }
}

/// QuickJS fails without an exception if it could not allocate.
fn ending_of(ctx: &Ctx<'_>, error: &Error) -> Ending {
    match error {
        Error::Exception => Ending::Threw(Persistent::save(ctx, ctx.catch())),
        _ => Ending::Memory,
    }
}

/// Whether a script reads globals by names that it computes, or calls them by names in quotes.
fn computes_globals(source: &str) -> bool {
    source.match_indices("globalThis").any(|(at, name)| {
        let after = source[at + name.len()..].trim_start_matches("?.").trim_start();
        let Some(key) = after.strip_prefix('[').map(str::trim_start) else { return false };
        let Some(quote) = key.chars().next().filter(|first| ['"', '\''].contains(first)) else {
            return true;
        };
        let Some((_, rest)) = key[1..].split_once(quote) else { return true };
        // Otherwise the text in quotes is only a part of the name.
        let Some(rest) = rest.trim_start().strip_prefix(']') else { return true };
        rest.trim_start_matches("?.").trim_start().starts_with('(')
    })
}

/// How a tool is called.
fn example(tool: &Tool) -> String {
    format!("{}({{ {} }})", tool.name, tool.parameters.join(", "))
}

/// If QuickJS has no memory to continue after a promise was settled, it skips the continuation and
/// leaves the exception behind. Without this check, code that waits for that promise would wait for
/// ever.
fn check_lost(ctx: &Ctx<'_>) -> Result<(), Ending> {
    if ctx.has_exception() {
        drop(ctx.catch());
        return Err(Ending::Memory);
    }
    Ok(())
}

/// Refuses every `import()`.
struct NoModules;

const NO_MODULES: &str = "there are no modules here but some of Node, by a plain `import`: every \
                          tool is a global function, and what the language has is there without one";

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
