//! Detects generators, which run to their end at once here.
//!
//! A generator expression, `map` and `filter` compute all of their values where they stand. If a script
//! could see that, because computing a value has an effect, the script is refused before it runs.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef, visitor::Visitor};
use ruff_text_size::{Ranged, TextSize};

use super::{Node, Walk, refused::Refusal, walk};
use crate::python::names::BUILTINS;

/// Functions and methods that use all values of their argument at once.
#[rustfmt::skip]
const USING_UP: &[&str] = &[
    "Counter", "deque", "dict", "extend", "frozenset", "fsum", "join", "list", "max", "mean",
    "median", "min", "set", "sorted", "sum", "tuple", "update",
];

/// Methods that change their object.
#[rustfmt::skip]
const CHANGING: &[&str] = &[
    "add", "append", "appendleft", "clear", "extend", "insert", "pop", "popleft", "remove",
    "setdefault", "update", "write",
];

const HINT: &str = "write a list, or a plain loop: generators, map and filter compute all of their values first here";

/// Where a script could see that a generator has run to its end.
pub(super) fn seen(body: &[Stmt]) -> Option<Refusal> {
    let mut functions = Functions::default();
    let mut changed: BTreeSet<&str> = BTreeSet::new();
    walk(body, |node| {
        match node {
            Node::Statement(statement) => functions.read(statement),
            Node::Expression(Expr::Call(call)) => changed.extend(changed_name(call)),
            _ => {}
        }
        true
    });
    let acting = functions.acting();
    let acts = |expression: &Expr, called: Option<&str>| {
        let mut effects = Effects::default();
        effects.calls.extend(called.map(str::to_owned));
        Walk { visit: |node| effects.read(node), depth: 0 }.visit_expr(expression);
        functions.act(&effects) || effects.calls.iter().any(|name| acting.contains(name))
    };
    let mut used_up: BTreeSet<TextSize> = BTreeSet::new();
    let mut found = None;
    walk(body, |node| {
        match node {
            Node::Expression(Expr::Starred(starred)) => {
                used_up.insert(starred.value.start());
            }
            Node::Expression(Expr::Call(call)) if USING_UP.contains(&last_name(call)) => {
                used_up.extend(call.arguments.args.iter().map(Ranged::start));
            }
            // What it goes through may change before it is used.
            Node::Statement(Stmt::Assign(assignment)) => {
                let of_changed = |expression: &Expr| {
                    expression.as_name_expr().is_some_and(|name| changed.contains(name.id.as_str()))
                };
                let value = &assignment.value;
                if Lazy::of(value).is_some_and(|lazy| lazy.sources.into_iter().any(of_changed)) {
                    found = found.take().or_else(|| {
                        Some(Refusal::new(&**value, "a generator over a list that changes", HINT))
                    });
                }
            }
            _ => {}
        }
        if let Node::Expression(expression) = node
            && let Some(lazy) = Lazy::of(expression)
            && !used_up.contains(&expression.start())
            && lazy.computed.into_iter().any(|each| binds(each) || acts(each, lazy.function))
        {
            let what = "a generator, map or filter that does more than compute";
            found = found.take().or_else(|| Some(Refusal::new(expression, what, HINT)));
        }
        found.is_none()
    });
    found
}

/// An expression that Python evaluates later.
struct Lazy<'a> {
    /// What it goes through, and what it computes for each value.
    sources: Vec<&'a Expr>,
    computed: Vec<&'a Expr>,
    /// The name of the function of `map` or `filter`.
    function: Option<&'a str>,
}

impl<'a> Lazy<'a> {
    fn of(expression: &'a Expr) -> Option<Self> {
        match expression {
            Expr::Generator(generator) => {
                let conditions = generator.generators.iter().flat_map(|each| &each.ifs);
                let inner = generator.generators.iter().skip(1).map(|each| &each.iter);
                Some(Self {
                    sources: generator.generators.iter().map(|each| &each.iter).collect(),
                    computed: conditions.chain(inner).chain([&*generator.elt]).collect(),
                    function: None,
                })
            }
            Expr::Call(call) => {
                let name = call.func.as_name_expr()?.id.as_str();
                let (function, sources) = call.arguments.args.split_first()?;
                ["map", "filter"].contains(&name).then(|| Self {
                    sources: sources.iter().collect(),
                    computed: vec![function],
                    function: function.as_name_expr().map(|name| name.id.as_str()),
                })
            }
            _ => None,
        }
    }
}

/// Whether an expression sets a variable, whose last value tells how far the generator came.
fn binds(expression: &Expr) -> bool {
    let mut found = false;
    let visit = |node: Node<'_>| {
        found |= matches!(node, Node::Expression(Expr::Named(_)));
        !found
    };
    Walk { visit, depth: 0 }.visit_expr(expression);
    found
}

fn last_name(call: &ExprCall) -> &str {
    match &*call.func {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => "",
    }
}

/// The variable whose value a call changes.
fn changed_name(call: &ExprCall) -> Option<&str> {
    let attribute = call.func.as_attribute_expr()?;
    let name = attribute.value.as_name_expr()?;
    CHANGING.contains(&attribute.attr.as_str()).then_some(name.id.as_str())
}

/// What a function does.
#[derive(Debug, Default)]
struct Effects {
    /// It waits, or sets variables of others.
    acts: bool,
    /// The functions that it calls, or passes on, by name.
    calls: BTreeSet<String>,
    /// The variables that it changes, and those that are its own.
    changes: BTreeSet<String>,
    own: BTreeSet<String>,
}

impl Effects {
    fn read(&mut self, node: Node<'_>) -> bool {
        match node {
            Node::Expression(Expr::Await(_))
            | Node::Statement(Stmt::Global(_) | Stmt::Nonlocal(_)) => {
                self.acts = true;
            }
            Node::Expression(Expr::Call(call)) => {
                self.changes.extend(changed_name(call).map(str::to_owned));
                self.calls.extend(call.func.as_name_expr().map(|name| name.id.to_string()));
            }
            Node::Expression(Expr::Name(name)) if name.ctx.is_store() => {
                self.own.insert(name.id.to_string());
            }
            Node::Parameter(parameter) => {
                self.own.insert(parameter.name.to_string());
            }
            _ => {}
        }
        true
    }
}

/// The functions of a script, by name.
#[derive(Debug, Default)]
struct Functions(BTreeMap<String, Effects>);

impl Functions {
    /// Whether effects are seen outside of a function, apart from those of functions that it calls.
    fn act(&self, effects: &Effects) -> bool {
        let is_unknown = |name: &String| {
            !self.0.contains_key(name) && (name == "print" || !BUILTINS.contains(&name.as_str()))
        };
        effects.acts
            || effects.changes.iter().any(|name| !effects.own.contains(name))
            || effects.calls.iter().any(is_unknown)
    }

    /// The functions with an effect, directly or through functions that they call.
    fn acting(&self) -> BTreeSet<String> {
        let mut callers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut found: Vec<&str> = Vec::new();
        for (name, effects) in &self.0 {
            if self.act(effects) {
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

    fn read(&mut self, statement: &Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                let mut effects = Effects { acts: function.is_async, ..Effects::default() };
                walk(std::slice::from_ref(statement), |node| effects.read(node));
                self.add(&function.name, effects);
            }
            // A class is called like a function, and its methods contain its effects.
            Stmt::ClassDef(class) => self.add(&class.name, Effects::default()),
            // Imported functions only compute, except those that wait.
            Stmt::ImportFrom(import)
                if !matches!(import.module.as_deref(), Some("asyncio" | "time")) =>
            {
                for alias in &import.names {
                    self.add(alias.asname.as_ref().unwrap_or(&alias.name), Effects::default());
                }
            }
            Stmt::Assign(assignment) => {
                if let ([Expr::Name(name)], Expr::Lambda(lambda)) =
                    (assignment.targets.as_slice(), &*assignment.value)
                {
                    let mut effects = Effects::default();
                    Walk { visit: |node| effects.read(node), depth: 0 }.visit_expr(&lambda.body);
                    self.add(name.id.as_str(), effects);
                }
            }
            _ => {}
        }
    }

    /// Adds a function. Two functions with one name are merged.
    fn add(&mut self, name: &str, mut effects: Effects) {
        let known = self.0.entry(name.to_owned()).or_default();
        known.acts |= effects.acts;
        known.calls.append(&mut effects.calls);
        known.changes.append(&mut effects.changes);
        known.own.append(&mut effects.own);
    }
}

/// Whether a function yields, without the functions inside it.
pub(super) fn yields(function: &StmtFunctionDef) -> bool {
    let mut found = false;
    walk(&function.body, |node| {
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
