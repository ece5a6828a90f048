//! Follows data through a script before it runs.
//!
//! Both languages are translated to the same small representation ([`ir`]). From it a graph of
//! constraints is made and solved ([`graph`]): which values may a variable, a field or an argument
//! have? Functions are looked at anew for each call, so that two calls of a helper do not mix.
//! Where the analysis cannot know, it assumes more flows than there are, never fewer.

mod builtins;
mod call_expressions;
mod calls;
mod classes;
mod expressions;
mod fields;
mod fresh;
mod graph;
mod instances;
pub(super) mod ir;
mod places;
mod report;
mod shared;
mod statements;
mod tool_calls;

use rustc_hash::{FxHashMap, FxHashSet};

pub(super) use self::places::PlaceMark;
use self::{
    calls::CallState,
    classes::ClassState,
    graph::{CallId, Graph, Node, ObjectId, ObjectKind, SiteId, Value},
    instances::Instance,
    ir::{FunctionId, Name, Names, Program, name},
    places::DirectCall,
};
pub use self::{
    graph::MAX_FLOW_STEPS,
    places::CallPlace,
    report::{CallSite, ProgramFlow, SiteFlow},
};
use super::lookup::ToolTable;

/// The positions of a list that are told apart.
const MAX_INDEX: usize = 32;
/// The longest path of a function of the engine, such as `a.b.c`.
const MAX_PATH: usize = 4;

/// What the analysis says of a script.
#[derive(Default)]
pub(super) struct Analysis {
    /// The flows; `None` if they cannot be known, so that everything may reach everything.
    pub(super) flow: Option<ProgramFlow>,
    /// The callees that get a name of their own.
    pub(super) marks: Vec<PlaceMark>,
    pub(super) steps: usize,
}

/// Follows the data of a script.
pub(super) fn analyse(mut program: Program, tools: &ToolTable, text: &str) -> Analysis {
    if program.is_opaque {
        return Analysis::default();
    }
    let names = std::mem::take(&mut program.names);
    let mut solver = Solver::new(&program, names, tools);
    solver.solve();
    solver.report(text)
}

/// The state of one analysis.
struct Solver<'p> {
    program: &'p Program,
    tools: &'p ToolTable,
    names: Names,
    graph: Graph,
    calls: Vec<CallState>,
    instances: Vec<Instance>,
    classes: Vec<ClassState>,
    sites: Vec<Site>,
    site_ids: FxHashMap<(u32, Option<Name>), SiteId>,
    /// The arguments that are sent, with the node of their data.
    sent: Vec<(SiteId, Name, Node)>,
    /// The calls whose callee is the name of a tool, by their position.
    direct: FxHashMap<u32, DirectCall>,
    /// The names of tools to which the script assigns something else.
    overwritten: FxHashSet<Name>,
    contexts: FxHashMap<(FunctionId, u32, CallId), u32>,
    /// The instances whose bodies have not been looked at.
    pending: Vec<u32>,
    done: FxHashSet<(CallId, ObjectId)>,
    /// The arguments that were bound with `bind`.
    bound: FxHashMap<ObjectId, Vec<Node>>,
    methods: FxHashMap<(ObjectId, ObjectId), ObjectId>,
    pairs: FxHashMap<ObjectId, ObjectId>,
    singles: FxHashMap<ObjectKind, ObjectId>,
    /// The nodes of literal texts.
    literal_keys: FxHashMap<Node, Name>,
    classes_by_constructor: FxHashMap<FunctionId, Vec<u32>>,
    /// The object with the global variables.
    global: ObjectId,
    /// What promises were rejected with that were not awaited where they were made.
    rejected: Node,
    /// What functions throw that the language or the engine calls itself, at any place.
    sudden: Node,
    /// Everything that is caught somewhere.
    caught: Node,
    /// The data that decides whether the script ends itself, so that nothing more is called.
    ended: Node,
    /// What the library of Python keeps, if the script uses such a part of it.
    library: Option<(Node, ObjectId)>,
    /// What was written to a log.
    logged: Node,
    /// The regular expressions that remember where they found something.
    stateful: FxHashSet<ObjectId>,
    /// The dictionaries that get each key that is looked up.
    growing: FxHashSet<ObjectId>,
    /// Whether objects of the script have getters or setters.
    has_accessors: bool,
    /// What the iterators of the script return, by their objects.
    iterators: FxHashMap<ObjectId, Node>,
    /// The functions whose prototypes exist.
    prototypes: FxHashSet<ObjectId>,
    /// The values that parameters of functions have by default, in Python: they exist once.
    defaults: FxHashMap<(FunctionId, u32), Vec<Node>>,
    /// The functions that were put into objects of the engine, which may call them.
    stored: FxHashSet<(ObjectId, Node)>,
}

/// A call of a tool in the script.
struct Site {
    /// `None` if the script chooses the tool when it runs.
    tool: Option<Name>,
    offset: u32,
    sent: ObjectId,
}

impl<'p> Solver<'p> {
    fn new(program: &'p Program, names: Names, tools: &'p ToolTable) -> Self {
        let mut solver = Self {
            program,
            tools,
            names,
            graph: Graph::default(),
            calls: Vec::new(),
            instances: Vec::new(),
            classes: Vec::new(),
            sites: Vec::new(),
            site_ids: FxHashMap::default(),
            sent: Vec::new(),
            direct: FxHashMap::default(),
            overwritten: FxHashSet::default(),
            contexts: FxHashMap::default(),
            pending: Vec::new(),
            done: FxHashSet::default(),
            bound: FxHashMap::default(),
            methods: FxHashMap::default(),
            pairs: FxHashMap::default(),
            singles: FxHashMap::default(),
            literal_keys: FxHashMap::default(),
            classes_by_constructor: FxHashMap::default(),
            global: 0,
            rejected: graph::NOTHING,
            sudden: graph::NOTHING,
            caught: graph::NOTHING,
            ended: graph::NOTHING,
            library: None,
            logged: graph::NOTHING,
            stateful: FxHashSet::default(),
            growing: FxHashSet::default(),
            has_accessors: false,
            iterators: FxHashMap::default(),
            prototypes: FxHashSet::default(),
            defaults: FxHashMap::default(),
            stored: FxHashSet::default(),
        };
        // The first node is that without values.
        solver.node();
        solver.global = solver.object(ObjectKind::Plain);
        solver.rejected = solver.node();
        solver.sudden = solver.node();
        solver.caught = solver.node();
        solver.ended = solver.node();
        solver.logged = solver.node();
        solver.copy(solver.sudden, solver.rejected);
        solver
    }

    fn solve(&mut self) {
        let script = self.instance(0, None, None, 0);
        self.pending.push(script);
        loop {
            while let Some(instance) = self.pending.pop() {
                if self.graph.is_lost {
                    return;
                }
                self.enter(instance);
                self.propagate();
            }
            if self.graph.is_lost || !self.model_unresolved() {
                return;
            }
        }
    }

    /// Treats calls of which nothing is known as calls of functions of the engine. Returns whether
    /// there were any.
    fn model_unresolved(&mut self) -> bool {
        let mut found = false;
        for at in 0..self.calls.len() {
            let state = &self.calls[at];
            if state.is_modelled || state.constructs.is_some() {
                continue;
            }
            let is_empty = |node: Node| {
                self.graph.nodes.get(node as usize).is_none_or(|node| node.values.is_empty())
            };
            let receiver = state.this.filter(|_| state.member != name::NONE);
            if !is_empty(state.callee) || !receiver.is_none_or(is_empty) {
                continue;
            }
            found = true;
            let (call, member) = (ir::index(at), self.names.text(state.member));
            match receiver {
                Some(receiver) => self.model_method(call, receiver, &member),
                None => self.unknown(call, None),
            }
        }
        self.propagate();
        found
    }

    /// The only object of a kind.
    fn object_of(&mut self, kind: ObjectKind) -> ObjectId {
        if let Some(object) = self.singles.get(&kind) {
            return *object;
        }
        let object = self.object(kind);
        self.singles.insert(kind, object);
        object
    }

    /// A part of an object of the engine: `stringify` of `JSON`.
    fn builtin_part(&mut self, path: Name, part: Name) -> ObjectId {
        let text = self.names.text(path);
        let part = self.names.text(part);
        let longer = format!("{text}.{part}");
        self.graph.is_lost |= self.is_opaque_name(&longer);
        // A part of any part of the library is any part of it.
        let is_any = self.program.is_python && text.ends_with(".*");
        if is_any || text.matches('.').count() >= MAX_PATH {
            return self.object_of(ObjectKind::Builtin(path));
        }
        let path = longer;
        let path = self.names.intern(&path);
        self.object_of(ObjectKind::Builtin(path))
    }

    /// The node of a name that the script does not declare.
    fn free(&mut self, name: Name) -> Node {
        let (global, text) = (self.global, self.names.text(name));
        if matches!(&*text, "undefined" | "NaN" | "Infinity") {
            return graph::NOTHING;
        }
        let node = self.field(global, name);
        let kind = if self.tools.tool(&text).is_some() || &*text == "call_tool" {
            ObjectKind::Tool(name)
        } else if &*text == "tools" && self.program.has_tools {
            ObjectKind::Tools
        } else {
            self.graph.is_lost |= self.is_opaque_name(&text);
            ObjectKind::Builtin(name)
        };
        let object = self.object_of(kind);
        self.add(node, Value::Object(object), node);
        node
    }

    fn index_name(&mut self, at: usize) -> Name {
        if at > MAX_INDEX { name::ANY } else { self.names.intern(&at.to_string()) }
    }
}
