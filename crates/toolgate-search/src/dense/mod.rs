//! Ranking by meaning: a query and a tool are similar if their words are used in similar contexts.
//!
//! The vectors come from a table of words that is part of the program: nothing is downloaded, and
//! no model runs. A text's vector is a weighted sum of its words' rows. Vectors of an encoder
//! replace them, if the caller has some.

mod clauses;
mod embedding;
mod external;
mod meaning;
mod table;
mod vectors;

pub(crate) use self::meaning::{CommonMeaning, Meaning};
pub(crate) use self::table::{for_each_table_word_near, is_table_word};
pub(crate) use self::vectors::{Span, Vectors, table_dimensions, tool_codes};
use crate::{
    bm25::apart,
    encoder::ServerVectors,
    prepared::{PreparedTools, PreparedVectors},
    query::{Hit, Query},
    search_error::SearchError,
    strategy::Strategy,
    text::{ServerText, ToolKey, ToolText},
    top::{Candidate, Top},
};

/// Ranks tools by the similarity of their vectors to the query's.
///
/// Every query is compared with every tool, with one byte for each number. There is no approximate
/// index.
#[derive(Debug, Default)]
pub struct EmbeddingIndex {
    vectors: Vectors,
}

impl Strategy for EmbeddingIndex {
    fn replace_server(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, ToolText<'_>)],
    ) {
        let (named, texts) = apart(tools);
        self.vectors.replace(server, text, &named, &PreparedVectors::of(&texts));
    }

    fn takes_prepared(&self) -> bool {
        true
    }

    fn replace_prepared(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, &str)],
        prepared: &PreparedTools,
    ) {
        self.vectors.replace(server, text, tools, &prepared.vectors);
    }

    fn remove_server(&mut self, server: &str) {
        self.vectors.remove(server);
    }

    fn set_vectors(&mut self, server: &str, vectors: &ServerVectors) {
        self.vectors.set_external(server, vectors);
    }

    fn tool_count(&self) -> usize {
        self.vectors.tool_count()
    }

    fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, SearchError> {
        let nearness = self.vectors.nearness(query);
        let mut top = Top::new(query.limit);
        for span in &nearness.spans {
            for (key, score) in span.keys.iter().zip(&nearness.scores[span.range.clone()]) {
                if *score >= span.least && top.may_enter(*score) {
                    top.offer(Candidate { score: *score, key, server: span.server, fit: None });
                }
            }
        }
        Ok(top.into_hits())
    }
}

#[cfg(test)]
mod tests;
