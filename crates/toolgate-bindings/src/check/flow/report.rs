//! The result of the analysis: which results reach which arguments.

use serde::{Deserialize, Serialize};

use super::{
    Analysis, Solver,
    graph::{Node, SiteId, Value},
    ir::{index, name},
    places::PlaceMark,
};

/// Which results of calls can reach which arguments of which calls, in one script.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFlow {
    /// The calls of tools in the script.
    pub calls: Vec<CallSite>,
    /// The flows between them.
    pub flows: Vec<SiteFlow>,
}

/// A call of a tool in a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSite {
    /// The exposed name; `None` if the script chooses the tool when it runs.
    pub tool: Option<String>,
    /// The line of the call.
    pub line: u32,
    /// The number of the place that the engine reports with a call that is made here, as a position
    /// in [`Checked::places`](crate::check::Checked::places). `None` if it reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
}

/// A flow from the result of a call to an argument of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteFlow {
    /// The call whose result flows, as a position in [`ProgramFlow::calls`].
    pub from: u32,
    /// The call with the argument.
    pub to: u32,
    /// The argument; `None` if it may be any argument.
    pub argument: Option<String>,
    /// Whether the result only decides: whether the call is made, or which of several values it
    /// gets.
    pub is_choice: bool,
    /// Variables that the data passes through, in their order.
    pub through: Vec<String>,
}

/// The largest number of calls, and of flows between them. With more of them the flows are unknown.
pub(super) const MAX_CALLS: usize = 1_000;
pub(super) const MAX_FLOWS: usize = 4_000;
/// The number of variables that are shown.
const MAX_THROUGH: usize = 3;
const MAX_NAME: usize = 64;
const MAX_STEPS: usize = 200;

impl Solver<'_> {
    pub(super) fn report(&self, text: &str) -> Analysis {
        let marks = self.marks();
        match self.flow_of(text, &marks) {
            Some(flow) => {
                let marks = marks.into_iter().map(|(_, mark)| mark).collect();
                Analysis { flow: Some(flow), marks, steps: self.graph.steps }
            }
            None => Analysis { steps: self.graph.steps, ..Analysis::default() },
        }
    }

    fn flow_of(&self, text: &str, marks: &[(u32, PlaceMark)]) -> Option<ProgramFlow> {
        if self.graph.is_lost || self.sites.len() > MAX_CALLS {
            return None;
        }
        let line = |offset: u32| {
            let before = text.as_bytes().get(..offset as usize).unwrap_or_default();
            memchr::memchr_iter(b'\n', before).count() + 1
        };
        let mut flow = ProgramFlow::default();
        for site in &self.sites {
            let tool = site.tool.map(|tool| self.names.text(tool).to_string());
            let line = u32::try_from(line(site.offset)).unwrap_or(u32::MAX);
            let place = marks.binary_search_by_key(&site.offset, |(offset, _)| *offset).ok();
            flow.calls.push(CallSite { tool, line, place: place.map(index) });
        }
        for (to, field, node) in &self.sent {
            let Some(state) = self.graph.nodes.get(*node as usize) else { continue };
            let argument = match *field {
                name::ANY | name::KEYS | name::SHAPE | name::IMPLICIT | name::BRANCH => None,
                field => Some(self.names.text(field).to_string()),
            };
            for value in &state.values {
                let (from, is_choice) = match value {
                    Value::Data(site) => (*site, false),
                    Value::Choice(site) => (*site, true),
                    Value::Object(_) => continue,
                };
                // What is data there decides nothing more.
                if is_choice && self.holds(*node, Value::Data(from)) {
                    continue;
                }
                if flow.flows.len() >= MAX_FLOWS {
                    return None;
                }
                let through = self.way(*node, *value, from);
                let argument = argument.clone();
                flow.flows.push(SiteFlow { from, to: *to, argument, is_choice, through });
            }
        }
        flow.flows.sort_by(|a, b| {
            (a.to, &a.argument, a.from, a.is_choice).cmp(&(b.to, &b.argument, b.from, b.is_choice))
        });
        Some(flow)
    }

    /// The variables through which a value came to a node.
    fn way(&self, node: Node, value: Value, site: SiteId) -> Vec<String> {
        let mut names: Vec<u32> = Vec::new();
        let (mut node, mut value) = (node, value);
        for _ in 0..MAX_STEPS {
            let state = self.graph.nodes.get(node as usize);
            let own = state.map_or(name::NONE, |state| state.name);
            let object = state.and_then(|state| state.object);
            let object = object.and_then(|object| self.graph.objects.get(object as usize));
            let shown =
                if own == name::NONE { object.map_or(name::NONE, |it| it.name) } else { own };
            if shown != name::NONE && names.last() != Some(&shown) {
                names.push(shown);
            }
            let Some(before) = self.origin(node, value) else { break };
            if before == node {
                break;
            }
            node = before;
            if !self.holds(node, value) {
                value = Value::Data(site);
            }
        }
        names.reverse();
        names.dedup();
        names.truncate(MAX_THROUGH);
        let text = |name: &u32| self.names.text(*name).chars().take(MAX_NAME).collect();
        names.iter().map(text).collect()
    }
}
