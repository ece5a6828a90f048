//! What the functions and methods of the engines do with data.
//!
//! A function or method that is not listed may do anything: it stores its arguments in each other,
//! calls them with each other, and returns all of them.

use super::{
    Solver,
    calls::{ArgumentKind, CallState},
    graph::{CallId, Node, ObjectId, ObjectKind, Use, Value},
    ir::{Name, name},
};

/// Methods that return a text, a number or a truth value, and change nothing.
#[rustfmt::skip]
const PRIMITIVE_METHODS: &[&str] = &[
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
const SPLITTING_METHODS: &[&str] = &[
    "digest", "exec", "findall", "finditer", "fullmatch", "group", "groupdict", "groups", "match",
    "matchAll", "partition", "rpartition", "rsplit", "split", "splitlines", "search", "span",
    "scan", "formatToParts",
];

/// Methods that return the receiver, or some of its elements in a new list.
#[rustfmt::skip]
const PART_METHODS: &[&str] = &[
    "slice", "reverse", "toReversed", "copy", "subarray", "with", "difference", "intersection",
    "union", "symmetric_difference", "most_common", "elements", "toSpliced", "copyWithin", "__iter__",
    "__aiter__", "asReadonly", "result", "with_traceback",
];

/// Methods that add their arguments to the receiver.
#[rustfmt::skip]
const ADDING_METHODS: &[&str] = &[
    "push", "unshift", "append", "appendleft", "add", "insert", "put", "put_nowait", "add_note",
    "fill", "write", "writelines", "remove", "discard", "delete", "set_result", "set_exception",
];

/// Methods that return an element.
const ELEMENT_METHODS: &[&str] =
    &["pop", "shift", "popleft", "popitem", "at", "get_nowait", "__next__", "__getitem__", "item"];

/// Functions that return a text, a number or a truth value, and change nothing. `X.*` stands for
/// all functions of a module.
#[rustfmt::skip]
const PRIMITIVE_FUNCTIONS: &[&str] = &[
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
const HOLDING_FUNCTIONS: &[&str] = &[
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
    "defaultdict", "collections.defaultdict", "collections.OrderedDict", "OrderedDict", "namedtuple",
    "ArrayBuffer", "DataView", "Float64Array", "Uint16Array", "Uint32Array", "Int32Array",
    "Float32Array", "WeakRef", "operator.*", "traceback.*",
];

/// Functions through which a script changes the engine or reaches things by other ways.
#[rustfmt::skip]
const OPAQUE: &[&str] = &[
    "eval", "exec", "Function", "Proxy", "Reflect", "globals", "locals", "vars", "compile",
    "__import__", "importlib", "FinalizationRegistry", "Object.defineProperty",
    "Object.defineProperties", "Object.setPrototypeOf", "globalThis", "arguments", "__builtins__",
];

/// How often an unknown function may call an unknown function back.
const MAX_UNKNOWN: u32 = 2;

fn is_in(list: &[&str], path: &str) -> bool {
    list.contains(&path)
        || path
            .match_indices('.')
            .any(|(at, _)| list.iter().any(|known| known.strip_suffix(".*") == path.get(..at)))
}

impl Solver<'_> {
    /// Whether the name stands for something that the analysis cannot follow.
    pub(super) fn is_opaque_name(path: &str) -> bool {
        let root = path.split('.').next().unwrap_or(path);
        OPAQUE.contains(&path) || OPAQUE.contains(&root)
    }

    fn arguments(&mut self, state: &CallState) -> Vec<Node> {
        let mut nodes = Vec::with_capacity(state.arguments.len());
        for (kind, node) in &state.arguments {
            nodes.push(match kind {
                ArgumentKind::Position | ArgumentKind::Keyword(_) => *node,
                ArgumentKind::Spread | ArgumentKind::KeywordSpread => {
                    let items = self.node();
                    self.flow(*node, Use::LoadAny(items));
                    items
                }
            });
        }
        nodes
    }

    fn loaded(&mut self, from: Node, to: fn(Node) -> Use) -> Node {
        let node = self.node();
        self.flow(from, to(node));
        node
    }

    fn list_of(&mut self, items: &[Node]) -> (Node, ObjectId) {
        let (node, list) = self.holding(ObjectKind::Array);
        let any = self.field(list, name::ANY);
        for item in items {
            self.copy(*item, any);
        }
        (node, list)
    }

    /// Adds what determines the number of elements.
    fn shaped(&mut self, list: ObjectId, by: Node) {
        let shape = self.field(list, name::SHAPE);
        self.flow(by, Use::Shape(shape));
    }

    fn key(&self, state: &CallState, at: usize) -> Option<Name> {
        self.literal_keys.get(&state.arguments.get(at)?.1).copied()
    }

    /// A method of something that is no object of the script.
    pub(super) fn call_method(&mut self, call: CallId, receiver: Node, object: Option<ObjectId>) {
        let Some(state) = self.calls.get(call as usize) else { return };
        let method = self.names.text(state.member);
        let is_indirect = matches!(&*method, "call" | "apply" | "bind");
        match object.map(|object| (object, self.kind(object))) {
            Some((_, ObjectKind::Plain)) if !matches!(&*method, "toString" | "hasOwnProperty") => {}
            Some((
                callee,
                ObjectKind::Function { .. }
                | ObjectKind::Bound { .. }
                | ObjectKind::Class(_)
                | ObjectKind::Tool(_)
                | ObjectKind::AnyTool
                | ObjectKind::Collector(_),
            )) if is_indirect => self.call_indirectly(call, callee, &method),
            Some((_, ObjectKind::Builtin(_))) if is_indirect => self.unknown(call, Some(receiver)),
            Some((
                _,
                ObjectKind::Plain
                | ObjectKind::Instance
                | ObjectKind::Function { .. }
                | ObjectKind::Bound { .. }
                | ObjectKind::Class(_)
                | ObjectKind::Tool(_)
                | ObjectKind::AnyTool
                | ObjectKind::Tools
                | ObjectKind::Builtin(_)
                | ObjectKind::Collector(_)
                | ObjectKind::Sent(_),
            )) => {}
            _ => self.model_method(call, receiver, &method),
        }
    }

    /// `call`, `apply` and `bind` of a function.
    fn call_indirectly(&mut self, call: CallId, callee: ObjectId, method: &str) {
        let Some(state) = self.calls.get(call as usize).cloned() else { return };
        if !self.done.insert((call, callee)) {
            return;
        }
        let this = state.arguments.first().map(|(_, node)| *node);
        let node = self.node();
        self.add(node, Value::Object(callee), node);
        if method == "bind" {
            let this = this.unwrap_or(node);
            let bound = self.object(ObjectKind::Bound { function: callee, this });
            let extra = state.arguments.iter().skip(1).map(|(_, node)| *node).collect();
            self.bound.insert(bound, extra);
            self.add(state.result, Value::Object(bound), state.result);
            return;
        }
        let mut arguments: Vec<_> = state.arguments.iter().skip(1).copied().collect();
        if method == "apply" {
            for (kind, _) in &mut arguments {
                *kind = ArgumentKind::Spread;
            }
        }
        self.call(CallState { arguments, this, callee: node, member: name::NONE, ..state });
    }

    /// What a method of a text, a collection or a result does.
    pub(super) fn model_method(&mut self, call: CallId, receiver: Node, method: &str) {
        let Some(known) = self.calls.get_mut(call as usize) else { return };
        if known.is_modelled {
            return;
        }
        known.is_modelled = true;
        let state = known.clone();
        let (result, given) = (state.result, self.arguments(&state));
        // The message of an error may contain them.
        for node in given.iter().chain([&receiver]) {
            self.deep(*node, state.thrown);
        }
        match method {
            _ if PRIMITIVE_METHODS.contains(&method) => {
                for node in given.iter().chain([&receiver]) {
                    self.deep(*node, result);
                }
            }
            _ if SPLITTING_METHODS.contains(&method) => {
                self.hold(&given, Some(receiver), result);
            }
            _ if PART_METHODS.contains(&method) => {
                self.copy(receiver, result);
                for node in given {
                    self.deep(node, result);
                    self.flow(node, Use::Items(result));
                }
            }
            _ if ADDING_METHODS.contains(&method) => {
                for node in given.iter().chain([&state.condition]) {
                    self.flow(receiver, Use::Store(name::ANY, *node));
                }
                self.flow(receiver, Use::Shape(result));
                if method == "fill" {
                    self.copy(receiver, result);
                }
            }
            _ if ELEMENT_METHODS.contains(&method) => self.element(&state, receiver, &given),
            _ => self.model_other(call, &state, receiver, method, &given),
        }
    }

    fn element(&mut self, state: &CallState, receiver: Node, given: &[Node]) {
        match self.key(state, 0) {
            Some(key) => self.flow(receiver, Use::Load(key, state.result)),
            None => self.flow(receiver, Use::LoadAny(state.result)),
        }
        self.flow(receiver, Use::Shape(state.result));
        for node in given {
            self.deep(*node, state.result);
            self.copy(*node, state.result);
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each construct; parts of it would not be clearer"
    )]
    fn model_other(
        &mut self,
        call: CallId,
        state: &CallState,
        receiver: Node,
        method: &str,
        given: &[Node],
    ) {
        let result = state.result;
        let returned = self.node();
        match method {
            "map" | "flatMap" | "forEach" | "filter" | "find" | "findLast" | "some" | "every"
            | "findIndex" | "findLastIndex" | "sort" | "toSorted" => {
                self.each(call, receiver, method, given);
            }
            "reduce" | "reduceRight" => {
                let (items, total) = (self.loaded(receiver, Use::Items), self.node());
                if let Some(first) = given.get(1) {
                    self.copy(*first, total);
                } else {
                    self.copy(items, total);
                }
                self.copy(returned, total);
                let none = self.node();
                if let Some(function) = given.first() {
                    self.call_back(call, *function, &[total, items, none, receiver], returned);
                }
                self.copy(total, result);
                self.flow(receiver, Use::Shape(result));
            }
            "then" | "catch" | "finally" => {
                let error = self.loaded(receiver, Use::Deep);
                let rejected = self.rejected;
                self.copy(rejected, error);
                for (at, function) in given.iter().enumerate() {
                    let value = match (method, at) {
                        ("then", 0) => receiver,
                        ("finally", _) => self.node(),
                        _ => error,
                    };
                    self.call_back(call, *function, &[value], returned);
                }
                if method != "then" {
                    self.copy(receiver, result);
                }
                self.copy(returned, result);
            }
            "set" | "setdefault" | "__setitem__" => {
                let value = given.get(1).copied().unwrap_or(returned);
                if let Some(key) = self.key(state, 0) {
                    self.flow(receiver, Use::Store(key, value));
                    self.flow(receiver, Use::Load(key, result));
                } else {
                    self.flow(receiver, Use::Store(name::ANY, value));
                    if let Some(key) = given.first() {
                        self.flow(receiver, Use::Store(name::KEYS, *key));
                        // A typed array copies the elements.
                        self.flow(receiver, Use::Store(name::ANY, *key));
                    }
                    self.flow(receiver, Use::LoadAny(result));
                }
                self.flow(receiver, Use::Store(name::SHAPE, state.condition));
                if method == "set" {
                    self.copy(receiver, result);
                }
            }
            "get" | "getAll" => self.element(state, receiver, given),
            "extend" | "update" | "extendleft" => {
                for (kind, node) in &state.arguments {
                    if let ArgumentKind::Keyword(name) = kind {
                        self.flow(receiver, Use::Store(*name, *node));
                        continue;
                    }
                    let items = self.loaded(*node, Use::Items);
                    self.flow(receiver, Use::SpreadFrom(*node));
                    self.flow(receiver, Use::Store(name::ANY, items));
                    // A hash takes a text.
                    let data = self.loaded(*node, Use::Deep);
                    if self.is_data_only(*node) {
                        self.flow(receiver, Use::Store(name::ANY, data));
                    }
                }
                self.flow(receiver, Use::Store(name::SHAPE, state.condition));
            }
            "keys" => {
                let keys = self.loaded(receiver, Use::Keys);
                let (list, object) = self.list_of(&[keys]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "values" => {
                let items = self.loaded(receiver, Use::LoadAny);
                let (list, object) = self.list_of(&[items]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "entries" | "items" => {
                let keys = self.loaded(receiver, Use::Keys);
                let items = self.loaded(receiver, Use::LoadAny);
                let (pair, made) = self.holding(ObjectKind::Array);
                let (first, second) =
                    (self.field(made, name::FIRST), self.field(made, name::SECOND));
                self.copy(keys, first);
                self.copy(items, second);
                let (list, object) = self.list_of(&[pair]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "concat" => {
                let items = self.loaded(receiver, Use::LoadAny);
                let (list, object) = self.list_of(&[items]);
                let any = self.field(object, name::ANY);
                for node in given {
                    self.copy(*node, any);
                    self.flow(*node, Use::LoadAny(any));
                    self.shaped(object, *node);
                }
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "flat" => {
                let items = self.loaded(receiver, Use::LoadAny);
                let inner = self.loaded(items, Use::LoadAny);
                let deeper = self.loaded(inner, Use::LoadAny);
                let (list, object) = self.list_of(&[items, inner, deeper]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "splice" => {
                for node in given.iter().skip(2) {
                    self.flow(receiver, Use::Store(name::ANY, *node));
                }
                self.copy(receiver, result);
            }
            "next" | "send" => {
                for node in given {
                    self.flow(receiver, Use::Store(name::SENT, *node));
                }
                let (step, object) = self.holding(ObjectKind::Plain);
                let value = self.field(object, name::VALUE);
                self.flow(receiver, Use::LoadAny(value));
                self.shaped(object, receiver);
                self.copy(step, result);
            }
            "replace" | "replaceAll" | "sub" | "subn" => {
                let data = self.node();
                for node in given.iter().chain([&receiver]) {
                    self.deep(*node, data);
                }
                for function in given {
                    self.call_back(call, *function, &[data, data, data, data, data], returned);
                }
                self.copy(data, result);
                self.deep(returned, result);
            }
            "clear" | "close" | "cancel" | "task_done" | "release" | "abort" => {}
            "create_task" | "gather" => {
                for node in given {
                    self.copy(*node, result);
                }
            }
            _ => self.unknown(call, Some(receiver)),
        }
    }

    /// Whether nothing but data was seen in a node so far. More may follow, so this only widens.
    fn is_data_only(&self, node: Node) -> bool {
        let values = self.graph.nodes.get(node as usize).map_or(&[][..], |state| &state.values);
        !values.iter().any(|value| {
            matches!(value, Value::Object(object) if matches!(
            self.kind(*object), ObjectKind::Plain | ObjectKind::Dict | ObjectKind::Array))
        })
    }

    /// Methods that call a function for each element.
    fn each(&mut self, call: CallId, receiver: Node, method: &str, given: &[Node]) {
        let Some(state) = self.calls.get(call as usize).cloned() else { return };
        let (result, returned) = (state.result, self.node());
        let items = self.loaded(receiver, Use::Items);
        let position = self.node();
        self.flow(receiver, Use::Shape(position));
        let second = if matches!(method, "sort" | "toSorted") { items } else { position };
        for function in given {
            self.call_back(call, *function, &[items, second, receiver], returned);
        }
        let chosen = self.loaded(returned, Use::Deep);
        match method {
            "map" => {
                let (list, object) = self.list_of(&[returned]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "flatMap" => {
                let inner = self.loaded(returned, Use::LoadAny);
                let (list, object) = self.list_of(&[returned, inner]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "filter" => {
                let (list, object) = self.list_of(&[items, chosen]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "find" | "findLast" => {
                self.copy(items, result);
                self.copy(chosen, result);
                // In Python it searches a text.
                for node in given {
                    self.deep(*node, result);
                }
            }
            "sort" | "toSorted" => {
                self.flow(receiver, Use::Store(name::ANY, chosen));
                self.copy(receiver, result);
            }
            "forEach" => {}
            _ => {
                self.copy(chosen, result);
                self.flow(receiver, Use::Shape(result));
            }
        }
    }

    /// A new object that holds the data and the values of others.
    fn hold(&mut self, given: &[Node], receiver: Option<Node>, result: Node) {
        let (node, object) = self.holding(ObjectKind::Opaque);
        let any = self.field(object, name::ANY);
        for from in given.iter().copied().chain(receiver) {
            self.copy(from, any);
            self.flow(from, Use::LoadAny(any));
            self.deep(from, any);
        }
        self.copy(node, result);
    }

    /// A function that may do anything with what it is given.
    pub(super) fn unknown(&mut self, call: CallId, receiver: Option<Node>) {
        let Some(state) = self.calls.get_mut(call as usize) else { return };
        state.is_modelled = true;
        let state = state.clone();
        let all = self.node();
        let (node, object) = self.holding(ObjectKind::Opaque);
        let any = self.field(object, name::ANY);
        let mut given = self.arguments(&state);
        given.extend(receiver);
        for from in &given {
            self.copy(*from, all);
            self.flow(*from, Use::LoadAny(all));
        }
        self.copy(all, any);
        self.copy(any, all);
        for from in &given {
            self.flow(*from, Use::Store(name::ANY, all));
        }
        // What is called back has all values already.
        if state.depth < MAX_UNKNOWN {
            self.call_back(call, all, &[all, all, all], any);
        }
        self.deep(all, state.thrown);
        self.copy(all, state.result);
        self.copy(node, state.result);
    }

    /// A function of the engine.
    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each construct; parts of it would not be clearer"
    )]
    pub(super) fn call_builtin(&mut self, call: CallId, path: Name) {
        let Some(known) = self.calls.get_mut(call as usize) else { return };
        let (was_modelled, state) = (known.is_modelled, known.clone());
        let path = self.names.text(path);
        let result = state.result;
        if let Some(this) = state.constructs {
            for (_, node) in &state.arguments {
                self.flow(this, Use::Store(name::ANY, *node));
            }
            return;
        }
        if Self::is_opaque_name(&path) {
            self.graph.is_lost = true;
            return;
        }
        if was_modelled && state.member != name::NONE {
            return;
        }
        let given = self.arguments(&state);
        for node in &given {
            self.deep(*node, state.thrown);
        }
        // A function of the engine that one of its functions got from one of its functions.
        if state.depth > MAX_UNKNOWN {
            self.hold(&given, None, result);
            return;
        }
        let first = given.first().copied();
        // The functions of `Object`, and methods that are called through their class.
        let method = match &*path {
            "Object.keys" | "Object.getOwnPropertyNames" => Some("keys"),
            "Object.values" => Some("values"),
            "Object.entries" => Some("entries"),
            "re.sub" | "re.subn" => Some("sub"),
            _ => None,
        };
        if let (Some(method), Some(first)) = (method, first) {
            return self.model_other(call, &state, first, method, &given);
        }
        match &*path {
            "setTimeout" | "setInterval" | "queueMicrotask" | "setImmediate" => {
                let rest = given.get(2..).unwrap_or_default().to_vec();
                let returned = self.node();
                if let Some(function) = first {
                    self.call_back(call, function, &rest, returned);
                }
            }
            "Promise" => {
                let (resolve, function) = (self.node(), self.object(ObjectKind::Collector(result)));
                self.add(resolve, Value::Object(function), resolve);
                let returned = self.node();
                if let Some(first) = first {
                    self.call_back(call, first, &[resolve, resolve], returned);
                }
            }
            "Promise.withResolvers" => self.unknown(call, None),
            "Promise.all"
            | "Promise.resolve"
            | "Object.freeze"
            | "Object.seal"
            | "iter"
            | "asyncio.create_task"
            | "asyncio.wait_for"
            | "asyncio.shield"
            | "asyncio.run"
            | "asyncio.ensure_future"
            | "cast"
            | "typing.cast"
            | "asyncio.as_completed"
            | "AsyncIterator" => {
                for node in given {
                    self.copy(node, result);
                }
            }
            "Promise.reject" => {
                for node in given {
                    let rejected = self.rejected;
                    self.copy(node, rejected);
                    self.copy(node, result);
                }
            }
            "Promise.race" | "Promise.any" | "next" | "anext" | "random.choice" => {
                for (at, node) in given.into_iter().enumerate() {
                    if at > 0 {
                        self.copy(node, result);
                    }
                    self.flow(node, Use::LoadAny(result));
                    self.flow(node, Use::Shape(result));
                }
            }
            "Promise.allSettled" => {
                let (node, list) = self.holding(ObjectKind::Array);
                if let Some(first) = first {
                    self.flow(first, Use::Settle(list));
                }
                self.copy(node, result);
            }
            "asyncio.gather" | "gather" | "asyncio.wait" | "Array.of" | "tuple_of" => {
                let (node, list) = self.holding(ObjectKind::Array);
                let mut position = 0;
                for (at, from) in given.iter().enumerate() {
                    match state.arguments.get(at).map(|(kind, _)| *kind) {
                        Some(ArgumentKind::Position) if position == at => {
                            let place = self.indexed(list, at);
                            self.copy(*from, place);
                            position += 1;
                        }
                        _ => {
                            let any = self.field(list, name::ANY);
                            self.copy(*from, any);
                        }
                    }
                }
                if &*path == "asyncio.wait" {
                    let any = self.field(list, name::ANY);
                    for from in given {
                        self.flow(from, Use::LoadAny(any));
                    }
                }
                self.copy(node, result);
            }
            "Object.assign" => {
                if let Some(target) = first {
                    for from in given.iter().skip(1) {
                        self.flow(target, Use::SpreadFrom(*from));
                    }
                    self.copy(target, result);
                }
            }
            "Object.fromEntries"
            | "Map"
            | "WeakMap"
            | "dict"
            | "Object"
            | "collections.ChainMap" => {
                self.mapping(&state, &path, &given);
            }
            "Set"
            | "WeakSet"
            | "Array"
            | "list"
            | "tuple"
            | "set"
            | "frozenset"
            | "reversed"
            | "sorted"
            | "Array.from"
            | "map"
            | "filter"
            | "Iterator.from"
            | "aiter"
            | "Array.fromAsync"
            | "Map.groupBy"
            | "Object.groupBy"
            | "itertools.groupby"
            | "functools.reduce"
            | "reduce"
            | "min"
            | "max"
            | "sum"
            | "any"
            | "all"
            | "zip"
            | "enumerate"
            | "itertools.zip_longest"
            | "itertools.starmap"
            | "groupby"
            | "heapq.nlargest"
            | "heapq.nsmallest" => self.iterate(call, &state, &path, &given),
            "getattr" => self.load_named(&state, &given),
            "setattr" => {
                let value = given.get(2).copied().unwrap_or(result);
                if let Some(object) = first {
                    let key = self.key(&state, 1).unwrap_or(name::ANY);
                    self.flow(object, Use::Store(key, value));
                }
            }
            _ if is_in(PRIMITIVE_FUNCTIONS, &path) && !state.is_new => {
                for node in &given {
                    self.deep(*node, result);
                }
                if !matches!(&*path, "JSON.stringify" | "json.dumps") {
                    return;
                }
                // The replacer.
                let data = self.node();
                for node in &given {
                    self.copy(*node, data);
                    self.flow(*node, Use::LoadAny(data));
                }
                let returned = self.node();
                for node in &given {
                    self.call_back(call, *node, &[data, data], returned);
                }
                self.deep(returned, result);
            }
            _ if is_in(HOLDING_FUNCTIONS, &path) => {
                self.hold(&given, None, result);
                let (data, returned) = (self.loaded(result, Use::LoadAny), self.node());
                for node in &given {
                    self.call_back(call, *node, &[data, data, data], returned);
                }
                if !given.is_empty() {
                    self.flow(result, Use::Store(name::ANY, returned));
                }
            }
            _ => self.unknown(call, None),
        }
    }

    fn load_named(&mut self, state: &CallState, given: &[Node]) {
        let Some(object) = given.first() else { return };
        match self.key(state, 1) {
            Some(key) => self.flow(*object, Use::Load(key, state.result)),
            None => self.flow(*object, Use::LoadAny(state.result)),
        }
        for node in given.iter().skip(1) {
            self.deep(*node, state.result);
            self.copy(*node, state.result);
        }
    }

    /// Functions that make a dictionary.
    fn mapping(&mut self, state: &CallState, path: &str, given: &[Node]) {
        let kind =
            if matches!(path, "Map" | "WeakMap") { ObjectKind::Map } else { ObjectKind::Dict };
        let kind = if path.starts_with("Object") { ObjectKind::Plain } else { kind };
        let (node, made) = self.holding(kind);
        for (at, from) in given.iter().enumerate() {
            match state.arguments.get(at).map(|(kind, _)| *kind) {
                Some(ArgumentKind::Keyword(name)) => {
                    let place = self.field(made, name);
                    self.copy(*from, place);
                    continue;
                }
                _ if matches!(path, "dict" | "Object" | "collections.ChainMap") => {
                    self.flow(*from, Use::Spread(made));
                }
                _ => {}
            }
            let pairs = self.loaded(*from, Use::Items);
            let (keys, values) = (self.node(), self.node());
            self.flow(pairs, Use::Load(name::FIRST, keys));
            self.flow(pairs, Use::Load(name::SECOND, values));
            let (any, places) = (self.field(made, name::ANY), self.field(made, name::KEYS));
            if !matches!(path, "Object" | "collections.ChainMap") {
                self.copy(values, any);
                self.deep(keys, places);
            }
            self.shaped(made, *from);
        }
        self.copy(node, state.result);
    }

    /// Functions over the elements of their arguments.
    #[expect(
        clippy::similar_names,
        clippy::too_many_lines,
        reason = "one arm for each built-in function"
    )]
    fn iterate(&mut self, call: CallId, state: &CallState, path: &str, given: &[Node]) {
        let result = state.result;
        let last = path.rsplit('.').next().unwrap_or(path);
        let (items, returned, shape) = (self.node(), self.node(), self.node());
        let takes_function_first = matches!(last, "map" | "filter" | "reduce" | "starmap");
        let mut each = Vec::new();
        for (at, node) in given.iter().enumerate() {
            if at == 0 && takes_function_first {
                continue;
            }
            let own = self.loaded(*node, Use::Items);
            self.copy(own, items);
            self.flow(*node, Use::Shape(shape));
            each.push(own);
        }
        let total = self.node();
        let arguments: Vec<Node> = match last {
            "reduce" => vec![total, items],
            "map" if path == "map" => each.clone(),
            "starmap" => {
                let inner = self.loaded(items, Use::LoadAny);
                vec![inner; 4]
            }
            _ => vec![items, shape],
        };
        for function in given {
            self.call_back(call, *function, &arguments, returned);
        }
        let chosen = self.loaded(returned, Use::Deep);
        match last {
            "min" | "max" => {
                self.copy(items, result);
                self.copy(chosen, result);
                for node in given {
                    self.copy(*node, result);
                }
            }
            "sum" | "any" | "all" => {
                for node in given {
                    self.deep(*node, result);
                }
                self.copy(items, result);
            }
            "reduce" => {
                self.copy(items, total);
                self.copy(returned, total);
                for node in given.iter().skip(2) {
                    self.copy(*node, total);
                }
                self.copy(total, result);
                self.copy(shape, result);
            }
            "zip" | "enumerate" | "zip_longest" => {
                let (pair, made) = self.holding(ObjectKind::Array);
                let start = usize::from(last == "enumerate");
                if last == "enumerate" {
                    let first = self.field(made, name::FIRST);
                    self.copy(shape, first);
                }
                for (at, own) in each.iter().enumerate() {
                    let place = self.indexed(made, at + start);
                    self.copy(*own, place);
                }
                let (list, object) = self.list_of(&[pair]);
                self.put_shape(object, shape);
                self.copy(list, result);
            }
            "groupby" | "groupBy" => {
                let (group, object) = self.list_of(&[items, chosen]);
                self.put_shape(object, shape);
                let (pair, made) = self.holding(ObjectKind::Array);
                let (first, second) =
                    (self.field(made, name::FIRST), self.field(made, name::SECOND));
                self.copy(returned, first);
                self.copy(group, second);
                if path == "Object.groupBy" || path == "Map.groupBy" {
                    let (map, object) = self.holding(ObjectKind::Map);
                    let (any, keys) =
                        (self.field(object, name::ANY), self.field(object, name::KEYS));
                    self.copy(group, any);
                    self.deep(returned, keys);
                    self.copy(map, result);
                } else {
                    let (list, object) = self.list_of(&[pair]);
                    self.put_shape(object, shape);
                    self.copy(list, result);
                }
            }
            "map" | "starmap" => {
                let (list, object) = self.list_of(&[returned]);
                self.put_shape(object, shape);
                self.copy(list, result);
            }
            "from" | "fromAsync" if given.len() > 1 => {
                let (list, object) = self.list_of(&[returned]);
                self.put_shape(object, shape);
                if let Some(first) = given.first() {
                    let length = self.node();
                    self.flow(*first, Use::Load(name::LENGTH, length));
                    self.put_shape(object, length);
                }
                self.copy(list, result);
            }
            _ => {
                let (list, object) = self.list_of(&[items, chosen]);
                self.put_shape(object, shape);
                if last == "from" || last == "Array" {
                    for node in given {
                        let data = self.loaded(*node, Use::Deep);
                        self.put_shape(object, data);
                    }
                }
                self.copy(list, result);
            }
        }
    }

    fn put_shape(&mut self, list: ObjectId, shape: Node) {
        let place = self.field(list, name::SHAPE);
        self.copy(shape, place);
    }
}
