//! How a script binds and uses its names, as far as that decides what their values are.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use ruff_python_ast::{
    CmpOp, Expr, ExprCall, ExprDictComp, ExprGenerator, ExprListComp, ExprSetComp, Identifier,
    Operator, Stmt, StmtFunctionDef,
};
use ruff_text_size::Ranged as _;

use super::{
    offset,
    reader::{Parent, ScriptReader},
};

/// A variable: the scope that binds it, and its name.
pub(super) type Key<'a> = (usize, &'a str);

/// What gives a name its value.
#[derive(Clone)]
pub(super) enum Binding<'a> {
    /// A value, or the item of it at these positions.
    Value(&'a Expr, Vec<usize>),
    /// An element of what a loop goes over, or the item of the element at these positions.
    Element(&'a Expr, Vec<usize>),
    Function(&'a StmtFunctionDef),
    /// A parameter of a function of the script, with its position.
    Parameter(&'a StmtFunctionDef, usize),
    /// Something else.
    Other,
}

/// A key of a value that the script reads: `value["key"]` or `value.key`.
pub(super) struct KeyRead<'a> {
    pub(super) value: &'a Expr,
    pub(super) key: &'a str,
    pub(super) offset: usize,
    pub(super) is_attribute: bool,
    /// Whether the script uses it as data, and not as a method.
    pub(super) is_data: bool,
    /// Whether a `try` around it handles the error.
    pub(super) is_tried: bool,
}

/// A test with the parts of the script that it decides about.
pub(super) struct Choice<'a> {
    pub(super) test: &'a Expr,
    pub(super) decides: Vec<Range<usize>>,
    /// Whether the parts run for each element of the test.
    pub(super) is_loop: bool,
}

/// The uses of names in a script.
#[derive(Default)]
pub(super) struct Uses<'a> {
    pub(super) bindings: HashMap<Key<'a>, Vec<Binding<'a>>>,
    /// The scope that binds each name that is read, by the offset of the name.
    pub(super) resolved: HashMap<usize, usize>,
    /// The scope that binds each function, and the scope of its body, by the offset of the function.
    pub(super) functions: HashMap<usize, (usize, usize)>,
    /// The calls of the script's own functions.
    pub(super) calls: HashMap<Key<'a>, Vec<&'a ExprCall>>,
    pub(super) reads: Vec<KeyRead<'a>>,
    pub(super) choices: Vec<Choice<'a>>,
    /// The values that each function returns, by the offset of the function.
    pub(super) returned: HashMap<usize, Vec<&'a Expr>>,
    /// Variables whose values something else may change.
    pub(super) shared: HashSet<Key<'a>>,
    /// Which variable gets the value of which other one.
    aliases: Vec<(Key<'a>, Key<'a>)>,
    /// Variables that are given to functions of the script.
    given: Vec<(Key<'a>, &'a ExprCall, Key<'a>)>,
    /// Variables of which a test may tell the type.
    pub(super) narrowed: HashSet<Key<'a>>,
    /// What the script changes: the changed value, and the key if that is known.
    pub(super) stores: Vec<(&'a Expr, Option<&'a str>)>,
    /// Lists that the script adds to.
    pub(super) extended: Vec<&'a Expr>,
    /// Whether the script takes something out of lists or dictionaries. Any of them may be meant: elements have no names.
    pub(super) removes: bool,
    /// What the script looks for keys in that it computes: `key in value`.
    pub(super) looked_into: Vec<&'a Expr>,
    /// Keys that the script tests for, or asks for with a default.
    pub(super) expected: HashSet<&'a str>,
    /// Functions that a `try` calls, which handles errors of missing keys.
    tried_names: HashSet<&'a str>,
    /// The names that each function mentions, by its own name.
    mentioned: HashMap<&'a str, HashSet<&'a str>>,
    /// The reads in functions, with the names of the functions around them.
    read_in: Vec<(usize, Vec<&'a str>)>,
}

/// Functions that change nothing that they are given.
#[rustfmt::skip]
const KEEP: &[&str] = &[
    "all", "any", "bool", "dict", "enumerate", "float", "frozenset", "int", "isinstance", "len",
    "list", "max", "min", "print", "range", "repr", "reversed", "round", "set", "sorted", "str",
    "sum", "tuple", "type", "zip",
];

/// Methods and functions that take something out of what they are called on or given, or put it there.
#[rustfmt::skip]
const REMOVING: &[&str] = &[
    "__delitem__", "__ior__", "__setitem__", "clear", "delitem", "ior", "pop", "popitem", "remove", "setitem",
];

/// Methods that change nothing.
#[rustfmt::skip]
const KEEPING_METHODS: &[&str] = &[
    "copy", "count", "endswith", "format", "get", "index", "items", "join", "keys", "lower",
    "replace", "split", "splitlines", "startswith", "strip", "title", "upper", "values",
];

impl<'a> Uses<'a> {
    pub(super) fn bind(&mut self, key: Key<'a>, binding: Binding<'a>) {
        self.bindings.entry(key).or_default().push(binding);
    }

    /// Follows what was noted to its end, when the whole script has been read.
    pub(super) fn finish(&mut self) {
        let parameter = |call: &ExprCall, function: &'a StmtFunctionDef, value: Key<'a>| {
            let all: Vec<&str> = function
                .parameters
                .iter_non_variadic_params()
                .map(|it| it.parameter.name.as_str())
                .collect();
            let is_it = |it: &Expr| matches!(it, Expr::Name(name) if name.id.as_str() == value.1);
            let at = call.arguments.args.iter().position(is_it);
            let named = call.arguments.keywords.iter().find(|it| is_it(&it.value));
            match (at, named) {
                (Some(at), _) => all.get(at).copied(),
                (None, Some(named)) => {
                    let name = named.arg.as_ref()?.as_str();
                    all.iter().copied().find(|it| *it == name)
                }
                _ => None,
            }
        };
        for (value, call, callee) in std::mem::take(&mut self.given) {
            let target = match self.bindings.get(&callee).map(Vec::as_slice) {
                Some([Binding::Function(function)]) => {
                    let scope = self.functions.get(&offset(*function)).map(|(_, inner)| *inner);
                    scope.zip(parameter(call, function, value))
                }
                _ => None,
            };
            match target {
                Some(target) => self.aliases.push((value, target)),
                None => {
                    self.shared.insert(value);
                }
            }
        }
        // What one name changes, the other one sees.
        let mut others: HashMap<Key<'a>, Vec<Key<'a>>> = HashMap::new();
        for (from, to) in &self.aliases {
            others.entry(*from).or_default().push(*to);
            others.entry(*to).or_default().push(*from);
        }
        reach(&mut self.shared, &others);
        let mentioned = self.mentioned.iter();
        let mentioned: HashMap<&str, Vec<&str>> =
            mentioned.map(|(name, all)| (*name, all.iter().copied().collect())).collect();
        reach(&mut self.tried_names, &mentioned);
        for (at, functions) in &self.read_in {
            if functions.iter().any(|name| self.tried_names.contains(name))
                && let Some(read) = self.reads.get_mut(*at)
            {
                read.is_tried = true;
            }
        }
    }
}

impl<'a> ScriptReader<'a, '_> {
    /// Binds the names of a target.
    pub(super) fn bind_target(&mut self, target: &'a Expr, binding: &Binding<'a>) {
        match target {
            Expr::Name(name) => {
                if let Some(scope) = self.scope_of(name.id.as_str()) {
                    self.uses.bind((scope, name.id.as_str()), binding.clone());
                }
            }
            Expr::Tuple(_) | Expr::List(_) => {
                let items = match target {
                    Expr::Tuple(tuple) => &tuple.elts,
                    Expr::List(list) => &list.elts,
                    _ => return,
                };
                let has_rest = items.iter().any(Expr::is_starred_expr);
                for (at, item) in items.iter().enumerate() {
                    let inner = match binding {
                        _ if has_rest => Binding::Other,
                        Binding::Value(value, path) => {
                            Binding::Value(value, path.iter().copied().chain([at]).collect())
                        }
                        Binding::Element(value, path) => {
                            Binding::Element(value, path.iter().copied().chain([at]).collect())
                        }
                        _ => Binding::Other,
                    };
                    self.bind_target(item, &inner);
                }
            }
            Expr::Starred(starred) => self.bind_target(&starred.value, &Binding::Other),
            Expr::Subscript(part) => {
                let key = part.slice.as_string_literal_expr().map(|key| key.value.to_str());
                self.uses.stores.push((&part.value, key));
            }
            _ => {}
        }
    }

    /// Notes the statements that bind names or change values.
    pub(super) fn note_statement(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    self.bind_target(target, &Binding::Value(&assign.value, Vec::new()));
                }
                // All of them have the same value.
                if let [_, _, ..] = assign.targets.as_slice() {
                    let names = assign.targets.iter().filter_map(|it| self.root(it));
                    let names: Vec<Key<'a>> = names.collect();
                    self.uses.shared.extend(names);
                }
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.bind_target(&assign.target, &Binding::Value(value, Vec::new()));
                }
            }
            Stmt::AugAssign(assign) => {
                self.bind_target(&assign.target, &Binding::Other);
                self.uses.removes |= assign.op == Operator::BitOr;
                if !assign.target.is_subscript_expr() {
                    self.uses.extended.push(&assign.target);
                }
            }
            Stmt::For(each) => {
                self.bind_target(&each.target, &Binding::Element(&each.iter, Vec::new()));
                let decides = vec![range(each.body.as_slice())];
                self.uses.choices.push(Choice { test: &each.iter, decides, is_loop: true });
            }
            Stmt::With(with) => {
                for target in with.items.iter().filter_map(|item| item.optional_vars.as_deref()) {
                    self.bind_target(target, &Binding::Other);
                }
            }
            Stmt::Delete(delete) => {
                delete.targets.iter().for_each(|it| self.bind_target(it, &Binding::Other));
                self.uses.removes |= delete.targets.iter().any(Expr::is_subscript_expr);
            }
            Stmt::Return(returned) => {
                let function = self.function_offset();
                if let (Some(value), Some(at)) = (&returned.value, function) {
                    self.uses.returned.entry(at).or_default().push(value);
                }
            }
            _ => {}
        }
    }

    /// Notes how an expression uses values.
    pub(super) fn note_expression(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Named(named) => {
                self.bind_target(&named.target, &Binding::Value(&named.value, Vec::new()));
            }
            Expr::Compare(compare) => {
                let lefts = std::iter::once(compare.left.as_ref()).chain(&compare.comparators);
                for ((op, left), right) in compare.ops.iter().zip(lefts).zip(&compare.comparators) {
                    if !matches!(op, CmpOp::In | CmpOp::NotIn) {
                        continue;
                    }
                    match left {
                        Expr::StringLiteral(text) => {
                            self.uses.expected.insert(text.value.to_str());
                        }
                        _ => self.uses.looked_into.push(right),
                    }
                }
            }
            Expr::Subscript(part) if part.ctx.is_load() => {
                if let Some(key) = part.slice.as_string_literal_expr() {
                    self.note_read(&part.value, key.value.to_str(), offset(key), None);
                }
            }
            Expr::Attribute(part) if part.ctx.is_load() => {
                let attribute = Some(expression);
                self.note_read(&part.value, part.attr.as_str(), offset(&part.attr), attribute);
            }
            Expr::Call(call) => self.note_call(call),
            _ => {}
        }
    }

    /// Notes a read: of an attribute, which is given whole, or of a key.
    fn note_read(
        &mut self,
        value: &'a Expr,
        key: &'a str,
        offset: usize,
        attribute: Option<&'a Expr>,
    ) {
        let is_attribute = attribute.is_some();
        let is_data = attribute.is_none_or(|attribute| self.is_data(attribute));
        let is_tried = self.handles_missing_keys();
        self.uses.read_in.push((self.uses.reads.len(), self.functions_around()));
        self.uses.reads.push(KeyRead { value, key, offset, is_attribute, is_data, is_tried });
    }

    /// Whether the visited expression is subscripted, gone through or counted, which a method cannot be.
    fn is_data(&self, expression: &Expr) -> bool {
        const TAKE_DATA: [&str; 10] = [
            "enumerate",
            "iter",
            "len",
            "list",
            "max",
            "min",
            "reversed",
            "set",
            "sorted",
            "tuple",
        ];
        let is_it = |other: &Expr| std::ptr::eq(other, expression);
        match self.around(1) {
            Some(Parent::Statement(Stmt::For(each))) => is_it(&each.iter),
            Some(Parent::Expression(around)) => match around {
                Expr::Subscript(part) => is_it(&part.value),
                Expr::ListComp(ExprListComp { generators, .. })
                | Expr::SetComp(ExprSetComp { generators, .. })
                | Expr::DictComp(ExprDictComp { generators, .. })
                | Expr::Generator(ExprGenerator { generators, .. }) => {
                    generators.iter().any(|each| is_it(&each.iter))
                }
                Expr::Call(call) => match call.func.as_ref() {
                    Expr::Name(name) => {
                        TAKE_DATA.contains(&name.id.as_str())
                            && self.is_builtin(&name.id)
                            && call.arguments.args.first().is_some_and(is_it)
                    }
                    _ => false,
                },
                _ => false,
            },
            _ => false,
        }
    }

    fn note_call(&mut self, call: &'a ExprCall) {
        match call.func.as_ref() {
            Expr::Name(name) => {
                let text = name.id.as_str();
                if let Some(scope) = self.scope_of(text) {
                    self.uses.calls.entry((scope, text)).or_default().push(call);
                } else if matches!(text, "isinstance" | "hasattr" | "type" | "callable")
                    && let Some(key) = call.arguments.args.first().and_then(|it| self.root(it))
                {
                    self.uses.narrowed.insert(key);
                } else if text == "setattr" {
                    self.names.is_dynamic = true;
                }
            }
            Expr::Attribute(method) => {
                let first = call.arguments.args.first();
                let base = method.value.as_ref();
                self.uses.removes |= REMOVING.contains(&method.attr.as_str());
                match method.attr.as_str() {
                    "get" | "pop" => {
                        let key = first.and_then(Expr::as_string_literal_expr);
                        self.uses.expected.extend(key.map(|key| key.value.to_str()));
                    }
                    // Of the module `operator`.
                    "setitem" => self.uses.stores.extend(first.map(|first| (first, None))),
                    "setdefault" | "__setitem__" => {
                        let key = first.and_then(Expr::as_string_literal_expr);
                        self.uses.stores.push((base, key.map(|key| key.value.to_str())));
                    }
                    "update" => {
                        let mut keys: Vec<Option<&'a str>> = Vec::new();
                        for keyword in &call.arguments.keywords {
                            keys.push(keyword.arg.as_ref().map(Identifier::as_str));
                        }
                        match first {
                            Some(Expr::Dict(dict)) => keys.extend(dict.items.iter().map(|item| {
                                let key = item.key.as_ref()?.as_string_literal_expr()?;
                                Some(key.value.to_str())
                            })),
                            Some(_) => keys.push(None),
                            None => {}
                        }
                        self.uses.stores.extend(keys.into_iter().map(|key| (base, key)));
                    }
                    "append" | "extend" | "insert" => self.uses.extended.push(base),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Notes the use of a name whose value may be a list or a dictionary.
    pub(super) fn note_name(&mut self, key: Key<'a>, at: usize) {
        self.uses.resolved.insert(at, key.0);
        for name in self.functions_around() {
            self.uses.mentioned.entry(name).or_default().insert(key.1);
        }
        if self.handles_missing_keys() {
            self.uses.tried_names.insert(key.1);
        }
        match self.sharing() {
            Sharing::None => {}
            Sharing::Shared => {
                self.uses.shared.insert(key);
            }
            Sharing::Alias(other) => self.uses.aliases.push((key, other)),
            Sharing::Given(call, callee) => self.uses.given.push((key, call, callee)),
        }
    }

    /// The variable at the beginning of `variable["key"].part`.
    fn root(&self, expression: &'a Expr) -> Option<Key<'a>> {
        match expression {
            Expr::Name(name) => Some((self.scope_of(name.id.as_str())?, name.id.as_str())),
            Expr::Subscript(part) => self.root(&part.value),
            Expr::Attribute(part) => self.root(&part.value),
            _ => None,
        }
    }

    /// Who else gets the value of the innermost expression, a name.
    fn sharing(&self) -> Sharing<'a> {
        let mut around = self.ancestors();
        let Some(Parent::Expression(mut child)) = around.next() else { return Sharing::Shared };
        let mut is_within = false;
        for parent in around {
            let expression = match parent {
                Parent::Statement(statement) => return self.sharing_by(statement, child),
                Parent::Expression(expression) => expression,
            };
            let is = |other: &Expr| std::ptr::eq(other, child);
            match expression {
                Expr::Subscript(part) if is(&part.value) => {
                    if !part.ctx.is_load() {
                        return Sharing::Shared;
                    }
                    is_within = true;
                }
                Expr::Attribute(part) => {
                    let keeps = KEEPING_METHODS.contains(&part.attr.as_str());
                    return if keeps { Sharing::None } else { Sharing::Shared };
                }
                // Of a subscript, a key or an index.
                Expr::Subscript(_)
                | Expr::FString(_)
                | Expr::Compare(_)
                | Expr::BinOp(_)
                | Expr::UnaryOp(_)
                | Expr::Await(_)
                | Expr::Slice(_) => return Sharing::None,
                Expr::If(choice) if is(&choice.test) => return Sharing::None,
                Expr::Dict(dict) => {
                    let is_spread =
                        dict.items.iter().any(|item| item.key.is_none() && is(&item.value));
                    let is_key = dict.items.iter().any(|item| item.key.as_ref().is_some_and(is));
                    if is_spread || is_key {
                        return Sharing::None;
                    }
                }
                Expr::Starred(_)
                | Expr::If(_)
                | Expr::BoolOp(_)
                | Expr::List(_)
                | Expr::Tuple(_) => {}
                Expr::Call(call) => return self.sharing_with(call, child, is_within),
                // What a comprehension goes over has its own variables.
                Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => {
                    return Sharing::None;
                }
                _ => return Sharing::Shared,
            }
            child = expression;
        }
        Sharing::Shared
    }

    fn sharing_by(&self, statement: &'a Stmt, child: &Expr) -> Sharing<'a> {
        match statement {
            Stmt::Assign(assign) if std::ptr::eq(assign.value.as_ref(), child) => {
                match assign.targets.as_slice() {
                    [Expr::Name(name)] => match self.scope_of(name.id.as_str()) {
                        Some(scope) => Sharing::Alias((scope, name.id.as_str())),
                        None => Sharing::Shared,
                    },
                    _ => Sharing::Shared,
                }
            }
            Stmt::AnnAssign(assign) => match assign.target.as_ref() {
                Expr::Name(name) => match self.scope_of(name.id.as_str()) {
                    Some(scope) => Sharing::Alias((scope, name.id.as_str())),
                    None => Sharing::Shared,
                },
                _ => Sharing::Shared,
            },
            Stmt::For(each) if std::ptr::eq(each.iter.as_ref(), child) => Sharing::None,
            Stmt::Expr(_)
            | Stmt::Return(_)
            | Stmt::If(_)
            | Stmt::While(_)
            | Stmt::Assert(_)
            | Stmt::Raise(_) => Sharing::None,
            _ => Sharing::Shared,
        }
    }

    fn sharing_with(&self, call: &'a ExprCall, child: &Expr, is_within: bool) -> Sharing<'a> {
        let is_spread =
            call.arguments.keywords.iter().any(|keyword| {
                keyword.arg.is_none() && std::ptr::eq(&raw const keyword.value, child)
            });
        match call.func.as_ref() {
            Expr::Name(name) if self.is_builtin(name.id.as_str()) => {
                let text = name.id.as_str();
                // A tool, or a function of the language.
                let keeps = KEEP.contains(&text)
                    || !super::builtins::ALWAYS.contains(&text) && text != "map";
                if keeps { Sharing::None } else { Sharing::Shared }
            }
            _ if is_spread => Sharing::None,
            Expr::Name(name) if !is_within => match self.scope_of(name.id.as_str()) {
                Some(scope) => Sharing::Given(call, (scope, name.id.as_str())),
                None => Sharing::Shared,
            },
            Expr::Attribute(part) => match part.value.as_ref() {
                Expr::Name(module)
                    if matches!(module.id.as_str(), "json" | "asyncio" | "tools" | "math") =>
                {
                    Sharing::None
                }
                Expr::Attribute(inner) if matches!(inner.value.as_ref(), Expr::Name(it) if it.id == "tools") => {
                    Sharing::None
                }
                _ => Sharing::Shared,
            },
            Expr::Subscript(part) if matches!(part.value.as_ref(), Expr::Name(it) if it.id == "tools") => {
                Sharing::None
            }
            _ => Sharing::Shared,
        }
    }
}

/// Adds everything that can be reached from what is there.
fn reach<T: Copy + Eq + std::hash::Hash>(reached: &mut HashSet<T>, from: &HashMap<T, Vec<T>>) {
    let mut left: Vec<T> = reached.iter().copied().collect();
    while let Some(one) = left.pop() {
        for next in from.get(&one).into_iter().flatten() {
            if reached.insert(*next) {
                left.push(*next);
            }
        }
    }
}

/// Who else gets a value.
enum Sharing<'a> {
    None,
    /// Anybody.
    Shared,
    /// Another variable.
    Alias(Key<'a>),
    /// A function of the script.
    Given(&'a ExprCall, Key<'a>),
}

/// Where the statements of a block are.
pub(super) fn range(body: &[Stmt]) -> Range<usize> {
    match (body.first(), body.last()) {
        (Some(first), Some(last)) => first.start().to_usize()..last.end().to_usize(),
        _ => 0..0,
    }
}
