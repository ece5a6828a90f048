//! Translates a script for the analysis of its data: functions and statements.

mod classes;
mod expressions;
mod patterns;

use oxc_ast::ast::{
    ArrowFunctionExpression, BindingIdentifier, ForStatementInit, ForStatementLeft,
    FormalParameters, Function, FunctionBody as Body, Program as Syntax, Statement as Syntaxes,
    VariableDeclaration, VariableDeclarationKind,
};
use oxc_semantic::SymbolId;
use oxc_syntax::scope::ScopeId;
use rustc_hash::FxHashMap;

use super::ParsedScript;
use crate::check::flow::ir::{
    AssignedRegions, Expression, FunctionId, Key, Loop, LoopHead, Parameter, Program, Statement,
    Target, Try, Var, name,
};

/// The script for the analysis.
pub(super) fn translate(syntax: &Syntax<'_>, script: &ParsedScript<'_, '_>) -> Program {
    let mut translator = Translator {
        script,
        program: Program::new(false),
        variables: FxHashMap::default(),
        functions: vec![(0, None)],
        regions: AssignedRegions::default(),
    };
    let body = translator.statements(&syntax.body);
    translator.program.functions[0].body = body;
    translator.program
}

struct Translator<'s, 'a> {
    script: &'s ParsedScript<'s, 'a>,
    program: Program,
    variables: FxHashMap<SymbolId, Var>,
    /// The functions around the current place, with their scopes.
    functions: Vec<(FunctionId, Option<ScopeId>)>,
    regions: AssignedRegions,
}

impl Translator<'_, '_> {
    fn function_id(&self) -> FunctionId {
        self.functions.last().map_or(0, |(function, _)| *function)
    }

    /// The variable of a symbol, which the current function uses.
    fn variable(&mut self, symbol: SymbolId) -> Var {
        let variable = if let Some(variable) = self.variables.get(&symbol) {
            *variable
        } else {
            let scoping = self.script.semantic.scoping();
            let scope = scoping.symbol_scope_id(symbol);
            let owner = scoping.scope_ancestors(scope).find_map(|scope| {
                let owner = self.functions.iter().find(|(_, own)| *own == Some(scope));
                owner.map(|(function, _)| *function)
            });
            let variable = self.program.variable(scoping.symbol_name(symbol), owner.unwrap_or(0));
            self.variables.insert(symbol, variable);
            variable
        };
        let function = self.function_id();
        let known = &mut self.program.variables[variable as usize];
        known.is_captured |= known.owner != function;
        variable
    }

    /// The variable as a target.
    fn assigned(&mut self, symbol: SymbolId) -> Target {
        let variable = self.variable(symbol);
        self.regions.assign(variable)
    }

    fn declared(&mut self, identifier: &BindingIdentifier<'_>) -> Target {
        identifier.symbol_id.get().map_or(Target::Nothing, |symbol| self.assigned(symbol))
    }

    /// Translates a part, and returns the variables that it assigns.
    fn region<R>(&mut self, translate: impl FnOnce(&mut Self) -> R) -> (R, Vec<Var>) {
        self.regions.open();
        let result = translate(self);
        (result, self.regions.close())
    }

    /// Translates a function, whose body `body` makes.
    fn within(
        &mut self,
        scope: Option<ScopeId>,
        body: impl FnOnce(&mut Self, FunctionId),
    ) -> FunctionId {
        let function = self.program.function();
        let regions = std::mem::take(&mut self.regions);
        self.functions.push((function, scope));
        body(self, function);
        self.functions.pop();
        self.regions = regions;
        function
    }

    fn function(&mut self, function: &Function<'_>) -> FunctionId {
        self.within(function.scope_id.get(), |this, id| {
            let known = &mut this.program.functions[id as usize];
            known.is_generator = function.generator;
            known.is_async = function.r#async;
            let mut before = this.parameters(id, &function.params);
            if let Some(body) = &function.body {
                before.extend(this.body(body));
            }
            this.program.functions[id as usize].body = before;
        })
    }

    fn arrow(&mut self, function: &ArrowFunctionExpression<'_>) -> FunctionId {
        self.within(function.scope_id.get(), |this, id| {
            let known = &mut this.program.functions[id as usize];
            known.is_arrow = true;
            known.is_async = function.r#async;
            let mut before = this.parameters(id, &function.params);
            match function.body.as_expression() {
                Some(value) => {
                    let value = this.expression(value);
                    before.push(Statement::Return(Some(value)));
                }
                None => {
                    if let oxc_ast::ast::ArrowFunctionBody::FunctionBody(body) = &function.body {
                        before.extend(this.body(body));
                    }
                }
            }
            this.program.functions[id as usize].body = before;
        })
    }

    /// Translates parameters. Returns the assignments of those that are also properties.
    fn parameters(&mut self, id: FunctionId, given: &FormalParameters<'_>) -> Vec<Statement> {
        let mut properties = Vec::new();
        for parameter in &given.items {
            let target = self.pattern(&parameter.pattern);
            if let (Target::Variable(variable), true) =
                (&target, parameter.accessibility.is_some() || parameter.readonly)
            {
                let name = self.program.variables[*variable as usize].name;
                let property = Target::Member(Box::new(Expression::This), Key::Name(name));
                let value = Expression::Variable(*variable);
                let set = Expression::Assign(Box::new(property), Box::new(value));
                properties.push(Statement::Expression(set));
            }
            let default = parameter.initializer.as_ref().map(|value| self.expression(value));
            let parameter = Parameter { name: name::NONE, target, default };
            self.program.functions[id as usize].parameters.push(parameter);
        }
        if let Some(rest) = &given.rest {
            let target = self.pattern(&rest.rest.argument);
            self.program.functions[id as usize].rest = Some(target);
        }
        properties
    }

    fn body(&mut self, body: &Body<'_>) -> Vec<Statement> {
        self.statements(&body.statements)
    }

    fn statements(&mut self, statements: &[Syntaxes<'_>]) -> Vec<Statement> {
        let mut translated = Vec::with_capacity(statements.len());
        // Functions exist from the start.
        for statement in statements {
            if let Syntaxes::FunctionDeclaration(function) = statement
                && function.body.is_some()
                && let Some(id) = &function.id
            {
                let target = self.declared(id);
                let value = Expression::Function(self.function(function));
                let set = Expression::Assign(Box::new(target), Box::new(value));
                translated.push(Statement::Expression(set));
            }
        }
        for statement in statements {
            self.statement(statement, &mut translated);
        }
        translated
    }

    fn one(&mut self, statement: &Syntaxes<'_>) -> Vec<Statement> {
        let mut translated = Vec::new();
        self.statement(statement, &mut translated);
        translated
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each construct; parts of it would not be clearer"
    )]
    fn statement(&mut self, statement: &Syntaxes<'_>, into: &mut Vec<Statement>) {
        match statement {
            Syntaxes::BlockStatement(block) => {
                into.push(Statement::Block(self.statements(&block.body)));
            }
            Syntaxes::BreakStatement(_) | Syntaxes::ContinueStatement(_) => {
                into.push(Statement::Leave);
            }
            Syntaxes::ExpressionStatement(statement) => {
                into.push(Statement::Expression(self.expression(&statement.expression)));
            }
            Syntaxes::IfStatement(choice) => {
                let test = self.expression(&choice.test);
                let then = self.one(&choice.consequent);
                let otherwise = choice.alternate.as_ref().map(|other| self.one(other));
                into.push(Statement::If { test, then, otherwise: otherwise.unwrap_or_default() });
            }
            Syntaxes::DoWhileStatement(each) => {
                let test = Some(&each.test);
                let each = self.repeat(|this| this.while_loop(test, None, &each.body));
                into.push(each);
            }
            Syntaxes::WhileStatement(each) => {
                let each = self.repeat(|this| this.while_loop(Some(&each.test), None, &each.body));
                into.push(each);
            }
            Syntaxes::ForStatement(each) => {
                match &each.init {
                    Some(ForStatementInit::VariableDeclaration(declaration)) => {
                        self.declaration(declaration, into);
                    }
                    Some(init) => {
                        let init = init.as_expression().map(|init| self.expression(init));
                        into.extend(init.map(Statement::Expression));
                    }
                    None => {}
                }
                let (test, update) = (each.test.as_ref(), each.update.as_ref());
                let each = self.repeat(|this| this.while_loop(test, update, &each.body));
                into.push(each);
            }
            Syntaxes::ForInStatement(each) => {
                let items = self.expression(&each.right);
                let each = self.repeat(|this| this.each_loop(&each.left, items, true, &each.body));
                into.push(each);
            }
            Syntaxes::ForOfStatement(each) => {
                let items = self.expression(&each.right);
                let each = self.repeat(|this| this.each_loop(&each.left, items, false, &each.body));
                into.push(each);
            }
            Syntaxes::LabeledStatement(labelled) => {
                let (body, assigned) = self.region(|this| this.one(&labelled.body));
                into.push(Statement::Labelled { body, assigned });
            }
            Syntaxes::ReturnStatement(returned) => {
                let value = returned.argument.as_ref().map(|value| self.expression(value));
                into.push(Statement::Return(value));
            }
            Syntaxes::ThrowStatement(thrown) => {
                into.push(Statement::Throw(vec![self.expression(&thrown.argument)]));
            }
            Syntaxes::SwitchStatement(switch) => {
                let subject = self.expression(&switch.discriminant);
                let (cases, assigned) = self.region(|this| {
                    let case = |case: &oxc_ast::ast::SwitchCase<'_>| {
                        let test = case.test.as_ref().map(|test| this.expression(test));
                        (test, this.statements(&case.consequent))
                    };
                    switch.cases.iter().map(case).collect()
                });
                into.push(Statement::Switch { subject, cases, assigned });
            }
            Syntaxes::TryStatement(attempt) => {
                let (mut attempt, assigned) = self.region(|this| {
                    let body = this.statements(&attempt.block.body);
                    let handlers = attempt.handler.iter().map(|handler| {
                        let target = handler.param.as_ref();
                        let target = target.map(|it| this.pattern(&it.pattern));
                        let body = this.statements(&handler.body.body);
                        (target.unwrap_or(Target::Nothing), body)
                    });
                    let handlers = handlers.collect();
                    let finally = attempt.finalizer.as_ref();
                    let finally = finally.map(|block| this.statements(&block.body));
                    let (otherwise, finally) = (Vec::new(), finally.unwrap_or_default());
                    Try { body, handlers, otherwise, finally, assigned: Vec::new() }
                });
                attempt.assigned = assigned;
                into.push(Statement::Try(Box::new(attempt)));
            }
            Syntaxes::VariableDeclaration(declaration) => self.declaration(declaration, into),
            Syntaxes::ClassDeclaration(class) if !class.declare => {
                into.push(Statement::Expression(self.class(class)));
            }
            Syntaxes::TSEnumDeclaration(declared) if !declared.declare => {
                into.push(Statement::Expression(self.enumeration(declared)));
            }
            Syntaxes::TSNamespaceDeclaration(namespace) => {
                self.program.is_opaque |= !namespace.declare;
            }
            Syntaxes::WithStatement(_) => self.program.is_opaque = true,
            // Functions come first, types and modules have no effect.
            _ => {}
        }
    }

    fn repeat(&mut self, each: impl FnOnce(&mut Self) -> Loop) -> Statement {
        let (mut each, assigned) = self.region(each);
        each.assigned = assigned;
        Statement::Loop(Box::new(each))
    }

    fn while_loop(
        &mut self,
        test: Option<&oxc_ast::ast::Expression<'_>>,
        update: Option<&oxc_ast::ast::Expression<'_>>,
        body: &Syntaxes<'_>,
    ) -> Loop {
        let test = test.map(|test| self.expression(test));
        let body = self.one(body);
        let update = update.map(|update| self.expression(update));
        let (otherwise, assigned) = (Vec::new(), Vec::new());
        Loop { head: LoopHead::While(test), body, update, otherwise, assigned }
    }

    fn each_loop(
        &mut self,
        left: &ForStatementLeft<'_>,
        items: Expression,
        are_keys: bool,
        body: &Syntaxes<'_>,
    ) -> Loop {
        let target = match left {
            ForStatementLeft::VariableDeclaration(declaration) => {
                let declared = declaration.declarations.first();
                declared.map_or(Target::Nothing, |declared| self.pattern(&declared.id))
            }
            other => other
                .as_assignment_target()
                .map_or(Target::Nothing, |target| self.assignment_target(target)),
        };
        let head = LoopHead::Each { target, items, are_keys };
        let body = self.one(body);
        Loop { head, body, update: None, otherwise: Vec::new(), assigned: Vec::new() }
    }

    fn declaration(&mut self, declaration: &VariableDeclaration<'_>, into: &mut Vec<Statement>) {
        if declaration.declare {
            return;
        }
        for declarator in &declaration.declarations {
            let value = match &declarator.init {
                Some(value) => self.expression(value),
                None if declaration.kind == VariableDeclarationKind::Var => continue,
                None => Expression::Literal,
            };
            let target = self.pattern(&declarator.id);
            let set = Expression::Assign(Box::new(target), Box::new(value));
            into.push(Statement::Expression(set));
        }
    }
}
