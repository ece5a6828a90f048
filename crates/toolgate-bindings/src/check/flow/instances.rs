//! The functions of the script, each in the context of the call that calls it.

use rustc_hash::FxHashMap;

use super::{
    Solver,
    calls::{ArgumentKind, CallState},
    graph::{CallId, Node, ObjectId, ObjectKind, Use},
    ir::{FunctionId, Name, index, name},
};

/// The depth of calls that are told apart. Below it, all calls of a function are one.
const MAX_DEPTH: u32 = 8;
/// The largest number of functions with their contexts.
const MAX_INSTANCES: usize = 4_000;

/// A function in a context: the call that it was called by.
pub(super) struct Instance {
    pub(super) function: FunctionId,
    /// The instance in which the function was created.
    pub(super) lexical: Option<u32>,
    caller: Option<u32>,
    depth: u32,
    positions: Vec<Node>,
    spread: Node,
    keywords: FxHashMap<Name, Node>,
    keyword_spread: Node,
    rest: Option<(usize, ObjectId)>,
    keyword_rest: Option<ObjectId>,
    pub(super) this: Node,
    pub(super) result: Node,
    pub(super) thrown: Node,
    /// The data that decides whether it throws.
    pub(super) failing: Node,
    pub(super) condition: Node,
    pub(super) variables: FxHashMap<u32, Node>,
}

impl Solver<'_> {
    /// Connects a call with a function of the script. Returns the node of its `this`.
    pub(super) fn invoke(
        &mut self,
        state: &CallState,
        call: CallId,
        (function, environment): (FunctionId, u32),
        this: Option<Node>,
        extra: &[Node],
    ) -> Option<Node> {
        let at = self.instance_of(function, environment, state.instance, call)?;
        let mut position = 0;
        for node in extra {
            let parameter = self.position(at, position);
            self.copy(*node, parameter);
            position += 1;
        }
        for (kind, node) in &state.arguments {
            match kind {
                ArgumentKind::Position => {
                    let parameter = self.position(at, position);
                    self.copy(*node, parameter);
                    position += 1;
                }
                ArgumentKind::Spread => {
                    let spread = self.instances[at as usize].spread;
                    self.flow(*node, Use::Items(spread));
                }
                ArgumentKind::Keyword(name) => {
                    let parameter = self.keyword(at, *name);
                    self.copy(*node, parameter);
                }
                ArgumentKind::KeywordSpread => {
                    let spread = self.instances[at as usize].keyword_spread;
                    self.copy(*node, spread);
                }
            }
        }
        let Instance { this: own, result, thrown, failing, condition, .. } =
            self.instances[at as usize];
        if let Some(this) = this {
            self.copy(this, own);
        }
        self.copy(result, state.result);
        self.copy(thrown, state.thrown);
        self.copy(failing, state.failing);
        self.copy(state.condition, condition);
        self.copy(state.chosen, condition);
        let body = self.program.functions.get(function as usize)?;
        if body.is_async && !state.is_awaited {
            self.copy(thrown, self.rejected);
        }
        // It runs when something takes its elements.
        if body.is_generator {
            self.copy(thrown, self.sudden);
            self.copy(failing, self.ended);
        }
        Some(own)
    }

    /// The function in the context of a call. A recursive call has the context of the first.
    pub(super) fn instance_of(
        &mut self,
        function: FunctionId,
        environment: u32,
        caller: u32,
        call: CallId,
    ) -> Option<u32> {
        let mut around = Some(caller);
        while let Some(at) = around {
            let instance = self.instances.get(at as usize)?;
            if instance.function == function && instance.lexical == Some(environment) {
                return Some(at);
            }
            around = instance.caller;
        }
        let depth = self.instances.get(caller as usize)?.depth + 1;
        let context = if depth > MAX_DEPTH { CallId::MAX } else { call };
        let key = (function, environment, context);
        if let Some(known) = self.contexts.get(&key) {
            return Some(*known);
        }
        if self.instances.len() >= MAX_INSTANCES {
            self.graph.is_lost = true;
            return None;
        }
        let at = self.instance(function, Some(environment), Some(caller), depth);
        self.contexts.insert(key, at);
        self.pending.push(at);
        Some(at)
    }

    pub(super) fn instance(
        &mut self,
        function: FunctionId,
        lexical: Option<u32>,
        caller: Option<u32>,
        depth: u32,
    ) -> u32 {
        let instance = Instance {
            function,
            lexical,
            caller,
            depth,
            positions: Vec::new(),
            spread: self.node(),
            keywords: FxHashMap::default(),
            keyword_spread: self.node(),
            rest: None,
            keyword_rest: None,
            this: self.node(),
            result: self.node(),
            thrown: self.node(),
            failing: self.node(),
            condition: self.node(),
            variables: FxHashMap::default(),
        };
        self.instances.push(instance);
        index(self.instances.len() - 1)
    }

    /// The node of a positional parameter.
    pub(super) fn position(&mut self, at: u32, position: usize) -> Node {
        while self.instances[at as usize].positions.len() <= position {
            let node = self.node();
            let instance = &mut self.instances[at as usize];
            instance.positions.push(node);
            let (reached, spread) = (instance.positions.len() - 1, instance.spread);
            if let Some((start, rest)) = instance.rest
                && reached >= start
            {
                let place = self.indexed(rest, reached - start);
                self.copy(node, place);
            }
            self.copy(spread, node);
        }
        self.instances[at as usize].positions[position]
    }

    pub(super) fn keyword(&mut self, at: u32, name: Name) -> Node {
        if let Some(node) = self.instances[at as usize].keywords.get(&name) {
            return *node;
        }
        let node = self.node();
        let instance = &mut self.instances[at as usize];
        instance.keywords.insert(name, node);
        let (spread, rest) = (instance.keyword_spread, instance.keyword_rest);
        self.flow(spread, Use::Load(name, node));
        if let Some(rest) = rest {
            let place = self.field(rest, name);
            self.copy(node, place);
        }
        node
    }

    /// The list of the arguments from a position on.
    pub(super) fn rest(&mut self, at: u32, start: usize) -> Node {
        let (node, list) = self.holding(ObjectKind::Array);
        let instance = &mut self.instances[at as usize];
        instance.rest = Some((start, list));
        let (spread, given) = (instance.spread, instance.positions.clone());
        let any = self.field(list, name::ANY);
        self.copy(spread, any);
        for (position, from) in given.into_iter().enumerate().skip(start) {
            let place = self.indexed(list, position - start);
            self.copy(from, place);
        }
        node
    }

    /// The dictionary of the arguments that are passed by name.
    pub(super) fn keyword_rest(&mut self, at: u32) -> Node {
        let (node, dict) = self.holding(ObjectKind::Dict);
        let instance = &mut self.instances[at as usize];
        instance.keyword_rest = Some(dict);
        let (spread, given) = (instance.keyword_spread, instance.keywords.clone());
        self.flow(spread, Use::Spread(dict));
        for (name, from) in given {
            let place = self.field(dict, name);
            self.copy(from, place);
        }
        node
    }

    /// The field of an element at a fixed position. Positions that are far behind are one field.
    pub(super) fn indexed(&mut self, object: ObjectId, at: usize) -> Node {
        let name = self.index_name(at);
        self.field(object, name)
    }
}
