//! Which results can reach which arguments in a script, as its text says.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use toolgate_policy::ScriptWay;

/// The flows between the calls of a script. The script was looked at before it ran, so they hold for
/// every course that it can take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptFlow {
    /// The calls by their tool; `None` for calls whose tool is chosen by the script when it runs.
    sites: HashMap<Option<Arc<str>>, Vec<NumberedPlace>>,
    /// The flows by the call that they lead to.
    edges: HashMap<u32, Vec<ScriptFlowEdge>>,
}

/// The number of a call in the list of calls, and the place that the engine reports for it.
type NumberedPlace = (u32, Option<u32>);

/// A call of a tool in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptSite {
    /// The exposed name of the tool; `None` for any tool.
    pub tool: Option<Arc<str>>,
    /// The place that the engine reports with a call that is made here, if it reports one.
    pub place: Option<u32>,
}

/// A flow from the result of a call to an argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFlowEdge {
    /// The call whose result flows, as a position in the list of calls.
    pub from: u32,
    /// The call that gets it.
    pub to: u32,
    /// The argument; `None` for any.
    pub argument: Option<String>,
    /// How the data gets there.
    pub way: ScriptWay,
}

impl ScriptFlow {
    /// The flows between these calls.
    pub fn new(sites: Vec<ScriptSite>, edges: Vec<ScriptFlowEdge>) -> Self {
        let mut flow = Self::default();
        for (number, ScriptSite { tool, place }) in (0..).zip(sites) {
            flow.sites.entry(tool).or_default().push((number, place));
        }
        for edge in edges {
            flow.edges.entry(edge.to).or_default().push(edge);
        }
        flow
    }

    /// The calls in the script that may be this call of a tool. If the place is not known, or is not
    /// that of such a call, these are all calls that may be calls of this tool.
    pub(crate) fn sites(&self, tool: &str, place: Option<u32>) -> BTreeSet<u32> {
        let named = self.sites.get(&Some(Arc::from(tool)));
        let all = || named.into_iter().chain(self.sites.get(&None)).flatten();
        let here: BTreeSet<u32> = all()
            .filter(|(_, own)| own.is_some() && *own == place)
            .map(|(number, _)| *number)
            .collect();
        if here.is_empty() { all().map(|(number, _)| *number).collect() } else { here }
    }

    /// The flows to the arguments of some calls.
    pub(crate) fn into<'f>(
        &'f self,
        sites: &'f BTreeSet<u32>,
    ) -> impl Iterator<Item = &'f ScriptFlowEdge> {
        sites.iter().filter_map(|site| self.edges.get(site)).flatten()
    }
}

impl ScriptFlowEdge {
    /// The argument as a JSON pointer.
    pub(crate) fn pointer(&self) -> Option<String> {
        let name = self.argument.as_ref()?;
        Some(format!("/{}", name.replace('~', "~0").replace('/', "~1")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_or_missing_place_is_every_call_of_the_tool() {
        let site = |tool: Option<&str>, place| ScriptSite { tool: tool.map(Arc::from), place };
        let sites = vec![
            site(Some("crm_get"), Some(0)),
            site(Some("crm_get"), Some(1)),
            site(Some("mail_send"), Some(2)),
            site(None, Some(3)),
            site(None, None),
        ];
        let flow = ScriptFlow::new(sites, Vec::new());
        let sites = |tool, place| flow.sites(tool, place).into_iter().collect::<Vec<_>>();
        assert_eq!(sites("crm_get", Some(0)), [0]);
        assert_eq!(sites("crm_get", Some(1)), [1]);
        assert_eq!(sites("crm_get", Some(3)), [3], "`call_tool` with a computed name");
        assert_eq!(sites("crm_get", None), [0, 1, 3, 4]);
        assert_eq!(sites("crm_get", Some(2)), [0, 1, 3, 4], "the place of another tool");
        assert_eq!(sites("crm_get", Some(99)), [0, 1, 3, 4], "no place");
        assert_eq!(sites("files_read", Some(0)), [3, 4], "a tool that the text does not name");
    }
}
