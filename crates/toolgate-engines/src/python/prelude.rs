//! The parts of the library that Monty lacks, in Python: modules, functions and methods without
//! I/O.
//!
//! A part is compiled only for a script that mentions it. The parts bind the built-in functions
//! that they use as default parameters, so that a script may name a variable `list`.

/// A part of the prelude.
#[derive(Debug)]
pub(super) struct Piece {
    /// The name of the module, or of the part.
    pub(super) name: &'static str,
    /// Which names of the module it provides.
    pub(super) extent: Extent,
    /// The source.
    pub(super) source: &'static str,
    /// The parts that it uses.
    pub(super) needs: &'static [&'static str],
}

/// The names of a module that a part of the prelude provides.
#[derive(Debug, Clone, Copy)]
pub(super) enum Extent {
    /// All names; Monty lacks the module.
    Whole,
    /// These names; Monty has the others.
    Adds(&'static [&'static str]),
}

/// Built-in names that only the prelude provides.
pub(super) const BUILTINS: &[&str] = &[
    "BlockingIOError",
    "BrokenPipeError",
    "BufferError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "DeprecationWarning",
    "EOFError",
    "EnvironmentError",
    "FloatingPointError",
    "FutureWarning",
    "IOError",
    "InterruptedError",
    "ProcessLookupError",
    "ReferenceError",
    "RuntimeWarning",
    "StopAsyncIteration",
    "SystemError",
    "ToolError",
    "UnicodeError",
    "UserWarning",
    "Warning",
    "ascii",
    "callable",
    "exit",
    "format",
    "hasattr",
    "issubclass",
    "quit",
];

impl Piece {
    /// The variable that contains the module.
    pub(super) fn variable(&self) -> String {
        format!("_tg_{}", self.name.replace('.', "_"))
    }
}

/// A module of the prelude.
pub(super) fn module(name: &str) -> Option<&'static Piece> {
    PIECES.iter().find(|piece| piece.name == name)
}

/// The parts that most scripts need, except those that change built-in functions.
pub(super) const COMMON: &[&str] = &[
    "<await>",
    "<core>",
    "<iterating>",
    "<methods>",
    "<numbers>",
    "<percent>",
    "asyncio",
    "collections",
    "dataclasses",
    "functools",
    "itertools",
    "json",
    "math",
    "random",
    "re",
    "statistics",
    "sys",
    "time",
    "typing",
];

/// The named parts and their dependencies, in an order in which they can run.
pub(super) fn pieces<'a>(
    names: impl IntoIterator<Item = &'a &'static str>,
) -> impl Iterator<Item = &'static Piece> {
    let mut taken = [false; PIECES.len() + PARTS.len()];
    for name in names {
        take(name, &mut taken);
    }
    let all = PARTS.iter().chain(PIECES);
    all.zip(taken).filter(|(_, taken)| *taken).map(|(piece, _)| piece)
}

fn take(name: &str, taken: &mut [bool]) {
    let found = PARTS.iter().chain(PIECES).zip(taken.iter_mut()).find(|(p, _)| p.name == name);
    let Some((piece, mark)) = found else { return };
    if !std::mem::replace(mark, true) {
        for other in piece.needs {
            take(other, taken);
        }
    }
}

macro_rules! piece {
    ($name:literal, $extent:expr) => {
        piece!($name, $extent, $name)
    };
    ($name:literal, $extent:expr, $file:literal) => {
        Piece {
            name: $name,
            extent: $extent,
            source: include_str!(concat!("prelude/", $file, ".py")),
            needs: needs($name),
        }
    };
}

/// The parts that a part uses.
const fn needs(name: &str) -> &'static [&'static str] {
    match name.as_bytes() {
        b"<records>" => &["<module>"],
        [b'<', ..] => &[],
        b"asyncio" => &["<await>", "<module>"],
        b"logging" => &["<module>", "<percent>"],
        _ => &["<module>"],
    }
}

/// The parts that are not modules.
const PARTS: &[Piece] = &[
    piece!("<await>", Extent::Whole, "await"),
    piece!("<core>", Extent::Whole, "core"),
    piece!("<iterating>", Extent::Whole, "iterating"),
    piece!("<module>", Extent::Whole, "module"),
    piece!("<numbers>", Extent::Whole, "numbers"),
    piece!("<percent>", Extent::Whole, "percent"),
    piece!("<records>", Extent::Whole, "records"),
    piece!("<builtins>", Extent::Whole, "builtins"),
    piece!("<classes>", Extent::Whole, "classes"),
    piece!("<matching>", Extent::Whole, "matching"),
    piece!("<methods>", Extent::Whole, "methods"),
];

/// The modules.
const PIECES: &[Piece] = &[
    piece!("abc", Extent::Whole),
    piece!("asyncio", Extent::Adds(ASYNCIO)),
    piece!("bisect", Extent::Whole),
    piece!("calendar", Extent::Whole),
    piece!("collections", Extent::Adds(&["OrderedDict"])),
    piece!("collections.abc", Extent::Whole, "collections_abc"),
    piece!("contextlib", Extent::Whole),
    piece!("copy", Extent::Whole),
    piece!("csv", Extent::Whole),
    piece!("dataclasses", Extent::Adds(&["asdict", "astuple", "field", "replace"])),
    piece!("datetime", Extent::Adds(&["UTC"])),
    piece!("enum", Extent::Whole),
    piece!("functools", Extent::Adds(&["cache", "lru_cache", "update_wrapper", "wraps"])),
    piece!("hashlib", Extent::Whole),
    piece!("heapq", Extent::Whole),
    piece!("html", Extent::Whole),
    piece!("io", Extent::Whole),
    piece!("itertools", Extent::Adds(ITERTOOLS)),
    piece!("json", Extent::Adds(&["JSONEncoder", "dump", "dumps", "load"])),
    piece!("logging", Extent::Whole),
    piece!("math", Extent::Adds(&["dist", "fsum", "hypot", "prod"])),
    piece!("operator", Extent::Whole),
    piece!("os", Extent::Adds(&["linesep", "path", "sep"])),
    piece!("os.path", Extent::Whole, "os"),
    piece!("pprint", Extent::Whole),
    piece!("random", Extent::Whole),
    piece!("re", Extent::Adds(&["U", "UNICODE", "split", "sub", "subn"])),
    piece!("statistics", Extent::Whole),
    piece!("string", Extent::Whole),
    piece!("sys", Extent::Adds(&["argv", "exit", "maxsize", "stderr", "stdout"])),
    piece!("textwrap", Extent::Whole),
    piece!("time", Extent::Whole),
    piece!("traceback", Extent::Whole),
    piece!("types", Extent::Whole),
    piece!("typing", Extent::Adds(TYPING)),
    piece!("urllib", Extent::Whole),
    piece!("urllib.parse", Extent::Whole, "urllib"),
    piece!("uuid", Extent::Whole),
    piece!("warnings", Extent::Whole),
];

const ASYNCIO: &[&str] = &[
    "ALL_COMPLETED",
    "BoundedSemaphore",
    "CancelledError",
    "Event",
    "FIRST_COMPLETED",
    "FIRST_EXCEPTION",
    "Future",
    "Lock",
    "Queue",
    "Semaphore",
    "Task",
    "TaskGroup",
    "TimeoutError",
    "as_completed",
    "create_task",
    "ensure_future",
    "gather",
    "get_event_loop",
    "get_running_loop",
    "iscoroutine",
    "isfuture",
    "new_event_loop",
    "run",
    "set_event_loop",
    "shield",
    "sleep",
    "timeout",
    "to_thread",
    "wait",
    "wait_for",
];

const ITERTOOLS: &[&str] =
    &["combinations", "combinations_with_replacement", "groupby", "permutations", "product", "tee"];

const TYPING: &[&str] = &[
    "AbstractSet",
    "AnyStr",
    "AsyncContextManager",
    "AsyncGenerator",
    "AsyncIterable",
    "AsyncIterator",
    "Awaitable",
    "BinaryIO",
    "Collection",
    "Concatenate",
    "Container",
    "ContextManager",
    "Coroutine",
    "Counter",
    "DefaultDict",
    "Deque",
    "Hashable",
    "IO",
    "LiteralString",
    "Match",
    "MutableMapping",
    "MutableSequence",
    "MutableSet",
    "NewType",
    "NotRequired",
    "OrderedDict",
    "ParamSpec",
    "Pattern",
    "Required",
    "Reversible",
    "Sized",
    "SupportsFloat",
    "SupportsInt",
    "Text",
    "TextIO",
    "TypeAlias",
    "TypeGuard",
    "TypeVar",
    "TypeVarTuple",
    "TypedDict",
    "Unpack",
    "assert_never",
    "cast",
    "final",
    "no_type_check",
    "overload",
    "override",
    "reveal_type",
    "runtime_checkable",
];
