//! Measures what a memory of past queries adds.
//!
//! ```text
//! cargo run --release -p toolgate-search --example memory -- PAST FILE…
//! ```
//!
//! Of each tool's queries the first PAST, spread evenly over the set, are taken as the past; the
//! others are asked, without the memory and with it.

use std::{collections::HashMap, error::Error, fs};

use toolgate_search::{
    Query, SearchIndex, ToolKey, UsageMemory,
    evaluation::{DEPTH, LabelledSet, QueryFigures, Summary, figures, paired_bootstrap},
};

#[expect(clippy::print_stdout, reason = "an example that reports to a person")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let past: usize = arguments.next().ok_or("say how many past queries a tool has")?.parse()?;
    for file in arguments {
        let set: LabelledSet = serde_json::from_str(&fs::read_to_string(&file)?)?;
        let mut index = SearchIndex::new();
        set.put_into(&mut index);
        let mut memory = UsageMemory::default();
        let mut taken: HashMap<&str, usize> = HashMap::new();
        let mut asked = Vec::new();
        // Every second query may become the past, so that both halves are spread over the set.
        for (place, query) in set.queries.iter().enumerate() {
            let tools: Vec<&str> = query.labels.iter().flatten().map(String::as_str).collect();
            let room = tools.iter().all(|tool| taken.get(tool).is_none_or(|count| *count < past));
            if place % 2 == 0 && room {
                for tool in tools {
                    *taken.entry(tool).or_default() += 1;
                    memory.record(&query.q, &ToolKey::from(tool));
                }
            } else {
                asked.push(query);
            }
        }
        let (mut without, mut with): (Vec<QueryFigures>, Vec<QueryFigures>) = Default::default();
        for labelled in asked {
            let query = Query::new(&labelled.q, DEPTH);
            without.push(figures(labelled, &index.search(&query)?));
            with.push(figures(labelled, &index.search_remembering(&query, &memory)?));
        }
        println!("{file}: {} remembered", memory.len());
        for (name, part) in [("without", &without), ("with", &with)] {
            let Summary { queries, recall_at_1, recall_at_5, ndcg_at_10, .. } = Summary::of(part);
            let [first, top, ndcg] = [recall_at_1, recall_at_5, ndcg_at_10].map(|it| it * 100.0);
            println!(
                "  {name:<8} {queries} queries  R@1 {first:.1}  R@5 {top:.1}  nDCG@10 {ndcg:.1}"
            );
        }
        let pairs = with.iter().zip(&without);
        let gain: Vec<f64> =
            pairs.map(|(with, without)| with.ndcg_at_10 - without.ndcg_at_10).collect();
        let gain = paired_bootstrap(&gain);
        let [mean, low, high] = [gain.mean, gain.low, gain.high].map(|it| it * 100.0);
        println!("  nDCG@10 {mean:+.1} [{low:+.1}, {high:+.1}]");
    }
    Ok(())
}
