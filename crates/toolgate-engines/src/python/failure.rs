//! Converts errors of Monty to failures with the script's own lines and a hint.

use monty_types::{ExcType, MontyException};

use super::{
    machine::Stop,
    rewrite::{Changed, Trace},
};
use crate::{
    engine::{EngineScript, FailureKind, Function, ScriptFailure, ScriptPosition, StackFrame},
    results::{mentions, tools_behind},
};

/// The largest number of stack frames. A recursion would have as many as its limit.
const STACK_LIMIT: usize = 32;

/// The start of Monty's message about unsupported syntax.
const UNSUPPORTED_SYNTAX: &str = "The monty syntax parser does not yet support ";

/// The start of the prelude's messages about what it does not do, which are those of `SystemExit`.
pub(super) const REFUSED: &str = "\x01";

/// The script that a failure belongs to.
pub(super) struct FailureContext<'a> {
    /// The name of the script in Monty.
    pub(super) file: &'a str,
    /// The rewritten script.
    pub(super) changed: &'a Changed,
    /// The statements that it notes.
    pub(super) trace: &'a Trace,
    /// The tools.
    pub(super) functions: &'a [Function],
}

/// Converts a stop to a failure of the script.
pub(super) fn failure(stop: Stop, context: &FailureContext<'_>) -> ScriptFailure {
    match stop {
        Stop::Raised(error, at) => raised(&error, at, context),
        Stop::Stalled => {
            let message = "the script waits for something that can no longer happen";
            ScriptFailure::new(FailureKind::Stalled, message)
                .with_hint("every task waits for another one; release or set what they wait for")
        }
        Stop::Abandoned => {
            ScriptFailure::new(FailureKind::Abandoned, "nobody waits for the script any more")
        }
    }
}

fn raised(error: &MontyException, at: Option<u32>, context: &FailureContext<'_>) -> ScriptFailure {
    let text = error.message().unwrap_or_default();
    let (name, text) = named(error, text, context.functions);
    let text = text.replace("'_tg_module' object", "module");
    let unsupported = text.strip_prefix(UNSUPPORTED_SYNTAX).or_else(|| text.strip_prefix(REFUSED));
    let kind = match error.exc_type() {
        ExcType::SyntaxError => FailureKind::Syntax,
        ExcType::MemoryError => FailureKind::Memory,
        ExcType::RecursionError => FailureKind::Stack,
        _ if unsupported.is_some() => FailureKind::Unsupported,
        kind if is_gap(kind, &text) => FailureKind::Unsupported,
        _ => FailureKind::Exception,
    };
    let message = match unsupported {
        Some(what) => format!("not supported: {what}"),
        None if text.is_empty() => name,
        None => format!("{name}: {text}"),
    };
    let hint = match unsupported {
        Some(what) => syntax_hint(what),
        None => error_hint(error.exc_type(), &text),
    };
    ScriptFailure { kind, message, stack: stack(error, at, context), hint: hint.map(str::to_owned) }
}

/// Whether a stop may come from a wrong idea of data.
pub(super) fn is_about_data(stop: &Stop) -> bool {
    const KINDS: [&str; 7] = ["dict", "list", "str", "int", "float", "bool", "NoneType"];
    let Stop::Raised(error, _) = stop else { return false };
    let text = error.message().unwrap_or_default();
    match error.exc_type() {
        ExcType::KeyError | ExcType::IndexError => true,
        ExcType::AttributeError | ExcType::TypeError => {
            text.contains(" indices must be ")
                || KINDS.iter().any(|kind| text.contains(&format!("'{kind}' object")))
        }
        _ => false,
    }
}

/// A hint for such a failure: what the results look like that the failed line depends on.
pub(super) fn result_hint(
    script: &EngineScript<'_>,
    failure: &ScriptFailure,
    results: &[(&str, String)],
) -> Option<String> {
    const ENVELOPE: [&str; 6] =
        ["content", "structuredContent", "text", "data", "result", "isError"];
    const MAX_SHOWN: usize = 3;
    let line = usize::try_from(failure.stack.first()?.position.line).ok()?.checked_sub(1)?;
    let tools = tools_behind(script, line);
    let used = results.iter().rev().filter(|(tool, _)| tools.contains(*tool)).take(MAX_SHOWN);
    let told: Vec<String> =
        used.map(|(tool, shape)| format!("the last result of `{tool}` is {shape}")).collect();
    if told.is_empty() {
        return None;
    }
    let text = script.source.split('\n').nth(line)?;
    let is_envelope = ENVELOPE.iter().any(|name| mentions(text, name));
    let data = if is_envelope { "results of tools are data already: " } else { "" };
    Some(format!("{data}{}", told.join("; ")))
}

/// The name and text of an exception that is not Monty's own: the failure of a tool, or an
/// exception of the script that is encoded in the text of another one.
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

/// The frames of the script, innermost first. A frame inside of the prelude is replaced by the line
/// that called it.
fn stack(error: &MontyException, at: Option<u32>, context: &FailureContext<'_>) -> Vec<StackFrame> {
    let frames = error.traceback().iter().rev().filter(|frame| frame.filename == context.file);
    let mut frames: Vec<StackFrame> = frames
        .take(STACK_LIMIT)
        .map(|frame| {
            let [start, end] = [frame.start, frame.end].map(|place| {
                let position = ScriptPosition { line: place.line, column: place.column };
                context.changed.original(position)
            });
            StackFrame {
                function: frame
                    .frame_name
                    .clone()
                    .filter(|name| name != "<module>")
                    .unwrap_or_default(),
                position: context.trace.begin(start, end, context.changed),
            }
        })
        .collect();
    // The frame of an exception that left a block is that of the block.
    if let (Some(number), Some(first)) = (at, frames.first_mut())
        && let Some((function, position)) =
            context.trace.origin(number, first.position, context.changed)
    {
        *first = StackFrame { function: function.to_owned(), position };
    }
    frames
}

/// Whether an error is caused by a missing feature of the engine and not by a mistake in the
/// script.
fn is_gap(kind: ExcType, text: &str) -> bool {
    match kind {
        ExcType::ModuleNotFoundError | ExcType::ImportError => true,
        ExcType::AttributeError => text.starts_with("module ") && text.contains("no attribute"),
        ExcType::NameError => quoted(text).is_some_and(|name| ABSENT.contains(&name)),
        ExcType::PermissionError => text.ends_with("a script has no files"),
        ExcType::NotImplementedError => {
            text.contains("not yet support") || text.contains("not supported")
        }
        ExcType::TypeError => {
            text.contains("not yet supported") || text.ends_with("is not supported")
        }
        _ => false,
    }
}

/// What to write instead of unsupported syntax. `what` is Monty's name for it.
fn syntax_hint(what: &str) -> Option<&'static str> {
    let hints: &[(&str, &str)] = &[
        ("yield", "collect the values in a list and return it"),
        ("exception groups", "use try/except with asyncio.gather(..., return_exceptions=True)"),
        (
            "class inheritance",
            "write the fields into one @dataclass, or use collections.namedtuple",
        ),
        ("method decorators", "write a plain method, or a function outside of the class"),
        ("class bodies", "only methods and simple class variables are possible in a class"),
        ("async context", "use one `async with` for each object"),
        ("complex constants", "there are no complex numbers"),
        ("wildcard", "import the names that are used"),
        ("pattern matching", "use if/elif"),
        ("matrix", "there are no matrices"),
    ];
    hints.iter().find(|(key, _)| what.to_lowercase().contains(key)).map(|(_, hint)| *hint)
}

/// The hint for an error.
fn error_hint(kind: ExcType, text: &str) -> Option<&'static str> {
    match kind {
        ExcType::ModuleNotFoundError | ExcType::ImportError => {
            let name = quoted(text).unwrap_or_default();
            Some(module(name.split('.').next().unwrap_or(name)))
        }
        ExcType::NameError => {
            let name = quoted(text)?;
            FUNCTIONS.iter().find(|(key, _)| *key == name).map(|(_, hint)| *hint)
        }
        ExcType::RuntimeError
            if text.contains("The arguments do not fit") && text.contains(": null is not ") =>
        {
            Some(
                "leave out an argument that has no value: collect the others in a dictionary, and call \
                 the tool with **arguments",
            )
        }
        ExcType::PermissionError if text.ends_with("a script has no files") => {
            Some("keep data in variables; use a tool for what has to be read or written")
        }
        ExcType::TypeError | ExcType::AttributeError if text.contains("'coroutine' object") => {
            Some("the call was not awaited: write `await` before it")
        }
        ExcType::TypeError
            if text.starts_with("unsupported operand") && text.contains("'bool'") =>
        {
            Some("make a number of the truth value: int(flag)")
        }
        ExcType::TypeError if text.contains("between instances of 'set' and 'set'") => {
            Some("use .issubset() or .issuperset()")
        }
        ExcType::TypeError if text.contains("'<' not supported between instances of") => {
            Some("sort by a key: sorted(values, key=lambda value: ...)")
        }
        ExcType::TypeError
            if text.contains("object is not callable")
                || text.contains("object is not subscriptable")
                || text.contains("has no len()")
                || text.contains("does not support item assignment") =>
        {
            Some(
                "operators of own classes are not called here, apart from ==, in and iteration: use a method",
            )
        }
        ExcType::TypeError if text.contains("coroutine was never awaited") => {
            Some("write `await` before the call, or asyncio.gather() for several")
        }
        ExcType::TypeError if text.contains("can't be awaited") => {
            Some("only tools and async functions are awaited")
        }
        ExcType::NotImplementedError if text.starts_with("Wildcard imports") => {
            Some("import the names that are used")
        }
        ExcType::NotImplementedError if text.contains("in this context") => Some(
            "call it in a list comprehension instead of passing it to sorted(), filter() or the like",
        ),
        ExcType::RecursionError => Some("use a loop, or a list of what is still to be done"),
        ExcType::MemoryError => Some("work on the data in parts"),
        _ => None,
    }
}

/// Built-in functions that do not exist here.
#[rustfmt::skip]
const ABSENT: &[&str] = &[
    "__import__", "bytearray", "breakpoint", "compile", "complex", "delattr", "dir", "eval",
    "exec", "globals", "help", "input", "locals", "memoryview", "super", "vars",
];

const FUNCTIONS: &[(&str, &str)] = &[
    ("eval", "use json.loads() for data; code is not evaluated"),
    ("exec", "write the code itself; code is not evaluated"),
    ("compile", "write the code itself; code is not evaluated"),
    ("input", "nobody answers while a script runs; write the value into it"),
    ("globals", "use a dictionary"),
    ("locals", "use a dictionary"),
    ("vars", "use a dictionary, or dataclasses.asdict()"),
    ("dir", "print a value to see what it has"),
    ("bytearray", "use bytes, or a list of numbers"),
    ("complex", "there are no complex numbers"),
    ("super", "name the base: Base.method(self)"),
    ("__import__", "use an import statement"),
];

fn module(name: &str) -> &'static str {
    let hints: &[(&[&str], &str)] = &[
        (
            &["requests", "httpx", "aiohttp", "socket", "http", "urllib3", "ssl", "smtplib"],
            "a script has no network: call a tool",
        ),
        (
            &["subprocess", "multiprocessing", "shutil", "tempfile", "glob", "sqlite3", "pickle"],
            "a script has no files and no processes: call a tool",
        ),
        (&["OrderedDict"], "use a dict, which keeps its order"),
        (&["pprint"], "use print(json.dumps(value, indent=2))"),
        (&["traceback"], "print the exception: f\"{type(error).__name__}: {error}\""),
        (
            &["contextmanager", "asynccontextmanager", "ExitStack"],
            "write a class with __enter__ and __exit__, or try/finally",
        ),
        (
            &["threading", "concurrent", "queue", "sched"],
            "use asyncio.gather() to make calls in parallel",
        ),
        (
            &["numpy", "pandas", "scipy", "polars"],
            "use lists and dictionaries with sum(), sorted(), collections and statistics",
        ),
        (&["decimal", "fractions"], "use int for cents, or round() for float"),
        (&["zoneinfo", "pytz", "dateutil"], "use datetime.timezone(timedelta(hours=...))"),
        (
            &["inspect", "gc", "weakref", "ast", "importlib"],
            "leave it out: scripts do not look at themselves",
        ),
        (&["secrets"], "use uuid.uuid4() for names; make keys with a tool"),
        (&["yaml", "toml", "tomllib", "xml", "bs4", "lxml"], "use re or str methods, or a tool"),
    ];
    hints.iter().find(|(names, _)| names.contains(&name)).map_or(
        "only a part of the standard library is there, such as asyncio, collections, csv, datetime, \
         itertools, json, math, re, statistics and time; write it with what is built in",
        |(_, hint)| hint,
    )
}

/// The first name in quotes.
fn quoted(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('\'')?;
    rest.split_once('\'').map(|(name, _)| name)
}
