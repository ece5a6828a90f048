//! Measures what a search for each step of a request adds.
//!
//! ```text
//! cargo run --release -p toolgate-search --example steps -- [--list] FILE…
//! ```
//!
//! For the queries that have steps: the share of needs that the first five of the whole query meet, the
//! first five of each step, and five of the whole with three of each step, and how many tools that are.

use std::{collections::BTreeSet, error::Error, fs};

use toolgate_search::{
    Query, SearchIndex,
    evaluation::{LabelledQuery, LabelledSet},
    steps,
};

#[expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "an example that reports to a person"
)]
fn main() -> Result<(), Box<dyn Error>> {
    let mut list = false;
    for file in std::env::args().skip(1) {
        if file == "--list" {
            list = true;
            continue;
        }
        let set: LabelledSet = serde_json::from_str(&fs::read_to_string(&file)?)?;
        let mut index = SearchIndex::new();
        set.put_into(&mut index);
        let mut met = [0.0_f64; 4];
        let mut shown = [0_usize; 4];
        let mut split = 0;
        for labelled in &set.queries {
            let parts = steps(&labelled.q);
            if parts.is_empty() {
                continue;
            }
            split += 1;
            if list {
                println!("    {} => {parts:?}", labelled.q);
            }
            let find = |text: &str, limit: usize| -> Result<Vec<String>, Box<dyn Error>> {
                let hits = index.search(&Query::new(text, limit))?;
                Ok(hits.into_iter().map(|hit| hit.key.to_string()).collect())
            };
            let whole = find(&labelled.q, 5)?;
            let mut of_steps = Vec::new();
            let mut few = Vec::new();
            for part in &parts {
                of_steps.extend(find(part, 5)?);
                few.extend(find(part, 3)?);
            }
            let many = find(&labelled.q, of_steps.iter().collect::<BTreeSet<_>>().len())?;
            let both: Vec<String> = whole.iter().chain(&few).cloned().collect();
            for (place, found) in [&whole, &of_steps, &both, &many].into_iter().enumerate() {
                met[place] += share_met(labelled, found);
                shown[place] += found.iter().collect::<BTreeSet<_>>().len();
            }
        }
        println!("{file}: {split} of {} queries have steps", set.queries.len());
        let names = ["whole, 5", "steps, 5 each", "whole 5, steps 3", "whole, as many as steps"];
        for ((name, met), shown) in names.iter().zip(met).zip(shown) {
            let count = f64::from(split.max(1));
            println!(
                "  {name:<24} {:5.1} % met, {:.1} tools",
                100.0 * met / count,
                shown as f64 / count
            );
        }
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts of needs are small")]
fn share_met(labelled: &LabelledQuery, found: &[String]) -> f64 {
    let met =
        labelled.labels.iter().filter(|need| need.iter().any(|id| found.contains(id))).count();
    met as f64 / labelled.labels.len().max(1) as f64
}
