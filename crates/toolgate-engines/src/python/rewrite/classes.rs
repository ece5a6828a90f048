//! Classes with bases, and methods with decorators.
//!
//! Monty's classes have no bases and only plain methods. The rewriter removes both and adds a
//! statement after the class that tells the prelude what was removed. The prelude copies inherited
//! members and binds static and class methods. `super()` is the first base by name. Exceptions,
//! enumerations and properties are built on that.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::{
    Decorator, Expr, ExprAttribute, ExprCall, Stmt, StmtClassDef, StmtFunctionDef, visitor::Visitor,
};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{Node, Rewriter, walk};

/// The classes of a script, collected before the walk.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// The bases of each class.
    bases: BTreeMap<String, Vec<String>>,
    properties: BTreeSet<String>,
    /// The names of static methods and of methods of the class.
    unbound: BTreeSet<String>,
    /// Whether a class needs the prelude. Then all classes report their members to it.
    special: bool,
    /// The classes around the current position, with the name of the first parameter.
    around: Vec<MethodContext>,
}

#[derive(Debug, Clone)]
struct MethodContext {
    base: Base,
    receiver: String,
}

/// The meaning of `super()`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    Nothing,
    Exception,
    Named(String),
}

/// Bases without a meaning for an interpreter.
const MARKERS: &[&str] = &["object", "ABC", "Protocol", "Generic"];
const ENUMERATIONS: &[&str] = &["Enum", "IntEnum", "StrEnum"];
/// The types that members of an enumeration may have in addition.
const MIXED: &[&str] = &["int", "str"];

/// Collects the classes of a script.
pub(super) fn collect(body: &[Stmt]) -> Classes {
    let mut classes = Classes::default();
    walk(body, |node| {
        if let Node::Statement(Stmt::ClassDef(class)) = node {
            classes.add(class);
        }
        matches!(node, Node::Statement(_))
    });
    classes
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MethodKind {
    Static,
    Class,
    Property,
    Abstract,
    /// A decorator without an effect.
    Marker,
}

impl MethodKind {
    fn of(decorator: &Decorator) -> Option<Self> {
        let name = match &decorator.expression {
            Expr::Name(name) => name.id.as_str(),
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => return None,
        };
        match name {
            "staticmethod" => Some(Self::Static),
            "classmethod" => Some(Self::Class),
            "property" | "cached_property" => Some(Self::Property),
            "abstractmethod" => Some(Self::Abstract),
            "override" | "final" => Some(Self::Marker),
            _ => None,
        }
    }
}

impl Classes {
    fn add(&mut self, class: &StmtClassDef) {
        let bases = bases(class);
        self.special |= bases.iter().any(|base| !MARKERS.contains(&base.as_str()));
        for method in class.body.iter().filter_map(Stmt::as_function_def_stmt) {
            for decorator in &method.decorator_list {
                match MethodKind::of(decorator) {
                    Some(MethodKind::Property) => {
                        self.properties.insert(method.name.to_string());
                        self.special = true;
                    }
                    Some(MethodKind::Static | MethodKind::Class) => {
                        self.unbound.insert(method.name.to_string());
                        self.special = true;
                    }
                    Some(MethodKind::Abstract) => self.special = true,
                    _ => {}
                }
            }
        }
        self.bases.insert(class.name.to_string(), bases);
    }

    /// Whether a class is an exception, by its bases.
    pub(super) fn is_exception(&self, name: &str) -> bool {
        // A chain of bases is at most as long as the number of classes.
        self.exception_in(name, self.bases.len())
    }

    fn exception_in(&self, name: &str, steps: usize) -> bool {
        match self.bases.get(name) {
            None => is_exception_name(name),
            Some(_) if steps == 0 => false,
            Some(bases) => bases.iter().any(|base| self.exception_in(base, steps - 1)),
        }
    }

    /// Whether a class of the script inherits from a class of that name.
    pub(super) fn is_base(&self, name: &str) -> bool {
        self.bases.contains_key(name) && self.bases.values().flatten().any(|base| base == name)
    }

    /// Whether a class of the script inherits from another one.
    pub(super) fn has_bases(&self) -> bool {
        self.bases.keys().any(|name| self.is_base(name))
    }

    /// Whether a class has a base that the script defines.
    pub(super) fn has_own_base(&self, name: &str) -> bool {
        let bases = self.bases.get(name);
        bases.is_some_and(|bases| bases.iter().any(|base| self.bases.contains_key(base)))
    }

    /// Whether a class inherits in a way that copying members cannot imitate.
    pub(super) fn has_odd_bases(&self, name: &str) -> bool {
        let Some(bases) = self.bases.get(name) else { return false };
        let is_real = |base: &&String| {
            let mixed = MIXED.contains(&base.as_str()) && is_enumeration(bases);
            !MARKERS.contains(&base.as_str()) && !mixed
        };
        let is_enumerated = |base: &String| self.bases.get(base).is_some_and(|b| is_enumeration(b));
        bases.iter().filter(is_real).count() > 1 || bases.iter().any(is_enumerated)
    }

    /// Whether an expression is the name of an enumeration.
    pub(super) fn is_enumeration(&self, expression: &Expr) -> bool {
        let bases = expression.as_name_expr().and_then(|name| self.bases.get(name.id.as_str()));
        bases.is_some_and(|bases| is_enumeration(bases))
    }

    /// Whether a name is that of a class with type parameters.
    pub(super) fn is_generic(&self, name: &str) -> bool {
        self.bases.get(name).is_some_and(|bases| bases.iter().any(|base| base == "Generic"))
    }

    /// Whether the script has enumerations.
    pub(super) fn has_enumerations(&self) -> bool {
        self.bases.values().any(|bases| is_enumeration(bases))
    }

    /// Whether the script has enumerations with members that are compared like their values.
    pub(super) fn has_ordered(&self) -> bool {
        let is_ordered =
            |bases: &Vec<String>| is_enumeration(bases) && enumeration(bases.iter()) != "Enum";
        self.bases.values().any(is_ordered)
    }

    /// Whether the script defines exceptions.
    pub(super) fn has_exceptions(&self) -> bool {
        self.bases.keys().any(|name| self.is_exception(name))
    }
}

impl<'a> Rewriter<'a> {
    pub(super) fn class(&mut self, statement: &'a Stmt, class: &'a StmtClassDef) {
        let bases = bases(class);
        if bases.iter().any(|base| base == "TypedDict") {
            return self.edits.replace(statement.range(), format!("{} = dict", class.name));
        }
        for decorator in &class.decorator_list {
            self.visit_decorator(decorator);
        }
        let is_record = class.decorator_list.iter().any(|d| self.text(d).contains("dataclass"));
        // Fields of data classes are not inherited by copying, and built-in classes have nothing to
        // copy. Such a class is not changed, so that Monty refuses it with its position.
        let is_marker = |base: &String| MARKERS.contains(&base.as_str());
        let is_known = |base: &String| {
            is_marker(base)
                || ENUMERATIONS.contains(&base.as_str())
                || (MIXED.contains(&base.as_str()) && is_enumeration(&bases))
                || self.classes.bases.contains_key(base)
                || is_exception_name(base)
        };
        let cannot = !bases.iter().all(is_known) || (is_record && !bases.iter().all(is_marker));
        if let Some(arguments) = &class.arguments
            && !cannot
        {
            self.edits.replace(arguments.range(), "");
        }
        if let Some(parameters) = &class.type_params {
            self.edits.replace(parameters.range(), "");
        }
        let real: Vec<&String> =
            bases.iter().filter(|base| !MARKERS.contains(&base.as_str())).collect();
        let base = match real.first() {
            Some(base) if self.classes.bases.contains_key(*base) => Base::Named((*base).clone()),
            Some(base) if self.classes.is_exception(base) => Base::Exception,
            _ => Base::Nothing,
        };
        let mut facts = ClassMembers::default();
        for member in &class.body {
            self.member(member, &base, &mut facts);
        }
        if is_record && !cannot {
            self.record(class);
        }
        if self.classes.special && !cannot {
            self.need("<classes>");
            self.announce(class, &real, &facts);
        }
    }

    /// `Class.method(…)` of a method without a receiver gets the class instead, so that the prelude
    /// can tell it from a call by way of an instance.
    pub(super) fn unbound_call(
        &mut self,
        call: &'a ExprCall,
        attribute: &'a ExprAttribute,
    ) -> bool {
        let is_class = match &*attribute.value {
            Expr::Name(name) => {
                name.id == "cls" || self.classes.bases.contains_key(name.id.as_str())
            }
            Expr::Call(inner) => inner.func.as_name_expr().is_some_and(|n| n.id == "type"),
            Expr::Attribute(inner) => &inner.attr == "__class__",
            _ => false,
        };
        if !is_class || !self.classes.unbound.contains(attribute.attr.as_str()) {
            return false;
        }
        self.bracket_generator(call);
        let class = self.text(&*attribute.value);
        let separator = if call.arguments.is_empty() { "" } else { ", " };
        let first = format!("{class}{separator}");
        self.visit_expr(&attribute.value);
        self.edits.insert(call.arguments.start() + TextSize::of('('), first);
        self.visit_arguments(&call.arguments);
        true
    }

    /// Rewrites `super().method(…)` to a call of the base's method.
    pub(super) fn super_call(
        &mut self,
        expression: &'a Expr,
        call: &'a ExprCall,
        attribute: &'a ExprAttribute,
    ) -> bool {
        let is_super = attribute
            .value
            .as_call_expr()
            .is_some_and(|inner| inner.func.as_name_expr().is_some_and(|n| n.id == "super"));
        let Some(MethodContext { base, receiver }) = self.classes.around.last().cloned() else {
            return false;
        };
        if !is_super {
            return false;
        }
        let method = &attribute.attr;
        let function = match base {
            Base::Named(base) => format!("{base}.{method}"),
            Base::Exception if method == "__init__" => "_tg_exception_init".to_owned(),
            Base::Exception if method == "__str__" => "_tg_exception_text".to_owned(),
            _ => "_tg_nothing".to_owned(),
        };
        self.need("<classes>");
        self.bracket_generator(call);
        let open = call.arguments.start() + TextSize::of('(');
        let separator = if call.arguments.is_empty() { "" } else { ", " };
        self.edits.replace(
            TextRange::new(expression.start(), open),
            format!("{function}({receiver}{separator}"),
        );
        self.visit_arguments(&call.arguments);
        true
    }

    /// An attribute that some class has as a property. Returns whether it was one.
    pub(super) fn property(&mut self, expression: &'a Expr, attribute: &'a ExprAttribute) -> bool {
        let name = attribute.attr.as_str();
        if !attribute.ctx.is_load() || !self.classes.properties.contains(name) {
            return false;
        }
        let Some(dot) = self.dot(attribute) else { return false };
        self.need("<classes>");
        self.edits.open(expression, "_tg_get(");
        self.visit_expr(&attribute.value);
        self.edits.replace(TextRange::new(dot, expression.end()), format!(", '{name}')"));
        true
    }

    fn member(&mut self, member: &'a Stmt, base: &Base, facts: &mut ClassMembers) {
        match member {
            Stmt::FunctionDef(method) => {
                let name = method.name.to_string();
                for decorator in &method.decorator_list {
                    match MethodKind::of(decorator) {
                        Some(MethodKind::Static) => facts.statics.push(name.clone()),
                        Some(MethodKind::Class) => facts.classes.push(name.clone()),
                        Some(MethodKind::Property) => facts.properties.push(name.clone()),
                        Some(MethodKind::Abstract) => facts.abstracts.push(name.clone()),
                        Some(MethodKind::Marker) => {}
                        None => continue,
                    }
                    self.edits.replace(decorator.range(), "");
                }
                let first = method.parameters.iter().next();
                let receiver = first.map_or_else(String::new, |p| p.name().to_string());
                if self.own_exceptions && matches!(&*name, "__exit__" | "__aexit__") {
                    self.leaving(method);
                }
                facts.members.push(name);
                self.classes.around.push(MethodContext { base: base.clone(), receiver });
                self.statement(member);
                self.classes.around.pop();
            }
            Stmt::Assign(assignment) => {
                let names = assignment.targets.iter().filter_map(Expr::as_name_expr);
                facts.members.extend(names.map(|name| name.id.to_string()));
                self.statement(member);
            }
            Stmt::AnnAssign(assignment) => {
                if let (Some(name), Some(_)) = (assignment.target.as_name_expr(), &assignment.value)
                {
                    facts.members.push(name.id.to_string());
                }
                self.statement(member);
            }
            _ => self.statement(member),
        }
    }

    /// Lets `__exit__` see an exception of the script and not the one that carries it.
    fn leaving(&mut self, method: &'a StmtFunctionDef) {
        let named: Vec<&str> =
            method.parameters.args.iter().map(|p| p.parameter.name.as_str()).collect();
        let statement = match (named.as_slice(), &method.parameters.vararg) {
            ([_, kind, error, ..], _) => format!("{kind}, {error} = _tg_seen({kind}, {error})"),
            (_, Some(rest)) => {
                let rest = &rest.name;
                format!("{rest} = (*_tg_seen({rest}[-3], {rest}[-2]), None)")
            }
            _ => return,
        };
        self.need("<classes>");
        self.prepend(&method.body, &statement);
    }

    /// Reports the members of a class to the prelude, after its last line.
    fn announce(&mut self, class: &'a StmtClassDef, bases: &[&String], facts: &ClassMembers) {
        let Some(last) = class.body.last() else { return };
        let before = self.before(class.name.start()).chars();
        let indentation: String = before.take_while(char::is_ascii_whitespace).collect();
        let is_enumeration = bases.iter().any(|base| ENUMERATIONS.contains(&base.as_str()));
        let enumeration = if is_enumeration { enumeration(bases.iter().copied()) } else { "" };
        let base = bases
            .iter()
            .find(|base| self.classes.bases.contains_key(**base) || is_exception_name(base))
            .map_or("None", |base| base.as_str());
        let at = self.end_of_line(last);
        self.edits.insert(
            at,
            format!(
                "\n{indentation}_tg_class({name}, '{name}', {base}, {members}, {statics}, {classes}, {properties}, {abstracts}, '{enumeration}')",
                name = class.name,
                members = list(&facts.members),
                statics = list(&facts.statics),
                classes = list(&facts.classes),
                properties = list(&facts.properties),
                abstracts = list(&facts.abstracts),
            ),
        );
    }
}

#[derive(Debug, Default)]
struct ClassMembers {
    members: Vec<String>,
    statics: Vec<String>,
    classes: Vec<String>,
    properties: Vec<String>,
    abstracts: Vec<String>,
}

fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    format!("[{}]", names.join(", "))
}

fn bases(class: &StmtClassDef) -> Vec<String> {
    let arguments = class.arguments.iter().flat_map(|arguments| &arguments.args);
    arguments
        .filter_map(|base| match base {
            Expr::Name(name) => Some(name.id.to_string()),
            Expr::Attribute(attribute) => Some(attribute.attr.to_string()),
            Expr::Subscript(subscript) => {
                subscript.value.as_name_expr().map(|name| name.id.to_string())
            }
            _ => None,
        })
        .collect()
}

fn is_enumeration(bases: &[String]) -> bool {
    bases.iter().any(|base| ENUMERATIONS.contains(&base.as_str()))
}

/// The kind of an enumeration: the additional type of its members, or `Enum`.
fn enumeration<'a>(bases: impl Iterator<Item = &'a String>) -> &'a str {
    let mut kinds = bases.map(String::as_str);
    kinds
        .find(|base| MIXED.contains(base) || matches!(*base, "IntEnum" | "StrEnum"))
        .unwrap_or("Enum")
}

fn is_exception_name(name: &str) -> bool {
    matches!(name, "Exception" | "BaseException")
        || (name.ends_with("Error") && super::expressions::EXCEPTIONS.contains(&name))
}
