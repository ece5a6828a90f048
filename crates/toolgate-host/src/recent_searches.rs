//! The recent searches of a session, and which of them a call answers.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;
use toolgate_catalog::ToolId;

/// The last searches of a session.
#[derive(Debug, Default)]
pub(crate) struct RecentSearches {
    searches: Mutex<VecDeque<Search>>,
}

/// One query of a search, and the tools it found, best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchedQuery {
    pub(crate) query: String,
    pub(crate) found: Vec<ToolId>,
}

#[derive(Debug)]
struct Search {
    asked: Vec<SearchedQuery>,
    /// How many calls were made since.
    calls: usize,
    /// The tools that were called for this search.
    answered: HashSet<ToolId>,
}

/// How many searches are remembered.
const SEARCHES: usize = 8;
/// After how many calls a search is forgotten. Later calls have other reasons.
const CALLS: usize = 16;

impl RecentSearches {
    pub(crate) fn searched(&self, asked: Vec<SearchedQuery>) {
        let mut searches = self.searches.lock();
        searches.truncate(SEARCHES - 1);
        searches.push_front(Search { asked, calls: 0, answered: HashSet::new() });
    }

    /// Forgets all of them.
    pub(crate) fn forget(&self) {
        self.searches.lock().clear();
    }

    /// Returns the queries that led to a successful call of a tool.
    ///
    /// These are the query of the latest search with this tool that ranked it best, and the queries
    /// of searches right before it that found nothing: there the model tried other words.
    pub(crate) fn called(&self, tool: &ToolId) -> Vec<String> {
        let mut searches = self.searches.lock();
        let mut queries = Vec::new();
        let giving = searches
            .iter()
            .position(|search| search.calls < CALLS && search.best_query(tool).is_some());
        if let Some(giving) = giving {
            let calls = searches[giving].calls;
            if searches[giving].answered.insert(tool.clone()) {
                queries.extend(searches[giving].best_query(tool));
                let before = searches.iter().skip(giving + 1);
                queries.extend(
                    before
                        .take_while(|search| search.found_nothing() && search.calls == calls)
                        .flat_map(|search| &search.asked)
                        .map(|asked| asked.query.clone()),
                );
            }
        }
        for search in searches.iter_mut() {
            search.calls += 1;
        }
        queries
    }
}

impl Search {
    fn best_query(&self, tool: &ToolId) -> Option<String> {
        let places = self.asked.iter().filter_map(|asked| {
            Some((asked.found.iter().position(|found| found == tool)?, &asked.query))
        });
        places.min_by_key(|(place, _)| *place).map(|(_, query)| query.clone())
    }

    fn found_nothing(&self) -> bool {
        self.asked.iter().all(|asked| asked.found.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> ToolId {
        ToolId::new("s", name)
    }

    fn asked(query: &str, found: &[&str]) -> SearchedQuery {
        SearchedQuery {
            query: query.to_owned(),
            found: found.iter().map(|name| tool(name)).collect(),
        }
    }

    #[test]
    fn a_call_answers_the_query_that_ranked_its_tool_best() {
        let recent = RecentSearches::default();
        assert!(recent.called(&tool("a")).is_empty());
        recent.searched(vec![asked("one", &["b", "a"]), asked("two", &["a"])]);
        assert_eq!(recent.called(&tool("a")), ["two"]);
        assert!(recent.called(&tool("a")).is_empty(), "once is enough");
        assert_eq!(recent.called(&tool("b")), ["one"]);
        assert!(recent.called(&tool("c")).is_empty(), "nobody asked for it");
        recent.searched(vec![asked("three", &["a", "b"])]);
        assert_eq!(recent.called(&tool("a")), ["three"]);
    }

    #[test]
    fn a_query_that_found_nothing_is_credited_with_the_next_call() {
        let recent = RecentSearches::default();
        recent.searched(vec![asked("older", &[])]);
        recent.searched(vec![asked("other", &["b"])]);
        recent.searched(vec![asked("vain", &[])]);
        recent.searched(vec![asked("again", &["a"])]);
        assert_eq!(recent.called(&tool("a")), ["again", "vain"]);
        recent.searched(vec![asked("later", &["c"])]);
        assert_eq!(recent.called(&tool("c")), ["later"]);
    }

    #[test]
    fn it_is_bounded() {
        let recent = RecentSearches::default();
        for number in 0..100 {
            recent.searched(vec![asked(&format!("query {number}"), &[&format!("t{number}")])]);
        }
        assert_eq!(recent.searches.lock().len(), SEARCHES);
        assert!(recent.called(&tool("t0")).is_empty());
        for _ in 0..CALLS {
            recent.called(&tool("x"));
        }
        assert!(recent.called(&tool("t99")).is_empty(), "too long ago");
    }
}
