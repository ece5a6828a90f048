//! Which results can reach which arguments in a script, as its text says.

use std::{collections::HashMap, sync::Arc};

use toolgate_policy::ScriptWay;

/// The flows between the calls of a script. The script was looked at before it ran, so they hold for
/// every course that it can take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptFlow {
    /// The flows by the tool that they lead to; `None` for calls whose tool is chosen by the script
    /// when it runs.
    by_target: HashMap<Option<Arc<str>>, Vec<ScriptFlowEdge>>,
}

/// A flow from the results of a tool to an argument of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFlowEdge {
    /// The exposed name of the tool whose results flow; `None` for any tool.
    pub from: Option<Arc<str>>,
    /// The exposed name of the tool that gets them; `None` for any tool.
    pub to: Option<Arc<str>>,
    /// The argument; `None` for any.
    pub argument: Option<String>,
    /// How the data gets there.
    pub way: ScriptWay,
}

impl ScriptFlow {
    /// The flows to the arguments of a tool.
    pub(crate) fn to<'f>(&'f self, tool: &str) -> impl Iterator<Item = &'f ScriptFlowEdge> {
        let named = self.by_target.get(&Some(Arc::from(tool)));
        named.into_iter().chain(self.by_target.get(&None)).flatten()
    }
}

impl ScriptFlowEdge {
    /// Whether results of this tool flow.
    pub(crate) fn comes_from(&self, tool: &str) -> bool {
        self.from.as_deref().is_none_or(|from| from == tool)
    }

    /// The argument as a JSON pointer.
    pub(crate) fn pointer(&self) -> Option<String> {
        let name = self.argument.as_ref()?;
        Some(format!("/{}", name.replace('~', "~0").replace('/', "~1")))
    }
}

impl FromIterator<ScriptFlowEdge> for ScriptFlow {
    fn from_iter<I: IntoIterator<Item = ScriptFlowEdge>>(edges: I) -> Self {
        let mut flow = Self::default();
        for edge in edges {
            flow.by_target.entry(edge.to.clone()).or_default().push(edge);
        }
        flow
    }
}
