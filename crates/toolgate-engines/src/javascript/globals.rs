//! The global names of a script.

/// Every name that a script can use without declaring it. The tools are added to these.
#[rustfmt::skip]
pub const GLOBALS: &[&str] = &[
    "AbortController", "AbortSignal", "AggregateError", "Array", "ArrayBuffer",
    "AsyncDisposableStack", "Atomics", "BigInt", "BigInt64Array", "BigUint64Array", "Boolean", "Buffer",
    "DOMException", "DataView", "Date", "DisposableStack", "Error", "EvalError", "Event",
    "EventTarget", "FinalizationRegistry", "Float16Array", "Float32Array", "Float64Array",
    "Function", "Infinity", "Int16Array", "Int32Array", "Int8Array", "InternalError", "Intl",
    "Iterator", "JSON", "Map", "Math", "NaN", "Number", "Object", "Promise", "Proxy", "RangeError",
    "ReferenceError", "Reflect", "RegExp", "Set", "SharedArrayBuffer", "String", "SuppressedError",
    "Symbol", "SyntaxError", "TextDecoder", "TextEncoder", "ToolError", "TypeError", "URIError",
    "URL", "URLSearchParams", "Uint16Array", "Uint32Array", "Uint8Array", "Uint8ClampedArray",
    "WeakMap", "WeakRef", "WeakSet", "atob", "btoa", "clearImmediate", "clearInterval",
    "clearTimeout", "console", "crypto", "decodeURI", "decodeURIComponent", "emit", "encodeURI",
    "encodeURIComponent", "escape", "eval", "globalThis", "isFinite", "isNaN", "parseFloat",
    "parseInt", "performance", "process", "queueMicrotask", "setImmediate", "setInterval",
    "setTimeout", "structuredClone", "tools", "undefined", "unescape",
];

/// The modules of Node that a script can import, with or without `node:` before the name.
pub const MODULES: &[&str] = &[
    "assert",
    "assert/strict",
    "buffer",
    "crypto",
    "path",
    "path/posix",
    "timers",
    "timers/promises",
    "util",
];

/// A global of other JavaScript hosts that does not exist here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absent {
    /// The name.
    pub name: &'static str,
    /// What to write instead.
    pub advice: &'static str,
    /// What the name refers to instead.
    pub form: Form,
}

/// The replacement for a global that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A function that throws.
    Function,
    /// An object with properties that all throw.
    Object,
    /// Nothing, so that scripts can detect their environment.
    Undefined,
}

const NETWORK: &str = "scripts have no network. Call a tool instead: tools are global functions \
                       that take one object, as in `await server_tool({ … })`";
const FILES: &str = "scripts have no files. Call a tool that reads or writes them, `return` a \
                     value or print it with `console.log`";
const NO_MODULES: &str = "there are no modules but some of Node. Every tool is a global function, \
                          and what the language has is there without an import";
pub(super) const SYSTEM: &str = "scripts have no system around them: no files, environment or \
                                 arguments. `return` ends the script, `console.log` writes";
const PAGE: &str = "there is no web page. `return` a value or print it with `console.log`";
const BYTES: &str = "use Buffer, or Uint8Array with TextEncoder and TextDecoder";
const DATES: &str = "use Date, Date.UTC and Intl.DateTimeFormat with a timeZone";
const ONE_THREAD: &str = "there is one thread. Calls run in parallel with `await Promise.all([…])`";
const NO_QUESTIONS: &str = "nobody is there to answer. `return` what there is to decide";

const fn absent(name: &'static str, form: Form, advice: &'static str) -> Absent {
    Absent { name, advice, form }
}

/// The globals of other hosts that do not exist here, with advice.
pub const ABSENT: &[Absent] = &[
    absent("fetch", Form::Undefined, NETWORK),
    absent("XMLHttpRequest", Form::Function, NETWORK),
    absent("WebSocket", Form::Function, NETWORK),
    absent("EventSource", Form::Function, NETWORK),
    absent("axios", Form::Object, NETWORK),
    absent("require", Form::Undefined, NO_MODULES),
    absent("module", Form::Undefined, NO_MODULES),
    absent("exports", Form::Undefined, NO_MODULES),
    absent("importScripts", Form::Function, NO_MODULES),
    absent("fs", Form::Object, FILES),
    absent("Deno", Form::Object, SYSTEM),
    absent("Bun", Form::Object, SYSTEM),
    absent("__dirname", Form::Undefined, FILES),
    absent("__filename", Form::Undefined, FILES),
    absent("Blob", Form::Function, BYTES),
    absent("Temporal", Form::Undefined, DATES),
    absent("window", Form::Undefined, PAGE),
    absent("document", Form::Undefined, PAGE),
    absent("localStorage", Form::Undefined, PAGE),
    absent("alert", Form::Function, PAGE),
    absent("confirm", Form::Function, NO_QUESTIONS),
    absent("prompt", Form::Function, NO_QUESTIONS),
    absent("Worker", Form::Function, ONE_THREAD),
];

/// The advice for a global that does not exist.
pub(super) fn advice_for(name: &str) -> Option<&'static str> {
    ABSENT.iter().find(|absent| absent.name == name).map(|absent| absent.advice)
}
