//! Ranking by meaning: a query and a tool are near where their words are used alike.
//!
//! The vectors come from a table of words that is part of the program: nothing is downloaded, and no
//! model runs. A text's vector is a weighted sum of its words' rows. Vectors that an encoder made of
//! the same texts take their place where the caller has some.

mod embedding;
mod external;
mod meaning;
mod table;
mod vectors;

pub(crate) use self::meaning::{CommonMeaning, Meaning};
pub(crate) use self::vectors::{Span, Vectors};
use crate::{
    encoder::ServerVectors,
    query::{Hit, Query},
    search_error::SearchError,
    strategy::Strategy,
    text::{ServerText, ToolKey, ToolText},
    top::{Candidate, Top},
};

/// Tools by the nearness of their vectors to the query's.
///
/// Every query is compared with every tool, in whole numbers of a byte each; there is no
/// approximate index to go stale.
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
        self.vectors.replace(server, text, tools);
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
                    top.offer(Candidate { score: *score, key, server: span.server });
                }
            }
        }
        Ok(top.into_hits())
    }
}

#[cfg(test)]
mod tests;
