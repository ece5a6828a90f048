//! Expressions that Monty lacks or evaluates differently.

use ruff_python_ast::{Expr, ExprAttribute, ExprBinOp, ExprCall, Int, Operator, visitor::Visitor};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{Rewriter, inside};
use crate::python::prelude;

/// Methods that the prelude implements as functions of their receiver.
#[rustfmt::skip]
pub(super) const METHODS: &[&str] = &[
    "astimezone", "bit_length", "capitalize", "casefold", "center", "combine", "difference_update",
    "from_iterable", "fromordinal", "fromtimestamp", "intersection_update", "is_integer",
    "isocalendar", "splitlines", "timetuple", "title", "toordinal", "translate",
    "utcfromtimestamp", "utcnow",
];

/// Functions that iterate over their argument.
const ITERATING: &[&str] = &["enumerate", "iter", "len", "list", "set", "sorted", "tuple"];

/// Functions whose values can be gone through only once. Monty makes lists.
const ONCE: &[&str] = &["enumerate", "filter", "map", "reversed", "zip"];

/// Functions that Monty can call itself, so that its own `map` works.
const CALLED_BY_MONTY: &[&str] =
    &["abs", "bool", "dict", "float", "int", "len", "list", "repr", "set", "str", "sum", "tuple"];

/// Exceptions that take at most one text in Monty.
#[rustfmt::skip]
pub(super) const EXCEPTIONS: &[&str] = &[
    "ArithmeticError", "AssertionError", "AttributeError", "BaseException", "Exception",
    "FileNotFoundError", "ImportError", "IndexError", "KeyError", "LookupError",
    "NotImplementedError", "OSError", "OverflowError", "PermissionError", "RuntimeError",
    "StopIteration", "SystemExit", "TimeoutError", "TypeError", "ValueError", "ZeroDivisionError",
];

impl<'a> Rewriter<'a> {
    pub(super) fn expression(&mut self, expression: &'a Expr) {
        match expression {
            Expr::BinOp(operation) => self.operation(expression, operation),
            Expr::Call(call) => {
                let name = call.func.as_name_expr().map(|name| name.id.as_str());
                let is_once = name
                    .is_some_and(|name| ONCE.contains(&name) && self.bindings.is_built_in(name))
                    && !self.plain_generators.contains(&expression.start());
                if is_once {
                    self.edits.open(expression, "iter(");
                }
                self.call(expression, call);
                if is_once {
                    self.edits.close(expression, ")");
                }
            }
            Expr::Compare(comparison) => self.comparison(expression, comparison),
            Expr::FString(_) => {
                let around = std::mem::replace(&mut self.tracer.is_one_piece, true);
                inside(self, expression);
                self.tracer.is_one_piece = around;
            }
            Expr::Attribute(attribute) => self.attribute(expression, attribute),
            Expr::Await(awaited) => self.awaited(expression, &awaited.value),
            // Monty evaluates it to a list, which has no next item.
            Expr::Generator(generator) if !self.plain_generators.contains(&expression.start()) => {
                debug_assert!(generator.parenthesized || !generator.generators.is_empty());
                self.edits.open(expression, "iter(");
                inside(self, expression);
                self.edits.close(expression, ")");
            }
            Expr::Name(name) => {
                if prelude::is_builtin(&name.id) && name.ctx.is_load() {
                    self.need("<builtins>");
                }
            }
            Expr::Subscript(subscript) if self.parameterised(expression, subscript) => {}
            Expr::Subscript(subscript) => {
                if self.classes.is_enumeration(&subscript.value) {
                    self.edits.close(&*subscript.value, ".__members__");
                }
                inside(self, expression);
            }
            _ => inside(self, expression),
        }
    }

    /// `await`. A failed tool returns a marked value, which is raised here, because Monty loses an
    /// exception that is thrown into a task from outside.
    fn awaited(&mut self, expression: &'a Expr, value: &'a Expr) {
        self.need("<await>");
        let gathers = self.is_native_gather(value);
        let (check, at) = match (gathers, self.is_traced()) {
            (false, false) => ("_tg_check(", ")".to_owned()),
            (true, false) => ("_tg_check_all(", ")".to_owned()),
            (false, true) => ("_tg_check_at(", format!(", {})", self.tracer.current)),
            (true, true) => ("_tg_check_all_at(", format!(", {})", self.tracer.current)),
        };
        self.edits.open(expression, check);
        if self.tasks {
            self.need("asyncio");
            self.edits.open(value, "_tg_asyncio._await(");
        }
        if let (true, Expr::Call(call)) = (gathers, value) {
            self.visit_arguments(&call.arguments);
        } else {
            self.visit_expr(value);
        }
        if self.tasks {
            self.edits.close(value, ")");
        }
        self.edits.close(expression, at);
    }

    /// Whether Monty's own `gather` works: without tasks and `return_exceptions`, and awaited
    /// directly.
    fn is_native_gather(&self, value: &Expr) -> bool {
        let Expr::Call(call) = value else { return false };
        let Expr::Attribute(attribute) = &*call.func else { return false };
        self.is_module(&attribute.value, "asyncio")
            && &attribute.attr == "gather"
            && call.arguments.keywords.is_empty()
            && !self.tasks
    }

    fn operation(&mut self, expression: &'a Expr, operation: &'a ExprBinOp) {
        let (left, right) = (&*operation.left, &*operation.right);
        let replacement = match operation.op {
            Operator::Mod
                if left.is_string_literal_expr()
                    || left.is_f_string_expr()
                    || right.is_tuple_expr()
                    || right.is_dict_expr() =>
            {
                Some(("%", "_tg_mod(", "<percent>"))
            }
            Operator::BitOr => Some(("|", "_tg_or(", "<core>")),
            Operator::Pow if !is_small_power(left, right) => Some(("**", "_tg_pow(", "<numbers>")),
            Operator::FloorDiv if !is_integer(right) => Some(("//", "_tg_floordiv(", "<numbers>")),
            Operator::Div if self.has_durations && !is_number(left) && !is_number(right) => {
                Some(("/", "_tg_truediv(", "<numbers>"))
            }
            Operator::Mod if self.has_durations && !is_number(left) && !is_number(right) => {
                Some(("%", "_tg_remainder(", "<numbers>"))
            }
            _ => None,
        };
        if let Some((operator, function, piece)) = replacement
            && let Some(range) = self.operator(left, right, operator)
        {
            self.need(piece);
            self.edits.open(expression, function);
            self.visit_expr(left);
            self.edits.replace(range, ",");
            self.visit_expr(right);
            self.edits.close(expression, ")");
        } else {
            self.operand(left, operation.op);
            self.operand(right, operation.op);
        }
    }

    fn call(&mut self, expression: &'a Expr, call: &'a ExprCall) {
        let arguments = &call.arguments;
        let name = call.func.as_name_expr().map(|name| name.id.as_str());
        // Functions of the script may go through it twice.
        let uses_up = match &*call.func {
            Expr::Name(name) => name.id != "next" && self.bindings.is_built_in(&name.id),
            Expr::Attribute(_) => true,
            _ => false,
        };
        if uses_up {
            if let [Expr::Generator(generator)] = &*arguments.args {
                self.plain_generators.insert(generator.start());
            }
            if name != Some("iter") {
                let calls = arguments.args.iter().filter(|argument| argument.is_call_expr());
                self.plain_generators.extend(calls.map(Ranged::start));
            }
        }
        self.callee = Some(call.func.range());
        if ITERATING.contains(&name.unwrap_or_default())
            && let [argument] = &*arguments.args
        {
            self.members_of(argument);
        }
        if self.classes.is_enumeration(&call.func) {
            self.need("<classes>");
            self.edits.insert(call.func.start(), "_tg_member(");
            let open = TextRange::new(call.func.end(), arguments.start() + TextSize::of('('));
            self.edits.replace(open, ", ");
            return self.visit_arguments(arguments);
        }
        let last = name.or_else(|| call.func.as_attribute_expr().map(|a| a.attr.as_str()));
        if last == Some("timedelta") && has_fractions(call) {
            return self.call_instead(call, "<methods>", "_tg_timedelta");
        }
        if self.number_call(call) {
            return;
        }
        match (name, &*call.func) {
            (Some("print"), _) if has_keyword(call, "file") => {
                self.call_instead(call, "<core>", "_tg_print");
            }
            (Some("map"), _) if !is_called_by_monty(arguments.args.first()) => {
                self.call_instead(call, "<iterating>", "_tg_map");
            }
            (Some("bytes"), _) if arguments.len() == 1 && arguments.keywords.is_empty() => {
                self.call_instead(call, "<core>", "_tg_bytes");
            }
            (Some("type"), _) if arguments.len() == 1 && self.catches => {
                self.call_instead(call, "<core>", "_tg_type");
            }
            (Some("super"), _) => self.visit_arguments(arguments),
            (Some(name), _) if EXCEPTIONS.contains(&name) && !is_one_text(call) => {
                self.need("<core>");
                let open = arguments.start() + TextSize::of('(');
                self.edits.insert(open, if name == "SystemExit" { "str(" } else { "_tg_text(" });
                self.visit_arguments(arguments);
                self.edits.insert(arguments.end() - TextSize::of(')'), ")");
            }
            (None, Expr::Attribute(attribute)) => {
                let runs = &attribute.attr == "run" && !self.tasks;
                if runs && self.is_module(&attribute.value, "asyncio") {
                    self.need("<await>");
                    self.edits.open(expression, "_tg_check(");
                    self.visit_arguments(arguments);
                    self.edits.close(expression, ")");
                } else if !self.super_call(expression, call, attribute)
                    && !self.unbound_call(call, attribute)
                    && !self.module_call(call, attribute)
                    && !self.method_call(expression, call, attribute)
                {
                    inside(self, expression);
                }
            }
            _ => inside(self, expression),
        }
    }

    /// Adds brackets to a generator expression that is no longer the only argument.
    pub(super) fn bracket_generator(&mut self, call: &ExprCall) {
        if let [Expr::Generator(generator)] = &*call.arguments.args {
            self.plain_generators.remove(&generator.start());
        }
    }

    pub(super) fn is_module(&self, expression: &Expr, module: &str) -> bool {
        let name = expression.as_name_expr().map(|name| name.id.as_str());
        name.and_then(|name| self.modules.get(name)).is_some_and(|known| *known == module)
    }

    /// Functions of modules for which Monty lacks an argument.
    fn module_call(&mut self, call: &'a ExprCall, attribute: &'a ExprAttribute) -> bool {
        let Some(name) = attribute.value.as_name_expr() else { return false };
        let module = self.modules.get(name.id.as_str()).copied();
        let wanted = match (module, attribute.attr.as_str()) {
            (Some("asyncio"), "gather")
            | (Some("json"), "loads")
            | (
                Some("re"),
                "findall" | "finditer" | "fullmatch" | "match" | "search" | "sub" | "subn",
            ) => true,
            (Some("asyncio"), "run") => self.tasks,
            (Some("json"), "dumps") => {
                let has_enumerations = self.classes.has_enumerations();
                has_keyword(call, "default") || has_keyword(call, "cls") || has_enumerations
            }
            _ => false,
        };
        if let (true, Some(module)) = (wanted, module) {
            self.need(module);
            self.edits.replace(name.range(), format!("_tg_{module}"));
            self.visit_arguments(&call.arguments);
        }
        wanted
    }

    /// A method that Monty's type lacks, as a function that takes the receiver.
    fn method_call(
        &mut self,
        expression: &'a Expr,
        call: &'a ExprCall,
        attribute: &'a ExprAttribute,
    ) -> bool {
        let method = attribute.attr.as_str();
        let piece = match method {
            "split" if self.bindings.is_pattern(&attribute.value) => "re",
            "expand" | "findall" | "finditer" | "fullmatch" | "match" | "search" | "sub"
            | "subn" => "re",
            "isoformat" if !call.arguments.is_empty() => "datetime",
            "groups" if !call.arguments.is_empty() => "re",
            "encode" | "decode" if names_encoding(call) => "<methods>",
            "fromisoformat" | "strftime" | "strptime" | "tzname" | "utcoffset" => "datetime",
            _ if METHODS.contains(&method) => "<methods>",
            _ => return false,
        };
        let Some(dot) = self.dot(attribute) else { return false };
        self.need(piece);
        self.bracket_generator(call);
        self.edits.open(expression, format!("_tg_{method}("));
        self.visit_expr(&attribute.value);
        let open = call.arguments.start() + TextSize::of('(');
        self.edits.replace(TextRange::new(dot, open), ", ");
        self.visit_arguments(&call.arguments);
        true
    }
}

/// Whether a call of `encode` or `decode` may name an encoding that Monty lacks.
fn names_encoding(call: &ExprCall) -> bool {
    let named = call.arguments.find_argument_value("encoding", 0);
    named.is_some_and(|named| {
        named.as_string_literal_expr().is_none_or(|text| {
            !matches!(&*text.value.to_str().to_ascii_lowercase(), "utf-8" | "utf8" | "ascii")
        })
    })
}

fn has_keyword(call: &ExprCall, name: &str) -> bool {
    call.arguments.keywords.iter().any(|k| k.arg.as_ref().is_some_and(|arg| arg == name))
}

/// Whether an argument may be a fraction, which Monty's `timedelta` does not accept.
fn has_fractions(call: &ExprCall) -> bool {
    let keywords = call.arguments.keywords.iter().map(|keyword| &keyword.value);
    let mut values = call.arguments.args.iter().chain(keywords);
    values.any(|value| match value {
        Expr::NumberLiteral(literal) => !literal.value.is_int(),
        _ => true,
    })
}

fn is_integer(expression: &Expr) -> bool {
    expression.as_number_literal_expr().is_some_and(|literal| literal.value.is_int())
}

fn is_number(expression: &Expr) -> bool {
    expression.is_number_literal_expr()
}

/// Whether the result is a float only where the left side is one that is not huge, so that Monty has
/// Python's answer.
fn is_small_power(left: &Expr, right: &Expr) -> bool {
    let exponent = right.as_number_literal_expr().and_then(|literal| literal.value.as_int());
    let is_whole = is_integer(left) && exponent.is_some();
    is_whole || exponent.and_then(Int::as_u8).is_some_and(|it| it <= 4)
}

fn is_text(expression: &Expr) -> bool {
    expression.is_string_literal_expr() || expression.is_f_string_expr()
}

fn is_one_text(call: &ExprCall) -> bool {
    match &*call.arguments.args {
        [] => call.arguments.keywords.is_empty(),
        [argument] => is_text(argument),
        _ => false,
    }
}

fn is_called_by_monty(function: Option<&Expr>) -> bool {
    function
        .and_then(Expr::as_name_expr)
        .is_some_and(|name| CALLED_BY_MONTY.contains(&name.id.as_str()))
}
