//! Points for words that are contained in a tool's texts.

use memchr::memmem::Finder;

use crate::{
    limits::{MAX_QUERY_BYTES, MAX_QUERY_TERMS, cut},
    query::{Hit, Query},
    search_error::SearchError,
    strategy::Strategy,
    text::{ServerText, ToolKey, ToolText},
    text_blocks::{Column, TextBlock, TextBlocks, normalised},
    top::{Candidate, Top},
};

/// Ranks tools by simple points.
///
/// Each word of the query gives 10 points where it is a tool's name, else 5 where the name contains
/// it, 3 where the description does, and 1 where the name of a parameter does. The query as a whole
/// gives 8 points more where the name contains it, and 4 where the description does. A tool's name
/// is its own or the exposed one. Single Latin letters count only where there is nothing else.
///
/// A word is found inside of others (`log` in `catalogue`), so no list of words can answer a query:
/// the index keeps the texts in lower case and every query runs through them.
#[derive(Debug, Default)]
pub struct KeywordIndex {
    texts: TextBlocks,
}

const NAME_IS: f32 = 10.0;
const NAME_HAS: f32 = 5.0;
const DESCRIPTION_HAS: f32 = 3.0;
const PARAMETERS_HAVE: f32 = 1.0;
const NAME_HAS_QUERY: f32 = 8.0;
const DESCRIPTION_HAS_QUERY: f32 = 4.0;

/// The texts to search for.
struct Needles<'q> {
    words: Vec<(&'q str, Finder<'q>)>,
    whole: Finder<'q>,
}

impl Strategy for KeywordIndex {
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
        let text = normalised(cut(query.text, MAX_QUERY_BYTES));
        let needles = Needles::new(&text);
        let mut top = Top::new(query.limit);
        if needles.words.is_empty() {
            return Ok(top.into_hits());
        }
        let mut points = Vec::new();
        for (server, block) in self.texts.wanted(query) {
            points.clear();
            points.resize(block.keys.len(), 0.0);
            needles.count(block, &mut points);
            for (key, score) in block.keys.iter().zip(&points) {
                if *score > 0.0 && top.may_enter(*score) {
                    top.offer(Candidate { score: *score, key, server, fit: None });
                }
            }
        }
        Ok(top.into_hits())
    }
}

impl<'q> Needles<'q> {
    fn new(text: &'q str) -> Self {
        let mut words: Vec<&str> = Vec::new();
        for word in text.split(' ').map(bare).filter(|word| !word.is_empty()) {
            if words.len() < MAX_QUERY_TERMS && !words.contains(&word) {
                words.push(word);
            }
        }
        // `a` is in every text.
        if words.iter().any(|word| word.len() > 1) {
            words.retain(|word| word.len() > 1);
        }
        let words = words.into_iter().map(|word| (word, Finder::new(word))).collect();
        Self { words, whole: Finder::new(bare(text)) }
    }

    fn count(&self, block: &TextBlock, points: &mut [f32]) {
        // A name counts once, whichever of its two forms has the word.
        let mut named = vec![0.0_f32; points.len()];
        for (word, finder) in &self.words {
            named.fill(0.0);
            for names in [&block.names, &block.exposed] {
                for tool in names.containing(finder) {
                    let value = if names.get(tool) == *word { NAME_IS } else { NAME_HAS };
                    named[tool] = named[tool].max(value);
                }
            }
            for (points, value) in points.iter_mut().zip(&named) {
                *points += value;
            }
            add(&block.descriptions, finder, DESCRIPTION_HAS, points);
            add(&block.parameters, finder, PARAMETERS_HAVE, points);
        }
        named.fill(0.0);
        for names in [&block.names, &block.exposed] {
            for tool in names.containing(&self.whole) {
                named[tool] = NAME_HAS_QUERY;
            }
        }
        for (points, value) in points.iter_mut().zip(&named) {
            *points += value;
        }
        add(&block.descriptions, &self.whole, DESCRIPTION_HAS_QUERY, points);
    }
}

fn add(column: &Column, finder: &Finder<'_>, value: f32, points: &mut [f32]) {
    for tool in column.containing(finder) {
        points[tool] += value;
    }
}

/// The word without the punctuation that a sentence puts around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|character: char| !character.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ParameterText;

    fn points(text: &str) -> Vec<(String, f32)> {
        let parameter = ParameterText { name: "issueNumber", ..ParameterText::default() };
        let tool = |name, description| ToolText { name, description, ..ToolText::default() };
        let get = ToolText { parameters: vec![parameter], ..tool("get", "Show one") };
        let tools = [
            (ToolKey::from("t_list_issues"), tool("list_issues", "List the issues of a project")),
            (ToolKey::from("t_issue"), tool("issue", "Open an ISSUE now")),
            (ToolKey::from("t_get"), get),
        ];
        let mut index = KeywordIndex::default();
        index.replace_server("t", ServerText::default(), &tools);
        let hits = index.search(&Query::new(text, 9)).unwrap();
        hits.iter().map(|hit| (hit.key.to_string(), hit.score)).collect()
    }

    fn expected(list: &[(&str, f32)]) -> Vec<(String, f32)> {
        list.iter().map(|(key, score)| ((*key).to_owned(), *score)).collect()
    }

    #[test]
    fn the_points_can_be_recounted() {
        // 10 + 3 and, as the whole query, 8 + 4; 5 + 3 + 8 + 4; 1.
        let all = [("t_issue", 25.0), ("t_list_issues", 20.0), ("t_get", 1.0)];
        assert_eq!(points("Issue?"), expected(&all));
        // For `open` 3, for `an` 3, for `issue` 10 + 3, for the whole 4; only `issue` in the others.
        let open = [("t_issue", 23.0), ("t_list_issues", 8.0), ("t_get", 1.0)];
        assert_eq!(points("open an issue"), expected(&open));
    }

    #[test]
    fn a_word_counts_once_and_no_word_finds_nothing() {
        assert_eq!(points("now now"), expected(&[("t_issue", 3.0)]));
        assert_eq!(points("a now"), expected(&[("t_issue", 3.0)]));
        assert_eq!(points("w").len(), 2);
        assert!(points(" ?! ").is_empty());
        assert!(points("zebra").is_empty());
    }
}
