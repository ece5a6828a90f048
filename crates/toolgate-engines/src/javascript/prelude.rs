//! The environment of a script.

use std::rc::Rc;

use rquickjs::{
    Ctx, Error, Exception, Function, Object, Persistent, Promise, Result, Value,
    context::EvalOptions,
};

use super::{
    bytes,
    driver::{FILE, MAIN},
    globals::{ABSENT, Form, SYSTEM},
    host::{Host, TimeBase},
    timers::TimerKind,
};
use crate::world::Stream;

/// The longest message or stack.
pub(super) const MESSAGE_LIMIT: usize = 8_000;

/// A file of the prelude: an expression that evaluates to a function of the host functions and of
/// the shared definitions.
struct Chunk {
    name: &'static str,
    source: &'static str,
}

macro_rules! chunk {
    ($name:literal) => {
        Chunk { name: $name, source: include_str!(concat!("prelude/", $name, ".js")) }
    };
}

/// The files that run when the engine is made, in this order.
const EAGER: &[Chunk] = &[
    chunk!("time"),
    chunk!("shared"),
    chunk!("arrays"),
    chunk!("weak"),
    chunk!("errors"),
    chunk!("json"),
    chunk!("calls"),
    chunk!("timers"),
    chunk!("unavailable"),
    chunk!("process"),
    chunk!("console"),
    chunk!("lazy"),
];

/// The files that are compiled when a script first uses a definition of theirs.
const LAZY: &[Chunk] = &[
    chunk!("inspect"),
    chunk!("describe"),
    chunk!("console_more"),
    chunk!("encoding"),
    chunk!("bytes"),
    chunk!("modules"),
    chunk!("modules_more"),
    chunk!("shapes"),
    chunk!("url"),
    chunk!("clone"),
    chunk!("abort"),
    chunk!("locales"),
    chunk!("numbers"),
    chunk!("zones"),
    chunk!("dates"),
    chunk!("texts"),
];

/// Runs the prelude in a fresh context.
pub(super) fn install<'js>(ctx: &Ctx<'js>, host: &Rc<Host>) -> Result<()> {
    let functions = functions(ctx, host)?;
    let shared = Object::new(ctx.clone())?;
    host.keep_prelude(ctx, functions.clone(), shared.clone());
    for chunk in EAGER {
        let run: Function<'js> = evaluate(ctx, chunk)?;
        run.call::<_, ()>((functions.clone(), shared.clone()))?;
    }
    host.internal(ctx, "makeProcess")?.call::<_, ()>((SYSTEM,))?;
    let withhold = host.internal(ctx, "withhold")?;
    for absent in ABSENT {
        let is_function = match absent.form {
            Form::Function => true,
            Form::Object => false,
            // The name does not exist at all; the failure contains the advice.
            Form::Undefined => continue,
        };
        withhold.call::<_, ()>((absent.name, absent.advice, is_function))?;
    }
    Ok(())
}

/// Compiles the parts that most scripts use.
pub(super) fn warm(ctx: &Ctx<'_>, host: &Host) -> Result<()> {
    describe(ctx, host)?;
    let (_, shared) = host.prelude(ctx)?;
    shared.get::<_, Function<'_>>("inspector")?.call::<_, Value<'_>>(()).map(drop)
}

/// The function that describes a thrown value. Few scripts need it.
pub(super) fn describe<'js>(ctx: &Ctx<'js>, host: &Host) -> Result<Function<'js>> {
    loaded(ctx, host, "describe", "describe")
}

/// The function that says what a result looks like.
pub(super) fn shape<'js>(ctx: &Ctx<'js>, host: &Host) -> Result<Function<'js>> {
    loaded(ctx, host, "shapes", "shape")
}

/// A function for the host, of a file that is compiled when it is first needed.
fn loaded<'js>(ctx: &Ctx<'js>, host: &Host, chunk: &str, name: &str) -> Result<Function<'js>> {
    if let Ok(known) = host.internal(ctx, name) {
        return Ok(known);
    }
    let (functions, shared) = host.prelude(ctx)?;
    lazy(ctx, chunk)?.call::<_, ()>((functions, shared))?;
    host.internal(ctx, name)
}

fn lazy<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Function<'js>> {
    let chunk = LAZY.iter().find(|chunk| chunk.name == name).ok_or(Error::Unknown)?;
    evaluate(ctx, chunk)
}

fn options(name: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.filename = Some(name.to_owned());
    options
}

fn evaluate<'js>(ctx: &Ctx<'js>, chunk: &Chunk) -> Result<Function<'js>> {
    ctx.eval_with_options(chunk.source, options(&format!("toolgate:{}", chunk.name)))
}

/// The host functions, which only the prelude can reach.
fn functions<'js>(ctx: &Ctx<'js>, host: &Rc<Host>) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set("file", FILE)?;
    object.set("main", MAIN)?;
    object.set("messageLimit", MESSAGE_LIMIT)?;

    let keeper = Rc::clone(host);
    let internal = move |ctx: Ctx<'js>, name: String, function: Function<'js>| {
        keeper.keep_internal(&ctx, name, function);
    };
    object.set("internal", Function::new(ctx.clone(), internal)?)?;

    let load = |ctx: Ctx<'js>, name: String| -> Result<Function<'js>> { lazy(&ctx, &name) };
    object.set("load", Function::new(ctx.clone(), load)?)?;

    let caller = Rc::clone(host);
    let call =
        move |ctx: Ctx<'js>,
              name: String,
              arguments: Value<'js>,
              error: Value<'js>,
              place: Option<u32>|
              -> Result<Promise<'js>> { caller.call(&ctx, name, arguments, error, place) };
    object.set("call", Function::new(ctx.clone(), call)?)?;

    let finder = Rc::clone(host);
    let position = move |line: u32, column: u32| {
        let (line, column) = finder.source.borrow().original(line, column);
        format!("{line}:{column}")
    };
    object.set("position", Function::new(ctx.clone(), position)?)?;

    let ender = Rc::clone(host);
    let end = move |code: f64| ender.exit(code);
    object.set("exit", Function::new(ctx.clone(), end)?)?;

    let emit = |ctx: Ctx<'js>, block: Value<'js>| -> Result<()> { Host::emit(&ctx, block) };
    object.set("emit", Function::new(ctx.clone(), emit)?)?;

    let write = |ctx: Ctx<'js>, is_error: bool, text: Value<'js>| -> Result<()> {
        let Some(text) = text.as_string() else {
            return Err(Exception::throw_type(&ctx, "the console takes text"));
        };
        Host::write(if is_error { Stream::Error } else { Stream::Output }, &text.to_string()?);
        Ok(())
    };
    object.set("write", Function::new(ctx.clone(), write)?)?;

    bytes::install(ctx, &object)?;
    object.set("now", Function::new(ctx.clone(), || Host::time(TimeBase::Epoch).floor())?)?;
    object.set("elapsed", Function::new(ctx.clone(), || Host::time(TimeBase::Beginning))?)?;
    let roller = Rc::clone(host);
    object.set("random", Function::new(ctx.clone(), move || roller.random())?)?;

    let starter = Rc::clone(host);
    let start_timer = move |ctx: Ctx<'js>, callback: Function<'js>, delay: f64, kind: String| {
        let callback = Persistent::save(&ctx, callback);
        let kind = match kind.as_str() {
            "interval" => TimerKind::Interval,
            "background" => TimerKind::Background,
            _ => TimerKind::Once,
        };
        starter.timers.borrow_mut().start(callback, delay, kind)
    };
    object.set("startTimer", Function::new(ctx.clone(), start_timer)?)?;

    let stopper = Rc::clone(host);
    let stop_timer = move |id: f64| {
        // Values that are no timer id stop no timer.
        if id.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&id) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "in range"
            )]
            stopper.timers.borrow_mut().stop(id as u32);
        }
    };
    object.set("stopTimer", Function::new(ctx.clone(), stop_timer)?)?;
    Ok(object)
}
