//! Converts the ending of a script to an outcome.

use rquickjs::{Ctx, Persistent, Value};

use super::{
    callee,
    driver::{Ending, FILE},
    globals,
    host::Host,
    marks, prelude, results,
};
use crate::engine::{
    EngineOutcome, EngineScript, FailureKind, ScriptFailure, ScriptPosition, StackFrame,
};

/// The largest number of stack frames.
const MOST_FRAMES: usize = 32;
/// The longest name of a function.
const LONGEST_NAME: usize = 200;

/// The outcome for an ending. `exhausted` says that the script has used most of its memory.
pub(super) fn outcome(
    ctx: &Ctx<'_>,
    host: &Host,
    script: &EngineScript<'_>,
    ending: Ending,
    exhausted: bool,
) -> EngineOutcome {
    let described = |thrown| thrown_failure(ctx, host, script, thrown, exhausted);
    EngineOutcome::Failed(match ending {
        Ending::Value(value) => return EngineOutcome::Value(value),
        Ending::Unreadable => {
            let message = "SyntaxError: the script contains a NUL character";
            ScriptFailure::new(FailureKind::Syntax, message)
        }
        Ending::Syntax(thrown) => {
            let mut failure = described(thrown);
            if failure.kind == FailureKind::Exception {
                failure.kind = FailureKind::Syntax;
                explain_syntax(script, &mut failure);
            }
            failure
        }
        Ending::Threw(thrown) => described(thrown),
        Ending::Unwritable(thrown) => {
            let mut failure = described(thrown);
            if failure.kind == FailureKind::Exception {
                failure.message =
                    format!("the returned value cannot be written as JSON: {}", failure.message);
            }
            failure
        }
        Ending::Stalled if exhausted => memory(),
        Ending::Stalled => {
            let message = "the script waits for a promise that nothing can settle any more";
            ScriptFailure::new(FailureKind::Stalled, message).with_hint(
                "no call and no timer is under way: look for a `new Promise` whose resolve is \
                 never called",
            )
        }
        Ending::Memory => memory(),
        Ending::Exited(code) => {
            let message = format!("the script ended itself with exit code {code}");
            ScriptFailure::new(FailureKind::Exception, message)
        }
        Ending::Abandoned => ScriptFailure::new(FailureKind::Abandoned, "the host is gone"),
    })
}

fn memory() -> ScriptFailure {
    ScriptFailure::new(FailureKind::Memory, "InternalError: out of memory")
}

/// The failure for a thrown value.
fn thrown_failure(
    ctx: &Ctx<'_>,
    host: &Host,
    script: &EngineScript<'_>,
    thrown: Persistent<Value<'static>>,
    exhausted: bool,
) -> ScriptFailure {
    let Ok(thrown) = thrown.restore(ctx) else { return memory() };
    // QuickJS throws null when there is no memory for an error. That memory may be free again by
    // now.
    if thrown.is_null() && (exhausted || !throws_null(script.source)) {
        return memory();
    }
    // Handled here, because the prelude may not work in this state either.
    if let Some(error) = thrown.as_exception()
        && error.message().as_deref() == Some("out of memory")
    {
        let stack = error.stack().map(|stack| frames(&stack, script)).unwrap_or_default();
        return ScriptFailure { stack, ..memory() };
    }
    describe(ctx, host, script, thrown).unwrap_or_else(|_| {
        // Clears an exception that was thrown meanwhile.
        drop(ctx.catch());
        if exhausted {
            memory()
        } else {
            ScriptFailure::new(FailureKind::Exception, "an error that cannot be described")
        }
    })
}

fn describe<'js>(
    ctx: &Ctx<'js>,
    host: &Host,
    script: &EngineScript<'_>,
    thrown: Value<'js>,
) -> rquickjs::Result<ScriptFailure> {
    let described: Vec<String> = prelude::describe(ctx, host)?.call((thrown,))?;
    let mut described = described.into_iter();
    let mut next = || described.next().unwrap_or_default();
    let (sort, message, stack, raiser) = (next(), next(), next(), next());
    let kind = match sort.as_str() {
        "stack" => FailureKind::Stack,
        "unsupported" => FailureKind::Unsupported,
        _ => FailureKind::Exception,
    };
    let mut failure = ScriptFailure { kind, message, stack: frames(&stack, script), hint: None };
    if sort == "thrown"
        && let Some(text) = failure.message.strip_prefix("Uncaught ")
        && let Some(position) = marks::thrown_at(script.source, text)
    {
        failure.stack.push(StackFrame { function: String::new(), position });
    }
    if raiser.is_empty() {
        name_callee(script, &mut failure);
    }
    if kind == FailureKind::Exception {
        advise(&mut failure);
        if failure.hint.is_none() {
            failure.hint = results::hint(ctx, host, script, &failure);
        }
    }
    Ok(failure)
}

/// Whether a script seems to throw `null` itself, which is very rare.
fn throws_null(source: &str) -> bool {
    let mut words = source.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let throws = word.ends_with("throw")
            && words.peek().is_some_and(|next| next.starts_with("null") || next.starts_with('('));
        if throws || word.contains("(null") {
            return true;
        }
    }
    false
}

/// Adds a hint if the message is known.
fn advise(failure: &mut ScriptFailure) {
    let message = failure.message.as_str();
    if let Some(name) = message
        .strip_prefix("ReferenceError: ")
        .and_then(|rest| rest.strip_suffix(" is not defined"))
        && let Some(advice) = globals::advice_for(name)
    {
        failure.kind = FailureKind::Unsupported;
        failure.hint = Some(format!("{name} is not available here: {advice}"));
    } else if message.starts_with("TypeError: ") && message.contains("BigInt") {
        failure.hint = Some(
            "integers beyond 2^53 arrive as BigInt, so that none of their digits is lost: \
             calculate with other BigInts, or take Number(x)"
                .to_owned(),
        );
    } else if message.starts_with("TypeError: cannot import ") {
        failure.kind = FailureKind::Unsupported;
    }
}

/// Says what is not a function, as far as the text at the position shows it.
fn name_callee(script: &EngineScript<'_>, failure: &mut ScriptFailure) {
    if failure.message != "TypeError: not a function" {
        return;
    }
    let position = failure.stack.first().map(|frame| frame.position);
    let callee = position.and_then(|position| callee::text_at(script.source, position));
    if let Some(callee) = callee {
        failure.message = format!("TypeError: {callee} is not a function");
    }
}

/// Improves a syntax error: its position is not a call, and some messages need an explanation.
fn explain_syntax(script: &EngineScript<'_>, failure: &mut ScriptFailure) {
    let Some(frame) = failure.stack.first_mut() else { return };
    frame.function = String::new();
    if frame.position.column == 0 {
        // The error is in the code that wraps the script.
        "SyntaxError: the brackets do not match: one is not closed, or one closes too much"
            .clone_into(&mut failure.message);
        return;
    }
    let text = line_of(script.source, frame.position.line).unwrap_or_default().trim_start();
    let hint = if text.starts_with("import") {
        "there are no modules: every tool is a global function; leave the import out"
    } else if text.starts_with("export") {
        "a script exports nothing: leave `export` out, and `return` the result"
    } else {
        return;
    };
    failure.hint = Some(hint.to_owned());
}

/// A line of the source by the engine's line number. The engine knows one more kind of line break
/// than `str::lines`.
fn line_of(source: &str, line: u32) -> Option<&str> {
    source.split('\n').nth(usize::try_from(line).ok()?.checked_sub(1)?)
}

/// The frames of a stack that belong to the script. The positions are checked, because the script
/// can forge the text, and the line of the prefix is subtracted.
fn frames(stack: &str, script: &EngineScript<'_>) -> Vec<StackFrame> {
    stack.lines().filter_map(|line| frame(line, script)).take(MOST_FRAMES).collect()
}

fn frame(line: &str, script: &EngineScript<'_>) -> Option<StackFrame> {
    let source = script.source;
    let location = line.trim_start().strip_prefix("at ")?;
    let (function, location) =
        match location.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
            Some((function, location)) => (function, location),
            None => ("", location),
        };
    let (line, column) = location.strip_prefix(FILE)?.strip_prefix(':')?.split_once(':')?;
    let line: u32 = line.parse().ok()?;
    let column: u32 = column.parse().ok()?;
    let position = match line_of(source, line) {
        Some(text) => ScriptPosition { line, column: characters(text, column) },
        None => ScriptPosition { line: u32::try_from(source.split('\n').count()).ok()?, column: 0 },
    };
    Some(StackFrame { function: function.chars().take(LONGEST_NAME).collect(), position })
}

/// Converts a column from bytes, which the engine counts, to characters.
fn characters(line: &str, column: u32) -> u32 {
    let bytes = usize::try_from(column).unwrap_or(usize::MAX).saturating_sub(1);
    let before = line.char_indices().take_while(|(at, _)| *at < bytes).count();
    u32::try_from(before).map_or(column, |before| before.saturating_add(1))
}
