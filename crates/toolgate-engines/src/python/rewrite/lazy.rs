//! Detects generators that a script does not run to their end.
//!
//! Here a generator runs to its end before its first value is used. If that would do something that
//! the script would not have done, such as a tool call, the script is refused before it runs.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::{Expr, Stmt, StmtFor, StmtFunctionDef, StmtReturn, visitor::Visitor};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{
    DEPTH_LIMIT, Node, Rewriter, ScriptScope, Walk, bindings::Bindings, refused::Refusal, walk,
};
use crate::python::names::BUILTINS;

/// Functions that may not use all items of their argument.
const TAKING_SOME: &[&str] = &["all", "anext", "any", "islice", "next", "takewhile"];

/// Where a script stops using a generator that does more than compute.
pub(super) fn left_early(body: &[Stmt]) -> Option<Refusal> {
    let mut functions = Functions::default();
    walk(body, |node| match node {
        Node::Statement(statement) => {
            functions.read(statement);
            true
        }
        _ => false,
    });
    let generators = Generators { acting: functions.acting(), functions };
    let mut left = None;
    walk(body, |node| {
        left = left.or_else(|| generators.left_at(node));
        left.is_none()
    });
    left.map(|at| Refusal {
        at,
        what: "leaving a generator early".to_owned(),
        hint: "collect with a plain loop and stop there: generators run to their end first here",
    })
}

/// Methods that change their object.
#[rustfmt::skip]
const CHANGING: &[&str] = &[
    "add", "append", "appendleft", "clear", "extend", "insert", "pop", "popleft", "remove",
    "setdefault", "update", "write",
];

/// What a generator does that a script could see between its values: it prints, or changes what
/// does not belong to it.
pub(super) fn effect_in(function: &StmtFunctionDef, bindings: &Bindings) -> Option<Refusal> {
    if !yields(&function.body) {
        return None;
    }
    let mut own: BTreeSet<&str> = BTreeSet::new();
    walk(&function.body, |node| {
        if let Node::Expression(Expr::Name(name)) = node
            && name.ctx.is_store()
        {
            own.insert(name.id.as_str());
        }
        true
    });
    let mut found = None;
    walk(&function.body, |node| {
        let is_effect = match node {
            Node::Statement(Stmt::Global(_) | Stmt::Nonlocal(_)) => true,
            Node::Expression(Expr::Call(call)) => match &*call.func {
                Expr::Name(name) => name.id == "print" && bindings.is_built_in("print"),
                Expr::Attribute(attribute) => {
                    CHANGING.contains(&attribute.attr.as_str())
                        && attribute
                            .value
                            .as_name_expr()
                            .is_some_and(|name| !own.contains(name.id.as_str()))
                }
                _ => false,
            },
            _ => false,
        };
        if is_effect && found.is_none() {
            found = Some(match node {
                Node::Statement(statement) => statement.start(),
                Node::Expression(expression) => expression.start(),
                Node::Parameter(parameter) => parameter.start(),
            });
        }
        found.is_none()
    });
    found.map(|at| Refusal {
        at,
        what: "a generator that prints or changes a variable outside of it".to_owned(),
        hint: "write a plain loop: generators run to their end before their first value is used here",
    })
}

/// The functions of a script, by name.
#[derive(Debug, Default)]
struct Functions {
    /// The functions that they call by name, and whether they wait.
    effects: BTreeMap<String, Effects>,
    generators: BTreeSet<String>,
    /// Variables that contain the result of a function.
    results: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct Effects {
    waits: bool,
    calls: BTreeSet<String>,
}

impl Effects {
    fn read(&mut self, node: Node<'_>) -> bool {
        match node {
            Node::Expression(Expr::Await(_)) => self.waits = true,
            Node::Expression(Expr::Call(call)) => {
                self.calls.extend(call.func.as_name_expr().map(|name| name.id.to_string()));
            }
            _ => {}
        }
        true
    }
}

impl Functions {
    /// The functions with an effect, directly or through functions that they call.
    fn acting(&self) -> BTreeSet<String> {
        let is_known = |name: &String| self.effects.contains_key(name);
        let is_pure = |name: &String| name != "print" && BUILTINS.contains(&name.as_str());
        let mut callers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut found: Vec<&str> = Vec::new();
        for (name, effects) in &self.effects {
            if effects.waits || effects.calls.iter().any(|c| !is_known(c) && !is_pure(c)) {
                found.push(name);
            }
            for called in &effects.calls {
                callers.entry(called).or_default().push(name);
            }
        }
        let mut acting = BTreeSet::new();
        while let Some(name) = found.pop() {
            if acting.insert(name.to_owned()) {
                found.extend(callers.get(name).into_iter().flatten());
            }
        }
        acting
    }

    fn function(&mut self, function: &StmtFunctionDef) {
        let mut effects = Effects::default();
        walk(&function.body, |node| effects.read(node));
        if yields(&function.body) {
            self.generators.insert(function.name.to_string());
        }
        self.add(&function.name, effects);
    }

    fn assigned(&mut self, name: &str, value: &Expr) {
        if let Some(function) = called(value) {
            self.results.insert(name.to_owned(), function.to_owned());
        }
        if let Expr::Lambda(lambda) = value {
            let mut effects = Effects::default();
            Walk { visit: |node| effects.read(node), depth: 0 }.visit_expr(&lambda.body);
            self.add(name, effects);
        }
    }

    fn read(&mut self, statement: &Stmt) {
        match statement {
            Stmt::FunctionDef(function) => self.function(function),
            // A class is called like a function, and its methods contain its effects.
            Stmt::ClassDef(class) => self.add(&class.name, Effects::default()),
            // Imported functions only compute, except those that wait.
            Stmt::ImportFrom(import)
                if !matches!(import.module.as_deref(), Some("asyncio" | "time")) =>
            {
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    self.add(name, Effects::default());
                }
            }
            Stmt::Assign(assignment) => {
                if let [Expr::Name(name)] = assignment.targets.as_slice() {
                    self.assigned(name.id.as_str(), &assignment.value);
                }
            }
            _ => {}
        }
    }

    /// Adds a function. Two functions with one name are merged.
    fn add(&mut self, name: &str, mut effects: Effects) {
        let known = self.effects.entry(name.to_owned()).or_default();
        known.waits |= effects.waits;
        known.calls.append(&mut effects.calls);
    }
}

/// The generators of a script.
struct Generators {
    functions: Functions,
    acting: BTreeSet<String>,
}

impl Generators {
    /// The position of a node that may not use all values of a generator with an effect.
    fn left_at(&self, node: Node<'_>) -> Option<TextSize> {
        match node {
            Node::Statement(Stmt::For(each)) if self.is_refused(each) => Some(each.start()),
            Node::Expression(expression @ Expr::Call(call))
                if called(expression).is_some_and(|name| TAKING_SOME.contains(&name)) =>
            {
                let acts = |argument| self.generator(argument) == Some(true);
                call.arguments.args.iter().any(acts).then(|| expression.start())
            }
            _ => None,
        }
    }

    /// Whether an expression is a generator of the script, and whether that has an effect.
    fn generator(&self, expression: &Expr) -> Option<bool> {
        let function = match expression {
            Expr::Name(name) => self.functions.results.get(name.id.as_str()).map(String::as_str),
            _ => called(expression),
        };
        let function = function.filter(|name| self.functions.generators.contains(*name))?;
        Some(self.acting.contains(function))
    }

    fn is_refused(&self, each: &StmtFor) -> bool {
        let acts = match self.generator(&each.iter) {
            Some(acts) => acts,
            // Methods and iterators of the script's classes. A list of tasks is no generator.
            None => each.is_async && !matches!(called(&each.iter), Some("as_completed")),
        };
        acts && leaves(&each.body, 0, DEPTH_LIMIT)
    }
}

/// The last part of the name of the called function.
fn called(expression: &Expr) -> Option<&str> {
    match &*expression.as_call_expr()?.func {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        _ => None,
    }
}

/// Whether the body of a loop ends the loop. `loops` is the number of inner loops around.
fn leaves(body: &[Stmt], loops: usize, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let inside = |body: &[Stmt], loops| leaves(body, loops, depth);
    body.iter().any(|statement| match statement {
        Stmt::Break(_) => loops == 0,
        Stmt::Return(_) => true,
        Stmt::If(choice) => {
            inside(&choice.body, loops)
                || choice.elif_else_clauses.iter().any(|clause| inside(&clause.body, loops))
        }
        Stmt::For(each) => inside(&each.body, loops + 1) || inside(&each.orelse, loops),
        Stmt::While(each) => inside(&each.body, loops + 1) || inside(&each.orelse, loops),
        Stmt::With(with) => inside(&with.body, loops),
        Stmt::Match(matched) => matched.cases.iter().any(|case| inside(&case.body, loops)),
        Stmt::Try(tried) => {
            inside(&tried.body, loops)
                || inside(&tried.orelse, loops)
                || inside(&tried.finalbody, loops)
                || tried.handlers.iter().any(|handler| {
                    handler.as_except_handler().is_some_and(|h| inside(&h.body, loops))
                })
        }
        _ => false,
    })
}

/// Whether a body yields, without the functions inside it.
pub(super) fn yields(body: &[Stmt]) -> bool {
    let mut found = false;
    walk(body, |node| {
        found |= matches!(node, Node::Expression(Expr::Yield(_) | Expr::YieldFrom(_)));
        let is_inner = matches!(
            node,
            Node::Statement(Stmt::FunctionDef(_) | Stmt::ClassDef(_))
                | Node::Expression(Expr::Lambda(_))
        );
        !found && !is_inner
    });
    found
}

impl<'a> Rewriter<'a> {
    /// Rewrites the body of a function. A generator collects its values in a list.
    pub(super) fn function_body(&mut self, function: &'a StmtFunctionDef) {
        let is_generator = yields(&function.body);
        if is_generator {
            self.need("<iterating>");
            self.prepend(&function.body, "_tg_yielded = []");
        }
        self.scopes.push(if is_generator { ScriptScope::Generator } else { ScriptScope::Plain });
        self.enter(&function.name, &function.body);
        self.visit_body(&function.body);
        self.leave(&function.body);
        self.scopes.pop();
        if is_generator {
            // An asynchronous generator is a coroutine here, which `async for` awaits.
            self.append(&function.body, "return iter(_tg_yielded)");
        }
    }

    /// Rewrites `yield` as a statement. As a part of an expression it is not supported.
    pub(super) fn yield_statement(&mut self, expression: &'a Expr) -> bool {
        match expression {
            Expr::Yield(yielded) => match yielded.value.as_deref() {
                Some(value) => {
                    // Only the keyword, because the rest may be in brackets.
                    let keyword = TextRange::at(expression.start(), TextSize::of("yield"));
                    self.edits.replace(keyword, "_tg_yield(_tg_yielded, (");
                    self.visit_expr(value);
                    self.edits.close(expression, "))");
                }
                None => self.edits.replace(expression.range(), "_tg_yield(_tg_yielded, None)"),
            },
            Expr::YieldFrom(yielded) => {
                let text = self.text(expression);
                let end = text.find("from").map_or(0, |from| from + "from".len());
                let end = TextSize::try_from(end).unwrap_or_default();
                let keyword = TextRange::at(expression.start(), end);
                self.edits.replace(keyword, "_tg_yield_from(_tg_yielded, (");
                self.visit_expr(&yielded.value);
                self.edits.close(expression, "))");
            }
            _ => return false,
        }
        true
    }

    /// Rewrites `return`, which ends a generator with the values that it has collected.
    pub(super) fn return_statement(&mut self, statement: &'a StmtReturn) {
        if self.is_traced() {
            self.traced_return(statement);
        } else if self.scopes.last() == Some(&ScriptScope::Generator) {
            self.edits.replace(statement.range(), "return iter(_tg_yielded)");
        } else if let Some(value) = &statement.value {
            self.visit_expr(value);
        }
    }
}
