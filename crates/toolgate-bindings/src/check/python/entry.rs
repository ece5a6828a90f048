//! Scripts that only define a function that is meant to be called, and scripts that end with an
//! expression whose value means nothing.

use std::{collections::HashSet, ops::Range};

use ruff_python_ast::{
    Comprehension, Expr, ExprCall, Stmt, StmtFunctionDef,
    visitor::{Visitor, walk_expr, walk_stmt},
};

use ruff_text_size::Ranged as _;

use super::Interpreter;

/// The names of functions that are meant to be called.
const ENTRY_NAMES: &[&str] = &["main", "run", "handler", "execute", "script"];
/// The names under which scripts of other systems get the tools.
const TOOLS_NAMES: &[&str] = &["tools", "codemode"];
/// Methods that return nothing.
const EFFECTS: &[&str] = &[
    "add", "append", "clear", "debug", "discard", "error", "extend", "info", "insert", "remove",
    "reverse", "sort", "update", "warning",
];

/// The script as it is meant; `None` if it is so already. Lines keep their numbers.
pub(super) fn meant(body: &[Stmt], text: &str, interpreter: Interpreter) -> Option<String> {
    let last = match body.last()? {
        Stmt::Expr(last) if is_nothing(&last.value, body) => "None".to_owned(),
        _ => entry(body, interpreter)?,
    };
    Some(format!("{text}\n{last}\n"))
}

/// The call of the function that a script of definitions is meant to call: one with a name like
/// `main`, or the only one, if the script ends with it. Nothing in the script refers to it.
fn entry(body: &[Stmt], interpreter: Interpreter) -> Option<String> {
    let has_documentation =
        matches!(body.first()?, Stmt::Expr(first) if first.value.is_string_literal_expr());
    if !body.iter().skip(usize::from(has_documentation)).all(is_definition) {
        return None;
    }
    let ends_with = |function: &StmtFunctionDef| {
        let after = body.iter().rev().take_while(|statement| statement.start() > function.start());
        after.into_iter().all(Stmt::is_function_def_stmt)
    };
    let mut uses = Uses::default();
    uses.visit_body(body);
    let functions = body.iter().filter_map(|statement| match statement {
        Stmt::FunctionDef(function) if function.decorator_list.is_empty() => Some(function),
        _ => None,
    });
    let callable: Vec<(&StmtFunctionDef, &str)> = functions
        .filter(|function| !uses.names.contains(function.name.as_str()))
        .filter_map(|function| Some((function, arguments(function, interpreter)?)))
        .collect();
    let is_entry = |function: &StmtFunctionDef| ENTRY_NAMES.contains(&function.name.as_str());
    let named = callable.iter().find(|(function, _)| is_entry(function));
    let (function, arguments) = match (named, callable.as_slice()) {
        (Some(named), _) => named,
        (None, [only]) if ends_with(only.0) => only,
        _ => return None,
    };
    let awaited = if function.is_async { "await " } else { "" };
    Some(format!("{awaited}{}({arguments})", function.name))
}

/// Where the functions are that nothing in the script refers to, and the methods of such classes.
pub(super) fn unused(body: &[Stmt]) -> Vec<Range<usize>> {
    let mut uses = Uses::default();
    uses.visit_body(body);
    let is_unused = |name: &str, is_decorated: bool| !is_decorated && !uses.names.contains(name);
    let unused = body.iter().flat_map(|statement| match statement {
        Stmt::FunctionDef(function)
            if is_unused(&function.name, !function.decorator_list.is_empty()) =>
        {
            vec![function]
        }
        Stmt::ClassDef(class) if is_unused(&class.name, !class.decorator_list.is_empty()) => {
            class.body.iter().filter_map(Stmt::as_function_def_stmt).collect()
        }
        _ => Vec::new(),
    });
    unused.map(|function| function.start().to_usize()..function.end().to_usize()).collect()
}

/// What a function is called with; `None` if it needs something else than the tools.
fn arguments(function: &StmtFunctionDef, interpreter: Interpreter) -> Option<&'static str> {
    let parameters = &function.parameters;
    let mut needed = parameters.iter_non_variadic_params().filter(|it| it.default.is_none());
    match (needed.next(), needed.next()) {
        (None, _) => Some(""),
        (Some(only), None) if TOOLS_NAMES.contains(&only.name().as_str()) => {
            let is_first = parameters.args.first().is_some_and(|it| it.name() == only.name());
            (interpreter == Interpreter::Whole && is_first).then_some("tools")
        }
        _ => None,
    }
}

/// Whether a statement does nothing but define something.
fn is_definition(statement: &Stmt) -> bool {
    match statement {
        Stmt::FunctionDef(_)
        | Stmt::ClassDef(_)
        | Stmt::Import(_)
        | Stmt::ImportFrom(_)
        | Stmt::TypeAlias(_)
        | Stmt::Pass(_) => true,
        Stmt::Assign(assign) => is_constant(&assign.value),
        Stmt::AnnAssign(assign) => assign.value.as_deref().is_none_or(is_constant),
        _ => false,
    }
}

/// Whether a value is that of a constant: it waits for nothing and prints nothing. `re.compile(…)`
/// is one.
fn is_constant(value: &Expr) -> bool {
    struct Finder(bool);
    impl<'a> Visitor<'a> for Finder {
        fn visit_expr(&mut self, expression: &'a Expr) {
            self.0 |= match expression {
                Expr::Await(_) => true,
                Expr::Call(call) => matches!(&*call.func, Expr::Name(name) if name.id == "print"),
                _ => false,
            };
            walk_expr(self, expression);
        }
    }
    let mut finder = Finder(false);
    finder.visit_expr(value);
    !finder.0
}

/// The names that a script reads.
#[derive(Default)]
struct Uses<'a> {
    names: HashSet<&'a str>,
}

impl<'a> Visitor<'a> for Uses<'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(name) = expression
            && name.ctx.is_load()
        {
            self.names.insert(name.id.as_str());
        }
        walk_expr(self, expression);
    }
}

/// Whether an expression is written for its effects, and its value is a list of `None`.
fn is_nothing(expression: &Expr, body: &[Stmt]) -> bool {
    match expression {
        Expr::Await(awaited) => is_nothing(&awaited.value, body),
        Expr::ListComp(list) => is_effect(&list.elt, body) && is_sync(&list.generators),
        Expr::SetComp(set) => is_effect(&set.elt, body) && is_sync(&set.generators),
        Expr::Generator(all) => is_effect(&all.elt, body),
        Expr::List(list) => has_effects(&list.elts, body),
        Expr::Tuple(tuple) => has_effects(&tuple.elts, body),
        Expr::Starred(starred) => is_nothing(&starred.value, body),
        Expr::Call(call) => is_output(&call.func) || is_nothing_of_call(call, body),
        _ => false,
    }
}

/// `sys.stdout.write`, whose number of characters nobody wants.
fn is_output(function: &Expr) -> bool {
    let Expr::Attribute(method) = function else { return false };
    let is_of_console = matches!(&*method.value, Expr::Attribute(console) if matches!(console.attr.as_str(), "stdout" | "stderr"));
    is_of_console && matches!(method.attr.as_str(), "write" | "flush")
}

fn is_sync(generators: &[Comprehension]) -> bool {
    generators.iter().all(|generator| !generator.is_async)
}

fn has_effects(parts: &[Expr], body: &[Stmt]) -> bool {
    !parts.is_empty() && parts.iter().all(|part| is_effect(part, body) || is_starred(part, body))
}

fn is_starred(part: &Expr, body: &[Stmt]) -> bool {
    matches!(part, Expr::Starred(_)) && is_nothing(part, body)
}

/// `list(map(print, rows))`, `list(print(row) for row in rows)`, `asyncio.gather(…)`.
fn is_nothing_of_call(call: &ExprCall, body: &[Stmt]) -> bool {
    let arguments = &call.arguments.args;
    let name = match &*call.func {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    match (name, &**arguments) {
        ("list" | "tuple" | "set", [Expr::Call(inner)]) => {
            let is_map = matches!(&*inner.func, Expr::Name(name) if name.id == "map");
            is_map && inner.arguments.args.first().is_some_and(|it| is_effect_function(it, body))
        }
        ("list" | "tuple" | "set", [Expr::Generator(all)]) => is_effect(&all.elt, body),
        ("gather", parts) => has_effects(parts, body),
        _ => false,
    }
}

/// Whether an expression is a call that returns nothing.
fn is_effect(expression: &Expr, body: &[Stmt]) -> bool {
    match expression {
        Expr::Await(awaited) => is_effect(&awaited.value, body),
        Expr::Call(call) => is_effect_function(&call.func, body),
        _ => false,
    }
}

fn is_effect_function(function: &Expr, body: &[Stmt]) -> bool {
    match function {
        Expr::Attribute(attribute) => {
            EFFECTS.contains(&attribute.attr.as_str()) || is_output(function)
        }
        Expr::Lambda(lambda) => is_effect(&lambda.body, body),
        Expr::Name(name) => {
            let mut own = body.iter().filter_map(|statement| match statement {
                Stmt::FunctionDef(function) if *function.name == *name.id => Some(function),
                _ => None,
            });
            match own.next() {
                Some(function) => own.next().is_none() && returns_nothing(function),
                None => name.id == "print",
            }
        }
        _ => false,
    }
}

fn returns_nothing(function: &StmtFunctionDef) -> bool {
    struct Finder(bool);
    impl<'a> Visitor<'a> for Finder {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            match statement {
                Stmt::Return(returned) => self.0 |= returned.value.is_some(),
                // What is inside returns for itself.
                Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
                _ => walk_stmt(self, statement),
            }
        }

        fn visit_expr(&mut self, expression: &'a Expr) {
            self.0 |= matches!(expression, Expr::Yield(_) | Expr::YieldFrom(_));
            walk_expr(self, expression);
        }
    }
    let mut finder = Finder(!function.decorator_list.is_empty());
    finder.visit_body(&function.body);
    !finder.0
}
