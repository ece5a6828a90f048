//! Measures how well the fit of hits tells an answer from the nearest tool of a catalogue without one.
//!
//! ```text
//! cargo run --release -p toolgate-search --example weak -- FILE…
//! ```
//!
//! For each threshold: the share of queries with an answer within five whose hits would be called
//! weak, and the share of all queries whose hits would be called weak if the servers of the tools that
//! answer them were not there. Of a set with one server, the tools alone are left out.

use std::{collections::BTreeSet, error::Error, fs};

use toolgate_search::{
    Hit, Query, SearchIndex,
    evaluation::{LabelledQuery, LabelledSet},
};

/// How many hits are looked at, with and without the answers.
const SHOWN: usize = 5;

#[expect(clippy::print_stdout, reason = "an example that reports to a person")]
fn main() -> Result<(), Box<dyn Error>> {
    for file in std::env::args().skip(1) {
        let set: LabelledSet = serde_json::from_str(&fs::read_to_string(&file)?)?;
        let mut index = SearchIndex::new();
        set.put_into(&mut index);
        let (mut answered, mut without) = (Vec::new(), Vec::new());
        for labelled in &set.queries {
            let hits = index.search(&Query::new(&labelled.q, 50))?;
            let shown: Vec<&Hit> = hits.iter().take(SHOWN).collect();
            if shown.iter().any(|hit| is_answer(labelled, hit)) {
                answered.push(best_fit(&shown));
            }
            let others = other_servers(&set, labelled);
            let left = if others.is_empty() {
                hits.into_iter().filter(|hit| !is_answer(labelled, hit)).take(SHOWN).collect()
            } else {
                index.search(&Query::new(&labelled.q, SHOWN).in_servers(&others))?
            };
            without.push(best_fit(&left.iter().collect::<Vec<_>>()));
        }
        println!("{file}: {} answered, {} in all", answered.len(), without.len());
        for threshold in [0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5] {
            let [answered, without] = [&answered, &without].map(|fits| share(fits, threshold));
            println!("  {threshold:.2}  answered {answered:5.1} %  without {without:5.1} %");
        }
    }
    Ok(())
}

/// The servers that have no tool that answers.
fn other_servers<'s>(set: &'s LabelledSet, labelled: &LabelledQuery) -> Vec<&'s str> {
    let answers = |id: &str| labelled.labels.iter().flatten().any(|answer| answer == id);
    let right: BTreeSet<&str> = set
        .corpus
        .iter()
        .filter(|tool| answers(&tool.id))
        .map(|tool| tool.server.as_str())
        .collect();
    let all: BTreeSet<&str> = set.corpus.iter().map(|tool| tool.server.as_str()).collect();
    all.difference(&right).copied().collect()
}

fn is_answer(labelled: &LabelledQuery, hit: &Hit) -> bool {
    labelled.labels.iter().flatten().any(|id| id == hit.key.as_str())
}

fn best_fit(hits: &[&Hit]) -> f32 {
    hits.iter().filter_map(|hit| hit.fit).fold(0.0, f32::max)
}

#[expect(clippy::cast_precision_loss, reason = "counts of queries are small")]
fn share(fits: &[f32], threshold: f32) -> f64 {
    let weak = fits.iter().filter(|fit| **fit < threshold).count();
    100.0 * weak as f64 / fits.len().max(1) as f64
}
