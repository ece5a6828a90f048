//! The recent searches of a session, and which of them a call answers.

use std::collections::VecDeque;

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
    /// The calls for this search, with their queries.
    made: Vec<MadeCall>,
}

#[derive(Debug)]
struct MadeCall {
    query: String,
    tool: ToolId,
    outcome: MadeOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MadeOutcome {
    Good,
    Failed,
    /// Good, but another tool was called for the same query afterwards.
    Passed,
}

/// What a call says about a tool and a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lesson {
    pub(crate) query: String,
    pub(crate) tool: ToolId,
    /// How many calls were of use.
    pub(crate) good: u64,
    /// How many calls were of no use.
    pub(crate) against: u64,
}

/// How many searches are remembered.
const SEARCHES: usize = 8;
/// After how many calls a search is forgotten. Later calls have other reasons.
const CALLS: usize = 16;

impl RecentSearches {
    pub(crate) fn searched(&self, asked: Vec<SearchedQuery>) {
        let mut searches = self.searches.lock();
        searches.truncate(SEARCHES - 1);
        searches.push_front(Search { asked, calls: 0, made: Vec::new() });
    }

    /// Forgets all of them.
    pub(crate) fn forget(&self) {
        self.searches.lock().clear();
    }

    /// What a call of a tool teaches.
    ///
    /// A successful call is good for the query of the latest search with this tool that ranked it
    /// best, and for the queries of searches right before it that found nothing: there the model
    /// tried other words. A failed call counts against the tool, and so does a later call of another
    /// tool for the same query.
    pub(crate) fn called(&self, tool: &ToolId, failed: bool) -> Vec<Lesson> {
        let mut searches = self.searches.lock();
        let mut lessons = Vec::new();
        let giving = searches
            .iter()
            .position(|search| search.calls < CALLS && search.best_query(tool).is_some());
        if let Some(giving) = giving
            && let Some(query) = searches[giving].best_query(tool)
        {
            let calls = searches[giving].calls;
            let is_new = searches[giving].made(&query, tool, failed, &mut lessons);
            if is_new && !failed {
                let before = searches.iter().skip(giving + 1);
                let vain = before
                    .take_while(|search| search.found_nothing() && search.calls == calls)
                    .flat_map(|search| &search.asked);
                lessons.extend(vain.map(|asked| Lesson::good(&asked.query, tool)));
            }
        }
        for search in searches.iter_mut() {
            search.calls += 1;
        }
        lessons
    }
}

impl Lesson {
    fn good(query: &str, tool: &ToolId) -> Self {
        Self { query: query.to_owned(), tool: tool.clone(), good: 1, against: 0 }
    }

    fn against(query: &str, tool: &ToolId) -> Self {
        Self { good: 0, against: 1, ..Self::good(query, tool) }
    }
}

impl Search {
    /// Notes a call. Returns whether it is the first one with this outcome.
    fn made(
        &mut self,
        query: &str,
        tool: &ToolId,
        failed: bool,
        lessons: &mut Vec<Lesson>,
    ) -> bool {
        let known = self.made.iter_mut().find(|made| made.query == query && made.tool == *tool);
        match (known.map(|made| &mut made.outcome), failed) {
            // A call that fails after a good one is about its arguments.
            (Some(_), true) | (Some(MadeOutcome::Good | MadeOutcome::Passed), false) => {
                return false;
            }
            (Some(outcome), false) => {
                *outcome = MadeOutcome::Good;
                // The failure was about the arguments too, so it no longer counts.
                lessons.push(Lesson { good: 2, ..Lesson::good(query, tool) });
            }
            (None, _) => {
                let outcome = if failed { MadeOutcome::Failed } else { MadeOutcome::Good };
                let (query, tool) = (query.to_owned(), tool.clone());
                lessons.push(if failed {
                    Lesson::against(&query, &tool)
                } else {
                    Lesson::good(&query, &tool)
                });
                self.made.push(MadeCall { query, tool, outcome });
            }
        }
        let others = self.made.iter_mut().filter(|made| made.query == query && made.tool != *tool);
        for other in others.filter(|made| made.outcome == MadeOutcome::Good) {
            other.outcome = MadeOutcome::Passed;
            lessons.push(Lesson::against(query, &other.tool));
        }
        true
    }

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

    /// The queries for which a successful call is good.
    fn credited(recent: &RecentSearches, name: &str) -> Vec<String> {
        let lessons = recent.called(&tool(name), false).into_iter();
        lessons.filter(|lesson| lesson.good > 0).map(|lesson| lesson.query).collect()
    }

    #[test]
    fn a_call_answers_the_query_that_ranked_its_tool_best() {
        let recent = RecentSearches::default();
        assert!(credited(&recent, "a").is_empty());
        recent.searched(vec![asked("one", &["b", "a"]), asked("two", &["a"])]);
        assert_eq!(credited(&recent, "a"), ["two"]);
        assert!(credited(&recent, "a").is_empty(), "once is enough");
        assert_eq!(credited(&recent, "b"), ["one"]);
        assert!(credited(&recent, "c").is_empty(), "nobody asked for it");
        recent.searched(vec![asked("three", &["a", "b"])]);
        assert_eq!(credited(&recent, "a"), ["three"]);
    }

    #[test]
    fn a_failed_call_counts_against_its_tool_until_it_succeeds() {
        let recent = RecentSearches::default();
        recent.searched(vec![asked("one", &["a", "b"])]);
        let against = Lesson::against("one", &tool("a"));
        assert_eq!(recent.called(&tool("a"), true), [against]);
        assert!(recent.called(&tool("a"), true).is_empty(), "once is enough");
        let made_up = Lesson { good: 2, ..Lesson::good("one", &tool("a")) };
        assert_eq!(recent.called(&tool("a"), false), [made_up]);
        assert!(recent.called(&tool("a"), true).is_empty(), "it is known to be the right one");
    }

    #[test]
    fn a_call_of_another_tool_for_the_same_query_counts_against_the_first() {
        let recent = RecentSearches::default();
        recent.searched(vec![asked("one", &["a", "b"]), asked("two", &["c"])]);
        assert_eq!(recent.called(&tool("a"), false), [Lesson::good("one", &tool("a"))]);
        assert_eq!(recent.called(&tool("c"), false), [Lesson::good("two", &tool("c"))]);
        let (good, against) = (Lesson::good("one", &tool("b")), Lesson::against("one", &tool("a")));
        assert_eq!(recent.called(&tool("b"), false), [good, against]);
        assert!(recent.called(&tool("b"), false).is_empty());
    }

    #[test]
    fn a_query_that_found_nothing_is_credited_with_the_next_call() {
        let recent = RecentSearches::default();
        recent.searched(vec![asked("older", &[])]);
        recent.searched(vec![asked("other", &["b"])]);
        recent.searched(vec![asked("vain", &[])]);
        recent.searched(vec![asked("again", &["a"])]);
        assert_eq!(credited(&recent, "a"), ["again", "vain"]);
        recent.searched(vec![asked("later", &["c"])]);
        assert_eq!(credited(&recent, "c"), ["later"]);
    }

    #[test]
    fn it_is_bounded() {
        let recent = RecentSearches::default();
        for number in 0..100 {
            recent.searched(vec![asked(&format!("query {number}"), &[&format!("t{number}")])]);
        }
        assert_eq!(recent.searches.lock().len(), SEARCHES);
        assert!(credited(&recent, "t0").is_empty());
        for _ in 0..CALLS {
            recent.called(&tool("x"), false);
        }
        assert!(credited(&recent, "t99").is_empty(), "too long ago");
    }
}
