//! The graph of a run: which results can reach which arguments, as the text of its script says.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use toolgate_sandbox::{ProgramFlow, SiteFlow};

/// The flows between the calls in the text of a script, as the journal stores them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunGraph {
    /// The flows, ordered by the line of the result.
    pub flows: Vec<GraphEdge>,
    /// How many more there were.
    pub left_out: usize,
}

/// A flow from the result of a call to an argument of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphEdge {
    /// The call whose result it is.
    pub from: GraphCall,
    /// The call with the argument.
    pub to: GraphCall,
    /// The argument; `None` if it may be any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// Whether the result only decides whether the call is made, or which value is sent.
    pub is_choice: bool,
    /// The variables that the data passes through, in their order.
    pub through: Vec<String>,
}

/// A call in the text of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphCall {
    /// The line of the call.
    pub line: u32,
    /// The exposed name of the tool; `None` if the script chooses the tool when it runs.
    pub tool: Option<String>,
}

/// The most flows that are stored.
const MAX_STORED: usize = 500;

impl RunGraph {
    /// The flows of a script. A result that flows into an argument and decides on it too is listed
    /// once.
    pub(crate) fn of(flow: &ProgramFlow) -> Self {
        let call = |at: u32| {
            let call = flow.calls.get(usize::try_from(at).ok()?)?;
            Some(GraphCall { line: call.line, tool: call.tool.clone() })
        };
        let edge = |edge: &SiteFlow| {
            Some(GraphEdge {
                from: call(edge.from)?,
                to: call(edge.to)?,
                argument: edge.argument.clone(),
                is_choice: edge.is_choice,
                through: edge.through.clone(),
            })
        };
        let end = |edge: &SiteFlow| (edge.from, edge.to, edge.argument.clone());
        let data: BTreeSet<_> = flow.flows.iter().filter(|it| !it.is_choice).map(end).collect();
        let counts = |edge: &&SiteFlow| !edge.is_choice || !data.contains(&end(edge));
        let mut flows: Vec<GraphEdge> = flow.flows.iter().filter(counts).filter_map(edge).collect();
        flows.sort_by(|one, other| one.order().cmp(&other.order()));
        let left_out = flows.len().saturating_sub(MAX_STORED);
        flows.truncate(MAX_STORED);
        Self { flows, left_out }
    }
}

impl GraphEdge {
    fn order(&self) -> impl Ord {
        let Self { from, to, argument, is_choice, .. } = self;
        let tools = (from.tool.clone(), to.tool.clone());
        (from.line, to.line, tools, *is_choice, argument.clone())
    }
}

#[cfg(test)]
mod tests {
    use toolgate_sandbox::CallSite;

    use super::*;

    #[test]
    fn a_graph_is_bounded_and_says_how_much_is_missing() {
        let call = |line| CallSite { tool: Some("echo".to_owned()), line, place: None };
        let flow = |at: u32| SiteFlow {
            from: 1,
            to: 0,
            argument: Some(format!("a{at}")),
            is_choice: false,
            through: vec!["x".to_owned()],
        };
        let flows = (0..600).map(flow).collect();
        let graph = RunGraph::of(&ProgramFlow { calls: vec![call(7), call(3)], flows });
        assert_eq!((graph.flows.len(), graph.left_out), (500, 100));
        assert_eq!((graph.flows[0].from.line, graph.flows[0].to.line), (3, 7));
    }
}
