//! The vectors of all tools, and their similarity to a query.
//!
//! One block for each server, so that a change costs no more than the server's own tools. Numbers
//! are whole numbers with a fixed scale: a tool takes one byte for each dimension, sums do not
//! depend on their order, and the compiler vectorises the scan.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use super::{
    clauses,
    embedding::{Embedding, embed, normalise},
    external::{self, External},
    table::{Table, built_in},
};
use crate::{
    analysis::{TermKind, for_each_term},
    bm25::query_terms::words,
    encoder::ServerVectors,
    limits::{MAX_NAME_BYTES, MAX_QUERY_BYTES, MAX_QUERY_TERMS, MAX_TEXT_BYTES, cut},
    paraphrases::meant,
    prepared::PreparedVectors,
    query::Query,
    text::{ServerText, ToolKey, ToolText},
};

/// The vectors of the tools of all servers.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    blocks: BTreeMap<Box<str>, Block>,
    tools: usize,
}

/// One server's part.
#[derive(Debug, Default)]
struct Block {
    keys: Vec<ToolKey>,
    /// The tools' vectors, one after the other.
    codes: Vec<i8>,
    /// The vector of the server.
    server: Vec<i8>,
    /// The known vectors from an encoder.
    external: Option<External>,
}

/// The similarity of each tool to a query.
#[derive(Debug, Default)]
pub(crate) struct Nearness<'v> {
    /// The servers that are wanted.
    pub(crate) spans: Vec<Span<'v>>,
    /// About −1 to 1: the cosine of tool and query, with a share of that of the server.
    pub(crate) scores: Vec<f32>,
    pub(crate) highest: f32,
    pub(crate) mean: f32,
    /// The share of the query's words that the table knows; 0 if it knows none.
    pub(crate) known: f32,
}

/// One server's part of the scores.
#[derive(Debug)]
pub(crate) struct Span<'v> {
    pub(crate) server: &'v str,
    pub(crate) keys: &'v [ToolKey],
    pub(crate) range: Range<usize>,
    /// The lowest score of a related tool. The part of the hint does not count, because a hint must
    /// not add a tool.
    pub(crate) least: f32,
    block: &'v Block,
}

/// The weight of a name relative to the description.
const NAME_SHARE: f32 = 0.5;
/// The share of the server's similarity that is added to its tools.
pub(super) const SERVER_SHARE: f32 = 0.4;
/// The share of the server's similarity to the hint that is added to its tools.
pub(super) const HINT_SHARE: f32 = 0.4;

/// The weight of the words that phrases of a query stand for.
const PARAPHRASE_SHARE: f32 = 0.3;

/// The weight of a request as a whole, if it has several sentences or clauses. The most similar one
/// of them has the rest.
const WHOLE_SHARE: f32 = 0.3;

/// Scores are summed as whole numbers of this scale, so that the sum does not depend on the order.
const FIXED: f64 = 4_294_967_296.0;

/// Below this similarity a tool is unrelated to the query.
const UNRELATED: f32 = 0.2;

/// The scale of a tool's numbers. No longer text has a number above ½.
const TOOL_SCALE: f32 = 254.0;
/// The scale of a query's numbers. The product over all dimensions cannot overflow.
pub(super) const QUERY_SCALE: f32 = 4096.0;
/// The value of one unit of the product.
const UNIT: f32 = 1.0 / (QUERY_SCALE * TOOL_SCALE);

impl Vectors {
    pub(crate) fn replace(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, &str)],
        vectors: &PreparedVectors,
    ) {
        self.remove(server);
        let mut seen = HashSet::new();
        let mut block = Block::default();
        if let Some(table) = built_in() {
            let description = cut(text.description, MAX_TEXT_BYTES);
            let own = format!("{} {description}", cut(text.name, MAX_NAME_BYTES));
            block.server = tool_numbers(&embed(table, &own).vector).collect();
        }
        block.codes.reserve_exact(tools.len() * table_dimensions());
        for (place, (key, _)) in tools.iter().enumerate() {
            if seen.insert(key) {
                block.keys.push(key.clone());
                block.codes.extend_from_slice(vectors.tool(place));
                // A tool without a vector is near to nothing.
                block.codes.resize(block.keys.len() * table_dimensions(), 0);
            }
        }
        self.tools += block.keys.len();
        self.blocks.insert(Box::from(server), block);
    }

    pub(crate) fn remove(&mut self, server: &str) {
        if let Some(block) = self.blocks.remove(server) {
            self.tools -= block.keys.len();
        }
    }

    /// Replaces the vectors from an encoder.
    pub(crate) fn set_external(&mut self, server: &str, vectors: &ServerVectors) {
        if let Some(block) = self.blocks.get_mut(server) {
            block.external = External::new(&block.keys, vectors).filter(|held| held.len() > 0);
        }
    }

    pub(crate) fn tool_count(&self) -> usize {
        self.tools
    }

    /// The similarity of each wanted tool to the query.
    pub(crate) fn nearness(&self, query: &Query<'_>) -> Nearness<'_> {
        let wanted = query.servers.map(|names| names.iter().copied().collect::<HashSet<&str>>());
        let mut nearness = Nearness::default();
        let mut start = 0;
        for (server, block) in &self.blocks {
            if wanted.as_ref().is_none_or(|wanted| wanted.contains(&**server)) {
                let end = start + block.keys.len();
                let (keys, range) = (&block.keys, start..end);
                nearness.spans.push(Span { server, keys, range, least: f32::INFINITY, block });
                start = end;
            }
        }
        nearness.scores = vec![0.0; start];
        if !says_something(query.text) {
            return nearness;
        }
        if let Some(table) = built_in() {
            nearness.hold_against_table(table, query);
        }
        if let Some(vector) = query.vector {
            external::refine(&mut nearness, vector);
        }
        nearness
    }
}

impl<'v> Span<'v> {
    /// The encoder's vectors of the server's tools.
    pub(super) fn external(&self) -> Option<&'v External> {
        self.block.external.as_ref()
    }
}

impl Nearness<'_> {
    fn hold_against_table(&mut self, table: &Table<'_>, query: &Query<'_>) {
        let text = cut(query.text, MAX_QUERY_BYTES);
        let mut embedding = embed(table, text);
        self.known = embedding.known;
        if embedding.is_blind() {
            return;
        }
        let meant = embed(table, &meant(text, &words(text)));
        for (number, meant) in embedding.vector.iter_mut().zip(&meant.vector) {
            *number += PARAPHRASE_SHARE * meant;
        }
        normalise(&mut embedding.vector);
        let hint = query.hint.map(|hint| embed(table, cut(hint, MAX_QUERY_BYTES)));
        let hint = hint.filter(|hint| !hint.is_blind());
        let hint: Option<Vec<i16>> = hint.map(|hint| query_numbers(&hint.vector).collect());
        let parts = clauses::parts(text).into_iter().map(|part| embed(table, part));
        let parts = parts.filter(|part| !part.is_blind());
        let probe = TableProbe {
            whole: query_numbers(&embedding.vector).collect(),
            parts: parts.map(|part| query_numbers(&part.vector).collect()).collect(),
        };
        self.fill(&probe, hint.as_deref());
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a mean does not need the last digits, and a score is between −2 and 2"
    )]
    fn fill(&mut self, query: &TableProbe, hint: Option<&[i16]>) {
        let (mut sum, mut highest) = (0_i64, f32::NEG_INFINITY);
        // Pieces of unknown words can rank tools, but not add one.
        let least = if self.known > 0.0 { UNRELATED } else { f32::INFINITY };
        for Span { block, range, least: span_least, .. } in &mut self.spans {
            let lift = hint.map_or(0.0, |hint| HINT_SHARE * cosine(hint, &block.server));
            *span_least = least + lift;
            let bases = query.bases(&block.server);
            let tools = block.codes.chunks_exact(query.whole.len());
            for (score, tool) in self.scores[range.clone()].iter_mut().zip(tools) {
                *score = lift + query.similarity(&bases, tool);
                sum += (f64::from(*score) * FIXED) as i64;
                highest = highest.max(*score);
            }
        }
        if !self.scores.is_empty() {
            self.highest = highest;
            self.mean = (sum as f64 / FIXED) as f32 / self.scores.len() as f32;
        }
    }
}

/// The vectors of a query, of the table.
struct TableProbe {
    whole: Vec<i16>,
    /// Of its sentences and clauses, if there are several.
    parts: Vec<Vec<i16>>,
}

impl TableProbe {
    /// What the server's vector adds to each similarity of a tool: that of the whole, then those of
    /// the parts.
    fn bases(&self, server: &[i8]) -> Vec<f32> {
        let probes = [&self.whole].into_iter().chain(&self.parts);
        probes.map(|probe| SERVER_SHARE * cosine(probe, server)).collect()
    }

    fn similarity(&self, bases: &[f32], tool: &[i8]) -> f32 {
        let own = |(probe, base): (&Vec<i16>, &f32)| base + cosine(probe, tool);
        let mut bases = bases.iter();
        let whole = bases.next().map_or(0.0, |base| own((&self.whole, base)));
        match self.parts.iter().zip(bases).map(own).reduce(f32::max) {
            Some(best) => WHOLE_SHARE * whole + (1.0 - WHOLE_SHARE) * best,
            None => whole,
        }
    }
}

impl Embedding {
    /// Whether the table knows no word of the text.
    fn is_blind(&self) -> bool {
        self.vector.iter().all(|number| *number == 0.0)
    }
}

/// Whether the text has a word that is no stop word. `the of and` has a vector too, which is
/// similar to everything.
pub(super) fn says_something(text: &str) -> bool {
    let mut found = false;
    for_each_term(cut(text, MAX_QUERY_BYTES), MAX_QUERY_TERMS, &mut |_, kind| {
        found |= kind != TermKind::StopWord;
    });
    found
}

/// The numbers of a vector; none without a table.
pub(crate) fn table_dimensions() -> usize {
    built_in().map_or(0, Table::dimensions)
}

/// The vector of a tool, as an index stores it.
pub(crate) fn tool_codes(tool: &ToolText<'_>) -> Vec<i8> {
    built_in().map_or_else(Vec::new, |table| tool_numbers(&tool_vector(table, tool)).collect())
}

fn tool_vector(table: &Table<'_>, tool: &ToolText<'_>) -> Vec<f32> {
    let title = cut(tool.title.unwrap_or_default(), MAX_NAME_BYTES);
    let name = embed(table, &format!("{} {title}", cut(tool.name, MAX_NAME_BYTES))).vector;
    let mut vector = embed(table, cut(tool.description, MAX_TEXT_BYTES)).vector;
    for (sum, number) in vector.iter_mut().zip(name) {
        *sum += NAME_SHARE * number;
    }
    normalise(&mut vector);
    vector
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to what fits")]
fn tool_numbers(vector: &[f32]) -> impl Iterator<Item = i8> {
    vector.iter().map(|number| (number * TOOL_SCALE).round().clamp(-127.0, 127.0) as i8)
}

#[expect(clippy::cast_possible_truncation, reason = "a unit vector has no number above one")]
pub(super) fn query_numbers(vector: &[f32]) -> impl Iterator<Item = i16> {
    vector.iter().map(|number| (number * QUERY_SCALE).round().clamp(-4096.0, 4096.0) as i16)
}

#[expect(clippy::cast_precision_loss, reason = "a score does not need the last digits")]
fn cosine(query: &[i16], tool: &[i8]) -> f32 {
    dot(query, tool) as f32 * UNIT
}

/// The sum of products. Both factors fit into 16 bits, which processors multiply and add in pairs;
/// that the compiler sees it takes steps of a known length, and makes a scan more than twice as fast.
pub(super) fn dot(query: &[i16], tool: &[i8]) -> i32 {
    let (query_steps, query_rest) = query.as_chunks::<32>();
    let (tool_steps, tool_rest) = tool.as_chunks::<32>();
    let mut sum = 0;
    for (query, tool) in query_steps.iter().zip(tool_steps) {
        let products = query.iter().zip(tool);
        sum += products.map(|(left, right)| i32::from(*left) * i32::from(*right)).sum::<i32>();
    }
    let rest = query_rest.iter().zip(tool_rest);
    sum + rest.map(|(left, right)| i32::from(*left) * i32::from(*right)).sum::<i32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_loses_next_to_nothing() {
        let table = built_in().unwrap();
        let texts = ["delete a file", "Removes documents from a folder", "weather in Paris"];
        for left in texts {
            for right in texts {
                let (left, right) = (embed(table, left).vector, embed(table, right).vector);
                let exact: f32 = left.iter().zip(&right).map(|(left, right)| left * right).sum();
                let query: Vec<i16> = query_numbers(&left).collect();
                let tool: Vec<i8> = tool_numbers(&right).collect();
                assert!((cosine(&query, &tool) - exact).abs() < 0.02);
            }
        }
    }
}
