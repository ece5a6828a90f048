//! How the costs grow with the catalogue: `cargo bench -p toolgate-search`.
//!
//! What to look at is the growth from line to line. A query may grow with the number of tools that
//! have its words; a change of a server must not grow with the catalogue, save for the sweep that a
//! few changes in a thousand pay for (the slowest), which the mean includes.

mod synthetic;

use divan::{Bencher, black_box};
use synthetic::Server;
use toolgate_search::{Query, StrategyName};

const SIZES: [usize; 3] = [2_000, 20_000, 100_000];

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 20)]
fn build_1000(bencher: Bencher<'_, '_>) {
    let servers: Vec<Server> = synthetic::servers(1_000).collect();
    bencher.bench_local(|| synthetic::index(StrategyName::Bm25, black_box(&servers)));
}

/// Words of which most are in a few tools.
#[divan::bench(args = SIZES, sample_count = 200)]
fn search_typical(bencher: Bencher<'_, '_>, tools: usize) {
    let index = synthetic::index(StrategyName::Bm25, synthetic::servers(tools));
    let query = Query::new("please schedule a meeting with the customer about the invoice", 5);
    bencher.bench_local(|| index.search(black_box(&query)));
}

/// Nothing but words that a large part of all tools have.
#[divan::bench(args = SIZES, sample_count = 200)]
fn search_common_words(bencher: Bencher<'_, '_>, tools: usize) {
    let index = synthetic::index(StrategyName::Bm25, synthetic::servers(tools));
    let text = "get user data file name, list value type, return specific project result by id";
    let query = Query::new(text, 10);
    bencher.bench_local(|| index.search(black_box(&query)));
}

/// Four queries in one call.
#[divan::bench(args = SIZES, sample_count = 100)]
fn search_many(bencher: Bencher<'_, '_>, tools: usize) {
    let index = synthetic::index(StrategyName::Bm25, synthetic::servers(tools));
    let queries = ["create ticket", "send message to channel", "export report", "delete_bucket"]
        .map(|text| Query::new(text, 5));
    bencher.bench_local(|| index.search_many(black_box(&queries), 10));
}

#[divan::bench(args = SIZES, sample_count = 2_000, sample_size = 1)]
fn replace_server_of_30(bencher: Bencher<'_, '_>, tools: usize) {
    let mut index = synthetic::index(StrategyName::Bm25, synthetic::servers(tools));
    let versions = [Server::generate(7, 1), Server::generate(7, 2)];
    let mut turn = 0;
    bencher.bench_local(|| {
        turn += 1;
        versions[turn % 2].put_into(&mut index, "changing");
    });
}
