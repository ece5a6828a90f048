//! The functions and methods of the engines, by what they do with data.

/// Methods that return a text, a number or a truth value, and change nothing.
#[rustfmt::skip]
pub(super) const PRIMITIVE_METHODS: &[&str] = &[
    "abs", "anchor", "capitalize", "casefold", "ceil", "center", "charAt", "charCodeAt", "codePointAt",
    "count", "date", "day", "decode", "encode", "endsWith", "endswith", "expandtabs",
    "find_text", "format", "fromCharCode", "getDate", "getDay", "getFullYear", "getHours",
    "getMilliseconds", "getMinutes", "getMonth", "getSeconds", "getTime", "getTimezoneOffset",
    "getUTCDate", "getUTCDay", "getUTCFullYear", "getUTCHours", "getUTCMinutes", "getUTCMonth",
    "getUTCSeconds", "has", "hasOwnProperty", "hex", "hexdigest", "includes", "index", "indexOf",
    "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isdisjoint", "isidentifier",
    "islower", "isnumeric", "isoformat", "isoweekday", "isspace", "issubset", "issuperset",
    "istitle", "isupper", "join", "lastIndexOf", "ljust", "localeCompare", "lower", "lstrip",
    "normalize", "padEnd", "padStart", "removeprefix", "removesuffix", "repeat", "rfind", "rindex",
    "rjust", "rstrip", "search_text", "startsWith", "startswith", "strftime", "strip", "substr",
    "substring", "swapcase", "test", "timestamp", "title", "toDateString", "toExponential",
    "toFixed", "toISOString", "toJSON", "toLocaleDateString", "toLocaleLowerCase",
    "toLocaleString", "toLocaleTimeString", "toLocaleUpperCase", "toLowerCase", "toPrecision",
    "toString", "toTimeString", "toUTCString", "toUpperCase", "total_seconds", "translate", "trim",
    "trimEnd", "trimLeft", "trimRight", "trimStart", "upper", "valueOf", "weekday", "zfill",
];

/// Methods that return a new list or object of parts of the receiver, and change nothing.
#[rustfmt::skip]
pub(super) const SPLITTING_METHODS: &[&str] = &[
    "digest", "exec", "findall", "finditer", "fullmatch", "group", "groupdict", "groups", "match",
    "matchAll", "partition", "rpartition", "rsplit", "split", "splitlines", "search", "span",
    "scan", "formatToParts",
];

/// Methods that return the receiver, or some of its elements in a new list.
#[rustfmt::skip]
pub(super) const PART_METHODS: &[&str] = &[
    "slice", "reverse", "toReversed", "copy", "subarray", "with", "difference", "intersection",
    "union", "symmetric_difference", "most_common", "elements", "toSpliced", "copyWithin", "__iter__",
    "__aiter__", "asReadonly", "result", "with_traceback",
];

/// Methods that add their arguments to the receiver.
#[rustfmt::skip]
pub(super) const ADDING_METHODS: &[&str] = &[
    "push", "unshift", "append", "appendleft", "add", "insert", "put", "put_nowait", "add_note",
    "fill", "write", "writelines", "remove", "discard", "delete", "set_result", "set_exception",
    "abort",
];

/// Methods that return an element.
pub(super) const ELEMENT_METHODS: &[&str] =
    &["pop", "shift", "popleft", "at", "get_nowait", "__next__", "__getitem__", "item"];

/// Functions that return a text, a number or a truth value, and change nothing. `X.*` stands for
/// all functions of a module.
#[rustfmt::skip]
pub(super) const PRIMITIVE_FUNCTIONS: &[&str] = &[
    "Array.isArray", "BigInt", "Boolean", "Date.UTC", "Date.now", "Date.parse", "Intl.*",
    "JSON.stringify", "Math.*", "Number", "Number.*", "Object.hasOwn", "Object.is", "String",
    "String.*", "Symbol", "Symbol.*", "abs", "ascii", "atob", "base64.*", "bin", "binascii.*", "bool", "btoa",
    "calendar.*", "callable", "chr", "cmp", "console.*", "decodeURI", "decodeURIComponent", "divmod",
    "encodeURI", "encodeURIComponent", "escape", "float", "format", "hasattr", "hash", "hex",
    "html.*", "id", "int", "isFinite", "isNaN", "isinstance", "issubclass", "json.dumps", "len",
    "logging.*", "math.*", "oct", "ord", "os.*", "parseFloat", "parseInt", "performance.*", "pow",
    "pprint.pformat", "pprint.pprint", "pprint.pp", "print", "process.*", "range", "repr", "round", "statistics.*", "str",
    "string.*", "sys.*", "textwrap.*", "time.*", "type", "unescape", "unicodedata.*",
    "urllib.parse.quote", "urllib.parse.quote_plus", "urllib.parse.unquote",
    "urllib.parse.unquote_plus", "urllib.parse.urlencode", "quote", "quote_plus", "unquote",
    "urlencode", "uuid.*", "warnings.*", "crypto.*", "emit", "clearTimeout", "clearInterval",
    "dumps", "b64encode", "b64decode", "hexlify", "unhexlify", "isdecimal", "sleep",
    "asyncio.sleep", "random.random", "random.randint", "random.uniform", "random.seed", "time",
    "floor", "ceil", "sqrt", "log", "fabs", "mean", "median", "stdev", "escape", "dedent", "bytes",
    "datetime.timedelta", "timedelta", "datetime.datetime.now", "datetime.now",
];

/// Constructors and functions that return a new object with their arguments in it, and change
/// nothing.
#[rustfmt::skip]
pub(super) const HOLDING_FUNCTIONS: &[&str] = &[
    "JSON.parse", "json.loads", "loads", "re.*", "datetime.*", "date.*", "hashlib.*", "urllib.parse.*", "csv.*",
    "copy.*", "deepcopy", "collections.Counter", "Counter", "io.*", "itertools.*", "pathlib.*",
    "urlparse", "urlsplit", "parse_qs", "Path", "StringIO", "Date", "RegExp", "URL",
    "URLSearchParams", "TextEncoder", "TextDecoder", "Uint8Array", "Error", "TypeError",
    "RangeError", "SyntaxError", "ReferenceError", "EvalError", "URIError", "AggregateError",
    "Exception", "ValueError", "RuntimeError", "KeyError", "TimeoutError", "LookupError",
    "IndexError", "AssertionError", "NotImplementedError", "ArithmeticError", "ToolError",
    "BaseException", "OSError", "StopIteration", "structuredClone", "AbortController",
    "asyncio.Semaphore", "asyncio.Lock", "asyncio.Event", "asyncio.Queue", "asyncio.TaskGroup",
    "asyncio.Future", "Buffer.*", "Headers", "FormData", "object", "random.choices",
    "random.sample", "timezone", "datetime", "product", "chain", "islice", "chain.from_iterable",
    "deque", "collections.deque",
    "collections.OrderedDict", "OrderedDict", "namedtuple",
    "ArrayBuffer", "DataView", "Float64Array", "Uint16Array", "Uint32Array", "Int32Array",
    "Float32Array", "WeakRef", "operator.*", "traceback.*", "dataclasses.asdict", "dataclasses.astuple",
    "dataclasses.fields", "dataclasses.replace", "contextlib.nullcontext",
];

/// Functions through which a script changes the engine or reaches things by other ways.
#[rustfmt::skip]
pub(super) const OPAQUE: &[&str] = &[
    "eval", "exec", "Function", "Proxy", "Reflect", "globals", "locals", "vars", "compile",
    "__import__", "importlib", "FinalizationRegistry", "Object.defineProperty",
    "Object.defineProperties", "Object.setPrototypeOf", "globalThis", "arguments", "__builtins__",
    "Object.getPrototypeOf", "builtins", "__main__", "sys.modules", "sys._getframe", "sys.settrace",
    "sys.setprofile", "gc", "inspect", "types", "contextlib.redirect_stdout",
    "contextlib.redirect_stderr", "logging.StreamHandler", "logging.Handler", "logging.handlers",
    "atexit", "code", "codeop", "ctypes", "pickle", "marshal", "copyreg",
    "timeit", "pdb", "bdb", "runpy", "pkgutil", "zipimport", "pydoc", "doctest", "trace", "cProfile",
    "profile", "unittest", "typing.get_type_hints", "sys.argv", "sys.path", "sys.meta_path",
    "sys.path_hooks", "sys._current_frames", "sys.addaudithook", "sys.monitoring", "sys.last_value",
    "sys.last_exc", "sys.excepthook", "os.environ", "os.putenv", "os.getenv",
];

/// Functions of promises, tasks and timers, and others that combine their arguments in such a way.
#[rustfmt::skip]
pub(super) const ASYNCHRONOUS_FUNCTIONS: &[&str] = &[
    "setTimeout", "setInterval", "queueMicrotask", "setImmediate", "Promise",
    "Promise.withResolvers", "Promise.reject", "Promise.race", "Promise.any", "next", "anext",
    "random.choice", "Promise.allSettled", "asyncio.gather", "gather", "asyncio.wait", "Array.of",
    "tuple_of",
];

/// Functions that return their arguments.
#[rustfmt::skip]
pub(super) const PASSING_FUNCTIONS: &[&str] = &[
    "Promise.all", "Promise.resolve", "Object.freeze", "Object.seal",
    "asyncio.create_task", "asyncio.wait_for", "asyncio.shield", "asyncio.run",
    "asyncio.ensure_future", "cast", "typing.cast", "asyncio.as_completed", "AsyncIterator",
];

/// Functions over the elements of their arguments.
#[rustfmt::skip]
pub(super) const ITERATING_FUNCTIONS: &[&str] = &[
    "Set", "WeakSet", "Array", "list", "tuple", "set", "frozenset", "reversed", "sorted",
    "Array.from", "map", "filter", "Iterator.from", "aiter", "Array.fromAsync", "Map.groupBy",
    "Object.groupBy", "itertools.groupby", "functools.reduce", "reduce", "min", "max", "sum",
    "any", "all", "zip", "enumerate", "itertools.zip_longest", "itertools.starmap", "groupby",
    "heapq.nlargest", "heapq.nsmallest",
];

/// Classes of collections, whose constructors call no function that they are given.
pub(super) const COLLECTIONS: &[&str] =
    &["list", "tuple", "set", "frozenset", "Set", "WeakSet", "Array"];

/// Classes of Python whose methods are also functions, such as `str.lower`.
pub(super) const CLASSES: &[&str] =
    &["str", "list", "dict", "set", "tuple", "frozenset", "int", "float", "bytes"];

/// Methods after which elements may stand at other positions.
#[rustfmt::skip]
pub(super) const MOVING_METHODS: &[&str] = &[
    "slice", "reverse", "toReversed", "subarray", "with", "toSpliced", "copyWithin", "splice", "sort",
    "toSorted", "shift", "unshift", "appendleft", "insert", "fill", "remove", "delete", "pop",
    "popleft", "rotate", "extendleft", "difference", "intersection", "union",
    "symmetric_difference", "most_common", "elements",
];

/// Methods that take out what their arguments say.
pub(super) const TAKING_METHODS: &[&str] =
    &["pop", "shift", "popleft", "splice", "copyWithin", "rotate"];

/// Methods whose names nothing but collections has, in addition to those in other lists.
#[rustfmt::skip]
pub(super) const OTHER_METHODS: &[&str] = &[
    "map", "flatMap", "forEach", "filter", "find", "findLast", "some", "every", "findIndex",
    "findLastIndex", "sort", "toSorted", "reduce", "reduceRight", "set", "setdefault", "__setitem__",
    "get", "getAll", "extend", "update", "extendleft", "keys", "values", "entries", "items",
    "concat", "flat", "splice", "next", "send", "replace", "clear", "rotate", "popitem",
    "__contains__", "__len__", "__delitem__", "__add__", "__iadd__", "move_to_end",
];

/// Functions that change what they are given, of modules whose functions do not.
#[rustfmt::skip]
pub(super) const CHANGING_FUNCTIONS: &[&str] = &[
    "operator.setitem", "operator.delitem", "operator.iadd", "operator.iconcat", "operator.ior",
    "operator.iand", "operator.isub", "operator.imul", "json.dump", "operator.call",
];

/// Classes of the engine whose methods call no methods of a class of the script.
#[rustfmt::skip]
pub(in crate::check::flow) const QUIET_BASES: &[&str] = &[
    "Error", "TypeError", "RangeError", "SyntaxError", "Exception", "ValueError", "RuntimeError",
    "KeyError", "TimeoutError", "LookupError", "IndexError", "AssertionError", "object", "ABC",
    "abc.ABC", "Enum", "enum.Enum", "IntEnum", "enum.IntEnum", "StrEnum", "enum.StrEnum",
    "Protocol", "typing.Protocol", "NamedTuple", "typing.NamedTuple", "TypedDict",
    "typing.TypedDict", "Generic", "typing.Generic", "BaseException", "OSError", "ToolError",
    "NotImplementedError", "ArithmeticError", "Flag", "enum.Flag",
];
