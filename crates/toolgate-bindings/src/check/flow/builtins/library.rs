//! What the library of Python keeps between calls.
//!
//! A list names the parts of the library that are known to keep nothing. Everything else shares one
//! state: what it is given may be in what any other part returns later. A script that looks into
//! the library, or changes it, is not followed.

use super::{
    super::{
        Solver,
        calls::{ArgumentKind, CallState},
        graph::{CallId, Node, ObjectId, ObjectKind, Use, Value},
        ir::{Name, is_frame, name},
    },
    names::{ADDING_METHODS, OPAQUE, TAKING_METHODS},
};
use crate::check::python::builtins::ALWAYS;

/// Parts of the library that keep nothing. `X.*` stands for the parts of X, but not for the parts
/// of those.
#[rustfmt::skip]
const STATELESS: &[&str] = &[
    "abc.*", "array.*", "ast.literal_eval", "base64.*", "binascii.*", "bisect.*", "bz2.compress",
    "bz2.decompress", "cmath.*", "collections.*", "collections.abc.*", "collections.Counter.*",
    "collections.OrderedDict.*", "collections.defaultdict.*", "collections.deque.*", "colorsys.*",
    "configparser.*", "contextlib.*", "copy.copy", "copy.deepcopy", "copy.replace", "dataclasses.*",
    "datetime.*", "datetime.date.*", "datetime.datetime.*", "datetime.time.*",
    "datetime.timedelta.*", "datetime.timezone.*", "difflib.*", "email.message_from_bytes",
    "email.message_from_string", "email.utils.*", "enum.*", "fnmatch.*", "fractions.*",
    "fractions.Fraction.*", "functools.*", "graphlib.*", "gzip.compress", "gzip.decompress",
    "hashlib.*", "heapq.*", "hmac.*", "html.*", "html.entities.*", "html.parser.*", "http.HTTPStatus",
    "http.HTTPStatus.*", "io.BytesIO", "io.StringIO", "io.TextIOWrapper", "ipaddress.*",
    "itertools.*", "itertools.chain.*", "json.*", "json.decoder.*", "json.encoder.*",
    "json.JSONDecoder.*", "json.JSONEncoder.*", "keyword.*", "lzma.compress", "lzma.decompress",
    "math.*", "numbers.*", "operator.*", "os.cpu_count", "os.fspath", "os.getcwd", "os.getpid",
    "os.linesep", "os.name", "os.path.*", "os.sep", "os.urandom", "pathlib.*", "pathlib.Path.*",
    "pprint.*", "queue.*", "quopri.*", "random.*", "random.Random.*", "random.SystemRandom.*",
    "re.*", "re.Match.*", "re.Pattern.*", "reprlib.*", "secrets.*", "shlex.*", "statistics.*",
    "statistics.NormalDist.*", "string.*", "string.Template.*", "string.Formatter.*", "stringprep.*",
    "struct.*", "sys.byteorder", "sys.exc_info", "sys.exception", "sys.exit", "sys.float_info",
    "sys.float_info.*", "sys.getdefaultencoding", "sys.getsizeof", "sys.maxsize", "sys.maxunicode",
    "sys.platform", "sys.stderr", "sys.stderr.*", "sys.stdout",
    "sys.stdout.*", "sys.version", "sys.version_info", "sys.version_info.*",
    "textwrap.*", "textwrap.TextWrapper.*", "time.*", "tomllib.*", "traceback.format_exc",
    "traceback.format_exception", "traceback.format_exception_only", "traceback.format_tb",
    "traceback.print_exc", "traceback.print_exception", "typing.*", "unicodedata.*",
    "urllib.parse.*", "uuid.*", "uuid.UUID.*", "xml.sax.saxutils.*", "zlib.*", "zoneinfo.*",
    "asyncio.ALL_COMPLETED", "asyncio.Barrier", "asyncio.BoundedSemaphore", "asyncio.CancelledError",
    "asyncio.Condition", "asyncio.Event", "asyncio.FIRST_COMPLETED", "asyncio.FIRST_EXCEPTION",
    "asyncio.Future", "asyncio.InvalidStateError", "asyncio.LifoQueue", "asyncio.Lock",
    "asyncio.PriorityQueue", "asyncio.Queue", "asyncio.QueueEmpty", "asyncio.QueueFull",
    "asyncio.Semaphore", "asyncio.TaskGroup", "asyncio.TimeoutError", "asyncio.as_completed",
    "asyncio.create_task", "asyncio.ensure_future", "asyncio.gather", "asyncio.iscoroutine",
    "asyncio.iscoroutinefunction", "asyncio.run", "asyncio.shield", "asyncio.sleep",
    "asyncio.timeout", "asyncio.timeout_at", "asyncio.to_thread", "asyncio.wait",
    "asyncio.wait_for",
];

/// Parts that keep nothing, but whose results depend on what other parts keep.
#[rustfmt::skip]
const READING: &[&str] = &[
    "calendar.*", "csv.DictReader", "csv.DictWriter", "csv.QUOTE_ALL", "csv.QUOTE_MINIMAL",
    "csv.QUOTE_NONE", "csv.QUOTE_NONNUMERIC", "csv.reader", "csv.writer", "decimal.Decimal",
    "decimal.Decimal.*", "decimal.ROUND_HALF_EVEN", "decimal.ROUND_HALF_UP", "decimal.ROUND_DOWN",
    "decimal.ROUND_UP", "decimal.InvalidOperation", "mimetypes.guess_extension",
    "mimetypes.guess_type", "time.localtime", "time.strftime", "traceback.format_exc",
    "traceback.format_exception", "uuid.uuid1", "xml.etree.ElementTree.Element",
    "xml.etree.ElementTree.SubElement", "xml.etree.ElementTree.fromstring",
    "xml.etree.ElementTree.tostring",
];

/// Parts of modules in the lists that do keep something.
#[rustfmt::skip]
const KEEPING: &[&str] = &[
    "calendar.setfirstweekday", "contextlib.chdir", "time.tzset", "typing.get_overloads",
    "typing.overload", "typing.clear_overloads", "pathlib.Path.open", "uuid.getnode",
    "zoneinfo.reset_tzpath", "zoneinfo.TZPATH", "abc.update_abstractmethods", "email.utils.localtime",
];

/// Functions of the language itself that reach something outside the script.
const REACHING: &[&str] = &["open", "input", "help", "breakpoint"];

/// Parts of the library that give access to everything that a script has.
#[rustfmt::skip]
const INTROSPECTING: &[&str] = &[
    "__main__", "_thread", "ast.parse", "asyncio.Runner", "asyncio.all_tasks", "atexit", "builtins",
    "cgitb", "concurrent.interpreters", "copyreg", "ctypes", "dis", "faulthandler", "gc", "importlib",
    "inspect", "io.open_code", "logging.config", "logging.handlers", "logging.Handler",
    "logging.StreamHandler", "logging.FileHandler", "marshal", "multiprocessing", "pickle",
    "pickletools", "pkgutil", "pyclbr", "rlcompleter", "runpy", "site", "symtable", "sys.displayhook",
    "sys.gettrace", "sys.getprofile", "sys.setprofile", "sys.settrace", "sys.stdin",
    "sys.unraisablehook", "traceback.StackSummary", "traceback.TracebackException",
    "traceback.extract_stack", "traceback.walk_stack", "traceback.walk_tb", "traceback.format_stack",
    "traceback.print_stack", "tracemalloc", "weakref.getweakrefs", "xmlrpc", "string.Formatter",
    "threading.settrace", "threading.setprofile", "threading.excepthook", "unittest", "doctest",
    "sys.breakpointhook", "code", "codeop", "pydoc", "timeit", "trace", "bdb", "pdb",
];

/// Parts of the standard streams that read nothing.
const WRITING: &[&str] =
    &["*", "encoding", "flush", "isatty", "reconfigure", "write", "writelines"];

/// Attributes of functions of the library that say how they were called.
const COUNTING: &[&str] = &["cache_clear", "cache_info", "cache_parameters"];

/// Attributes that begin with an underscore and say nothing about the script.
const PUBLIC: &[&str] = &["__doc__", "__file__", "__name__", "__version__", "__init__", "_exit"];

/// Functions and methods that write to a log, which nothing reads unless the script changes that.
#[rustfmt::skip]
const LOGGING: &[&str] = &[
    "critical", "debug", "error", "exception", "fatal", "info", "log", "warn", "warning",
];

/// The numbers of levels.
const LOG_LEVELS: &[&str] =
    &["CRITICAL", "DEBUG", "ERROR", "FATAL", "INFO", "NOTSET", "WARN", "WARNING"];

/// What configures a log without a way to read it.
const LOG_SETTINGS: &[&str] = &["level", "format", "datefmt", "style", "force", "encoding"];

/// Modules in which every part is a function or a constant, so that a computed name is harmless.
const FLAT: &[&str] =
    &["math", "cmath", "operator", "statistics", "string", "itertools", "datetime"];

/// The class of loggers.
const LOGGER: &str = "logging.Logger";

/// Methods of objects of the library that change nothing.
#[rustfmt::skip]
const PURE_METHODS: &[&str] = &[
    "__format__", "__reversed__", "_asdict", "_make", "_replace", "adjusted", "as_integer_ratio",
    "as_posix", "as_tuple", "as_uri", "asctime", "astimezone", "bit_count", "bit_length",
    "cancelled", "cdf", "combine", "compare", "conjugate", "ctime", "done", "dst", "empty", "end",
    "exp", "expand", "findtext", "format_map", "from_bytes", "fromhex", "fromisoformat", "fromkeys",
    "fromordinal", "fromtimestamp", "full", "get_matching_blocks", "get_opcodes", "getboolean",
    "getchildren", "getfloat", "getint", "getroot", "gettext", "geturl", "has_option",
    "has_section", "hosts", "is_absolute", "is_finite", "is_integer", "is_nan", "is_relative_to",
    "is_set", "is_signed", "isocalendar", "isprintable", "iterfind", "itertext", "joinpath",
    "limit_denominator", "ln", "locked", "log10", "maketrans", "namelist", "now", "options",
    "overlaps", "pack", "qsize", "quantize", "quick_ratio", "ratio", "readable", "relative_to",
    "safe_substitute", "sections", "sqrt", "start", "strptime", "subnets", "substitute", "supernet",
    "time", "timetuple", "timetz", "to_bytes", "to_eng_string", "to_integral_value", "today",
    "tolist", "toordinal", "total", "toxml", "tzname", "unpack", "unpack_from", "utcnow",
    "utcoffset", "utctimetuple", "with_name", "with_stem", "with_suffix",
];

/// Methods of objects of the library that change nothing but the objects and what these hold.
#[rustfmt::skip]
const OWN_METHODS: &[&str] = &[
    "__aenter__", "__aexit__", "__enter__", "__exit__", "acquire", "add_argument",
    "add_done_callback", "cache_clear", "cache_info", "callback", "choice", "choices",
    "difference_update", "enter_async_context", "enter_context", "feed", "gauss", "getrandbits",
    "getvalue", "handle_data", "handle_endtag", "handle_starttag", "intersection_update", "iter",
    "new_child", "notify", "notify_all", "pack_into", "pop_all", "prepare", "push_async_callback",
    "randint", "random", "randrange", "read", "read_dict", "read_string", "readline", "readlines",
    "register", "reschedule", "sample", "seed", "seek", "set_seq1", "set_seq2", "set_seqs",
    "shuffle", "static_order", "subtract", "symmetric_difference_update", "tell", "truncate",
    "uncancel", "uniform", "wait", "wrap", "writeheader", "writerow", "writerows",
];

fn lists(list: &[&str], path: &str) -> bool {
    list.contains(&path)
        || path.rsplit_once('.').is_some_and(|(module, _)| {
            list.iter().any(|known| known.strip_suffix(".*") == Some(module))
        })
}

fn is_changing(method: &str) -> bool {
    ADDING_METHODS.contains(&method)
        || TAKING_METHODS.contains(&method)
        || matches!(method, "clear" | "extend" | "popitem" | "register" | "setdefault" | "update")
}

/// Whether a part of a path, or the whole of it, is in a list.
fn has_part(list: &[&str], path: &str) -> bool {
    let starts = path.match_indices('.').map(|(at, _)| at + 1);
    std::iter::once(0).chain(starts).any(|start| {
        let rest = path.get(start..).unwrap_or_default();
        let ends = rest.match_indices('.').map(|(at, _)| at).chain([rest.len()]);
        // A single name is that of a function of the language, or of another thing.
        ends.filter_map(|end| rest.get(..end)).any(|part| list.contains(&part))
    })
}

/// Whether a name of Python stands for something that gives access to everything.
pub(super) fn is_introspecting(path: &str) -> bool {
    let mut parts = path.split('.');
    parts.next();
    // What was printed may be read there.
    let stream = path.strip_prefix("sys.stdout.").or(path.strip_prefix("sys.stderr."));
    let is_written = |part: &str| part.split('.').all(|it| WRITING.contains(&it));
    let is_read = stream.is_some_and(|part| !is_written(part));
    is_read
        || parts.any(|part| {
            COUNTING.contains(&part) || part.starts_with('_') && !PUBLIC.contains(&part)
        })
        || has_part(INTROSPECTING, path)
        || path.match_indices('.').any(|(at, _)| {
            let rest = path.get(at + 1..).unwrap_or_default();
            rest.contains('.')
                && OPAQUE.iter().any(|known| {
                    known.contains('.')
                        && rest
                            .strip_prefix(known)
                            .is_some_and(|it| it.is_empty() || it.starts_with('.'))
                })
        })
        || OPAQUE.iter().any(|known| path.strip_prefix(known).is_some_and(|it| it.starts_with('.')))
}

/// Whether what a name stands for shares the state of the library.
fn is_stateful(path: &str) -> bool {
    let Some((root, part)) = path.split_once('.') else { return REACHING.contains(&path) };
    if KEEPING.contains(&path) {
        return true;
    }
    let is_own = part.starts_with("prototype") || ALWAYS.contains(&root);
    !is_own && !lists(STATELESS, path) && !lists(READING, path)
}

impl Solver<'_> {
    /// The object that stands for all that the library keeps.
    fn library(&mut self) -> (Node, ObjectId) {
        if let Some(known) = self.library {
            return known;
        }
        let known = self.holding(ObjectKind::Opaque);
        self.library = Some(known);
        known
    }

    /// Whether a part of the library is a number. Otherwise it might be a function that the library keeps and calls, which
    /// takes very many steps to follow.
    pub(in crate::check::flow) fn is_number(&self, path: Name, part: Name) -> bool {
        self.program.is_python
            && &*self.names.text(path) == "logging"
            && LOG_LEVELS.contains(&&*self.names.text(part))
    }

    /// What the library keeps, if a part of it depends on that.
    pub(in crate::check::flow) fn kept(&mut self, path: Name) -> Option<Node> {
        let text = self.names.text(path);
        let depends = self.program.is_python && (is_stateful(&text) || lists(READING, &text));
        depends.then(|| self.library().0)
    }

    /// Calls a part of the library that may keep something. Returns whether it is one.
    pub(super) fn call_library(
        &mut self,
        call: CallId,
        state: &CallState,
        path: &str,
        given: &[Node],
    ) -> bool {
        if !self.program.is_python {
            return false;
        }
        if lists(READING, path) || reads_codecs(path, given.len()) {
            let library = self.library().0;
            self.deep(library, state.result);
        }
        self.keep_names(state, path);
        if !is_stateful(path) {
            self.look_up_attributes(state, path, given);
            return false;
        }
        // It changes what other parts read that are said to keep nothing.
        if let Some((whole, method)) = path.rsplit_once('.')
            && (lists(STATELESS, whole) || lists(READING, whole))
            && whole.contains('.')
            && is_changing(method)
        {
            self.graph.is_lost = true;
        }
        if let Some(("logging" | LOGGER, function)) = path.rsplit_once('.') {
            match function {
                _ if LOGGING.contains(&function) => {
                    for node in given {
                        self.copy(*node, self.logged);
                        self.deep(*node, self.logged);
                    }
                    return true;
                }
                "getLogger" | "getChild" | "setLevel" | "isEnabledFor" | "getEffectiveLevel" => {
                    self.keep(state, given);
                    if matches!(function, "getLogger" | "getChild") {
                        let logger = self.names.intern(LOGGER);
                        let logger = self.object_of(ObjectKind::Builtin(logger));
                        self.add(state.result, Value::Object(logger), state.result);
                    } else {
                        let library = self.library().0;
                        self.copy(library, state.result);
                    }
                    return true;
                }
                "basicConfig" => {
                    let is_setting = |kind: &ArgumentKind| match kind {
                        ArgumentKind::Keyword(name) => {
                            LOG_SETTINGS.contains(&&*self.names.text(*name))
                        }
                        _ => false,
                    };
                    self.graph.is_lost |= !state.arguments.iter().all(|(kind, _)| is_setting(kind));
                    self.keep(state, given);
                    return true;
                }
                _ => {}
            }
        }
        self.touch_library(call, None);
        true
    }

    /// Calls something that may read and change all that the library keeps.
    pub(super) fn touch_library(&mut self, call: CallId, receiver: Option<Node>) {
        let (library, object) = self.library();
        let Some(state) = self.calls.get(call as usize).cloned() else { return };
        let place = self.field(object, name::ANY);
        self.copy(state.condition, place);
        self.copy(state.chosen, place);
        self.copy(self.logged, place);
        let whole = self.node();
        self.copy(library, whole);
        if let Some(receiver) = receiver {
            self.copy(receiver, whole);
        }
        self.unknown(call, Some(whole));
    }

    /// The library keeps what a call is given.
    fn keep(&mut self, state: &CallState, given: &[Node]) {
        let (_, object) = self.library();
        let place = self.field(object, name::ANY);
        for node in given {
            self.copy(*node, place);
            self.deep(*node, place);
        }
        self.copy(state.condition, place);
    }

    /// The names of tasks can be read from everywhere.
    pub(super) fn keep_names(&mut self, state: &CallState, path: &str) {
        let function = path.rsplit('.').next().unwrap_or(path);
        if !matches!(function, "create_task" | "ensure_future") {
            return;
        }
        let named: Vec<Node> = state
            .arguments
            .iter()
            .filter(|(kind, _)| *kind != ArgumentKind::Position)
            .map(|(_, node)| *node)
            .collect();
        if !named.is_empty() {
            self.keep(state, &named);
        }
    }

    /// A name in data, or an internal one, may lead to the variables of the script.
    fn look_up_attributes(&mut self, state: &CallState, path: &str, given: &[Node]) {
        if !matches!(path, "operator.attrgetter" | "operator.methodcaller") {
            return;
        }
        for at in 0..given.len() {
            let is_inner = |part: &str| part.starts_with('_') || is_frame(part);
            let is_plain = |text: &str| !text.split('.').any(is_inner);
            match self.key(state, at) {
                Some(key) => self.graph.is_lost |= !is_plain(&self.names.text(key)),
                None if at == 0 => self.graph.is_lost = true,
                None => {}
            }
        }
    }

    /// A method that is in no other list.
    pub(super) fn call_library_method(
        &mut self,
        call: CallId,
        state: &CallState,
        receiver: Node,
        method: &str,
        given: &[Node],
    ) {
        match method {
            _ if !self.program.is_python || OWN_METHODS.contains(&method) => {
                self.unknown(call, Some(receiver));
            }
            _ if PURE_METHODS.contains(&method) => {
                self.hold(given, Some(receiver), state.result);
            }
            // It may keep what it is given where others find it.
            _ => self.touch_library(call, Some(receiver)),
        }
    }

    /// Whether a part of the library keeps nothing.
    pub(super) fn is_stateless(&self, path: &str) -> bool {
        self.program.is_python && lists(STATELESS, path)
    }

    /// A text with attributes of objects in it: `"{0.name}"`.
    pub(super) fn format_text(&mut self, receiver: Node, given: &[Node]) {
        let is_plain = |text: &str| !text.contains("._") && !text.contains("[_");
        if self.literal_keys.get(&receiver).is_some_and(|text| is_plain(&self.names.text(*text))) {
            return;
        }
        for node in given {
            self.flow(*node, Use::Inside { is_text: true });
        }
    }

    /// An attribute whose name is not known, of an object that may lead to everything.
    pub(in crate::check::flow) fn look_inside(&mut self, object: ObjectId, is_text: bool) {
        self.graph.is_lost |= match self.kind(object) {
            ObjectKind::Builtin(path) => {
                let path = self.names.text(path);
                let root = path.split('.').next().unwrap_or(&path);
                !FLAT.contains(&root)
            }
            ObjectKind::Function { .. } | ObjectKind::Bound { .. } => true,
            ObjectKind::Instance | ObjectKind::Class(_) => is_text,
            _ => false,
        };
    }

    /// What texts are encoded with may be a function of the script.
    pub(super) fn read_codecs(&mut self, method: &str, given: &[Node], result: Node) {
        if self.program.is_python && matches!(method, "encode" | "decode") && !given.is_empty() {
            let library = self.library().0;
            self.deep(library, result);
        }
    }
}

/// Whether a function encodes or decodes a text in a way that the script can change.
fn reads_codecs(path: &str, given: usize) -> bool {
    matches!(path, "str" | "bytes" | "bytearray") && given > 1
}
