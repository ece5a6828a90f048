//! Measures other numbers than the usual ones, by halves: the queries at even and at odd
//! places, so that numbers can be chosen on one half and checked on the other.
//!
//! ```text
//! cargo run --release -p toolgate-search --example tune -- \
//!     [--words JSON] [--hybrid JSON] [--strategy NAME] [--typos COUNT] [--missed] [--hints] FILE…
//! ```

use std::{error::Error, fs, time::Duration};

use toolgate_search::{
    Bm25Parameters, Hit, HybridIndex, HybridParameters, SearchIndex, StrategyName,
    evaluation::{Hints, LabelledSet, QueryFigures, Summary, measure, with_typing_errors},
};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut words, mut hybrid) = (Bm25Parameters::default(), HybridParameters::default());
    let (mut name, mut typos) = (StrategyName::Hybrid, 0);
    let mut missed = false;
    let mut hints = Hints::Ignored;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--missed" => missed = true,
            "--hints" => hints = Hints::Given,
            "--words" => words = serde_json::from_str(&arguments.next().unwrap_or_default())?,
            "--hybrid" => hybrid = serde_json::from_str(&arguments.next().unwrap_or_default())?,
            "--strategy" => name = arguments.next().unwrap_or_default().parse()?,
            "--typos" => typos = arguments.next().unwrap_or_default().parse()?,
            file => {
                let mut set: LabelledSet = serde_json::from_str(&fs::read_to_string(file)?)?;
                for query in &mut set.queries {
                    query.q = with_typing_errors(&query.q, typos, 1);
                }
                let mut index = match name {
                    StrategyName::Hybrid => {
                        let strategy = Box::new(HybridIndex::with_parameters(words, hybrid));
                        SearchIndex::with_strategy(name, strategy)
                    }
                    _ => SearchIndex::ranked_by(name),
                };
                set.put_into(&mut index);
                let mut clock = || Duration::ZERO;
                let mut found: Vec<Vec<String>> = Vec::new();
                let mut each =
                    |hits: &[Hit]| found.push(hits.iter().map(|hit| hit.key.to_string()).collect());
                let figures = measure(&set, &index, hints, &mut clock, &mut each);
                report(file, &figures);
                if missed {
                    report_missed(&set, &figures, &found);
                }
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

/// The queries whose needs are not all met within five.
#[expect(clippy::print_stdout, reason = "an example that reports to a person")]
fn report_missed(set: &LabelledSet, figures: &[QueryFigures], found: &[Vec<String>]) {
    let queries = set.queries.iter().zip(figures).zip(found);
    for ((query, figures), found) in queries.filter(|((_, figures), _)| figures.recall_at_5 < 1.0) {
        let style = query.style.as_deref().unwrap_or_default();
        let first: Vec<&str> = found.iter().take(5).map(String::as_str).collect();
        println!("    {:.2} {style} | {} | {:?}", figures.recall_at_5, query.q, query.labels);
        println!("         {first:?}");
    }
}
