//! From a tool to the rules that may be about it, without looking at all of them.

use std::collections::{BTreeSet, HashMap};

use crate::pattern::Naming;
use crate::rule::{Facts, Target};

/// Targets by what is fixed of them. A lookup gives a superset of those that match.
#[derive(Debug, Default)]
pub(crate) struct Index {
    by_exposed: HashMap<Box<str>, Vec<usize>>,
    by_own: HashMap<Box<str>, Vec<usize>>,
    by_server: HashMap<Box<str>, Vec<usize>>,
    /// By what the exposed name begins with.
    by_start: HashMap<String, Vec<usize>>,
    /// How long these starts are, so that no other length is looked up.
    start_lengths: BTreeSet<usize>,
    /// What can only be compared.
    others: Vec<usize>,
}

impl Index {
    /// Arranges targets, which are known by their position from then on.
    pub(crate) fn new<'t>(targets: impl IntoIterator<Item = &'t Target>) -> Self {
        let mut index = Self::default();
        for (position, target) in targets.into_iter().enumerate() {
            index.insert(position, target);
        }
        index
    }

    /// The positions of all targets that match, in order.
    pub(crate) fn matching<'i>(
        &'i self,
        facts: &'i Facts<'_>,
        target: impl Fn(usize) -> &'i Target,
    ) -> Vec<usize> {
        let starts = self
            .start_lengths
            .iter()
            .filter_map(|length| facts.exposed.get(..*length))
            .filter_map(|start| self.by_start.get(start));
        let mut found: Vec<usize> = [
            self.by_exposed.get(facts.exposed),
            self.by_own.get(facts.own),
            self.by_server.get(facts.server),
            Some(&self.others),
        ]
        .into_iter()
        .flatten()
        .chain(starts)
        .flatten()
        .copied()
        .filter(|position| target(*position).matches(facts))
        .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn insert(&mut self, position: usize, target: &Target) {
        if let Some(tool) = &target.tool
            && let Some(exact) = tool.name.exact()
        {
            if tool.naming != Naming::Own {
                self.by_exposed.entry(exact.into()).or_default().push(position);
            }
            if tool.naming != Naming::Exposed {
                self.by_own.entry(exact.into()).or_default().push(position);
            }
        } else if let Some(server) = target.server.as_ref().and_then(|server| server.exact()) {
            self.by_server.entry(server.into()).or_default().push(position);
        } else if let Some(tool) = &target.tool
            && tool.naming == Naming::Exposed
            && let start = tool.name.literal_start()
            && !start.is_empty()
        {
            self.start_lengths.insert(start.len());
            self.by_start.entry(start).or_default().push(position);
        } else {
            self.others.push(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Annotations, Claims, LabelSet, Trust};

    fn targets() -> impl Strategy<Value = Target> {
        let part = prop_oneof![
            2 => "[ab*?_]{1,4}",
            1 => "[ab]{1,2}_[ab]{1,2}",
            1 => "[ab*]{1,2}/[ab*]{1,2}",
        ];
        let name = proptest::option::of(part.clone());
        (proptest::option::of("[ab*]{1,2}"), name)
            .prop_filter_map("a sound target", |(server, tool)| {
                Target::read(server.as_deref(), tool.as_deref()).ok()
            })
    }

    proptest! {
        #[test]
        fn the_index_finds_what_a_scan_finds(
            targets in proptest::collection::vec(targets(), 0..20),
            server in "[ab]{1,2}", own in "[ab]{1,2}",
        ) {
            let exposed = format!("{server}_{own}");
            let facts = Facts {
                server: &server, own: &own, exposed: &exposed,
                annotations: Annotations::default(), claims: Claims::All,
                trust: Trust::Unknown, labels: LabelSet::EMPTY,
            };
            let scanned: Vec<usize> = (0..targets.len()).filter(|at| targets[*at].matches(&facts)).collect();
            let found = Index::new(&targets).matching(&facts, |at| &targets[at]);
            prop_assert_eq!(found, scanned);
        }
    }
}
