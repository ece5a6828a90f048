//! Follows values through variables, functions and results, as far as they are certain.
//!
//! What a script may change later, or may know better after a test, is unknown. Annotations are not
//! looked at: Python does not enforce them.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    ops::Range,
    rc::Rc,
};

use ruff_python_ast::{
    Comprehension, Expr, ExprCall, ExprDict, Number, Operator, Stmt, StmtFunctionDef, UnaryOp,
};

use super::{
    constants::truth,
    offset,
    reader::ScriptReader,
    uses::{Binding, Key},
};
use crate::check::{
    declared::one_of,
    literal::{
        Literal, LiteralEntries, LiteralEntry, LiteralKind, MAX_DEPTH, NOWHERE, Origin, awaited,
        each, some_of,
    },
    lookup::{ToolSignature, ToolTable, takes_positions},
};

/// The number of expressions that are followed in one script.
const MAX_STEPS: u32 = 200_000;
/// The number of items of a list that are told apart.
const MAX_ITEMS: usize = 50;
/// The number of items of a list that are read.
const MAX_LENGTH: usize = 10_000;

/// The values of one script.
pub(super) struct Values<'s, 'a, 'g> {
    script: &'s ScriptReader<'a, 'g>,
    tools: &'s ToolTable,
    /// The values of variables; `None` while one is being determined.
    known: RefCell<HashMap<Key<'a>, Option<Literal>>>,
    /// The values that functions return, in the same way.
    returned: RefCell<HashMap<usize, Option<Literal>>>,
    /// Keys that the script adds to values that it has not made.
    stored: HashSet<&'a str>,
    /// Whether it may add any key.
    stores_any: bool,
    /// Whether it adds items to lists of results.
    extends: bool,
    steps: Cell<u32>,
}

impl<'s, 'a, 'g> Values<'s, 'a, 'g> {
    pub(super) fn new(script: &'s ScriptReader<'a, 'g>, tools: &'s ToolTable) -> Self {
        let mut values = Self {
            script,
            tools,
            known: RefCell::default(),
            returned: RefCell::default(),
            stored: HashSet::new(),
            stores_any: false,
            extends: false,
            steps: Cell::new(0),
        };
        for (base, key) in &script.uses.stores {
            let is_own = base.is_name_expr() && values.is_made_here(base);
            match key {
                _ if is_own => {}
                Some(key) => {
                    values.stored.insert(key);
                }
                None => (values.stores_any, values.extends) = (true, true),
            }
        }
        values.extends |= script.uses.extended.iter().any(|base| !values.is_made_here(base));
        values
    }

    /// Whether a value is in a variable that has only values that the script makes.
    fn is_made_here(&self, base: &Expr) -> bool {
        match base {
            Expr::Name(name) => {
                let text = name.id.as_str();
                let scope = self.script.uses.resolved.get(&offset(name));
                let all = match scope {
                    Some(scope) => self.script.uses.bindings.get(&(*scope, text)),
                    // The target of an assignment is not resolved.
                    None => return self.is_made_everywhere(text),
                };
                all.is_some_and(|all| all.iter().all(|it| is_new(it, text)))
            }
            Expr::Subscript(part) => self.is_made_here(&part.value),
            Expr::Attribute(part) => self.is_made_here(&part.value),
            Expr::Call(call) => is_constructor(&call.func),
            _ => is_display(base),
        }
    }

    /// Whether all variables of a name have only values that the script makes.
    fn is_made_everywhere(&self, name: &str) -> bool {
        let bindings = &self.script.uses.bindings;
        let mut of_name = bindings.iter().filter(|((_, other), _)| *other == name).peekable();
        of_name.peek().is_some() && of_name.all(|(_, all)| all.iter().all(|it| is_new(it, name)))
    }

    /// The value of an expression.
    pub(super) fn read(&self, expression: &'a Expr) -> Literal {
        self.read_at(expression, 0)
    }

    /// The value of an argument. A result that the script may have changed is unknown.
    pub(super) fn argument(&self, expression: &'a Expr) -> Literal {
        let changes =
            self.script.uses.removes || self.stores_any || self.extends || !self.stored.is_empty();
        let value = self.read(expression);
        if changes { without_results(value) } else { value }
    }

    /// Whether the script looks for keys in results by names that it computes.
    pub(super) fn looks_into_results(&self) -> bool {
        let is_object = |value: &Literal| matches!(value.kind, LiteralKind::Object { .. });
        self.script.uses.looked_into.iter().any(|it| {
            let value = self.read(it);
            let all = value.kind.alternatives();
            is_object(&value) || all.is_some_and(|all| all.iter().any(is_object))
        })
    }

    fn read_at(&self, expression: &'a Expr, depth: usize) -> Literal {
        let steps = self.steps.get();
        self.steps.set(steps + 1);
        let at = offset(expression);
        if depth > MAX_DEPTH || steps > MAX_STEPS || self.script.names.is_dynamic {
            return Literal::unknown(at);
        }
        let found = self.followed(expression, depth);
        if found.offset == NOWHERE && found.origin.is_none() {
            return Literal { offset: at, ..found };
        }
        found
    }

    fn followed(&self, expression: &'a Expr, depth: usize) -> Literal {
        let inner = |it: &'a Expr| self.read_at(it, depth + 1);
        let kind = match expression {
            Expr::NoneLiteral(_) => LiteralKind::Null,
            Expr::BooleanLiteral(literal) => LiteralKind::Boolean(Some(literal.value)),
            Expr::NumberLiteral(literal) => match &literal.value {
                Number::Int(value) => {
                    value.to_string().parse().map_or(LiteralKind::Unknown, LiteralKind::number)
                }
                Number::Float(value) => LiteralKind::number(*value),
                Number::Complex { .. } => LiteralKind::Unknown,
            },
            Expr::StringLiteral(literal) => {
                LiteralKind::Text(Some(literal.value.to_str().to_owned()))
            }
            Expr::FString(_) => LiteralKind::Text(None),
            Expr::Compare(_) => LiteralKind::Boolean(None),
            Expr::UnaryOp(unary) => match (unary.op, inner(&unary.operand).kind) {
                (UnaryOp::USub, LiteralKind::Number(value)) => LiteralKind::number(-value),
                (UnaryOp::UAdd, LiteralKind::Number(value)) => LiteralKind::number(value),
                (UnaryOp::Not, _) => LiteralKind::Boolean(None),
                _ => LiteralKind::Unknown,
            },
            Expr::BinOp(binary) => {
                self.operation(binary.op, &inner(&binary.left), &inner(&binary.right))
            }
            Expr::List(list) => return self.array(&list.elts, depth),
            Expr::Tuple(tuple) => return self.array(&tuple.elts, depth),
            Expr::Dict(dict) => self.object(dict, depth),
            Expr::Name(name) => {
                let scope = self.script.uses.resolved.get(&offset(name));
                let value = scope.map(|scope| self.variable((*scope, name.id.as_str()), depth));
                return value.unwrap_or(Literal::unknown(NOWHERE));
            }
            Expr::Await(awaiting) => return awaited(inner(&awaiting.value)),
            Expr::Named(named) => return inner(&named.value),
            Expr::If(choice) => {
                return match truth(&choice.test) {
                    Some(true) => inner(&choice.body),
                    Some(false) => inner(&choice.orelse),
                    None => {
                        let both = vec![inner(&choice.body), inner(&choice.orelse)];
                        // The script knows which of them it is.
                        if self.is_constant(&choice.test, 0) { one_of(both) } else { each(both) }
                    }
                };
            }
            Expr::ListComp(list) => {
                LiteralKind::ListOf(Rc::new(self.comprehended(&list.elt, &list.generators, depth)))
            }
            Expr::Generator(list) => {
                LiteralKind::ListOf(Rc::new(self.comprehended(&list.elt, &list.generators, depth)))
            }
            Expr::DictComp(_) => LiteralKind::object(Vec::new(), false),
            Expr::Call(call) => return self.call(call, depth),
            Expr::Subscript(part) => {
                let value = inner(&part.value);
                return match part.slice.as_ref() {
                    Expr::StringLiteral(key) => self.part(&value, key.value.to_str()),
                    Expr::NumberLiteral(number) => match &number.value {
                        Number::Int(at) => {
                            match at.as_u64().and_then(|at| usize::try_from(at).ok()) {
                                Some(at) => self.item(&value, at),
                                None => some_of(self.element(&value)),
                            }
                        }
                        _ => Literal::unknown(NOWHERE),
                    },
                    Expr::Slice(_) => match &value.kind {
                        LiteralKind::Text(_) => {
                            Literal { kind: LiteralKind::Text(None), ..value.clone() }
                        }
                        LiteralKind::Array { .. } | LiteralKind::ListOf(_) => {
                            let one = some_of(self.element(&value));
                            Literal { kind: LiteralKind::ListOf(Rc::new(one)), ..value.clone() }
                        }
                        _ => Literal::unknown(NOWHERE),
                    },
                    Expr::UnaryOp(_) => some_of(self.element(&value)),
                    _ => match &value.kind {
                        LiteralKind::Array { .. } | LiteralKind::ListOf(_) => {
                            some_of(self.element(&value))
                        }
                        _ => Literal::unknown(NOWHERE),
                    },
                };
            }
            _ => LiteralKind::Unknown,
        };
        Literal::new(offset(expression), kind)
    }

    fn operation(&self, op: Operator, left: &Literal, right: &Literal) -> LiteralKind {
        let is_text = |side: &Literal| matches!(side.kind, LiteralKind::Text(_));
        let is_number =
            |side: &Literal| matches!(side.kind, LiteralKind::Number(_) | LiteralKind::SomeNumber);
        let is_list = |side: &Literal| {
            matches!(side.kind, LiteralKind::Array { .. } | LiteralKind::ListOf(_))
        };
        match op {
            Operator::Add if is_text(left) || is_text(right) => LiteralKind::Text(None),
            Operator::Mod if is_text(left) => LiteralKind::Text(None),
            Operator::Add if is_list(left) && is_list(right) => {
                let both = vec![self.element(left), self.element(right)];
                LiteralKind::ListOf(Rc::new(one_of(both)))
            }
            Operator::Add | Operator::Sub | Operator::Mult | Operator::Div | Operator::FloorDiv
                if is_number(left) && is_number(right) =>
            {
                LiteralKind::SomeNumber
            }
            Operator::BitOr => match (&left.kind, &right.kind) {
                (LiteralKind::Object { .. }, LiteralKind::Object { .. }) => {
                    let mut entries = LiteralEntries::default();
                    spread(&mut entries, left);
                    spread(&mut entries, right);
                    entries.finish()
                }
                _ => LiteralKind::Unknown,
            },
            _ => LiteralKind::Unknown,
        }
    }

    fn array(&self, elements: &'a [Expr], depth: usize) -> Literal {
        let mut items = Vec::with_capacity(elements.len());
        let mut complete = true;
        for element in elements {
            match element {
                _ if items.len() > MAX_LENGTH => complete = false,
                Expr::Starred(starred) => match self.read_at(&starred.value, depth + 1).kind {
                    LiteralKind::Array { items: inner, complete: true } => {
                        items.extend(inner.iter().cloned());
                    }
                    _ => complete = false,
                },
                _ => items.push(self.read_at(element, depth + 1)),
            }
        }
        let at = elements.first().map_or(NOWHERE, offset);
        Literal::new(at, LiteralKind::array(items, complete))
    }

    fn object(&self, dict: &'a ExprDict, depth: usize) -> LiteralKind {
        let mut entries = LiteralEntries::default();
        for item in &dict.items {
            match &item.key {
                Some(key @ Expr::StringLiteral(text)) => entries.push(LiteralEntry {
                    key: text.value.to_str().to_owned(),
                    offset: offset(key),
                    value: self.read_at(&item.value, depth + 1),
                }),
                Some(_) => entries.push_unknown(),
                None => spread(&mut entries, &self.read_at(&item.value, depth + 1)),
            }
        }
        entries.finish()
    }

    /// All keys of a dictionary, or of one that a variable keeps for this place alone: what is used elsewhere
    /// as well may have keys for another purpose. None if they are not known.
    pub(super) fn own_keys(&self, expression: &'a Expr) -> Vec<String> {
        self.exact_keys(expression, 0).unwrap_or_default()
    }

    fn exact_keys(&self, expression: &'a Expr, depth: usize) -> Option<Vec<String>> {
        match expression {
            Expr::Dict(dict) if depth < 8 => {
                let mut keys = Vec::new();
                for item in &dict.items {
                    match &item.key {
                        Some(Expr::StringLiteral(key)) => keys.push(key.value.to_str().to_owned()),
                        Some(_) => return None,
                        None => keys.extend(self.exact_keys(&item.value, depth + 1)?),
                    }
                }
                Some(keys)
            }
            Expr::Name(name) => {
                let scope = self.script.uses.resolved.get(&offset(name))?;
                let key = (*scope, name.id.as_str());
                let variable = self.script.variables.get(&key)?;
                let bindings = self.script.uses.bindings.get(&key).map(Vec::as_slice);
                match bindings {
                    Some([Binding::Value(made @ Expr::Dict(_), path)])
                        if path.is_empty() && variable.reads == 1 && variable.assignments == 1 =>
                    {
                        self.exact_keys(made, depth + 1)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// An element of what a comprehension makes.
    fn comprehended(&self, element: &'a Expr, all: &'a [Comprehension], depth: usize) -> Literal {
        // A filter may leave out what does not fit.
        let value = self.read_at(element, depth + 1);
        if all.iter().any(|it| !it.ifs.is_empty()) { some_of(value) } else { value }
    }

    /// The value of a variable.
    fn variable(&self, key: Key<'a>, depth: usize) -> Literal {
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone().unwrap_or(Literal::unknown(NOWHERE));
        }
        self.known.borrow_mut().insert(key, None);
        let value = self.bound(key, depth).unwrap_or(Literal::unknown(NOWHERE));
        self.known.borrow_mut().insert(key, Some(value.clone()));
        value
    }

    fn bound(&self, key: Key<'a>, depth: usize) -> Option<Literal> {
        let uses = &self.script.uses;
        let bindings = uses.bindings.get(&key)?;
        let assigned = self.script.variables.get(&key).map_or(0, |it| it.assignments);
        let value = match bindings.as_slice() {
            [Binding::Parameter(function, at)] if assigned == 0 => {
                self.parameter(key, function, *at, depth)?
            }
            all if self.script.is_plain_variable(key) && assigned <= all.len() => {
                let mut values = Vec::with_capacity(all.len());
                for binding in all {
                    values.push(match binding {
                        Binding::Value(value, path) => {
                            self.at_path(self.read_at(value, depth + 1), path)
                        }
                        Binding::Element(value, path) => {
                            let all = self.read_at(value, depth + 1);
                            // It may not come to every element.
                            self.at_path(some_of(self.element(&all)), path)
                        }
                        _ => return None,
                    });
                }
                match values.len() {
                    1 => values.pop()?,
                    _ => one_of(values),
                }
            }
            _ => return None,
        };
        let is_result = value.origin.is_some()
            || value
                .kind
                .alternatives()
                .is_some_and(|all| all.iter().any(|one| one.origin.is_some()));
        let is_changeable = !is_result
            && !matches!(
                value.kind,
                LiteralKind::Text(_)
                    | LiteralKind::Number(_)
                    | LiteralKind::SomeNumber
                    | LiteralKind::Boolean(_)
                    | LiteralKind::Null
                    | LiteralKind::Promise(_)
            );
        let is_uncertain = uses.narrowed.contains(&key)
            || is_changeable && (uses.removes || uses.shared.contains(&key))
            || !is_result && self.script.is_tested(key);
        let value = if is_changeable { self.loosened(value) } else { value };
        (!is_uncertain).then_some(value)
    }

    /// A value that the script has made, without what it may change by another name.
    fn loosened(&self, value: Literal) -> Literal {
        if self.stored.is_empty() && !self.stores_any && !self.extends {
            return value;
        }
        let all = |all: &[Literal]| all.iter().map(|one| self.loosened(one.clone())).collect();
        let kind = match &value.kind {
            LiteralKind::Object { entries, complete } => {
                let entries = entries.iter().map(|entry| {
                    let value = if self.may_store(&entry.key) {
                        Literal::unknown(entry.value.offset)
                    } else {
                        self.loosened(entry.value.clone())
                    };
                    LiteralEntry { value, ..entry.clone() }
                });
                let is_kept = self.stored.is_empty() && !self.stores_any;
                LiteralKind::object(entries.collect(), *complete && is_kept)
            }
            LiteralKind::Array { items, complete } => {
                LiteralKind::array(all(items), *complete && !self.extends)
            }
            LiteralKind::ListOf(item) => {
                LiteralKind::ListOf(Rc::new(self.loosened((**item).clone())))
            }
            LiteralKind::Each(items) => LiteralKind::Each(all(items).into()),
            LiteralKind::OneOf(items) => LiteralKind::OneOf(all(items).into()),
            _ => return value,
        };
        Literal { kind, ..value }
    }

    fn at_path(&self, value: Literal, path: &[usize]) -> Literal {
        path.iter().fold(value, |value, at| self.item(&value, *at))
    }

    /// The calls of a function, if they are all that refers to it.
    fn calls_of(&self, function: &'a StmtFunctionDef) -> Option<(Key<'a>, &[&'a ExprCall])> {
        let uses = &self.script.uses;
        let (scope, _) = *uses.functions.get(&offset(function))?;
        let key = (scope, function.name.as_str());
        if !matches!(uses.bindings.get(&key).map(Vec::as_slice), Some([Binding::Function(_)])) {
            return None;
        }
        let calls = uses.calls.get(&key)?;
        let variable = self.script.variables.get(&key)?;
        let is_certain = function.decorator_list.is_empty()
            && variable.assignments == 0
            && variable.reads == calls.len();
        is_certain.then_some((key, calls.as_slice()))
    }

    fn parameter(
        &self,
        key: Key<'a>,
        function: &'a StmtFunctionDef,
        at: usize,
        depth: usize,
    ) -> Option<Literal> {
        let parameters = &function.parameters;
        let all: Vec<_> = parameters.iter_non_variadic_params().collect();
        let parameter = all.get(at)?;
        // What the function does may depend on its other arguments.
        let is_plain = parameters.vararg.is_none()
            && parameters.kwarg.is_none()
            && all.iter().all(|it| !self.script.is_tested((key.0, it.name().as_str())));
        let (_, calls) = self.calls_of(function).filter(|_| is_plain)?;
        let mut values = Vec::with_capacity(calls.len());
        for call in calls {
            let given = &call.arguments;
            if given.args.iter().any(Expr::is_starred_expr)
                || given.keywords.iter().any(|it| it.arg.is_none())
            {
                return None;
            }
            let named = given.keywords.iter().find(|it| {
                it.arg.as_ref().is_some_and(|name| name.as_str() == parameter.name().as_str())
            });
            let value = given.args.get(at).or(named.map(|it| &it.value)).or(parameter.default())?;
            values.push(self.read_at(value, depth + 1));
        }
        Some(if values.len() == 1 { values.pop()? } else { one_of(values) })
    }

    /// What a call of a function of the script returns.
    fn result_of(&self, function: &'a StmtFunctionDef, depth: usize) -> Literal {
        let at = offset(function);
        if let Some(known) = self.returned.borrow().get(&at) {
            return known.clone().unwrap_or(Literal::unknown(NOWHERE));
        }
        self.returned.borrow_mut().insert(at, None);
        let returned = self.script.uses.returned.get(&at);
        let is_plain = function.decorator_list.is_empty()
            && !super::bindings::Bindings::of_body(&function.body).yields;
        let value = match returned.filter(|_| is_plain) {
            // Without a `return` at its end it may return nothing.
            Some(all) if matches!(function.body.last(), Some(Stmt::Return(_))) => {
                let mut values: Vec<Literal> =
                    all.iter().map(|value| self.read_at(value, depth + 1)).collect();
                match values.len() {
                    1 => values.remove(0),
                    _ => one_of(values),
                }
            }
            _ => Literal::unknown(NOWHERE),
        };
        let value = if function.is_async {
            Literal::new(NOWHERE, LiteralKind::Promise(Rc::new(value)))
        } else {
            value
        };
        self.returned.borrow_mut().insert(at, Some(value.clone()));
        value
    }

    /// The tool that an expression is, if that is certain.
    pub(super) fn tool_of(&self, callee: &'a Expr) -> Option<&'s ToolSignature> {
        self.tool_name(callee, 0).and_then(|name| self.tools.tool(&name))
    }

    fn tool_name(&self, callee: &'a Expr, depth: usize) -> Option<String> {
        if self.script.names.is_dynamic || depth > 8 {
            return None;
        }
        let Expr::Name(name) = callee else { return self.script.tool_of(callee) };
        let Some(scope) = self.script.uses.resolved.get(&offset(name)) else {
            return Some(name.id.to_string());
        };
        let key = (*scope, name.id.as_str());
        let assigned = self.script.variables.get(&key)?.assignments;
        match self.script.uses.bindings.get(&key)?.as_slice() {
            [Binding::Value(value, path)]
                if path.is_empty() && assigned == 1 && self.script.is_plain_variable(key) =>
            {
                self.tool_name(value, depth + 1)
            }
            _ => None,
        }
    }

    fn call(&self, call: &'a ExprCall, depth: usize) -> Literal {
        if let Some(tool) = self.tool_of(&call.func) {
            let is_known = !takes_positions(&tool.name);
            let result = if is_known { tool.result.clone() } else { Literal::unknown(NOWHERE) };
            return Literal::new(NOWHERE, LiteralKind::Promise(Rc::new(result)));
        }
        let found = match call.func.as_ref() {
            Expr::Name(name) => match self.script.uses.resolved.get(&offset(name)) {
                Some(scope) => {
                    match self
                        .script
                        .uses
                        .bindings
                        .get(&(*scope, name.id.as_str()))
                        .map(Vec::as_slice)
                    {
                        Some([Binding::Function(function)])
                            if self
                                .script
                                .variables
                                .get(&(*scope, name.id.as_str()))
                                .is_none_or(|it| it.assignments == 0) =>
                        {
                            Some(self.result_of(function, depth + 1))
                        }
                        _ => None,
                    }
                }
                None => self.built_in(name.id.as_str(), call, depth),
            },
            Expr::Attribute(part) => match part.value.as_ref() {
                Expr::Name(module) if module.id == "asyncio" => {
                    self.asynchronous(part.attr.as_str(), call, depth)
                }
                Expr::Name(module) if module.id == "json" && part.attr.as_str() == "dumps" => {
                    Some(Literal::new(NOWHERE, LiteralKind::Text(None)))
                }
                value => self.method(value, part.attr.as_str(), call, depth),
            },
            _ => None,
        };
        found.unwrap_or(Literal::unknown(NOWHERE))
    }

    fn built_in(&self, name: &str, call: &'a ExprCall, depth: usize) -> Option<Literal> {
        let given = &call.arguments;
        let first = given.args.first();
        let list_of =
            |value: Literal| Literal::new(NOWHERE, LiteralKind::ListOf(Rc::new(some_of(value))));
        let element =
            |at: usize| given.args.get(at).map(|it| self.element(&self.read_at(it, depth + 1)));
        let kind = match name {
            "str" | "repr" | "ascii" | "chr" | "hex" | "bin" | "format" => LiteralKind::Text(None),
            "int" | "len" | "ord" => LiteralKind::SomeNumber,
            "bool" | "isinstance" | "all" | "any" | "callable" | "hasattr" => {
                LiteralKind::Boolean(None)
            }
            "range" => return Some(list_of(Literal::new(NOWHERE, LiteralKind::SomeNumber))),
            "list" | "tuple" | "sorted" | "reversed" => return Some(list_of(element(0)?)),
            "enumerate" => {
                let number = Literal::new(NOWHERE, LiteralKind::SomeNumber);
                let pair = LiteralKind::array(vec![number, element(0)?], true);
                return Some(list_of(Literal::new(NOWHERE, pair)));
            }
            "zip" => {
                let items: Option<Vec<_>> = (0..given.args.len()).map(element).collect();
                return Some(list_of(Literal::new(NOWHERE, LiteralKind::array(items?, true))));
            }
            "dict" => {
                let mut entries = LiteralEntries::default();
                if let Some(first) = first {
                    spread(&mut entries, &self.read_at(first, depth + 1));
                }
                for keyword in &given.keywords {
                    let value = self.read_at(&keyword.value, depth + 1);
                    match &keyword.arg {
                        Some(name) => entries.push(LiteralEntry {
                            key: name.to_string(),
                            offset: offset(keyword),
                            value,
                        }),
                        None => spread(&mut entries, &value),
                    }
                }
                entries.finish()
            }
            _ => return None,
        };
        Some(Literal::new(NOWHERE, kind))
    }

    fn asynchronous(&self, name: &str, call: &'a ExprCall, depth: usize) -> Option<Literal> {
        let given = &call.arguments;
        match name {
            "gather" => {
                if !given.keywords.is_empty() {
                    return None;
                }
                let kind = match given.args.as_ref() {
                    [Expr::Starred(all)] => {
                        let all = self.read_at(&all.value, depth + 1);
                        match &all.kind {
                            LiteralKind::Array { items, complete: true } => {
                                let items = items.iter().cloned().map(awaited).collect();
                                LiteralKind::array(items, true)
                            }
                            _ => LiteralKind::ListOf(Rc::new(awaited(self.element(&all)))),
                        }
                    }
                    all => {
                        if all.iter().any(Expr::is_starred_expr) {
                            return None;
                        }
                        let items =
                            all.iter().map(|it| awaited(self.read_at(it, depth + 1))).collect();
                        LiteralKind::array(items, true)
                    }
                };
                let inner = Literal::new(NOWHERE, kind);
                Some(Literal::new(NOWHERE, LiteralKind::Promise(Rc::new(inner))))
            }
            "create_task" | "ensure_future" | "shield" | "wait_for" => {
                given.args.first().map(|it| self.read_at(it, depth + 1))
            }
            "run" => given.args.first().map(|it| awaited(self.read_at(it, depth + 1))),
            _ => None,
        }
    }

    fn method(
        &self,
        value: &'a Expr,
        name: &str,
        call: &'a ExprCall,
        depth: usize,
    ) -> Option<Literal> {
        let value = self.read_at(value, depth + 1);
        let first = call.arguments.args.first();
        match (&value.kind, name) {
            (LiteralKind::Text(_), _) => {
                let kind = match name {
                    "lower" | "upper" | "strip" | "lstrip" | "rstrip" | "title" | "capitalize"
                    | "format" | "join" | "replace" | "zfill" | "removeprefix" | "removesuffix" => {
                        LiteralKind::Text(None)
                    }
                    "split" | "splitlines" => {
                        let text = Literal::new(NOWHERE, LiteralKind::Text(None));
                        LiteralKind::ListOf(Rc::new(text))
                    }
                    "startswith" | "endswith" | "isdigit" => LiteralKind::Boolean(None),
                    "find" | "index" | "count" => LiteralKind::SomeNumber,
                    _ => return None,
                };
                Some(Literal::new(NOWHERE, kind))
            }
            (LiteralKind::Object { entries, .. }, "get") => {
                let Some(Expr::StringLiteral(key)) = first else { return None };
                let key = key.value.to_str();
                if !entries.iter().any(|entry| entry.key == key) {
                    return None;
                }
                let found = self.part(&value, key);
                let default = match call.arguments.args.get(1) {
                    Some(default) => self.read_at(default, depth + 1),
                    None => Literal::new(NOWHERE, LiteralKind::Null),
                };
                Some(one_of(vec![found, default]))
            }
            (LiteralKind::Object { .. }, "copy") => Some(value),
            (LiteralKind::Object { entries, complete: true }, "items" | "values") => {
                let all = one_of(entries.iter().map(|entry| entry.value.clone()).collect());
                let one = if name == "values" {
                    all
                } else {
                    let text = Literal::new(NOWHERE, LiteralKind::Text(None));
                    Literal::new(NOWHERE, LiteralKind::array(vec![text, all], true))
                };
                Some(Literal::new(NOWHERE, LiteralKind::ListOf(Rc::new(one))))
            }
            _ => None,
        }
    }

    /// Whether the script may add a key to a result.
    pub(super) fn may_store(&self, key: &str) -> bool {
        self.stores_any || self.stored.contains(key)
    }

    /// The value of a key.
    fn part(&self, value: &Literal, key: &str) -> Literal {
        let unknown = Literal::unknown(NOWHERE);
        if self.may_store(key) {
            return unknown;
        }
        let of = |all: &[Literal]| -> Vec<Literal> {
            all.iter().filter(|one| !is_absent(one)).map(|one| self.part(one, key)).collect()
        };
        match &value.kind {
            LiteralKind::Object { entries, .. } => entries
                .iter()
                .find(|entry| entry.key == key)
                .map_or(unknown, |entry| present(&entry.value)),
            LiteralKind::Each(all) => each(of(all)),
            LiteralKind::OneOf(all) => one_of(of(all)),
            _ => unknown,
        }
    }

    /// Any element of a list.
    fn element(&self, value: &Literal) -> Literal {
        let is_result = value.origin.is_some();
        match &value.kind {
            LiteralKind::ListOf(_) if is_result && self.extends => Literal::unknown(NOWHERE),
            LiteralKind::ListOf(item) => (**item).clone(),
            LiteralKind::Text(_) => Literal { kind: LiteralKind::Text(None), ..value.clone() },
            LiteralKind::Array { items, complete: true }
                if !items.is_empty() && items.len() <= MAX_ITEMS =>
            {
                each(items.to_vec())
            }
            // Its keys.
            LiteralKind::Object { .. } => {
                let origin = value.origin.as_ref().map(|origin| {
                    Rc::new(Origin { path: format!("{}{{}}", origin.path), ..(**origin).clone() })
                });
                Literal { offset: NOWHERE, kind: LiteralKind::Text(None), origin }
            }
            LiteralKind::OneOf(all) => {
                one_of(all.iter().filter(|it| !is_absent(it)).map(|it| self.element(it)).collect())
            }
            _ => Literal::unknown(NOWHERE),
        }
    }

    /// The item at a position.
    fn item(&self, value: &Literal, at: usize) -> Literal {
        match &value.kind {
            LiteralKind::Array { items, complete: true } => {
                items.get(at).cloned().unwrap_or(Literal::unknown(NOWHERE))
            }
            LiteralKind::ListOf(_) | LiteralKind::Text(_) => some_of(self.element(value)),
            LiteralKind::Each(all) => each(all.iter().map(|one| self.item(one, at)).collect()),
            LiteralKind::OneOf(all) => one_of(all.iter().map(|one| self.item(one, at)).collect()),
            _ => Literal::unknown(NOWHERE),
        }
    }

    /// The parts of the script that may never run, because what decides about them is written in it.
    pub(super) fn undecided(&self) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        for choice in &self.script.uses.choices {
            let is_undecided = if choice.is_loop {
                matches!(self.read(choice.test).kind, LiteralKind::Array { ref items, complete: true } if items.is_empty())
            } else {
                truth(choice.test).is_none() && self.is_constant(choice.test, 0)
            };
            if is_undecided {
                ranges.extend(choice.decides.iter().cloned());
            }
        }
        ranges
    }

    /// Whether the script itself contains all that an expression depends on.
    fn is_constant(&self, expression: &'a Expr, depth: usize) -> bool {
        let inner = |it: &'a Expr| self.is_constant(it, depth + 1);
        let steps = self.steps.get();
        self.steps.set(steps + 1);
        match expression {
            _ if is_of_machine(expression) => true,
            _ if depth > 16 || steps > MAX_STEPS || self.script.names.is_dynamic => true,
            Expr::NoneLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NumberLiteral(_)
            | Expr::StringLiteral(_) => true,
            Expr::Name(name) => {
                let Some(scope) = self.script.uses.resolved.get(&offset(name)) else { return true };
                let key = (*scope, name.id.as_str());
                let Some(bindings) = self.script.uses.bindings.get(&key) else { return false };
                bindings.iter().all(|binding| match binding {
                    Binding::Value(value, _) | Binding::Element(value, _) => inner(value),
                    Binding::Function(_) => true,
                    Binding::Parameter(function, at) => {
                        self.is_constant_parameter(function, *at, depth)
                    }
                    Binding::Other => false,
                })
            }
            Expr::UnaryOp(it) => inner(&it.operand),
            Expr::BinOp(it) => inner(&it.left) && inner(&it.right),
            Expr::BoolOp(it) => it.values.iter().all(inner),
            Expr::Compare(it) => inner(&it.left) && it.comparators.iter().all(inner),
            Expr::List(it) => it.elts.iter().all(inner),
            Expr::Tuple(it) => it.elts.iter().all(inner),
            Expr::Set(it) => it.elts.iter().all(inner),
            Expr::Dict(it) => it
                .items
                .iter()
                .all(|item| item.key.as_ref().is_none_or(inner) && inner(&item.value)),
            Expr::Subscript(it) => inner(&it.value) && inner(&it.slice),
            Expr::Attribute(it) => inner(&it.value),
            Expr::Call(it) => {
                let is_own = matches!(it.func.as_ref(), Expr::Name(name) if self.script.uses.resolved.contains_key(&offset(name)));
                let is_known = self.tool_of(&it.func).is_none();
                let is_random = matches!(it.func.as_ref(), Expr::Attribute(part)
                    if matches!(part.value.as_ref(), Expr::Name(module)
                        if matches!(module.id.as_str(), "random" | "time" | "datetime" | "secrets" | "asyncio")));
                !is_own
                    && is_known
                    && !is_random
                    && inner(&it.func)
                    && it.arguments.args.iter().all(inner)
                    && it.arguments.keywords.iter().all(|keyword| inner(&keyword.value))
            }
            _ => false,
        }
    }

    fn is_constant_parameter(
        &self,
        function: &'a StmtFunctionDef,
        at: usize,
        depth: usize,
    ) -> bool {
        let all: Vec<_> = function.parameters.iter_non_variadic_params().collect();
        let Some(parameter) = all.get(at) else { return false };
        let Some((_, calls)) = self.calls_of(function) else { return false };
        calls.iter().all(|call| {
            let given = &call.arguments;
            let named = given.keywords.iter().find(|it| {
                it.arg.as_ref().is_some_and(|name| name.as_str() == parameter.name().as_str())
            });
            let value = given.args.get(at).or(named.map(|it| &it.value)).or(parameter.default());
            value.is_some_and(|value| self.is_constant(value, depth + 1))
        })
    }
}

/// A value in which lists and dictionaries of results are unknown.
fn without_results(value: Literal) -> Literal {
    let all = |all: &[Literal]| all.iter().cloned().map(without_results).collect::<Vec<_>>();
    let kind = match &value.kind {
        LiteralKind::Object { .. } | LiteralKind::Array { .. } | LiteralKind::ListOf(_)
            if value.origin.is_some() =>
        {
            LiteralKind::Unknown
        }
        LiteralKind::Object { entries, complete } => {
            let entries = entries.iter().map(|entry| LiteralEntry {
                value: without_results(entry.value.clone()),
                ..entry.clone()
            });
            LiteralKind::object(entries.collect(), *complete)
        }
        LiteralKind::Array { items, complete } => LiteralKind::array(all(items), *complete),
        LiteralKind::ListOf(item) => {
            LiteralKind::ListOf(Rc::new(without_results((**item).clone())))
        }
        LiteralKind::Each(items) => LiteralKind::Each(all(items).into()),
        LiteralKind::OneOf(items) => LiteralKind::OneOf(all(items).into()),
        _ => return value,
    };
    Literal { kind, ..value }
}

/// Whether an expression is about the version of Python or the system, which every run has in the same way.
fn is_of_machine(expression: &Expr) -> bool {
    let Expr::Attribute(part) = expression else { return false };
    let Expr::Name(module) = part.value.as_ref() else { return false };
    match module.id.as_str() {
        "sys" => matches!(
            part.attr.as_str(),
            "version_info" | "platform" | "version" | "implementation" | "flags" | "maxsize"
        ),
        "os" => part.attr.as_str() == "name",
        "platform" => true,
        _ => false,
    }
}

/// Adds the entries of an object to those of another.
fn spread(entries: &mut LiteralEntries, value: &Literal) {
    match &value.kind {
        LiteralKind::Object { entries: inner, complete } => {
            if !complete {
                entries.push_unknown();
            }
            inner.iter().for_each(|entry| entries.push(entry.clone()));
        }
        _ => entries.push_unknown(),
    }
}

fn is_absent(value: &Literal) -> bool {
    matches!(value.kind, LiteralKind::Null | LiteralKind::Undefined)
}

/// The value of a key that is there.
fn present(value: &Literal) -> Literal {
    let LiteralKind::OneOf(all) = &value.kind else { return value.clone() };
    one_of(all.iter().filter(|it| it.kind != LiteralKind::Undefined).cloned().collect())
}

/// Whether a binding gives a variable a value that the script makes.
fn is_new(binding: &Binding<'_>, name: &str) -> bool {
    match binding {
        Binding::Value(Expr::Call(call), path) => path.is_empty() && is_constructor(&call.func),
        Binding::Value(Expr::Name(other), _) => other.id.as_str() == name,
        Binding::Value(value, path) => path.is_empty() && is_display(value),
        // `+=` changes what is there.
        Binding::Other => true,
        _ => false,
    }
}

fn is_display(value: &Expr) -> bool {
    matches!(
        value,
        Expr::Dict(_)
            | Expr::List(_)
            | Expr::Set(_)
            | Expr::ListComp(_)
            | Expr::DictComp(_)
            | Expr::SetComp(_)
            | Expr::NumberLiteral(_)
            | Expr::StringLiteral(_)
            | Expr::FString(_)
            | Expr::BinOp(_)
    )
}

fn is_constructor(callee: &Expr) -> bool {
    let name = match callee {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(part) => part.attr.as_str(),
        _ => return false,
    };
    matches!(
        name,
        "dict" | "list" | "set" | "defaultdict" | "Counter" | "OrderedDict" | "deque" | "deepcopy"
    )
}
