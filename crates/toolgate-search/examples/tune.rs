//! Measures other numbers than the usual ones, by halves: the queries at even and at odd
//! places, so that numbers can be chosen on one half and checked on the other.
//!
//! ```text
//! cargo run --release -p toolgate-search --example tune -- [--words JSON] [--hybrid JSON] [--hints] FILE…
//! ```

use std::{error::Error, fs, time::Duration};

use toolgate_search::{
    Bm25Parameters, HybridIndex, HybridParameters, SearchIndex, StrategyName,
    evaluation::{Hints, LabelledSet, QueryFigures, Summary, measure},
};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut words, mut hybrid) = (Bm25Parameters::default(), HybridParameters::default());
    let mut hints = Hints::Ignored;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--hints" => hints = Hints::Given,
            "--words" => words = serde_json::from_str(&arguments.next().unwrap_or_default())?,
            "--hybrid" => hybrid = serde_json::from_str(&arguments.next().unwrap_or_default())?,
            file => {
                let set: LabelledSet = serde_json::from_str(&fs::read_to_string(file)?)?;
                let strategy = Box::new(HybridIndex::with_parameters(words, hybrid));
                let mut index = SearchIndex::with_strategy(StrategyName::Hybrid, strategy);
                set.put_into(&mut index);
                let mut clock = || Duration::ZERO;
                report(file, &measure(&set, &index, hints, &mut clock, &mut || {}));
            }
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example that reports to a person")]
fn report(file: &str, figures: &[QueryFigures]) {
    let half = |odd: usize| -> Vec<QueryFigures> {
        figures.iter().skip(odd).step_by(2).copied().collect()
    };
    println!("{file}");
    for (name, part) in [("all", figures), ("even", &half(0)), ("odd", &half(1))] {
        let Summary { recall_at_1, recall_at_5, recall_at_10, ndcg_at_10, .. } = Summary::of(part);
        let [first, top, all, ndcg] =
            [recall_at_1, recall_at_5, recall_at_10, ndcg_at_10].map(|share| 100.0 * share);
        println!("  {name:<5} R@1 {first:5.1}  R@5 {top:5.1}  R@10 {all:5.1}  nDCG@10 {ndcg:5.1}");
    }
}
