//! The query as a regular expression.

use regex::{Regex, RegexBuilder};

use crate::{
    limits::MAX_PATTERN_BYTES,
    query::{Hit, Query},
    search_error::{PatternFault, SearchError},
    strategy::Strategy,
    text::{ServerText, ToolKey, ToolText},
    text_blocks::{TextBlock, TextBlocks},
};

/// Finds tools whose names or descriptions match a regular expression, without regard to case.
///
/// Tools whose name matches come first, own or exposed, then those whose description does; among
/// each the earlier match first, then the longer one. An empty match, as of `x*`, does not count.
///
/// The engine takes time in proportion to the text, whatever the pattern, and the pattern's size is
/// limited. The index keeps the texts in lower case and every query runs through them.
#[derive(Debug, Default)]
pub struct RegexIndex {
    texts: TextBlocks,
}

/// The largest size of a compiled pattern. It determines the worst-case cost of a character.
const MAX_COMPILED_BYTES: usize = 512 * 1024;

/// The position of a match; lower is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    field: MatchedField,
    start: usize,
    /// The largest length minus the length, so that a longer match is lower.
    shortness: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MatchedField {
    Name,
    Description,
}

impl Strategy for RegexIndex {
    fn replace_server(
        &mut self,
        server: &str,
        _text: ServerText<'_>,
        tools: &[(ToolKey, ToolText<'_>)],
    ) {
        self.texts.replace(server, tools);
    }

    fn remove_server(&mut self, server: &str) {
        self.texts.remove(server);
    }

    fn tool_count(&self) -> usize {
        self.texts.tool_count()
    }

    fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, SearchError> {
        let text = query.text.trim();
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let pattern = compile(text)?;
        let mut found: Vec<(Match, &ToolKey, &str)> = Vec::new();
        for (server, block) in self.texts.wanted(query) {
            let matching = (0..block.keys.len())
                .filter_map(|tool| Some((find(&pattern, block, tool)?, &block.keys[tool], server)));
            found.extend(matching);
        }
        found.sort_unstable();
        found.truncate(query.limit);
        Ok(found.into_iter().map(|(place, key, _)| Hit::new(key.clone(), place.score())).collect())
    }
}

fn compile(pattern: &str) -> Result<Regex, SearchError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(SearchError::PatternTooLong);
    }
    // Parsed separately, because the engine's error is only a text.
    let fault = |offset: usize, reason: String| {
        SearchError::Pattern(PatternFault::new(pattern, offset, reason))
    };
    if let Err(error) = regex_syntax::Parser::new().parse(pattern) {
        return Err(match error {
            regex_syntax::Error::Parse(error) => {
                fault(error.span().start.offset, error.kind().to_string())
            }
            regex_syntax::Error::Translate(error) => {
                fault(error.span().start.offset, error.kind().to_string())
            }
            other => fault(0, other.to_string()),
        });
    }
    RegexBuilder::new(pattern)
        .case_insensitive(true)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(2 * MAX_COMPILED_BYTES)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => SearchError::PatternTooLarge,
            other => fault(0, other.to_string()),
        })
}

fn find(pattern: &Regex, block: &TextBlock, tool: usize) -> Option<Match> {
    let names = [&block.names, &block.exposed].into_iter();
    let best = names.filter_map(|names| first(pattern, names.get(tool), MatchedField::Name)).min();
    best.or_else(|| first(pattern, block.descriptions.get(tool), MatchedField::Description))
}

fn first(pattern: &Regex, text: &str, field: MatchedField) -> Option<Match> {
    let found = pattern.find_iter(text).find(|found| !found.is_empty())?;
    Some(Match { field, start: found.start(), shortness: usize::MAX - found.len() })
}

impl Match {
    /// A score that falls in the order of the matches.
    #[expect(clippy::cast_precision_loss, reason = "the order is made without it")]
    fn score(self) -> f32 {
        let base = match self.field {
            MatchedField::Name => 1.0,
            MatchedField::Description => 0.0,
        };
        base + 1.0 / (1.0 + self.start as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> RegexIndex {
        let tool = |name, description| ToolText { name, description, ..ToolText::default() };
        let tools = [
            (ToolKey::from("t_get_user"), tool("get_user", "Show a user")),
            (ToolKey::from("t_list_users"), tool("list_users", "List all")),
            (ToolKey::from("t_whoami"), tool("WhoAmI", "The current USER of the service")),
            (ToolKey::from("t_users"), tool("users", "Count")),
        ];
        let mut index = RegexIndex::default();
        index.replace_server("t", ServerText::default(), &tools);
        index
    }

    fn found(pattern: &str) -> Vec<String> {
        let hits = index().search(&Query::new(pattern, 9)).unwrap();
        assert!(hits.is_sorted_by(|left, right| left.score >= right.score), "{pattern}");
        hits.iter().map(|hit| hit.key.to_string()).collect()
    }

    #[test]
    fn names_before_descriptions_and_earlier_and_longer_first() {
        assert_eq!(found("users?"), ["t_users", "t_get_user", "t_list_users", "t_whoami"]);
        assert_eq!(found("^(get|list)_"), ["t_list_users", "t_get_user"]);
        assert_eq!(found("^t_.*users$"), ["t_list_users", "t_users"]);
        assert_eq!(found("WHOAMI"), ["t_whoami"]);
        assert_eq!(found("x*"), Vec::<String>::new());
        assert_eq!(found("  "), Vec::<String>::new());
    }

    #[test]
    fn an_invalid_pattern_shows_where() {
        let error = index().search(&Query::new("get_(user", 9)).unwrap_err();
        insta::assert_snapshot!(error, @r"
        the query is not a regular expression: unclosed group
            get_(user
                ^
        ");
        let error = index().search(&Query::new("a(?=b)", 9)).unwrap_err();
        insta::assert_snapshot!(error, @r"
        the query is not a regular expression: look-around, including look-ahead and look-behind, is not supported
            a(?=b)
             ^
        ");
        let error = index().search(&Query::new(r"\p{Nothing}", 9)).unwrap_err();
        assert!(matches!(error, SearchError::Pattern(_)), "{error}");
    }

    #[test]
    fn a_pattern_that_is_too_much_is_refused() {
        let error = index().search(&Query::new("(a{100}){100}{100}", 9)).unwrap_err();
        assert_eq!(error, SearchError::PatternTooLarge);
        let error = index().search(&Query::new(&"a".repeat(5_000), 9)).unwrap_err();
        assert_eq!(error, SearchError::PatternTooLong);
        let nested = "(".repeat(500) + "a" + &")".repeat(500);
        assert!(matches!(index().search(&Query::new(&nested, 9)), Err(SearchError::Pattern(_))));
    }
}
