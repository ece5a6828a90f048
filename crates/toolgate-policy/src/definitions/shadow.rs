//! Tool names that imitate those of other servers.
//!
//! A model that means `send_email` of one server can be led to `send_emaiI` of another. Names are
//! compared by their look: without case and separators, and with look-alike letters of other
//! alphabets replaced by Latin ones.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use serde::Serialize;
use toolgate_catalog::{HOST_TOOL_NAMES, ServerName, ToolId};
use unicode_security::confusable_detection::skeleton;

use super::shown;

/// The longest part of a name that is compared, in characters.
const LONGEST: usize = 128;
/// The number of tools with the same look that are kept for comparison.
const MOST_ALIKE: usize = 16;
/// The largest number of results.
const MAX_SHADOWS: usize = 1_000;

/// A tool with a name that can be mistaken for another tool's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shadow {
    /// The tool. Of two, it is the one whose server comes later.
    pub tool: ToolId,
    /// The tool that it can be mistaken for.
    pub of: Shadowed,
    /// How similar the names are.
    pub likeness: Likeness,
}

/// The tool that another one can be mistaken for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Shadowed {
    /// The tool of another server.
    Tool(ToolId),
    /// One of toolgate's own tools.
    Host(&'static str),
}

/// How similar two names are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Likeness {
    /// They are equal. That is common between honest servers: `search`, `list_issues`.
    Same,
    /// They differ in case or separators.
    Spelling,
    /// They differ in letters that look alike. This is hardly ever an accident.
    Letters,
}

/// Finds the tools with names that can be mistaken for tools of earlier servers, or for toolgate's
/// own. The order of `tools` is that of trust: the first tool with a name is the one that is
/// shadowed.
pub fn shadowing<'t>(tools: impl IntoIterator<Item = &'t ToolId>) -> Vec<Shadow> {
    let mut first: BTreeMap<String, Vec<&ToolId>> = BTreeMap::new();
    let mut shadows = Vec::new();
    let hosts: BTreeMap<String, &'static str> =
        HOST_TOOL_NAMES.iter().flat_map(|name| looks(name).map(|look| (look, *name))).collect();
    for tool in tools {
        if shadows.len() >= MAX_SHADOWS {
            break;
        }
        let looks = looks(&tool.tool);
        if let Some(name) = looks.iter().find_map(|look| hosts.get(look)) {
            let likeness = likeness(&tool.tool, name);
            shadows.push(Shadow { tool: tool.clone(), of: Shadowed::Host(name), likeness });
        }
        // Only the most similar one is reported: ten servers with a `search` would give forty-five
        // pairs.
        let other = looks
            .iter()
            .filter_map(|look| first.get(look))
            .flatten()
            .filter(|other| other.server != tool.server)
            .min_by_key(|other| likeness(&tool.tool, &other.tool));
        if let Some(other) = other {
            let likeness = likeness(&tool.tool, &other.tool);
            let of = Shadowed::Tool((*other).clone());
            shadows.push(Shadow { tool: tool.clone(), of, likeness });
        }
        for look in looks {
            let alike = first.entry(look).or_default();
            // The first few of each look are enough to find one of another server.
            if alike.len() < MOST_ALIKE {
                alike.push(tool);
            }
        }
    }
    shadows
}

pub(super) fn likeness(one: &str, other: &str) -> Likeness {
    if one == other {
        Likeness::Same
    } else if spelling(one) == spelling(other) {
        Likeness::Spelling
    } else {
        Likeness::Letters
    }
}

/// The name without case and separators.
fn spelling(name: &str) -> String {
    let letters = name.chars().take(LONGEST).filter(|character| character.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// The look of a name, in two forms: `I` is an `i` in `createIssue`, and looks like an `l` in
/// `send_emaiI`.
pub(super) fn looks(name: &str) -> [String; 2] {
    let name: String = name.chars().take(LONGEST).collect();
    let plain = spelling(&skeleton(&spelling(&name)).collect::<String>());
    let upper = spelling(&skeleton(&name).collect::<String>());
    [format!("plain {plain}"), format!("upper {upper}")]
}

impl fmt::Display for Shadow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |id: &ToolId| format!("{}/{}", id.server, shown(&id.tool, LONGEST));
        write!(formatter, "`{}` can be taken for ", name(&self.tool))?;
        match &self.of {
            Shadowed::Tool(other) => write!(formatter, "{}", name(other)),
            Shadowed::Host(own) => write!(formatter, "toolgate's own {own}"),
        }
    }
}

/// The names of all servers' tools, indexed by their look. Updating one server costs time in
/// proportion to that server's tools.
#[derive(Debug, Default)]
pub struct ShadowIndex {
    by_look: HashMap<String, BTreeSet<(usize, ToolId)>>,
    servers: HashMap<ServerName, (usize, Vec<ToolId>)>,
}

/// The number of tools with the same look that are kept, of all servers. Only the first of them
/// matter.
const MOST_CANDIDATES: usize = 64;

impl ShadowIndex {
    /// Replaces the tools of a server, which has the position `rank` in the order of trust. Returns
    /// the later servers with tools that may now shadow others, or no longer do.
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
                if alike.len() > MOST_CANDIDATES {
                    alike.pop_last();
                }
            }
        }
        self.servers.insert(server.clone(), (rank, tools));
        let changed = before.symmetric_difference(&after).filter_map(|look| self.by_look.get(look));
        let later = changed.flatten().filter(|(other, _)| *other > rank);
        later.map(|(_, tool)| tool.server.clone()).collect()
    }

    /// What a tool imitates on purpose: another tool with look-alike letters in its name, or one of
    /// toolgate's own. Equal names and other spellings are common between honest servers and are
    /// ignored.
    pub fn shadow(&self, tool: &ToolId) -> Option<Shadow> {
        let (rank, _) = self.servers.get(&tool.server)?;
        let looks = looks(&tool.tool);
        let shadow = |of, likeness| Some(Shadow { tool: tool.clone(), of, likeness });
        let own = HOST_TOOL_NAMES
            .iter()
            .find(|name| super::shadow::looks(name).iter().any(|look| looks.contains(look)));
        if let Some(name) = own {
            let likeness = likeness(&tool.tool, name);
            // With its prefix it has a different name.
            return shadow(Shadowed::Host(name), likeness).filter(|_| likeness != Likeness::Same);
        }
        let alike = looks.iter().filter_map(|look| self.by_look.get(look)).flatten();
        let others = alike.filter(|(other, known)| other < rank && known.server != tool.server);
        let is_same = |known: &ToolId| likeness(&tool.tool, &known.tool) != Likeness::Letters;
        let mut first = None;
        for (_, known) in others {
            // A tool with an honest namesake is not suspected.
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

    fn found(tools: &[(&str, &str)]) -> Vec<String> {
        let tools: Vec<ToolId> =
            tools.iter().map(|(server, tool)| ToolId::new(*server, *tool)).collect();
        let shadows = shadowing(&tools);
        shadows
            .iter()
            .map(|shadow| {
                let of = match &shadow.of {
                    Shadowed::Tool(tool) => format!("{}/{}", tool.server, tool.tool),
                    Shadowed::Host(name) => (*name).to_owned(),
                };
                format!("{}/{} {:?} {of}", shadow.tool.server, shadow.tool.tool, shadow.likeness)
            })
            .collect()
    }

    #[test]
    fn names_are_compared_as_they_look() {
        let mail = ("mail", "send_email");
        assert_eq!(found(&[mail, ("x", "send_email")]), ["x/send_email Same mail/send_email"]);
        assert_eq!(found(&[mail, ("x", "sendEmail")]), ["x/sendEmail Spelling mail/send_email"]);
        for alike in ["send_emaiI", "sеnd_email", "send_ernail", "ｓend_email", "send-emai1"] {
            let told = found(&[mail, ("x", alike)]);
            assert_eq!(told, [format!("x/{alike} Letters mail/send_email")]);
        }
    }

    #[test]
    fn names_of_meta_tools_are_protected() {
        assert_eq!(found(&[("x", "searchTools")]), ["x/searchTools Spelling search_tools"]);
    }

    #[test]
    fn others_are_left_alone() {
        assert!(found(&[("a", "list"), ("a", "List"), ("b", "list_all"), ("c", "")]).is_empty());
    }

    #[test]
    fn one_of_a_crowd_is_told() {
        let told = found(&[("a", "search"), ("b", "search"), ("c", "Search"), ("d", "search")]);
        assert_eq!(
            told,
            ["b/search Same a/search", "c/Search Spelling a/search", "d/search Same a/search"]
        );
    }
}

#[cfg(test)]
mod shadow_index_tests {
    use super::*;

    fn tools(server: &str, names: &[&str]) -> Vec<ToolId> {
        names.iter().map(|name| ToolId::new(server, *name)).collect()
    }

    #[test]
    fn the_more_trusted_tool_is_the_imitated_one() {
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
    fn equal_names_are_common_and_names_of_meta_tools_are_protected() {
        let mut index = ShadowIndex::default();
        index.replace(&"a".into(), 0, tools("a", &["search"]));
        index.replace(&"b".into(), 1, tools("b", &["search", "Search", "searchTools"]));
        assert_eq!(index.shadow(&ToolId::new("b", "search")), None);
        assert_eq!(index.shadow(&ToolId::new("b", "Search")), None);
        let host = index.shadow(&ToolId::new("b", "searchTools")).unwrap();
        assert_eq!(host.of, Shadowed::Host("search_tools"));
    }
}
