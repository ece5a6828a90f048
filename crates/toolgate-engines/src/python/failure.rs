//! What went wrong, in Python's words, with the script's own lines and a way out.

use monty_types::{ExcType, MontyException};

use super::{hints, machine::Stop, rewrite::Changed};
use crate::engine::{FailureKind, Function, ScriptFailure, ScriptPosition, StackFrame};

/// How many lines a stack has at most. A recursion has as many as its limit.
const STACK_LIMIT: usize = 32;

/// What Monty says of syntax that it does not have.
const UNSUPPORTED_SYNTAX: &str = "The monty syntax parser does not yet support ";

/// The script that a failure is told to.
pub(super) struct Place<'a> {
    /// The name under which Monty knows the script.
    pub(super) file: &'a str,
    /// The script as it ran.
    pub(super) changed: &'a Changed,
    /// The tools.
    pub(super) functions: &'a [Function],
}

/// A stop as a failure of the script.
pub(super) fn failure(stop: Stop, place: &Place<'_>) -> ScriptFailure {
    match stop {
        Stop::Raised(error) => raised(&error, place),
        Stop::Stalled => ScriptFailure {
            kind: FailureKind::Stalled,
            message: "the script waits for something that can no longer happen".to_owned(),
            stack: Vec::new(),
            hint: Some(
                "every task waits for another one; release or set what they wait for".into(),
            ),
        },
        Stop::Abandoned => ScriptFailure {
            kind: FailureKind::Abandoned,
            message: "nobody waits for the script any more".to_owned(),
            stack: Vec::new(),
            hint: None,
        },
    }
}

fn raised(error: &MontyException, place: &Place<'_>) -> ScriptFailure {
    let text = error.message().unwrap_or_default();
    let (name, text) = named(error, text, place.functions);
    let text = text.replace("'_tg_module' object", "module");
    let unsupported = text.strip_prefix(UNSUPPORTED_SYNTAX);
    let kind = match error.exc_type() {
        ExcType::SyntaxError => FailureKind::Syntax,
        ExcType::MemoryError => FailureKind::Memory,
        ExcType::RecursionError => FailureKind::Stack,
        ExcType::NotImplementedError if unsupported.is_some() => FailureKind::Unsupported,
        kind if hints::is_gap(kind, &text) => FailureKind::Unsupported,
        _ => FailureKind::Exception,
    };
    let message = match unsupported {
        Some(what) => format!("not supported: {what}"),
        None if text.is_empty() => name,
        None => format!("{name}: {text}"),
    };
    let hint = match unsupported {
        Some(what) => hints::syntax(what),
        None => hints::error(error.exc_type(), &text),
    };
    ScriptFailure { kind, message, stack: stack(error, place), hint: hint.map(str::to_owned) }
}

/// The name and the text of an exception, where they are not Monty's own: a tool's failure, or an
/// exception of the script that travelled in the text of another.
fn named(error: &MontyException, text: &str, functions: &[Function]) -> (String, String) {
    if let Some(rest) = text.strip_prefix('\0') {
        let mut parts = rest.splitn(3, '\0').skip(1);
        if let (Some(name), Some(text)) = (parts.next(), parts.next()) {
            return (name.to_owned(), text.to_owned());
        }
    }
    let is_tool = error.exc_type() == ExcType::RuntimeError
        && text.split_once(": ").is_some_and(|(tool, _)| functions.iter().any(|f| f.name == tool));
    let name = if is_tool { "ToolError".to_owned() } else { error.exc_type().to_string() };
    (name, text.to_owned())
}

/// The script's lines, innermost first. What happened inside of the prelude is told by the line
/// that called it.
fn stack(error: &MontyException, place: &Place<'_>) -> Vec<StackFrame> {
    let frames = error.traceback().iter().rev().filter(|frame| frame.filename == place.file);
    frames
        .take(STACK_LIMIT)
        .map(|frame| StackFrame {
            function: frame
                .frame_name
                .clone()
                .filter(|name| name != "<module>")
                .unwrap_or_default(),
            position: place
                .changed
                .original(ScriptPosition { line: frame.start.line, column: frame.start.column }),
        })
        .collect()
}
