//! An index from tools to rules, so that a lookup does not compare all rules.

use std::collections::{BTreeSet, HashMap};

use crate::pattern::Closeness;
use crate::pattern::{NamePattern, Naming};
use crate::rule::{RuleTarget, ToolFacts};

/// Targets, indexed by the fixed part of their names. A lookup returns a superset of the matches.
#[derive(Debug, Default)]
pub(crate) struct RuleIndex {
    by_exposed: HashMap<Box<str>, Vec<usize>>,
    by_own: HashMap<Box<str>, Vec<usize>>,
    by_server: HashMap<Box<str>, Vec<usize>>,
    /// By the start of the exposed name.
    by_start: HashMap<String, Vec<usize>>,
    /// The lengths of these starts. Only these are looked up.
    start_lengths: BTreeSet<usize>,
    /// Targets without a fixed part, which are always compared.
    others: Vec<usize>,
}

impl RuleIndex {
    /// Builds the index. Targets are identified by their position.
    pub(crate) fn new<'t>(targets: impl IntoIterator<Item = &'t RuleTarget>) -> Self {
        let mut index = Self::default();
        for (position, target) in targets.into_iter().enumerate() {
            index.insert(position, target);
        }
        index
    }

    /// The positions of all matching targets, in order. The callback says for each target how
    /// similar names must be.
    pub(crate) fn matching<'i>(
        &'i self,
        facts: &'i ToolFacts<'_>,
        target: impl Fn(usize) -> (&'i RuleTarget, Closeness),
    ) -> Vec<usize> {
        let exposed = || facts.names.exposed_looks.iter().flatten();
        let starts = exposed()
            .flat_map(|look| self.start_lengths.iter().filter_map(|length| look.get(..*length)))
            .filter_map(|start| self.by_start.get(start));
        let by_exposed = exposed().filter_map(|look| self.by_exposed.get(look.as_str()));
        let own = facts.names.own_looks.iter();
        let by_own = own.filter_map(|look| self.by_own.get(look.as_str()));
        let matches = |position: &usize| {
            let (target, closeness) = target(*position);
            target.matches(facts, closeness)
        };
        let mut found: Vec<usize> = [self.by_server.get(facts.server), Some(&self.others)]
            .into_iter()
            .flatten()
            .chain(by_exposed)
            .chain(by_own)
            .chain(starts)
            .flatten()
            .copied()
            .filter(matches)
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn insert(&mut self, position: usize, target: &RuleTarget) {
        if let Some(tool) = &target.tool
            && tool.name.exact().is_some()
        {
            for look in tool.looks().iter().filter_map(NamePattern::exact) {
                if tool.naming != Naming::Own {
                    self.by_exposed.entry(look.into()).or_default().push(position);
                }
                if tool.naming != Naming::Exposed {
                    self.by_own.entry(look.into()).or_default().push(position);
                }
            }
        } else if let Some(server) = target.server.as_ref().and_then(|server| server.exact()) {
            self.by_server.entry(server.into()).or_default().push(position);
        } else if let Some(tool) = &target.tool
            && tool.naming == Naming::Exposed
            && let starts = tool.looks().each_ref().map(NamePattern::literal_start)
            // Combining marks of other alphabets can change their order in a longer text.
            && starts.iter().all(|start| !start.is_empty() && start.is_ascii())
        {
            for start in starts {
                self.start_lengths.insert(start.len());
                self.by_start.entry(start).or_default().push(position);
            }
        } else {
            self.others.push(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Annotations, Claims, LabelSet, ToolId, Trust, pattern::CompiledNames};

    fn targets() -> impl Strategy<Value = RuleTarget> {
        let part = prop_oneof![
            2 => "[aBb*?_]{1,4}",
            1 => "[abI]{1,2}_[aBlа]{1,2}",
            1 => "[ab*]{1,2}/[ab*]{1,2}",
        ];
        let name = proptest::option::of(part.clone());
        (proptest::option::of("[ab*]{1,2}"), name)
            .prop_filter_map("a sound target", |(server, tool)| {
                RuleTarget::read(server.as_deref(), tool.as_deref()).ok()
            })
    }

    proptest! {
        #[test]
        fn the_index_finds_what_a_scan_finds(
            targets in proptest::collection::vec(targets(), 0..20),
            server in "[ab]{1,2}", own in "[abIl1а]{1,2}",
        ) {
            let exposed = format!("{server}_{own}");
            let id = ToolId::new(server.as_str(), own.as_str());
            let names = CompiledNames::new(&id, None, &exposed);
            let facts = ToolFacts {
                server: &server, own: &own, names: &names,
                annotations: Annotations::default(), claims: Claims::All,
                trust: Trust::Unknown, labels: LabelSet::EMPTY,
            };
            for closeness in [Closeness::Exact, Closeness::Alike] {
                let matches = |at: &usize| targets[*at].matches(&facts, closeness);
                let scanned: Vec<usize> = (0..targets.len()).filter(matches).collect();
                let found = RuleIndex::new(&targets).matching(&facts, |at| (&targets[at], closeness));
                prop_assert_eq!(found, scanned);
            }
        }
    }
}
