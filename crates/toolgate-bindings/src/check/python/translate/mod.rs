//! Translates a script for the analysis of its data: scopes and functions.

mod classes;
mod expressions;
mod patterns;
mod statements;

use std::collections::{HashMap, HashSet};

use ruff_python_ast::{
    Decorator, Expr, ExprLambda, Parameters, Stmt, StmtFunctionDef,
    visitor::{Visitor, walk_expr, walk_stmt},
};

use super::{
    Interpreter,
    bindings::{Bindings, global_names},
};
use crate::check::flow::ir::{
    Argument, AssignedRegions, Binding, Call, Expression, FunctionId, Parameter, Program,
    Statement, Target, Var,
};

/// The object with all tools.
const TOOLS: &str = "tools";

/// The script for the analysis, for Python's own interpreter or another one.
pub(super) fn translate(body: &[Stmt], interpreter: Interpreter) -> Program {
    let mut program = Program::new(true);
    if interpreter == Interpreter::Whole {
        program.has_tools = true;
        program.is_opaque = has_active_annotation(body);
    }
    let mut translator = Translator {
        program,
        functions: vec![0],
        scopes: Vec::new(),
        receivers: Vec::new(),
        regions: AssignedRegions::default(),
        in_shown_text: false,
    };
    let mut bindings = Bindings::of_body(body);
    bindings.defined.extend(global_names(body));
    translator.open(&bindings, ScopeKind::Function);
    let body = translator.block(body);
    translator.program.functions[0].body = body;
    translator.program
}

/// Decorators that do not change what a function does with data.
const TRANSPARENT: &[&str] =
    &["wraps", "lru_cache", "cache", "contextmanager", "asynccontextmanager"];

struct Translator<'a> {
    program: Program,
    /// The functions around the current place.
    functions: Vec<FunctionId>,
    scopes: Vec<Scope<'a>>,
    /// The first parameters of the methods around the current place.
    receivers: Vec<Var>,
    regions: AssignedRegions,
    /// Whether the script shows the text of the expression: `f"{expression=}"`.
    in_shown_text: bool,
}

/// Whether a script does something in an annotation, which the translation leaves out.
fn has_active_annotation(body: &[Stmt]) -> bool {
    struct Annotations(bool);
    struct Activity(bool);
    impl<'a> Visitor<'a> for Activity {
        fn visit_expr(&mut self, expression: &'a Expr) {
            self.0 |= !matches!(
                expression,
                Expr::Name(_)
                    | Expr::Attribute(_)
                    | Expr::Subscript(_)
                    | Expr::BinOp(_)
                    | Expr::Tuple(_)
                    | Expr::List(_)
                    | Expr::Starred(_)
                    | Expr::StringLiteral(_)
                    | Expr::NumberLiteral(_)
                    | Expr::BooleanLiteral(_)
                    | Expr::NoneLiteral(_)
                    | Expr::EllipsisLiteral(_)
            );
            walk_expr(self, expression);
        }
    }
    impl<'a> Visitor<'a> for Annotations {
        fn visit_annotation(&mut self, annotation: &'a Expr) {
            let mut activity = Activity(false);
            activity.visit_expr(annotation);
            self.0 |= activity.0;
        }
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            if let Stmt::TypeAlias(alias) = statement {
                self.visit_annotation(&alias.value);
            }
            walk_stmt(self, statement);
        }
    }
    let mut annotations = Annotations(false);
    annotations.visit_body(body);
    annotations.0
}

struct Scope<'a> {
    kind: ScopeKind,
    names: HashMap<&'a str, Var>,
    foreign: HashSet<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    Function,
    Class,
    Comprehension,
}

impl<'a> Translator<'a> {
    fn function_id(&self) -> FunctionId {
        self.functions.last().copied().unwrap_or(0)
    }

    fn open(&mut self, bindings: &Bindings<'a>, kind: ScopeKind) {
        self.program.is_opaque |= bindings.is_open;
        let owner = self.function_id();
        let own = bindings.assigned.iter().chain(&bindings.defined);
        let own = own.filter(|name| !bindings.foreign.contains(**name));
        let mut own: Vec<&'a str> = own.copied().collect();
        own.sort_unstable();
        let names = own.into_iter().map(|name| (name, self.program.variable(name, owner)));
        let names = names.collect();
        self.scopes.push(Scope { kind, names, foreign: bindings.foreign.clone() });
    }

    fn close(&mut self) {
        self.scopes.pop();
    }

    /// The variable of a name, which the current function uses.
    fn resolve(&mut self, name: &str) -> Option<Var> {
        let mut is_inner = false;
        let mut found = None;
        let mut is_foreign = false;
        for scope in self.scopes.iter().rev() {
            match scope.kind {
                ScopeKind::Class if is_inner => continue,
                ScopeKind::Function => is_inner = true,
                ScopeKind::Class | ScopeKind::Comprehension => {}
            }
            is_foreign |= scope.foreign.contains(name);
            if let Some(variable) = scope.names.get(name) {
                // What a class defines is a field of it.
                self.program.is_opaque |= scope.kind == ScopeKind::Class;
                if found.is_none() {
                    found = Some(*variable);
                } else if is_foreign {
                    // It is `global` or `nonlocal`, and both exist.
                    self.program.is_opaque = true;
                }
                if !is_foreign {
                    break;
                }
            }
        }
        let function = self.function_id();
        if let Some(variable) = found {
            let known = &mut self.program.variables[variable as usize];
            known.is_captured |= known.owner != function;
        }
        found
    }

    fn name(&mut self, name: &str) -> Expression {
        if let Some(variable) = self.resolve(name) {
            Expression::Variable(variable)
        } else {
            // Only parts of this object are followed.
            self.program.is_opaque |= name == TOOLS && self.program.has_tools;
            Expression::Free(self.program.names.intern(name))
        }
    }

    /// An expression whose part is used.
    fn whole(&mut self, expression: &'a Expr) -> Expression {
        match expression {
            Expr::Name(name) if name.id == TOOLS && self.resolve(TOOLS).is_none() => {
                Expression::Free(self.program.names.intern(TOOLS))
            }
            other => self.expression(other),
        }
    }

    /// A name as a target.
    fn assigned(&mut self, name: &str) -> Target {
        match self.resolve(name) {
            Some(variable) => self.assigned_variable(variable),
            None => Target::Free(self.program.names.intern(name)),
        }
    }

    fn assigned_variable(&mut self, variable: Var) -> Target {
        self.regions.assign(variable)
    }

    /// A variable that the script does not have.
    fn temporary(&mut self) -> Var {
        let owner = self.function_id();
        self.program.variable("", owner)
    }

    fn is_in_comprehension(&self) -> bool {
        self.scopes.last().is_some_and(|scope| scope.kind == ScopeKind::Comprehension)
    }

    /// Translates a part, and returns the variables that it assigns.
    fn region<R>(&mut self, translate: impl FnOnce(&mut Self) -> R) -> (R, Vec<Var>) {
        self.regions.open();
        let result = translate(self);
        (result, self.regions.close())
    }

    fn function(&mut self, function: &'a StmtFunctionDef, binding: Binding) -> FunctionId {
        let bindings = Bindings::of_function(Some(&function.parameters), &function.body);
        let id = self.program.function();
        let known = &mut self.program.functions[id as usize];
        known.is_async = function.is_async;
        known.is_generator = bindings.yields;
        known.binding = binding;
        let first = function.parameters.iter_non_variadic_params().next();
        let first = first.filter(|_| binding != Binding::None).map(|it| it.name().as_str());
        self.within(id, Some(&function.parameters), &bindings, first, |this| {
            this.block(&function.body)
        });
        id
    }

    fn lambda(&mut self, lambda: &'a ExprLambda) -> FunctionId {
        let parameters = lambda.parameters.as_deref();
        let bindings = Bindings::of_function(parameters, &[]);
        let id = self.program.function();
        self.within(id, parameters, &bindings, None, |this| {
            vec![Statement::Return(Some(this.expression(&lambda.body)))]
        });
        id
    }

    fn within(
        &mut self,
        id: FunctionId,
        parameters: Option<&'a Parameters>,
        bindings: &Bindings<'a>,
        receiver: Option<&'a str>,
        body: impl FnOnce(&mut Self) -> Vec<Statement>,
    ) {
        // Defaults are evaluated once, where the function is made.
        let mut defaults = Vec::new();
        for parameter in parameters.into_iter().flat_map(Parameters::iter_non_variadic_params) {
            defaults.push(parameter.default().map(|default| self.expression(default)));
        }
        let regions = std::mem::take(&mut self.regions);
        self.functions.push(id);
        self.open(bindings, ScopeKind::Function);
        let receiver = receiver.and_then(|name| self.resolve(name));
        self.receivers.extend(receiver);
        if let Some(parameters) = parameters {
            for (parameter, default) in parameters.iter_non_variadic_params().zip(defaults) {
                let text = parameter.name().as_str();
                let name = self.program.names.intern(text);
                let target = self.assigned(text);
                let parameter = Parameter { name, target, default };
                self.program.functions[id as usize].parameters.push(parameter);
            }
            let rest = parameters.vararg.as_ref().map(|rest| self.assigned(rest.name.as_str()));
            let keywords = parameters.kwarg.as_ref().map(|it| self.assigned(it.name.as_str()));
            self.program.functions[id as usize].rest = rest;
            self.program.functions[id as usize].keyword_rest = keywords;
        }
        let body = body(self);
        self.program.functions[id as usize].body = body;
        if receiver.is_some() {
            self.receivers.pop();
        }
        self.close();
        self.functions.pop();
        self.regions = regions;
    }

    /// Applies decorators to a function.
    fn decorated(&mut self, value: Expression, decorators: &'a [Decorator]) -> Expression {
        let mut value = value;
        for decorator in decorators.iter().rev() {
            if TRANSPARENT.contains(&last_name(&decorator.expression)) {
                continue;
            }
            let callee = self.expression(&decorator.expression);
            let offset = u32::from(decorator.range.start());
            let arguments = vec![Argument::Position(value)];
            let call = Call { callee, arguments, is_new: false, offset, name_range: None };
            value = Expression::Call(Box::new(call));
        }
        value
    }
}

/// The last name of a decorator: `cache` of `@functools.cache()`.
fn last_name(decorator: &Expr) -> &str {
    match decorator {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        Expr::Call(call) => last_name(&call.func),
        _ => "",
    }
}
