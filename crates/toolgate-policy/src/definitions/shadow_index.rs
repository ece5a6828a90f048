//! The names of all servers' tools as they look, kept while servers come and go.

use std::collections::{BTreeSet, HashMap};

use toolgate_catalog::{HOST_TOOL_NAMES, ServerName, ToolId};

use super::shadow::{Likeness, Shadow, Shadowed, likeness, looks};

/// Who has which names, by what they look like. What one server's change costs is in proportion to
/// that server.
#[derive(Debug, Default)]
pub struct ShadowIndex {
    by_look: HashMap<String, BTreeSet<(usize, ToolId)>>,
    servers: HashMap<ServerName, (usize, Vec<ToolId>)>,
}

/// How many tools of one look are kept to compare with, of all servers. Who has more has them to
/// confuse, and the first to have a look is what counts.
const MOST_ALIKE: usize = 64;

impl ShadowIndex {
    /// Puts these tools in the place of a server's; `rank` is its place in the order of trust. Gives the
    /// servers after it whose tools may now shadow others, or no longer.
    pub fn replace(
        &mut self,
        server: &ServerName,
        rank: usize,
        tools: Vec<ToolId>,
    ) -> BTreeSet<ServerName> {
        let old = self.servers.remove(server).map(|(_, tools)| tools).unwrap_or_default();
        let seen = |tools: &[ToolId]| -> BTreeSet<String> {
            tools.iter().flat_map(|tool| looks(&tool.tool)).collect()
        };
        let (before, after) = (seen(&old), seen(&tools));
        for tool in &old {
            for look in looks(&tool.tool) {
                if let Some(alike) = self.by_look.get_mut(&look) {
                    alike.retain(|(_, known)| known != tool);
                }
            }
        }
        for look in &before {
            if self.by_look.get(look).is_some_and(BTreeSet::is_empty) {
                self.by_look.remove(look);
            }
        }
        for tool in &tools {
            for look in looks(&tool.tool) {
                let alike = self.by_look.entry(look).or_default();
                alike.insert((rank, tool.clone()));
                if alike.len() > MOST_ALIKE {
                    alike.pop_last();
                }
            }
        }
        self.servers.insert(server.clone(), (rank, tools));
        let changed = before.symmetric_difference(&after).filter_map(|look| self.by_look.get(look));
        let later = changed.flatten().filter(|(other, _)| *other > rank);
        later.map(|(_, tool)| tool.server.clone()).collect()
    }

    /// What a tool of a server that is known can be taken for on purpose: another tool whose name has
    /// letters that look alike, or one of toolgate's own. Honest servers have the same names, or the same
    /// in another spelling, as a matter of course.
    pub fn shadow(&self, tool: &ToolId) -> Option<Shadow> {
        let (rank, _) = self.servers.get(&tool.server)?;
        let looks = looks(&tool.tool);
        let shadow = |of, likeness| Some(Shadow { tool: tool.clone(), of, likeness });
        let own = HOST_TOOL_NAMES
            .iter()
            .find(|name| super::shadow::looks(name).iter().any(|look| looks.contains(look)));
        if let Some(name) = own {
            let likeness = likeness(&tool.tool, name);
            // Under its prefix it is another name.
            return shadow(Shadowed::Host(name), likeness).filter(|_| likeness != Likeness::Same);
        }
        let alike = looks.iter().filter_map(|look| self.by_look.get(look)).flatten();
        let others = alike.filter(|(other, known)| other < rank && known.server != tool.server);
        let is_same = |known: &ToolId| likeness(&tool.tool, &known.tool) != Likeness::Letters;
        let mut first = None;
        for (_, known) in others {
            // One honest namesake is enough not to be suspected.
            if is_same(known) {
                return None;
            }
            first.get_or_insert(known);
        }
        shadow(Shadowed::Tool(first?.clone()), Likeness::Letters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(server: &str, names: &[&str]) -> Vec<ToolId> {
        names.iter().map(|name| ToolId::new(server, *name)).collect()
    }

    #[test]
    fn who_is_first_in_the_order_of_trust_is_shadowed_whenever_they_come() {
        let mut index = ShadowIndex::default();
        let late = ToolId::new("late", "send_emaiI");
        assert!(index.replace(&"late".into(), 1, vec![late.clone()]).is_empty());
        assert_eq!(index.shadow(&late), None);
        let mail = ToolId::new("mail", "send_email");
        let touched = index.replace(&"mail".into(), 0, vec![mail.clone()]);
        assert_eq!(touched, BTreeSet::from(["late".into()]));
        assert_eq!(index.shadow(&late).unwrap().of, Shadowed::Tool(mail.clone()));
        assert_eq!(index.shadow(&mail), None);
        assert!(index.replace(&"mail".into(), 0, vec![mail]).is_empty(), "nothing is new");
        assert_eq!(index.replace(&"mail".into(), 0, vec![]), BTreeSet::from(["late".into()]));
        assert_eq!(index.shadow(&late), None);
    }

    #[test]
    fn the_same_name_is_common_and_the_hosts_names_are_guarded() {
        let mut index = ShadowIndex::default();
        index.replace(&"a".into(), 0, tools("a", &["search"]));
        index.replace(&"b".into(), 1, tools("b", &["search", "Search", "searchTools"]));
        assert_eq!(index.shadow(&ToolId::new("b", "search")), None);
        assert_eq!(index.shadow(&ToolId::new("b", "Search")), None);
        let host = index.shadow(&ToolId::new("b", "searchTools")).unwrap();
        assert_eq!(host.of, Shadowed::Host("search_tools"));
    }
}
