//! How the costs grow with the catalogue: `cargo bench -p toolgate-search`.
//!
//! What to look at is the growth from line to line. A query of words may grow with the number of
//! tools that have them; one by meaning, or one that walks over texts, grows with the catalogue, and
//! what counts is how little a tool costs. A change of a server must not grow with the catalogue,
//! save for the sweep that a few changes in a thousand pay for (the slowest), which the mean
//! includes.

mod synthetic;

use divan::{Bencher, black_box};
use synthetic::Server;
use toolgate_search::{Query, SearchIndex, StrategyName, round_robin};

const SIZES: [usize; 4] = [1_000, 5_000, 20_000, 100_000];
const TYPICAL: &str = "please schedule a meeting with the customer about the invoice";
/// Nothing but words that a large part of all tools have.
const COMMON: &str =
    "get user data file name, list value type, return specific project result by id";

fn main() {
    divan::main();
}

fn index(strategy: StrategyName, tools: usize) -> SearchIndex {
    synthetic::index(strategy, synthetic::servers(tools))
}

fn search(bencher: Bencher<'_, '_>, strategy: StrategyName, tools: usize, text: &str) {
    let index = index(strategy, tools);
    let query = Query::new(text, 10);
    bencher.bench_local(|| index.search(black_box(&query)));
}

#[divan::bench(args = SIZES, sample_count = 100)]
fn hybrid_typical(bencher: Bencher<'_, '_>, tools: usize) {
    search(bencher, StrategyName::Hybrid, tools, TYPICAL);
}

#[divan::bench(args = SIZES, sample_count = 100)]
fn hybrid_common_words(bencher: Bencher<'_, '_>, tools: usize) {
    search(bencher, StrategyName::Hybrid, tools, COMMON);
}

#[divan::bench(args = SIZES, sample_count = 100)]
fn bm25_typical(bencher: Bencher<'_, '_>, tools: usize) {
    search(bencher, StrategyName::Bm25, tools, TYPICAL);
}

#[divan::bench(args = SIZES, sample_count = 100)]
fn bm25_common_words(bencher: Bencher<'_, '_>, tools: usize) {
    search(bencher, StrategyName::Bm25, tools, COMMON);
}

#[divan::bench(args = SIZES, sample_count = 100)]
fn embedding(bencher: Bencher<'_, '_>, tools: usize) {
    search(bencher, StrategyName::Embedding, tools, TYPICAL);
}

#[divan::bench(args = SIZES, sample_count = 50)]
fn keyword(bencher: Bencher<'_, '_>, tools: usize) {
    search(bencher, StrategyName::Keyword, tools, TYPICAL);
}

#[divan::bench(args = SIZES, sample_count = 50)]
fn regex(bencher: Bencher<'_, '_>, tools: usize) {
    search(bencher, StrategyName::Regex, tools, r"(create|delete)_\w*(invoice|order)");
}

/// Four queries in one call.
#[divan::bench(args = SIZES, sample_count = 50)]
fn four_queries(bencher: Bencher<'_, '_>, tools: usize) {
    let index = index(StrategyName::Hybrid, tools);
    let queries = ["create ticket", "send message to channel", "export report", "delete_bucket"]
        .map(|text| Query::new(text, 5));
    bencher.bench_local(|| {
        let search = |query: &Query<'_>| index.search(query).unwrap_or_default();
        round_robin(black_box(&queries).iter().map(search).collect(), 10)
    });
}

#[divan::bench(sample_count = 20)]
fn build_1000(bencher: Bencher<'_, '_>) {
    let servers: Vec<Server> = synthetic::servers(1_000).collect();
    bencher.bench_local(|| synthetic::index(StrategyName::Hybrid, black_box(&servers)));
}

#[divan::bench(args = SIZES, sample_count = 2_000, sample_size = 1)]
fn replace_server_of_30(bencher: Bencher<'_, '_>, tools: usize) {
    let mut index = index(StrategyName::Hybrid, tools);
    let versions = [Server::generate(7, 1), Server::generate(7, 2)];
    let mut turn = 0;
    bencher.bench_local(|| {
        turn += 1;
        versions[turn % 2].put_into(&mut index, "changing");
    });
}
