//! Features that would give another answer than `CPython`, without an error. A script that uses one
//! is refused before it runs.

use ruff_python_ast::{
    CmpOp, Comprehension, ExceptHandler, Expr, ExprAttribute, ExprCall, Number, Stmt, StmtClassDef,
    StmtFunctionDef,
};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{Node, bindings::Bindings, classes::Classes, edits, gone, lazy, walk};
use crate::engine::{FailureKind, ScriptFailure};

/// The special methods that are called.
#[rustfmt::skip]
const SPECIAL_METHODS: &[&str] = &[
    "__aenter__", "__aexit__", "__contains__", "__enter__", "__eq__",
    "__exit__", "__hash__", "__index__", "__init__", "__iter__", "__next__", "__post_init__",
    "__repr__", "__str__",
];

/// Built-in exceptions that nothing raises here. Handlers may name them.
#[rustfmt::skip]
const NEVER_RAISED: &[&str] = &[
    "BlockingIOError", "BrokenPipeError", "BufferError", "ConnectionAbortedError",
    "ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "DeprecationWarning",
    "EOFError", "FloatingPointError", "FutureWarning", "InterruptedError", "ProcessLookupError",
    "ReferenceError", "RuntimeWarning", "SystemError", "UnicodeError", "UserWarning", "Warning",
];

/// The arguments of `field()` that are understood.
const FIELD_OPTIONS: &[&str] = &["default", "default_factory"];

/// What a script cannot do here.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) at: TextSize,
    pub(super) what: String,
    pub(super) hint: &'static str,
}

impl Refusal {
    pub(super) fn new(node: &impl Ranged, what: impl Into<String>, hint: &'static str) -> Self {
        Self { at: node.start(), what: what.into(), hint }
    }

    /// The failure of the script.
    pub(super) fn failure(self, source: &str) -> ScriptFailure {
        let message = format!("not supported: {}", self.what);
        ScriptFailure::new(FailureKind::Unsupported, message)
            .at(edits::locate(source, self.at))
            .with_hint(self.hint)
    }
}

/// The first such feature of a script.
pub(super) fn find(body: &[Stmt], classes: &Classes, bindings: &Bindings) -> Option<Refusal> {
    let mut found = lazy::seen(body)
        .or_else(|| gone_name(body, bindings))
        .or_else(|| gone::again(body))
        .or_else(|| rare_space(body));
    walk(body, |node| {
        found = found.take().or_else(|| match node {
            Node::Statement(statement) => of_statement(statement, classes, bindings),
            Node::Expression(expression) => of_expression(expression, bindings),
            Node::Parameter(_) => None,
        });
        found.is_none()
    });
    found
}

fn of_expression(expression: &Expr, bindings: &Bindings) -> Option<Refusal> {
    match expression {
        Expr::Call(call) => never_raised(&call.func, bindings),
        Expr::Attribute(attribute) => of_attribute(attribute),
        Expr::Dict(dict) => {
            let keys: Vec<&Expr> = dict.iter_keys().flatten().collect();
            equal_keys(&keys).map(|key| {
                Refusal::new(
                    key,
                    "equal keys of different types, such as 1 and True",
                    "write all keys with one type",
                )
            })
        }
        Expr::Compare(comparison)
            if is_nan(&comparison.left)
                && comparison.ops.iter().any(|it| matches!(it, CmpOp::In | CmpOp::NotIn)) =>
        {
            let hint = "NaN equals nothing: write any(math.isnan(x) for x in values)";
            Some(Refusal::new(expression, "looking for NaN in a list", hint))
        }
        Expr::ListComp(list) => async_in(expression, &list.generators),
        Expr::SetComp(set) => async_in(expression, &set.generators),
        Expr::DictComp(dict) => async_in(expression, &dict.generators),
        Expr::Generator(generator) => async_in(expression, &generator.generators),
        _ => None,
    }
}

/// Attributes that nothing has here. `except` would take their absence for a mistake of the script.
fn of_attribute(attribute: &ExprAttribute) -> Option<Refusal> {
    let name = attribute.attr.as_str();
    let is_pattern = attribute.value.as_name_expr().is_some_and(|module| module.id == "re");
    let hint = match name {
        "__dict__" => "name the attributes, or use dataclasses.asdict()",
        "__doc__" => "keep the text in a variable or in a dictionary",
        "__module__" | "__qualname__" => "write the name itself, or __name__",
        "__bases__" | "__mro__" | "__subclasses__" => "list the classes in a variable",
        "__code__" | "__defaults__" | "__closure__" | "__globals__" => {
            "leave it out: scripts do not look at themselves"
        }
        "__cause__" | "__context__" | "__traceback__" => {
            "keep the other exception in an attribute of your own exception"
        }
        "X" | "VERBOSE" if is_pattern => {
            "write the pattern without blanks, as several texts in brackets with a comment beside each"
        }
        _ => return None,
    };
    Some(Refusal::new(attribute, format!("`{name}`"), hint))
}

/// The name of `except … as name` after its block, where Python has deleted it.
fn gone_name(body: &[Stmt], bindings: &Bindings) -> Option<Refusal> {
    let mut handlers: Vec<(&str, TextRange)> = Vec::new();
    walk(body, |node| {
        if let Node::Statement(Stmt::Try(tried)) = node {
            handlers.extend(tried.handlers.iter().filter_map(
                |ExceptHandler::ExceptHandler(it)| {
                    let name = it.name.as_ref()?.as_str();
                    bindings.is_built_in(name).then_some((name, it.range))
                },
            ));
        }
        matches!(node, Node::Statement(_))
    });
    if handlers.is_empty() {
        return None;
    }
    let mut found = None;
    walk(body, |node| {
        if let Node::Expression(expression @ Expr::Name(name)) = node {
            let of_name = || handlers.iter().filter(|(known, _)| *known == name.id.as_str());
            let is_gone = of_name().next().is_some()
                && !of_name().any(|(_, range)| range.contains_range(expression.range()));
            if is_gone && found.is_none() {
                let what = format!("`{}` after the block of its `except`", name.id);
                let hint = "keep the exception in another variable: error = e";
                found = Some(Refusal::new(expression, what, hint));
            }
        }
        found.is_none()
    });
    found
}

/// Methods that know more spaces in Python.
const SPACE_METHODS: &[&str] = &["isspace", "lstrip", "rstrip", "split", "strip"];

/// A method that takes away spaces, in a script with characters that are spaces only to Python.
fn rare_space(body: &[Stmt]) -> Option<Refusal> {
    let (mut has_rare, mut method) = (false, None);
    walk(body, |node| {
        match node {
            Node::Expression(Expr::StringLiteral(text)) => {
                has_rare |= text.value.to_str().contains(['\x1c', '\x1d', '\x1e', '\x1f']);
            }
            Node::Expression(Expr::Call(call)) if call.arguments.is_empty() => {
                let attribute = call.func.as_attribute_expr();
                if method.is_none()
                    && attribute.is_some_and(|it| SPACE_METHODS.contains(&it.attr.as_str()))
                {
                    method = Some(call);
                }
            }
            _ => {}
        }
        true
    });
    method.filter(|_| has_rare).map(|call| {
        Refusal::new(
            call,
            "spaces in a script with the characters \\x1c to \\x1f, which Python takes for spaces",
            "name the characters: text.strip(' \\t\\n'), text.split(' ')",
        )
    })
}

/// Whether an expression is written as no number.
fn is_nan(expression: &Expr) -> bool {
    match expression {
        Expr::Attribute(attribute) => &attribute.attr == "nan",
        Expr::Call(call) => {
            let text = call.arguments.args.first().and_then(Expr::as_string_literal_expr);
            called_name(call) == Some("float")
                && text.is_some_and(|text| text.value.to_str().trim().eq_ignore_ascii_case("nan"))
        }
        _ => false,
    }
}

fn async_in(expression: &Expr, generators: &[Comprehension]) -> Option<Refusal> {
    generators.iter().any(|each| each.is_async).then(|| async_loop(expression))
}

fn async_loop(node: &impl Ranged) -> Refusal {
    Refusal::new(node, "`async for`", "await a list of all values, and write a plain `for`")
}

/// A key that equals an earlier one of another type. Python keeps the first one of them.
fn equal_keys<'a>(keys: &[&'a Expr]) -> Option<&'a Expr> {
    let numbers: Vec<(&Expr, f64, u8)> = keys
        .iter()
        .filter_map(|key| match key {
            Expr::BooleanLiteral(literal) => Some((*key, f64::from(u8::from(literal.value)), 0)),
            Expr::NumberLiteral(literal) => match &literal.value {
                Number::Int(int) => Some((*key, f64::from(int.as_u8()?), 1)),
                Number::Float(float) => Some((*key, *float, 2)),
                Number::Complex { .. } => None,
            },
            _ => None,
        })
        .collect();
    let is_equal = |(_, value, kind): &(&Expr, f64, u8), (_, other, others): &(&Expr, f64, u8)| {
        kind != others && value.to_bits() == other.to_bits()
    };
    let found = numbers
        .iter()
        .enumerate()
        .find(|(index, key)| numbers.iter().take(*index).any(|earlier| is_equal(earlier, key)));
    found.map(|(_, (key, ..))| *key)
}

fn of_slice(target: &Expr) -> Option<Refusal> {
    let is_slice = target.as_subscript_expr().is_some_and(|it| it.slice.is_slice_expr());
    is_slice.then(|| {
        Refusal::new(
            target,
            "changing a part of a list",
            "make a new list: values = values[:1] + [new] + values[2:]",
        )
    })
}

fn of_statement(statement: &Stmt, classes: &Classes, bindings: &Bindings) -> Option<Refusal> {
    match statement {
        Stmt::Delete(delete) => delete.targets.iter().find_map(|target| match target {
            Expr::Name(_) => Some(Refusal::new(
                target,
                "`del` of a variable",
                "leave it out, or set the variable to None",
            )),
            Expr::Attribute(_) => Some(Refusal::new(
                target,
                "`del` of an attribute",
                "set the attribute to None, or keep it in a dictionary",
            )),
            _ => of_slice(target),
        }),
        Stmt::ClassDef(class) => of_class(class, classes),
        Stmt::FunctionDef(function) if lazy::yields(function) => Some(Refusal::new(
            &function.name,
            "a generator function (`yield`)",
            "collect the values in a list and return it; in __iter__ return iter(values)",
        )),
        Stmt::Match(matched) => Some(Refusal::new(matched, "`match`", "write if and elif")),
        Stmt::For(each) if each.is_async => Some(async_loop(each)),
        Stmt::Assign(assignment) => assignment
            .targets
            .iter()
            .find_map(|target| inherited(target, classes).or_else(|| of_slice(target)))
            .or_else(|| assignment.targets.iter().find_map(of_stream)),
        Stmt::AugAssign(assignment) => inherited(&assignment.target, classes),
        Stmt::Raise(raise) => raise.exc.as_deref().and_then(|kind| never_raised(kind, bindings)),
        _ => None,
    }
}

fn never_raised(kind: &Expr, bindings: &Bindings) -> Option<Refusal> {
    let name = kind.as_name_expr()?.id.as_str();
    (NEVER_RAISED.contains(&name) && bindings.is_built_in(name)).then(|| {
        Refusal::new(
            kind,
            format!("raising {name}"),
            "raise another exception, or a class of your own",
        )
    })
}

/// Another stream in the place of one that `print` writes to, which would not be used.
fn of_stream(target: &Expr) -> Option<Refusal> {
    let stream = target.as_attribute_expr()?;
    let is_sys = stream.value.as_name_expr().is_some_and(|module| module.id == "sys");
    (is_sys && matches!(stream.attr.as_str(), "stdout" | "stderr")).then(|| {
        Refusal::new(
            target,
            "another stream in the place of sys.stdout or sys.stderr",
            "collect the texts in a list",
        )
    })
}

/// The change of a variable of a class. A class that inherits it has a copy.
fn inherited(target: &Expr, classes: &Classes) -> Option<Refusal> {
    let class = target.as_attribute_expr()?.value.as_name_expr()?;
    let name = class.id.as_str();
    (name == "cls" && classes.has_bases() || classes.is_base(name)).then(|| {
        Refusal::new(
            target,
            "changing a variable of a class that another class inherits",
            "keep the value in a variable outside of the class, or in a dictionary of the class",
        )
    })
}

fn of_class(class: &StmtClassDef, classes: &Classes) -> Option<Refusal> {
    if classes.has_odd_bases(&class.name) {
        return Some(Refusal::new(
            &class.name,
            "a class with several bases, or with an enumeration as its base",
            "inherit from one class, and call functions of the other one",
        ));
    }
    let ordered = class.decorator_list.iter().filter_map(|it| it.expression.as_call_expr());
    let ordered = ordered.filter(|call| last_name(&call.func) == Some("dataclass"));
    let ordered = ordered.flat_map(|call| call.arguments.keywords.iter()).find(|keyword| {
        keyword.arg.as_ref().is_some_and(|name| name == "order")
            && keyword.value.as_boolean_literal_expr().is_none_or(|literal| literal.value)
    });
    if let Some(keyword) = ordered {
        return Some(Refusal::new(
            keyword,
            "@dataclass(order=True), whose order is not known here",
            "leave it out, and sort by a key: sorted(values, key=lambda value: (value.a, value.b))",
        ));
    }
    let is_record =
        class.decorator_list.iter().any(|d| last_name(&d.expression) == Some("dataclass"));
    if is_record && let Some(refusal) = of_record(class) {
        return Some(refusal);
    }
    let methods = class.body.iter().filter_map(Stmt::as_function_def_stmt);
    methods.into_iter().find_map(|method| of_method(method, class, classes))
}

fn of_method(method: &StmtFunctionDef, class: &StmtClassDef, classes: &Classes) -> Option<Refusal> {
    let name = method.name.as_str();
    if name.starts_with("__") && name.ends_with("__") && !SPECIAL_METHODS.contains(&name) {
        let hint = match name {
            "__bool__" | "__len__" => {
                "write a method such as is_empty(), and call it in conditions"
            }
            "__lt__" | "__le__" | "__gt__" | "__ge__" => {
                "sort by a key: sorted(values, key=lambda value: ...)"
            }
            "__new__" => "write a function that returns the object",
            _ => "write a method with a plain name, and call it",
        };
        return Some(Refusal::new(&method.name, format!("{name}, which is not called here"), hint));
    }
    let mut found = None;
    walk(&method.body, |node| {
        if let Node::Expression(Expr::Call(call)) = node {
            found = found.take().or_else(|| of_super(call, class, classes));
        }
        found.is_none()
    });
    found
}

/// `super(Other, self)`, and methods of `object` through `super()`.
fn of_super(call: &ExprCall, class: &StmtClassDef, classes: &Classes) -> Option<Refusal> {
    let hint = "name the base: Base.method(self)";
    if called_name(call) == Some("super") {
        let of = call.arguments.args.first()?;
        let own = of.as_name_expr().is_some_and(|name| name.id.as_str() == class.name.as_str());
        return (!own).then(|| Refusal::new(call, "super() of another class", hint));
    }
    let attribute = call.func.as_attribute_expr()?;
    let inner = attribute.value.as_call_expr()?;
    let method = attribute.attr.as_str();
    let is_there = classes.has_own_base(&class.name)
        || method == "__init__"
        || (method == "__str__" && classes.is_exception(&class.name));
    (called_name(inner) == Some("super") && !is_there).then(|| {
        Refusal::new(
            call,
            format!("super().{method}() without a base of the script"),
            "leave it out",
        )
    })
}

/// Options of data classes that the generated methods would ignore.
fn of_record(class: &StmtClassDef) -> Option<Refusal> {
    let hint = "write __init__, __repr__ and __eq__ in a plain class";
    let mut has_fields = false;
    for member in &class.body {
        let Some(field) = member.as_ann_assign_stmt() else { continue };
        let Some(Expr::Call(call)) = field.value.as_deref() else { continue };
        if last_name(&call.func) != Some("field") {
            continue;
        }
        has_fields = true;
        for keyword in &call.arguments.keywords {
            let name = keyword.arg.as_deref().unwrap_or("**");
            if !FIELD_OPTIONS.contains(&name) {
                return Some(Refusal::new(keyword, format!("field() with {name}"), hint));
            }
        }
    }
    let of_class = class.body.iter().filter_map(Stmt::as_ann_assign_stmt);
    let class_variable = of_class.into_iter().find(|field| {
        let kind = match &*field.annotation {
            Expr::Subscript(subscript) => &*subscript.value,
            other => other,
        };
        matches!(last_name(kind), Some("ClassVar" | "InitVar"))
    });
    if let (true, Some(field)) = (has_fields, class_variable) {
        let hint = "move the variable out of the class";
        return Some(Refusal::new(field, "ClassVar and InitVar beside field()", hint));
    }
    let options = class.decorator_list.iter().find_map(|decorator| {
        decorator.expression.as_call_expr().filter(|call| !call.arguments.is_empty())
    });
    let options = options.filter(|_| has_fields)?;
    Some(Refusal::new(options, "options of @dataclass together with field()", hint))
}

/// The name of the called function, if it is a plain name.
fn called_name(call: &ExprCall) -> Option<&str> {
    call.func.as_name_expr().map(|name| name.id.as_str())
}

/// The last part of a dotted name, also of one that is called.
fn last_name(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        Expr::Call(call) => last_name(&call.func),
        _ => None,
    }
}
