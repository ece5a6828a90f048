//! Measures other numbers than the usual ones for BM25, by halves: the queries at even and at odd
//! places, so that numbers can be chosen on one half and checked on the other.
//!
//! ```text
//! cargo run --release -p toolgate-search --example tune -- [--parameters JSON] [--hints] FILE…
//! ```

use std::{error::Error, fs, time::Duration};

use toolgate_search::{
    Bm25Index, Bm25Parameters, SearchIndex, StrategyName,
    evaluation::{Hints, LabelledSet, QueryFigures, Summary, measure},
};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut parameters, mut hints) = (Bm25Parameters::default(), Hints::Ignored);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--hints" => hints = Hints::Given,
            "--parameters" => {
                let json = arguments.next().ok_or("--parameters needs a JSON object")?;
                parameters = serde_json::from_str(&json)?;
            }
            file => {
                let set: LabelledSet = serde_json::from_str(&fs::read_to_string(file)?)?;
                let words = Box::new(Bm25Index::with_parameters(parameters));
                let mut index = SearchIndex::with_strategy(StrategyName::Bm25, words);
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
