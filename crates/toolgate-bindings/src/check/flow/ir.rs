//! A script of either language, as far as data can move in it.

use std::rc::Rc;

use rustc_hash::FxHashMap;

/// A name, interned.
pub(in crate::check) type Name = u32;
/// A variable.
pub(in crate::check) type Var = u32;

/// The variables that are assigned in each loop or `try` around the current place.
#[derive(Default)]
pub(in crate::check) struct AssignedRegions(Vec<Vec<Var>>);

impl AssignedRegions {
    /// Begins a loop or a `try`.
    pub(in crate::check) fn open(&mut self) {
        self.0.push(Vec::new());
    }

    /// Notes an assignment, and makes the variable its target.
    pub(in crate::check) fn assign(&mut self, variable: Var) -> Target {
        if let Some(region) = self.0.last_mut() {
            region.push(variable);
        }
        Target::Variable(variable)
    }

    /// Ends the innermost part, and returns what it assigns. Parts around it assign that too.
    pub(in crate::check) fn close(&mut self) -> Vec<Var> {
        let mut assigned = self.0.pop().unwrap_or_default();
        assigned.sort_unstable();
        assigned.dedup();
        if let Some(outer) = self.0.last_mut() {
            outer.extend(&assigned);
        }
        assigned
    }
}
/// Attributes of Python that lead to the variables of running functions.
#[rustfmt::skip]
const FRAMES: &[&str] = &[
    "ag_frame", "cr_frame", "f_back", "f_builtins", "f_globals", "f_locals", "get_coro", "get_stack",
    "gi_frame", "print_stack", "tb_frame",
];

/// Whether an attribute of Python leads to the variables of running functions.
pub(in crate::check) fn is_frame(attribute: &str) -> bool {
    FRAMES.contains(&attribute)
}

/// A function, by its position in [`Program::functions`]. The first one is the script itself.
pub(in crate::check) type FunctionId = u32;

/// Names that the analysis itself uses. They are no identifiers, so that no script has them.
pub(in crate::check) mod name {
    use super::Name;

    /// No name.
    pub(in crate::check) const NONE: Name = 0;
    /// The values under keys that are not known, and the elements of a collection.
    pub(in crate::check) const ANY: Name = 1;
    /// What the number of elements depends on.
    pub(in crate::check) const SHAPE: Name = 2;
    /// The keys that are computed.
    pub(in crate::check) const KEYS: Name = 3;
    /// What methods return that the language calls itself, such as `toString` and `__iter__`.
    pub(in crate::check) const IMPLICIT: Name = 4;
    /// What a generator is sent.
    pub(in crate::check) const SENT: Name = 5;
    /// The condition under which a call is made.
    pub(in crate::check) const BRANCH: Name = 6;
    pub(in crate::check) const LENGTH: Name = 7;
    pub(in crate::check) const SIZE: Name = 8;
    pub(in crate::check) const PROTOTYPE: Name = 9;
    pub(in crate::check) const VALUE: Name = 10;
    pub(in crate::check) const REASON: Name = 11;
    pub(in crate::check) const ARGUMENTS: Name = 12;
    pub(in crate::check) const FIRST: Name = 13;
    pub(in crate::check) const SECOND: Name = 14;
    /// The class of an object, in Python.
    pub(in crate::check) const CLASS: Name = 15;
    /// The name of a function or a class.
    pub(in crate::check) const NAME: Name = 16;
    /// What is compared with an object.
    pub(in crate::check) const COMPARED: Name = 17;

    pub(super) const ALL: [&str; 18] = [
        "",
        "*",
        "#shape",
        "#keys",
        "#implicit",
        "#sent",
        "#branch",
        "length",
        "size",
        "prototype",
        "value",
        "reason",
        "arguments",
        "0",
        "1",
        "__class__",
        "name",
        "#compared",
    ];
}

/// A script.
pub(in crate::check) struct Program {
    pub(in crate::check) names: Names,
    pub(in crate::check) variables: Vec<Variable>,
    pub(in crate::check) functions: Vec<FunctionBody>,
    /// Whether the script has a part through which data moves in ways that are not followed.
    pub(in crate::check) is_opaque: bool,
    /// Whether the script is Python.
    pub(in crate::check) is_python: bool,
    /// Whether the engine has an object with all tools.
    pub(in crate::check) has_tools: bool,
}

/// All names of a script.
pub(in crate::check) struct Names {
    known: FxHashMap<Rc<str>, Name>,
    texts: Vec<Rc<str>>,
}

#[derive(Clone, Copy)]
pub(in crate::check) struct Variable {
    pub(in crate::check) name: Name,
    /// The function that declares it.
    pub(in crate::check) owner: FunctionId,
    /// Whether an inner function uses it, so that its value depends on when that function runs.
    pub(in crate::check) is_captured: bool,
}

#[derive(Default)]
pub(in crate::check) struct FunctionBody {
    pub(in crate::check) parameters: Vec<Parameter>,
    pub(in crate::check) rest: Option<Target>,
    pub(in crate::check) keyword_rest: Option<Target>,
    pub(in crate::check) body: Vec<Statement>,
    pub(in crate::check) is_generator: bool,
    pub(in crate::check) is_async: bool,
    /// Whether `this` is that of the function around it.
    pub(in crate::check) is_arrow: bool,
    pub(in crate::check) binding: Binding,
}

/// What a method is bound to when it is loaded from an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::check) enum Binding {
    #[default]
    None,
    Instance,
    Class,
}

pub(in crate::check) struct Parameter {
    pub(in crate::check) name: Name,
    pub(in crate::check) target: Target,
    pub(in crate::check) default: Option<Expression>,
}

pub(in crate::check) enum Expression {
    /// A value without data of a call.
    Literal,
    /// A literal text that may be a key.
    Text(Name),
    Variable(Var),
    /// A name that the script does not declare.
    Free(Name),
    This,
    Member(Box<Expression>, Key),
    /// A part of a sequence, with the expressions that determine it.
    Slice(Box<Expression>, Vec<Expression>),
    Call(Box<Call>),
    Object {
        entries: Vec<Entry>,
        is_dict: bool,
    },
    Array(Vec<Item>),
    Function(FunctionId),
    Class(Box<Class>),
    /// A new value that is computed from others.
    Operator(Vec<Expression>),
    /// A value that is made of parts of others: the sum of two lists.
    Merge(Vec<Expression>),
    /// The first or a later one of several values, which the earlier ones determine.
    Either(Vec<Expression>),
    Conditional(Box<[Expression; 3]>),
    Assign(Box<Target>, Box<Expression>),
    /// The old value has an influence on the new one.
    Update(Box<Target>, Box<Expression>),
    Await(Box<Expression>),
    Yield(Option<Box<Expression>>),
    YieldAll(Box<Expression>),
    Sequence(Vec<Expression>),
    Comprehension(Box<Comprehension>),
    /// The end of a field.
    Remove(Box<Target>),
    /// A call of the constructor of the base class.
    SuperCall(Vec<Argument>),
    /// An object that the engine made, such as a regular expression.
    Opaque(Vec<Expression>),
}

pub(in crate::check) enum Key {
    Name(Name),
    Computed(Box<Expression>),
}

pub(in crate::check) struct Call {
    pub(in crate::check) callee: Expression,
    pub(in crate::check) arguments: Vec<Argument>,
    pub(in crate::check) is_new: bool,
    pub(in crate::check) offset: u32,
    /// The start and the end of a callee that is a name, or a property of `tools`.
    pub(in crate::check) name_range: Option<(u32, u32)>,
}

pub(in crate::check) enum Argument {
    Position(Expression),
    Spread(Expression),
    Keyword(Name, Expression),
    KeywordSpread(Expression),
}

pub(in crate::check) enum Entry {
    Value(Key, Expression),
    Spread(Expression),
    Getter(Key, FunctionId),
    Setter(FunctionId),
}

pub(in crate::check) struct Item {
    pub(in crate::check) value: Expression,
    pub(in crate::check) is_spread: bool,
}

pub(in crate::check) struct Class {
    pub(in crate::check) bases: Vec<Expression>,
    pub(in crate::check) constructor: Option<FunctionId>,
    pub(in crate::check) members: Vec<ClassMember>,
    /// The fields that positional arguments set, in a class without a constructor.
    pub(in crate::check) fields: Vec<Name>,
}

pub(in crate::check) struct ClassMember {
    pub(in crate::check) key: Key,
    pub(in crate::check) kind: MemberKind,
    pub(in crate::check) is_static: bool,
}

pub(in crate::check) enum MemberKind {
    Method(FunctionId),
    Getter(FunctionId),
    Setter(FunctionId),
    /// A method that the language calls itself.
    Implicit(FunctionId),
    /// A value. It is a function without parameters, because each new object evaluates it.
    Field(FunctionId),
    /// A function that makes the value for each new object, if the first expression is the function
    /// of the engine that says so.
    Factory {
        marker: Expression,
        factory: Expression,
        otherwise: Box<MemberKind>,
    },
    Value(Expression),
}

pub(in crate::check) struct Comprehension {
    pub(in crate::check) clauses: Vec<Clause>,
    pub(in crate::check) key: Option<Expression>,
    pub(in crate::check) value: Expression,
}

pub(in crate::check) struct Clause {
    pub(in crate::check) target: Target,
    pub(in crate::check) items: Expression,
    pub(in crate::check) conditions: Vec<Expression>,
}

pub(in crate::check) enum Target {
    Nothing,
    Variable(Var),
    Free(Name),
    Member(Box<Expression>, Key),
    Object { entries: Vec<(Key, Target, Option<Expression>)>, rest: Option<Box<Target>> },
    Array { items: Vec<(Target, Option<Expression>)>, rest: Option<Box<Target>> },
}

pub(in crate::check) enum Statement {
    Expression(Expression),
    Block(Vec<Statement>),
    If {
        test: Expression,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    Loop(Box<Loop>),
    /// The values of the cases, and their bodies. A body may continue in the next one.
    Switch {
        subject: Expression,
        cases: Vec<(Option<Expression>, Vec<Statement>)>,
        assigned: Vec<Var>,
    },
    /// Statements that may be left in the middle.
    Labelled {
        body: Vec<Statement>,
        assigned: Vec<Var>,
    },
    Try(Box<Try>),
    Return(Option<Expression>),
    Throw(Vec<Expression>),
    /// `break` and `continue`.
    Leave,
}

pub(in crate::check) struct Loop {
    pub(in crate::check) head: LoopHead,
    pub(in crate::check) body: Vec<Statement>,
    /// What runs between two passes.
    pub(in crate::check) update: Option<Expression>,
    pub(in crate::check) otherwise: Vec<Statement>,
    pub(in crate::check) assigned: Vec<Var>,
}

pub(in crate::check) enum LoopHead {
    While(Option<Expression>),
    Each { target: Target, items: Expression, are_keys: bool },
}

pub(in crate::check) struct Try {
    pub(in crate::check) body: Vec<Statement>,
    pub(in crate::check) handlers: Vec<(Target, Vec<Statement>)>,
    pub(in crate::check) otherwise: Vec<Statement>,
    pub(in crate::check) finally: Vec<Statement>,
    pub(in crate::check) assigned: Vec<Var>,
}

impl Argument {
    /// Adds the elements of a list as arguments, one by one if the list is written here.
    pub(in crate::check) fn spread(list: Expression, into: &mut Vec<Self>) {
        match list {
            Expression::Array(items) if !items.iter().any(|item| item.is_spread) => {
                into.extend(items.into_iter().map(|item| Self::Position(item.value)));
            }
            other => into.push(Self::Spread(other)),
        }
    }
}

impl Program {
    pub(in crate::check) fn new(is_python: bool) -> Self {
        Self {
            names: Names::with_known(),
            variables: Vec::new(),
            functions: vec![FunctionBody::default()],
            is_opaque: false,
            is_python,
            has_tools: !is_python,
        }
    }

    pub(in crate::check) fn variable(&mut self, name: &str, owner: FunctionId) -> Var {
        let name = self.names.intern(name);
        self.variables.push(Variable { name, owner, is_captured: false });
        index(self.variables.len() - 1)
    }

    pub(in crate::check) fn function(&mut self) -> FunctionId {
        self.functions.push(FunctionBody::default());
        index(self.functions.len() - 1)
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::with_known()
    }
}

impl Names {
    fn with_known() -> Self {
        let mut names = Self { known: FxHashMap::default(), texts: Vec::new() };
        for text in name::ALL {
            names.intern(text);
        }
        names
    }

    pub(in crate::check) fn intern(&mut self, text: &str) -> Name {
        if let Some(name) = self.known.get(text) {
            return *name;
        }
        let text: Rc<str> = text.into();
        let name = index(self.texts.len());
        self.texts.push(Rc::clone(&text));
        self.known.insert(text, name);
        name
    }

    pub(in crate::check) fn contains(&self, text: &str) -> bool {
        self.known.contains_key(text)
    }

    pub(in crate::check) fn text(&self, name: Name) -> Rc<str> {
        self.texts.get(name as usize).cloned().unwrap_or_default()
    }
}

/// A position in a list. A script of the largest size has fewer than `u32::MAX` of anything.
pub(in crate::check) fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
