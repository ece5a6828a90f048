//! Walks a script and collects its scopes, undeclared names and calls.

use std::collections::{BTreeSet, HashMap};

use ruff_python_ast::{
    BoolOp, Comprehension, Expr, ExprCall, ExprName, Parameters, Stmt, StmtFunctionDef, StmtIf,
    visitor::{Visitor, walk_expr, walk_stmt},
};
use ruff_text_size::Ranged as _;

use super::{
    advice::Import,
    bindings::{Bindings, global_names},
    builtins::ALWAYS,
    constants::{Caught, Constants, leaves, truth},
    coroutines::{CoroutineUse, coroutine_use},
    offset,
    uses::{Binding, Choice, Key, Uses, range},
};
use crate::check::names::{HidingVariable, NameRole, UndeclaredName, UndeclaredNames};

/// The result of walking a script.
pub(super) struct ScriptReader<'a, 'g> {
    globals: &'g [&'g str],
    scopes: Vec<PythonScope<'a>>,
    parents: Vec<Parent<'a>>,
    pub(super) names: UndeclaredNames,
    pub(super) own: BTreeSet<&'a str>,
    pub(super) calls: Vec<PythonCall<'a>>,
    pub(super) imports: Vec<Import<'a>>,
    /// How each variable is used, by scope.
    pub(super) variables: HashMap<(usize, &'a str), Variable>,
    /// The functions of the module. The value is 1 for a function that is `async` and defined only
    /// once.
    pub(super) coroutines: HashMap<&'a str, usize>,
    next_scope: usize,
    /// Calls of a variable in its own assignment, with the scope.
    self_calls: Vec<(usize, &'a str, usize)>,
    constants: Constants<'a>,
    /// What is caught around the current place.
    caught: Vec<Caught>,
    pub(super) uses: Uses<'a>,
    /// The functions around the current place.
    functions: Vec<&'a StmtFunctionDef>,
}

/// A call of a plain name, or of a function of `asyncio`.
pub(super) struct PythonCall<'a> {
    pub(super) expression: &'a ExprCall,
    pub(super) name: &'a str,
    pub(super) sort: CalleeKind,
    pub(super) coroutine_use: CoroutineUse<'a>,
    /// The scope of the call, as a key of [`ScriptReader::variables`].
    pub(super) scope: usize,
    /// Whether the nearest function around the call is not `async`.
    pub(super) is_sync: bool,
}

/// Who defines the called function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CalleeKind {
    /// Not the script; it may be a tool.
    Free,
    /// The script.
    Own,
    /// The module `asyncio`.
    Asyncio,
}

/// A variable that a scope assigns to.
#[derive(Default)]
pub(super) struct Variable {
    pub(super) assignments: usize,
    pub(super) reads: usize,
    /// The first use as a value that a coroutine is not.
    pub(super) taken_at: Option<usize>,
}

struct PythonScope<'a> {
    id: usize,
    bindings: Bindings<'a>,
    kind: ScopeKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    Module,
    Class,
    Function { is_async: bool },
    Comprehension,
}

/// The ancestors of an expression, from the outside in.
#[derive(Clone, Copy)]
pub(super) enum Parent<'a> {
    Statement(&'a Stmt),
    Expression(&'a Expr),
}

impl<'a, 'g> ScriptReader<'a, 'g> {
    pub(super) fn read(body: &'a [Stmt], globals: &'g [&'g str]) -> Self {
        let mut reader = Self {
            globals,
            scopes: Vec::new(),
            parents: Vec::new(),
            names: UndeclaredNames::default(),
            own: BTreeSet::new(),
            calls: Vec::new(),
            imports: Vec::new(),
            variables: HashMap::new(),
            coroutines: HashMap::new(),
            next_scope: 0,
            self_calls: Vec::new(),
            constants: Constants::default(),
            caught: Vec::new(),
            uses: Uses::default(),
            functions: Vec::new(),
        };
        let mut bindings = Bindings::of_body(body);
        bindings.defined.extend(global_names(body));
        reader.within(ScopeKind::Module, bindings, |reader| reader.visit_body(body));
        reader.uses.finish();
        reader
    }

    /// The variables that are assigned only once, from a call of their own name.
    pub(super) fn hidings(&self) -> Vec<HidingVariable> {
        let is_only = |scope: usize, name: &'a str| {
            self.variables.get(&(scope, name)).is_some_and(|variable| variable.assignments == 1)
        };
        let only = self.self_calls.iter().filter(|(scope, name, _)| is_only(*scope, name));
        only.map(|(_, name, offset)| HidingVariable { name: (*name).to_owned(), offset: *offset })
            .collect()
    }

    /// Whether the script has the object with all tools, which also take one dictionary.
    pub(super) fn has_tools(&self) -> bool {
        self.globals.contains(&"tools")
    }

    /// Whether only assignments give a variable its values.
    pub(super) fn is_plain_variable(&self, key: Key<'a>) -> bool {
        self.constants.is_plain(key)
    }

    /// Whether the script may know more about a variable after a test.
    pub(super) fn is_tested(&self, key: Key<'a>) -> bool {
        self.constants.is_tested(key.1)
    }

    /// Whether a `try` around the current place handles the errors of missing keys.
    pub(super) fn handles_missing_keys(&self) -> bool {
        self.is_caught(|caught| caught.keys)
    }

    /// The names of the functions around the current place.
    pub(super) fn functions_around(&self) -> Vec<&'a str> {
        self.functions.iter().map(|function| function.name.as_str()).collect()
    }

    /// The offset of the nearest function around the current place.
    pub(super) fn function_offset(&self) -> Option<usize> {
        self.functions.last().map(|function| offset(*function))
    }

    /// The scope that binds a name.
    pub(super) fn scope_of(&self, name: &str) -> Option<usize> {
        self.resolve(name).map(|scope| scope.id)
    }

    /// The visited expression and what is around it, from the inside out.
    pub(super) fn ancestors(&self) -> impl Iterator<Item = Parent<'a>> {
        self.parents.iter().rev().copied()
    }

    fn is_caught(&self, is_expected: impl Fn(&Caught) -> bool) -> bool {
        self.caught.iter().any(is_expected)
    }

    fn within(&mut self, kind: ScopeKind, bindings: Bindings<'a>, visit: impl FnOnce(&mut Self)) {
        self.names.is_dynamic |= bindings.is_open;
        self.own.extend(bindings.assigned.iter().chain(&bindings.defined).copied());
        self.constants.open(self.next_scope, &bindings.defined, &bindings.foreign);
        self.scopes.push(PythonScope { id: self.next_scope, bindings, kind });
        self.next_scope += 1;
        // A function runs elsewhere.
        let is_function = matches!(kind, ScopeKind::Function { .. });
        let caught = if is_function { std::mem::take(&mut self.caught) } else { Vec::new() };
        visit(self);
        if is_function {
            self.caught = caught;
        }
        self.scopes.pop();
    }

    /// The scope that binds a name.
    fn resolve(&self, name: &str) -> Option<&PythonScope<'a>> {
        let innermost = self.scopes.len().saturating_sub(1);
        for (index, scope) in self.scopes.iter().enumerate().rev() {
            // Methods do not see the names of their class.
            if scope.kind == ScopeKind::Class && index != innermost {
                continue;
            }
            if scope.bindings.foreign.contains(name) {
                // Some outer scope binds it.
                return self.scopes.first();
            }
            if scope.bindings.binds(name) {
                return Some(scope);
            }
        }
        None
    }

    fn scope_id(&self) -> usize {
        self.scopes.last().map_or(0, |scope| scope.id)
    }

    fn is_sync(&self) -> bool {
        let function = self.scopes.iter().rev().find_map(|scope| match scope.kind {
            ScopeKind::Function { is_async } => Some(is_async),
            _ => None,
        });
        function == Some(false)
    }

    fn read_name(&mut self, name: &'a ExprName) {
        let text = name.id.as_str();
        let at = offset(name);
        if !name.ctx.is_load() {
            let key = (self.resolve(text).map_or(0, |scope| scope.id), text);
            self.variables.entry(key).or_default().assignments += 1;
            return;
        }
        if let Some(scope) = self.resolve(text) {
            let key = (scope.id, text);
            let is_taken = matches!(
                coroutine_use(&self.parents, self),
                CoroutineUse::UsedAsValue { is_condition: false, .. }
            );
            let variable = self.variables.entry(key).or_default();
            variable.reads += 1;
            if is_taken {
                variable.taken_at.get_or_insert(at);
            }
            self.note_name(key, at);
            return;
        }
        self.names.is_dynamic |= text == "__builtins__";
        if text.starts_with("__") {
            return;
        }
        let is_file = text == "open" && self.has_tools();
        let is_question = text == "input" && self.has_tools();
        let is_global = ALWAYS.contains(&text) || self.globals.contains(&text);
        if self.is_caught(|caught| {
            caught.names && !is_global || is_file && caught.files || is_question && caught.questions
        }) {
            self.names.mentions.insert(text.to_owned());
            return;
        }
        let role = match self.around(1) {
            Some(Parent::Expression(Expr::Call(call))) if is_name(&call.func, name) => {
                NameRole::Called
            }
            Some(Parent::Expression(Expr::Attribute(attribute))) => match self.around(2) {
                Some(Parent::Expression(Expr::Call(call))) if matches!(call.func.as_ref(), Expr::Attribute(other) if std::ptr::eq(other, attribute)) => {
                    NameRole::MethodCalled(attribute.attr.to_string())
                }
                _ => NameRole::Read,
            },
            _ => NameRole::Read,
        };
        self.names.is_dynamic |= matches!(text, "exec" | "eval" | "globals" | "locals" | "vars");
        let entry = self.names.free.entry(text.to_owned());
        entry.or_insert_with(|| UndeclaredName::new(is_global)).add(at, role);
    }

    fn read_call(&mut self, call: &'a ExprCall) {
        let (name, sort) = match call.func.as_ref() {
            Expr::Name(name) => {
                let text = name.id.as_str();
                match self.resolve(text) {
                    Some(_) => {
                        self.read_self_call(text);
                        (text, CalleeKind::Own)
                    }
                    None => (text, CalleeKind::Free),
                }
            }
            Expr::Attribute(attribute) => match attribute.value.as_ref() {
                Expr::Name(module) if module.id == "asyncio" => {
                    (attribute.attr.as_str(), CalleeKind::Asyncio)
                }
                object if self.is_tools(object) => (attribute.attr.as_str(), CalleeKind::Free),
                _ => return,
            },
            Expr::Subscript(subscript) if self.is_tools(&subscript.value) => {
                match subscript.slice.as_string_literal_expr() {
                    Some(name) => (name.value.to_str(), CalleeKind::Free),
                    None => return,
                }
            }
            _ => return,
        };
        let coroutine_use = coroutine_use(&self.parents, self);
        let (scope, is_sync) = (self.scope_id(), self.is_sync());
        self.calls.push(PythonCall { expression: call, name, sort, coroutine_use, scope, is_sync });
    }

    /// Whether an expression is the object with all tools.
    fn is_tools(&self, expression: &Expr) -> bool {
        matches!(expression, Expr::Name(name) if name.id == "tools")
            && self.globals.contains(&"tools")
            && self.resolve("tools").is_none()
    }

    /// The tool that `tools.name`, `tools["name"]` or `tools.server.name` stands for.
    pub(super) fn tool_of(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Attribute(part) if self.is_tools(&part.value) => Some(part.attr.to_string()),
            Expr::Attribute(part) => {
                // No name has more parts.
                let server = match part.value.as_ref() {
                    Expr::Attribute(inner) if self.is_tools(&inner.value) => inner.attr.as_str(),
                    _ => return None,
                };
                Some(format!("{server}_{}", part.attr))
            }
            Expr::Subscript(part) if self.is_tools(&part.value) => {
                part.slice.as_string_literal_expr().map(|name| name.value.to_str().to_owned())
            }
            _ => None,
        }
    }

    /// Records tools that the script does not call by their plain names.
    fn read_tool(&mut self, expression: &'a Expr) {
        if let Expr::Subscript(part) = expression
            && let Expr::Call(call) = part.value.as_ref()
            && let (Expr::Name(name), Expr::StringLiteral(text)) =
                (call.func.as_ref(), part.slice.as_ref())
            && name.id == "globals"
        {
            self.names.mentions.insert(text.value.to_str().to_owned());
        }
        let Some(name) = self.tool_of(expression) else { return };
        let is_callee = matches!(
            self.around(1),
            Some(Parent::Expression(Expr::Call(call))) if std::ptr::eq(&raw const *call.func, expression)
        );
        if is_callee {
            self.names.members.entry(name).or_default().push(offset(expression));
        } else {
            self.names.mentions.insert(name);
        }
    }

    /// Records the call of a name that the surrounding statement assigns to.
    fn read_self_call(&mut self, name: &'a str) {
        // Comprehensions run in place, functions run later.
        let scope = self.scopes.iter().rev().find(|scope| scope.kind != ScopeKind::Comprehension);
        let Some(scope) = scope.filter(|scope| {
            scope.bindings.assigned.contains(name) && !scope.bindings.defined.contains(name)
        }) else {
            return;
        };
        let statement = self.parents.iter().rev().find_map(|parent| match parent {
            Parent::Statement(statement) => Some(*statement),
            Parent::Expression(_) => None,
        });
        let targets = match statement {
            Some(Stmt::Assign(assign)) => assign.targets.as_slice(),
            Some(Stmt::AnnAssign(assign)) => std::slice::from_ref(assign.target.as_ref()),
            _ => return,
        };
        let target = targets.iter().find_map(|target| match target {
            Expr::Name(target) if target.id.as_str() == name => Some(offset(target)),
            _ => None,
        });
        self.self_calls.extend(target.map(|at| (scope.id, name, at)));
    }

    /// An ancestor of the visited expression, which itself is at 0.
    pub(super) fn around(&self, steps: usize) -> Option<Parent<'a>> {
        self.parents.len().checked_sub(steps + 1).and_then(|index| self.parents.get(index)).copied()
    }

    /// Whether a name refers to a built-in that the script has not redefined.
    pub(super) fn is_builtin(&self, name: &str) -> bool {
        self.resolve(name).is_none()
    }

    fn visit_defaults(&mut self, parameters: &'a Parameters) {
        for parameter in parameters.iter_non_variadic_params() {
            if let Some(default) = parameter.default() {
                self.visit_expr(default);
            }
        }
    }

    fn visit_comprehensions(
        &mut self,
        generators: &'a [Comprehension],
        elements: impl Iterator<Item = &'a Expr>,
    ) {
        // The first one is evaluated in the outer scope.
        if let Some(first) = generators.first() {
            self.visit_expr(&first.iter);
        }
        let targets = Bindings::of_targets(generators.iter().map(|generator| &generator.target));
        self.within(ScopeKind::Comprehension, targets, |reader| {
            for (index, generator) in generators.iter().enumerate() {
                let element = Binding::Element(&generator.iter, Vec::new());
                reader.bind_target(&generator.target, &element);
                generator.ifs.iter().for_each(|test| reader.constants.test(test));
                if index > 0 {
                    reader.visit_expr(&generator.iter);
                }
                generator.ifs.iter().for_each(|test| reader.visit_expr(test));
            }
            elements.for_each(|element| reader.visit_expr(element));
        });
    }

    /// Visits the branches that may run.
    fn visit_choice(&mut self, choice: &'a StmtIf) {
        let tests = std::iter::once(choice.test.as_ref())
            .chain(choice.elif_else_clauses.iter().filter_map(|clause| clause.test.as_ref()));
        let all = std::iter::once(choice.body.as_slice())
            .chain(choice.elif_else_clauses.iter().map(|clause| clause.body.as_slice()));
        let decides: Vec<_> = all.map(range).collect();
        for test in tests {
            self.uses.choices.push(Choice { test, decides: decides.clone(), is_loop: false });
        }
        let first = (Some(choice.test.as_ref()), choice.body.as_slice());
        let others = choice.elif_else_clauses.iter();
        let others = others.map(|clause| (clause.test.as_ref(), clause.body.as_slice()));
        for (test, body) in std::iter::once(first).chain(others) {
            if let Some(test) = test {
                self.constants.test(test);
                self.visit_expr(test);
            }
            let truth = test.map_or(Some(true), truth);
            if truth != Some(false) {
                self.visit_body(body);
            }
            if truth == Some(true) {
                return;
            }
        }
    }

    fn visit_parts(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Lambda(lambda) => {
                let parameters = lambda.parameters.as_deref();
                if let Some(parameters) = parameters {
                    self.visit_defaults(parameters);
                }
                let bindings = Bindings::of_function(parameters, &[]);
                let kind = ScopeKind::Function { is_async: false };
                self.within(kind, bindings, |reader| reader.visit_expr(&lambda.body));
            }
            Expr::ListComp(list) => {
                self.visit_comprehensions(&list.generators, std::iter::once(list.elt.as_ref()));
            }
            Expr::SetComp(set) => {
                self.visit_comprehensions(&set.generators, std::iter::once(set.elt.as_ref()));
            }
            Expr::Generator(each) => {
                self.visit_comprehensions(&each.generators, std::iter::once(each.elt.as_ref()));
            }
            Expr::DictComp(dict) => {
                let elements = dict.key.as_deref().into_iter().chain([dict.value.as_ref()]);
                self.visit_comprehensions(&dict.generators, elements);
            }
            Expr::Name(name) => self.read_name(name),
            Expr::Attribute(_) | Expr::Subscript(_) => {
                self.read_tool(expression);
                walk_expr(self, expression);
            }
            Expr::Call(call) => {
                self.read_call(call);
                walk_expr(self, expression);
            }
            Expr::If(choice) => {
                self.constants.test(&choice.test);
                self.visit_expr(&choice.test);
                let truth = truth(&choice.test);
                let decides = [choice.body.as_ref(), choice.orelse.as_ref()];
                let decides = decides.map(|it| it.range().to_std_range()).to_vec();
                self.uses.choices.push(Choice { test: &choice.test, decides, is_loop: false });
                if truth != Some(false) {
                    self.visit_expr(&choice.body);
                }
                if truth != Some(true) {
                    self.visit_expr(&choice.orelse);
                }
            }
            Expr::BoolOp(choice) => {
                let last = expression.end().to_usize();
                for value in &choice.values {
                    self.constants.test(value);
                    let rest = value.end().to_usize()..last;
                    let decides = std::iter::once(rest).collect();
                    self.uses.choices.push(Choice { test: value, decides, is_loop: false });
                    self.visit_expr(value);
                    // What follows is not evaluated.
                    if truth(value) == Some(choice.op == BoolOp::Or) {
                        break;
                    }
                }
            }
            _ => walk_expr(self, expression),
        }
    }
}

impl<'a> Visitor<'a> for ScriptReader<'a, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.parents.push(Parent::Statement(statement));
        match statement {
            Stmt::FunctionDef(function) => {
                function
                    .decorator_list
                    .iter()
                    .for_each(|decorator| self.visit_decorator(decorator));
                self.visit_defaults(&function.parameters);
                let bindings = Bindings::of_function(Some(&function.parameters), &function.body);
                if self.scopes.len() == 1 {
                    let is_coroutine = function.is_async && !bindings.yields;
                    // A second definition makes it unknown which one is called.
                    let definitions = if is_coroutine { 1 } else { 2 };
                    *self.coroutines.entry(function.name.as_str()).or_default() += definitions;
                }
                if let Some(scope) = self.scope_of(function.name.as_str()) {
                    self.uses.bind((scope, function.name.as_str()), Binding::Function(function));
                }
                let kind = ScopeKind::Function { is_async: function.is_async };
                self.functions.push(function);
                let outer = self.scope_of(function.name.as_str());
                self.within(kind, bindings, |reader| {
                    let scopes = outer.map(|outer| (outer, reader.scope_id()));
                    reader.uses.functions.extend(scopes.map(|it| (offset(function), it)));
                    let parameters = function.parameters.iter_non_variadic_params();
                    for (at, parameter) in parameters.enumerate() {
                        let key = (reader.scope_id(), parameter.name().as_str());
                        reader.uses.bind(key, Binding::Parameter(function, at));
                    }
                    reader.visit_body(&function.body);
                });
                self.functions.pop();
            }
            Stmt::ClassDef(class) => {
                class.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
                if let Some(arguments) = &class.arguments {
                    self.visit_arguments(arguments);
                }
                let bindings = Bindings::of_body(&class.body);
                self.within(ScopeKind::Class, bindings, |reader| reader.visit_body(&class.body));
            }
            Stmt::Import(import) => {
                // It may get names that exist everywhere.
                self.names.is_dynamic |= import.names.iter().any(|it| it.name == *"builtins");
                self.imports.extend(Import::of(import, &self.parents));
            }
            Stmt::ImportFrom(import) => {
                self.imports.push(Import::of_from(import, &self.parents));
            }
            Stmt::TypeAlias(_) => {}
            Stmt::If(choice) => self.visit_choice(choice),
            Stmt::While(each) => {
                self.constants.test(&each.test);
                let decides = vec![range(&each.body)];
                self.uses.choices.push(Choice { test: &each.test, decides, is_loop: false });
                self.visit_expr(&each.test);
                if truth(&each.test) != Some(false) {
                    self.visit_body(&each.body);
                }
                self.visit_body(&each.orelse);
            }
            Stmt::Try(attempt) => {
                self.caught.push(Caught::by(attempt));
                self.visit_body(&attempt.body);
                self.caught.pop();
                for handler in &attempt.handlers {
                    self.visit_except_handler(handler);
                }
                self.visit_body(&attempt.orelse);
                self.visit_body(&attempt.finalbody);
            }
            Stmt::Assert(assertion) => {
                self.constants.test(&assertion.test);
                walk_stmt(self, statement);
            }
            Stmt::Match(matched) => {
                self.constants.test(&matched.subject);
                walk_stmt(self, statement);
            }
            Stmt::With(with) => {
                let suppresses = with.items.iter().any(|item| is_suppress(&item.context_expr));
                let caught = Caught { keys: suppresses, ..Caught::default() };
                self.note_statement(statement);
                self.caught.push(caught);
                walk_stmt(self, statement);
                self.caught.pop();
            }
            _ => {
                self.note_statement(statement);
                walk_stmt(self, statement);
            }
        }
        self.parents.pop();
    }

    fn visit_body(&mut self, body: &'a [Stmt]) {
        for statement in body {
            self.visit_stmt(statement);
            if leaves(statement) {
                return;
            }
            // What follows may never run.
            if let Stmt::If(choice) = statement
                && let Some(last) = body.last()
            {
                let clauses = choice.elif_else_clauses.iter();
                let mut bodies = std::iter::once(choice.body.as_slice())
                    .chain(clauses.clone().map(|clause| clause.body.as_slice()));
                if bodies.any(|body| body.last().is_some_and(leaves)) {
                    let tests = std::iter::once(choice.test.as_ref())
                        .chain(clauses.filter_map(|clause| clause.test.as_ref()));
                    let rest = statement.end().to_usize()..last.end().to_usize();
                    for test in tests {
                        let decides = vec![rest.clone()];
                        self.uses.choices.push(Choice { test, decides, is_loop: false });
                    }
                }
            }
        }
    }

    // Annotations are not evaluated.
    fn visit_annotation(&mut self, _: &'a Expr) {}

    fn visit_expr(&mut self, expression: &'a Expr) {
        self.parents.push(Parent::Expression(expression));
        self.note_expression(expression);
        self.visit_parts(expression);
        self.parents.pop();
    }
}

/// Whether an expression is `suppress(…)` or `contextlib.suppress(…)`.
fn is_suppress(expression: &Expr) -> bool {
    match expression {
        Expr::Call(call) => match call.func.as_ref() {
            Expr::Name(name) => name.id == "suppress",
            Expr::Attribute(part) => part.attr.as_str() == "suppress",
            _ => false,
        },
        _ => false,
    }
}

fn is_name(callee: &Expr, name: &ExprName) -> bool {
    matches!(callee, Expr::Name(other) if std::ptr::eq(other, name))
}
