//! The statements of a function: what each variable holds at each point.
//!
//! A variable that only its own function uses gets a new node with each assignment. Where branches
//! meet, a node joins what they assigned. In loops and in `try`, one node holds everything that is
//! assigned there. A variable that inner functions use has one node for all times.

use rustc_hash::FxHashMap;

use super::{
    Solver,
    fresh::Fresh,
    graph::{NOTHING, Node, ObjectId, ObjectKind, Use},
    ir::{Expression, Key, Loop, LoopHead, Statement, Target, Try, Var, name},
};

/// The function that is looked at, at some point of it.
pub(super) struct Frame {
    pub(super) instance: u32,
    /// Where exceptions go.
    pub(super) thrown: Node,
    /// Whether the function catches exceptions here.
    pub(super) is_tried: bool,
    /// The data that may end the `try` around this point early.
    pub(super) faults: Node,
    /// The data that may have ended the function, or the `try`, before this point.
    pub(super) doubt: Node,
    /// Where data goes that decides whether the function throws.
    pub(super) failing: Node,
    /// The data that decided to come here.
    pub(super) condition: Node,
    /// The variables whose objects nothing else knows, on the straight way to this point.
    pub(super) fresh: FxHashMap<Var, Fresh>,
    /// What a generator yields.
    pub(super) yields: Option<ObjectId>,
    current: FxHashMap<Var, Node>,
    /// The replaced nodes of variables, with which a branch can be undone.
    log: Vec<(Var, Option<Node>)>,
    /// The nodes that hold everything that is assigned in a loop or a `try`, from the outside in.
    regions: Vec<FxHashMap<Var, Node>>,
}

/// How a list of statements ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    /// Whether the next statement may follow.
    falls: bool,
    /// Whether `return`, `break` or the like may have left it.
    leaves: bool,
}

const FALLS: Ending = Ending { falls: true, leaves: false };
const LEAVES: Ending = Ending { falls: false, leaves: true };

impl Frame {
    fn set(&mut self, variable: Var, node: Node) {
        let old = self.current.insert(variable, node);
        self.log.push((variable, old));
    }

    /// Undoes assignments. Returns what the variables were.
    fn undo(&mut self, mark: usize) -> FxHashMap<Var, Node> {
        let mut changed = FxHashMap::default();
        while self.log.len() > mark {
            let Some((variable, old)) = self.log.pop() else { break };
            let was = match old {
                Some(old) => self.current.insert(variable, old),
                None => self.current.remove(&variable),
            };
            if let Some(was) = was {
                changed.entry(variable).or_insert(was);
            }
        }
        changed
    }
}

impl Solver<'_> {
    /// Looks at the body of a function.
    pub(super) fn enter(&mut self, at: u32) {
        let instance = &self.instances[at as usize];
        let (thrown, condition, result) = (instance.thrown, instance.condition, instance.result);
        let failing = instance.failing;
        let (id, lexical) = (instance.function, instance.lexical);
        let Some(function) = self.program.functions.get(instance.function as usize) else { return };
        let mut frame = Frame {
            instance: at,
            thrown,
            is_tried: false,
            faults: NOTHING,
            doubt: NOTHING,
            failing,
            condition,
            fresh: FxHashMap::default(),
            yields: None,
            current: FxHashMap::default(),
            log: Vec::new(),
            regions: Vec::new(),
        };
        if function.is_generator {
            let (node, list) = self.holding(ObjectKind::Array);
            self.copy(node, result);
            frame.yields = Some(list);
        }
        for (position, parameter) in function.parameters.iter().enumerate() {
            let given = self.position(at, position);
            let value = self.node();
            self.copy(given, value);
            if parameter.name != name::NONE {
                let named = self.keyword(at, parameter.name);
                self.copy(named, value);
            }
            let known = lexical.and_then(|at| self.defaults.get(&(id, at)));
            if let Some(default) = known.and_then(|all| all.get(position)).copied() {
                self.copy(default, value);
            } else if let Some(default) = &parameter.default {
                let mark = frame.log.len();
                let outer = self.under(&mut frame, &[value]);
                let default = self.expression(&mut frame, default);
                frame.condition = outer;
                self.join_optional(&mut frame, mark);
                self.copy(default, value);
            }
            self.assign(&mut frame, &parameter.target, value);
        }
        if let Some(rest) = &function.rest {
            let list = self.rest(at, function.parameters.len());
            self.assign(&mut frame, rest, list);
        }
        if let Some(rest) = &function.keyword_rest {
            let dict = self.keyword_rest(at);
            self.assign(&mut frame, rest, dict);
        }
        self.block(&mut frame, &function.body);
    }

    fn block(&mut self, frame: &mut Frame, statements: &[Statement]) -> Ending {
        let mut ending = FALLS;
        for statement in statements {
            let next = self.statement(frame, statement);
            ending = Ending { falls: next.falls, leaves: ending.leaves || next.leaves };
            if !next.falls || self.graph.is_lost {
                break;
            }
        }
        ending
    }

    fn statement(&mut self, frame: &mut Frame, statement: &Statement) -> Ending {
        match statement {
            Statement::Expression(expression) => {
                self.expression(frame, expression);
                if let Expression::Assign(target, value) = expression
                    && let Target::Variable(variable) = **target
                    && !self.is_captured(variable)
                    && let Some(fresh) = Fresh::of(value)
                {
                    frame.fresh.insert(variable, fresh);
                }
                FALLS
            }
            Statement::Block(body) => self.block(frame, body),
            _ => {
                frame.fresh.clear();
                let ending = self.compound(frame, statement);
                frame.fresh.clear();
                ending
            }
        }
    }

    /// A statement whose parts may not run, or several times.
    fn compound(&mut self, frame: &mut Frame, statement: &Statement) -> Ending {
        match statement {
            Statement::Expression(_) | Statement::Block(_) => FALLS,
            Statement::If { test, then, otherwise } => {
                let test = self.expression(frame, test);
                let outer = self.under(frame, &[test]);
                let mark = frame.log.len();
                let first = self.block(frame, then);
                let first_changes = frame.undo(mark);
                let second = self.block(frame, otherwise);
                let second_changes = frame.undo(mark);
                let leaves = first.leaves || second.leaves;
                if !leaves {
                    frame.condition = outer;
                }
                let falls = first.falls || second.falls;
                self.join(
                    frame,
                    &[
                        (first.falls || !falls, first_changes),
                        (second.falls || !falls, second_changes),
                    ],
                );
                Ending { falls, leaves }
            }
            Statement::Loop(each) => self.repeated(frame, each),
            Statement::Switch { subject, cases, assigned } => {
                let subject = self.expression(frame, subject);
                let outer = self.under(frame, &[subject]);
                self.open(frame, assigned);
                let mut leaves = false;
                for (test, body) in cases {
                    if let Some(test) = test {
                        let test = self.expression(frame, test);
                        self.flow(test, Use::Choose(frame.condition));
                    }
                    Self::reset(frame, assigned);
                    leaves |= self.block(frame, body).leaves;
                }
                Self::close(frame, assigned);
                if !leaves {
                    frame.condition = outer;
                }
                Ending { falls: true, leaves }
            }
            Statement::Labelled { body, assigned } => {
                self.open(frame, assigned);
                let ending = self.block(frame, body);
                Self::close(frame, assigned);
                Ending { falls: true, ..ending }
            }
            Statement::Try(attempt) => self.attempt(frame, attempt),
            Statement::Return(value) => {
                let (result, condition) =
                    (self.instances[frame.instance as usize].result, frame.condition);
                let place = match frame.yields {
                    Some(list) => self.field(list, name::ANY),
                    None => result,
                };
                if let Some(value) = value {
                    let value = self.expression(frame, value);
                    self.copy(value, place);
                }
                self.copy(condition, place);
                LEAVES
            }
            Statement::Throw(values) => {
                for value in values {
                    let value = self.expression(frame, value);
                    self.copy(value, frame.thrown);
                }
                self.copy(frame.condition, frame.thrown);
                self.flow(frame.condition, Use::Choose(frame.failing));
                LEAVES
            }
            Statement::Leave => LEAVES,
        }
    }

    /// Makes what follows depend on the data. Returns the old condition.
    pub(super) fn under(&mut self, frame: &mut Frame, tests: &[Node]) -> Node {
        let outer = frame.condition;
        let inner = self.node();
        self.copy(outer, inner);
        for test in tests {
            self.flow(*test, Use::Choose(inner));
        }
        frame.condition = inner;
        outer
    }

    /// Makes the calls that follow depend on data that may end the function, or the `try`, here.
    pub(super) fn may_end(&mut self, frame: &mut Frame, data: Node) {
        let doubt = self.node();
        self.copy(frame.doubt, doubt);
        self.flow(data, Use::Choose(doubt));
        self.flow(data, Use::Choose(frame.faults));
        frame.doubt = doubt;
    }

    pub(super) fn mark(frame: &Frame) -> usize {
        frame.log.len()
    }

    /// Ends an expression that may not have been evaluated.
    pub(super) fn join_optional(&mut self, frame: &mut Frame, mark: usize) {
        let changes = frame.undo(mark);
        self.join(frame, &[(true, changes), (true, FxHashMap::default())]);
    }

    /// Continues after branches, of which only some may have come to their end.
    fn join(&mut self, frame: &mut Frame, branches: &[(bool, FxHashMap<Var, Node>); 2]) {
        let ends: Vec<&FxHashMap<Var, Node>> =
            branches.iter().filter(|(falls, _)| *falls).map(|(_, changes)| changes).collect();
        if let [only] = ends.as_slice() {
            for (variable, node) in *only {
                frame.set(*variable, *node);
            }
            return;
        }
        let mut variables: Vec<Var> =
            ends.iter().flat_map(|changes| changes.keys().copied()).collect();
        variables.sort_unstable();
        variables.dedup();
        for variable in variables {
            let joined = self.named_like(variable);
            for changes in &ends {
                let node = changes.get(&variable).or_else(|| frame.current.get(&variable)).copied();
                if let Some(node) = node {
                    self.copy(node, joined);
                }
            }
            frame.set(variable, joined);
        }
    }

    fn named_like(&mut self, variable: Var) -> Node {
        let name = self.program.variables.get(variable as usize).map_or(name::NONE, |it| it.name);
        self.named(name)
    }

    /// Begins a part in which one node holds everything that is assigned to a variable.
    fn open(&mut self, frame: &mut Frame, assigned: &[Var]) {
        let mut region = FxHashMap::default();
        for variable in assigned {
            if self.is_captured(*variable) || region.contains_key(variable) {
                continue;
            }
            let node = self.named_like(*variable);
            if let Some(before) = frame.current.get(variable) {
                self.copy(*before, node);
            }
            // An outer loop holds it too.
            for outer in &frame.regions {
                if let Some(outer) = outer.get(variable) {
                    self.copy(node, *outer);
                }
            }
            frame.set(*variable, node);
            region.insert(*variable, node);
        }
        frame.regions.push(region);
    }

    /// Continues at a place that may follow each assignment of the part.
    fn reset(frame: &mut Frame, assigned: &[Var]) {
        let Some(region) = frame.regions.pop() else { return };
        for variable in assigned {
            if let Some(node) = region.get(variable) {
                frame.set(*variable, *node);
            }
        }
        frame.regions.push(region);
    }

    fn close(frame: &mut Frame, assigned: &[Var]) {
        Self::reset(frame, assigned);
        frame.regions.pop();
    }

    fn repeated(&mut self, frame: &mut Frame, each: &Loop) -> Ending {
        let Loop { head, body, update, otherwise, assigned } = each;
        let items = match head {
            LoopHead::Each { items, .. } => Some(self.expression(frame, items)),
            LoopHead::While(_) => None,
        };
        self.open(frame, assigned);
        // What ends a round ends the next ones.
        let doubt = self.node();
        self.copy(frame.doubt, doubt);
        frame.doubt = doubt;
        let outer = match head {
            LoopHead::While(test) => {
                let test = test.as_ref().map(|test| self.expression(frame, test));
                self.under(frame, test.as_slice())
            }
            LoopHead::Each { target, are_keys, .. } => {
                let items = items.unwrap_or_default();
                let outer = self.under(frame, &[items]);
                let item = self.node();
                self.flow(items, if *are_keys { Use::Keys(item) } else { Use::Items(item) });
                self.assign(frame, target, item);
                outer
            }
        };
        let ending = self.block(frame, body);
        if let Some(update) = update {
            self.expression(frame, update);
        }
        self.copy(frame.doubt, doubt);
        Self::close(frame, assigned);
        if !ending.leaves {
            frame.condition = outer;
        }
        let mark = frame.log.len();
        let after = self.block(frame, otherwise);
        // It does not run after `break`.
        if ending.leaves {
            self.join_optional(frame, mark);
        }
        Ending { falls: true, leaves: ending.leaves || after.leaves }
    }

    fn attempt(&mut self, frame: &mut Frame, attempt: &Try) -> Ending {
        let Try { body, handlers, otherwise, finally, assigned } = attempt;
        let (caught, outer, condition) = (self.node(), frame.thrown, frame.condition);
        self.open(frame, assigned);
        self.copy(self.sudden, caught);
        self.copy(caught, self.caught);
        let was_tried = std::mem::replace(&mut frame.is_tried, true);
        let faults = self.node();
        self.copy(frame.faults, faults);
        let outer_faults = std::mem::replace(&mut frame.faults, faults);
        let (doubt, inner) = (frame.doubt, self.node());
        let failing = std::mem::replace(&mut frame.failing, inner);
        frame.thrown = caught;
        let mut ending = self.block(frame, body);
        frame.thrown = outer;
        frame.is_tried = was_tried;
        frame.faults = outer_faults;
        if ending.falls {
            // It runs if nothing was thrown.
            let before = self.under(frame, &[]);
            self.copy(faults, frame.condition);
            let after = self.block(frame, otherwise);
            frame.condition = before;
            ending = Ending { falls: after.falls, leaves: ending.leaves || after.leaves };
        }
        (frame.failing, frame.doubt) = (failing, doubt);
        // In Python a handler may be for other exceptions.
        if handlers.is_empty() || self.program.is_python {
            self.copy(caught, outer);
            self.copy(inner, failing);
            self.may_end(frame, inner);
        }
        for (target, body) in handlers {
            Self::reset(frame, assigned);
            frame.condition = condition;
            self.under(frame, &[caught]);
            self.assign(frame, target, caught);
            let handled = self.block(frame, body);
            ending.falls |= handled.falls;
            ending.leaves |= handled.leaves;
        }
        if !ending.leaves {
            frame.condition = condition;
        }
        Self::reset(frame, assigned);
        let last = self.block(frame, finally);
        Self::close(frame, assigned);
        Ending { falls: ending.falls && last.falls, leaves: ending.leaves || last.leaves }
    }

    fn is_captured(&self, variable: Var) -> bool {
        self.program.variables.get(variable as usize).is_none_or(|it| it.is_captured)
    }

    /// The node of a variable that inner functions use.
    fn captured(&mut self, instance: u32, variable: Var) -> Node {
        let Some(info) = self.program.variables.get(variable as usize).copied() else {
            return self.node();
        };
        let mut at = instance;
        while self.instances[at as usize].function != info.owner {
            match self.instances[at as usize].lexical {
                Some(outer) => at = outer,
                None => break,
            }
        }
        if let Some(node) = self.instances[at as usize].variables.get(&variable) {
            return *node;
        }
        let node = self.named(info.name);
        self.instances[at as usize].variables.insert(variable, node);
        node
    }

    pub(super) fn variable(&mut self, frame: &mut Frame, variable: Var) -> Node {
        if self.is_captured(variable) {
            return self.captured(frame.instance, variable);
        }
        if let Some(node) = frame.current.get(&variable) {
            return *node;
        }
        let node = self.named_like(variable);
        frame.set(variable, node);
        node
    }

    /// Assigns the values of a node.
    pub(super) fn assign(&mut self, frame: &mut Frame, target: &Target, value: Node) {
        match target {
            Target::Nothing => {}
            Target::Variable(variable) => {
                frame.fresh.remove(variable);
                let is_captured = self.is_captured(*variable);
                let node = if is_captured {
                    self.captured(frame.instance, *variable)
                } else {
                    self.named_like(*variable)
                };
                self.copy(value, node);
                self.copy(frame.condition, node);
                self.copy(frame.faults, node);
                if !is_captured {
                    for region in &frame.regions {
                        if let Some(all) = region.get(variable) {
                            self.copy(node, *all);
                        }
                    }
                    frame.set(*variable, node);
                }
            }
            Target::Free(name) => {
                self.overwritten.insert(*name);
                let place = self.field(self.global, *name);
                self.copy(value, place);
                self.copy(frame.condition, place);
            }
            Target::Member(object, key) => {
                let object = self.expression(frame, object);
                if self.program.is_python {
                    self.flow(object, Use::Change);
                }
                // What chose the object is in what is written.
                let chosen = self.node();
                self.flow(object, Use::Labels(chosen));
                match key {
                    Key::Name(field) => {
                        self.flow(object, Use::Store(*field, chosen));
                        self.flow(object, Use::Store(*field, value));
                        self.flow(object, Use::Store(*field, frame.condition));
                    }
                    Key::Computed(key) => {
                        // The elements replace a part of a list.
                        if let Expression::Slice(..) = &**key {
                            let items = self.node();
                            self.flow(value, Use::Items(items));
                            self.flow(object, Use::Store(name::ANY, items));
                            self.flow(object, Use::Blur);
                        }
                        let key = self.expression(frame, key);
                        self.deep(key, chosen);
                        self.flow(object, Use::Store(name::ANY, chosen));
                        self.flow(object, Use::Store(name::ANY, value));
                        self.flow(object, Use::Store(name::ANY, frame.condition));
                        self.flow(object, Use::Store(name::KEYS, key));
                    }
                }
            }
            Target::Object { entries, rest } => {
                for (key, target, default) in entries {
                    let part = self.member(frame, value, key);
                    self.assign_part(frame, target, part, default.as_ref());
                }
                if let Some(rest) = rest {
                    let taken = entries.iter().filter_map(|(key, ..)| match key {
                        Key::Name(field) => Some(*field),
                        Key::Computed(_) => None,
                    });
                    let (node, _) = self.spread_except(value, taken.collect());
                    self.assign(frame, rest, node);
                }
            }
            Target::Array { items, rest } => {
                for (at, (target, default)) in items.iter().enumerate() {
                    let name = self.index_name(at);
                    let part = self.node();
                    self.flow(value, Use::Load(name, part));
                    self.assign_part(frame, target, part, default.as_ref());
                }
                if let Some(rest) = rest {
                    let (node, object) = self.holding(ObjectKind::Array);
                    let (any, shape) =
                        (self.field(object, name::ANY), self.field(object, name::SHAPE));
                    self.flow(value, Use::Items(any));
                    self.flow(value, Use::Shape(shape));
                    self.assign(frame, rest, node);
                }
            }
        }
    }

    fn assign_part(
        &mut self,
        frame: &mut Frame,
        target: &Target,
        part: Node,
        default: Option<&Expression>,
    ) {
        if let Some(default) = default {
            let mark = frame.log.len();
            let outer = self.under(frame, &[part]);
            let default = self.expression(frame, default);
            frame.condition = outer;
            self.join_optional(frame, mark);
            self.copy(default, part);
        }
        self.assign(frame, target, part);
    }
}
