//! Measures how well a strategy finds tools, with queries that have known answers.
//!
//! The caller reads a [`LabelledSet`] with serde. [`measure`] runs its queries, [`Summary`] has the
//! averages, and [`paired_bootstrap`] tests whether the difference between two strategies is
//! significant. The caller provides the clock.

mod bootstrap;
mod labelled;
mod typing_errors;

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

pub use self::{
    bootstrap::{Interval, paired_bootstrap},
    labelled::{LabelledQuery, LabelledSet, LabelledTool},
    typing_errors::with_typing_errors,
};
use crate::{
    encoder::QueryVector,
    metrics::{ndcg_at, recall_at, reciprocal_rank},
    query::{Hit, Query},
    search_index::SearchIndex,
};

/// The number of hits that the measures need.
pub const DEPTH: usize = 10;

/// Whether queries use the hints of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hints {
    /// Queries have no hint.
    #[default]
    Ignored,
    /// Queries have the hint of the set, if there is one.
    Given,
}

/// The figures of one query.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryFigures {
    /// The share of needs met by the first hit.
    pub recall_at_1: f64,
    /// The share of needs met by the first five.
    pub recall_at_5: f64,
    /// The share of needs met by the first ten.
    pub recall_at_10: f64,
    /// The discounted gain of the first ten, of the best possible.
    pub ndcg_at_10: f64,
    /// One divided by the rank of the first labelled hit within ten; 0 without one.
    pub reciprocal_rank: f64,
    /// The time of the search.
    pub time: Duration,
    /// Whether the strategy refused the query. That counts as no hits.
    pub refused: bool,
}

/// The averages over queries.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// How many queries there were.
    pub queries: usize,
    /// The mean share of needs met by the first hit.
    pub recall_at_1: f64,
    /// The mean share of needs met by the first five.
    pub recall_at_5: f64,
    /// The mean share of needs met by the first ten.
    pub recall_at_10: f64,
    /// The mean discounted gain of the first ten.
    pub ndcg_at_10: f64,
    /// The mean reciprocal rank of the first labelled hit within ten.
    pub mrr: f64,
    /// The time that half of the answers stayed under.
    pub median_time: Duration,
    /// The time that 99 of 100 answers stayed under.
    pub p99_time: Duration,
    /// How many queries the strategy refused.
    pub refused: usize,
}

/// Runs every query of the set, in its order. `clock` returns the time since a fixed moment.
/// `each` gets the hits of each query.
pub fn measure(
    set: &LabelledSet,
    index: &SearchIndex,
    hints: Hints,
    clock: &mut dyn FnMut() -> Duration,
    each: &mut dyn FnMut(&[Hit]),
) -> Vec<QueryFigures> {
    measure_encoded(set, index, hints, &[], clock, each)
}

/// [`measure`] with the vectors of the queries, in their order. Queries past the end of `vectors`
/// have none.
pub fn measure_encoded(
    set: &LabelledSet,
    index: &SearchIndex,
    hints: Hints,
    vectors: &[QueryVector],
    clock: &mut dyn FnMut() -> Duration,
    each: &mut dyn FnMut(&[Hit]),
) -> Vec<QueryFigures> {
    let ask = |(place, labelled): (usize, &LabelledQuery)| {
        let mut query = Query::new(&labelled.q, DEPTH);
        if hints == Hints::Given {
            query.hint = labelled.hint.as_deref();
        }
        query.vector = vectors.get(place);
        let start = clock();
        let answer = index.search(&query);
        let time = clock().saturating_sub(start);
        let refused = answer.is_err();
        let found = answer.unwrap_or_default();
        let figures = figures(labelled, &found);
        each(&found);
        QueryFigures { time, refused, ..figures }
    };
    set.queries.iter().enumerate().map(ask).collect()
}

/// The figures of a ranking, without the time.
pub fn figures(labelled: &LabelledQuery, hits: &[Hit]) -> QueryFigures {
    let ranking: Vec<&str> = hits.iter().map(|hit| hit.key.as_str()).collect();
    let needs: Vec<Vec<&str>> =
        labelled.labels.iter().map(|need| need.iter().map(String::as_str).collect()).collect();
    let gains: BTreeMap<&str, f64> = match &labelled.gains {
        Some(gains) => gains.iter().map(|(id, gain)| (id.as_str(), *gain)).collect(),
        None => needs.iter().flatten().map(|id| (*id, 1.0)).collect(),
    };
    let worth: Vec<f64> = gains.values().copied().collect();
    QueryFigures {
        recall_at_1: recall_at(1, &ranking, &needs),
        recall_at_5: recall_at(5, &ranking, &needs),
        recall_at_10: recall_at(10, &ranking, &needs),
        ndcg_at_10: ndcg_at(10, &ranking, &worth, |id| gains.get(id).copied().unwrap_or(0.0)),
        reciprocal_rank: reciprocal_rank(&ranking[..ranking.len().min(DEPTH)], &needs),
        ..QueryFigures::default()
    }
}

impl Summary {
    /// The averages of these.
    pub fn of(figures: &[QueryFigures]) -> Self {
        let mut times: Vec<Duration> = figures.iter().map(|figures| figures.time).collect();
        times.sort_unstable();
        let mean = |part: fn(&QueryFigures) -> f64| mean(figures.iter().map(part));
        Self {
            queries: figures.len(),
            recall_at_1: mean(|figures| figures.recall_at_1),
            recall_at_5: mean(|figures| figures.recall_at_5),
            recall_at_10: mean(|figures| figures.recall_at_10),
            ndcg_at_10: mean(|figures| figures.ndcg_at_10),
            mrr: mean(|figures| figures.reciprocal_rank),
            median_time: percentile(&times, 50),
            p99_time: percentile(&times, 99),
            refused: figures.iter().filter(|figures| figures.refused).count(),
        }
    }
}

/// The least of sorted times that this many percent do not pass.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or_default()
}

/// The mean of numbers; of none it is zero.
fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0.0), |(sum, count), number| (sum + number, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::StrategyName;

    fn set() -> LabelledSet {
        serde_json::from_str(
            r#"{"corpus": [
                {"id": "a_read", "server": "a", "name": "read", "desc": "Read a file"},
                {"id": "a_write", "server": "a", "name": "write", "desc": "Write a file",
                 "params": {"text": "what to write"}},
                {"id": "b_mail", "server": "b", "server_desc": "Mail", "name": "send", "desc": ""}],
              "queries": [
                {"id": 7, "q": "read the file", "labels": [["a_read"]]},
                {"q": "send", "hint": "mail", "labels": [["b_mail"], ["a_write"]],
                 "gains": {"b_mail": 2}},
                {"q": "(", "labels": [["a_read"]]}]}"#,
        )
        .unwrap()
    }

    fn run(strategy: StrategyName) -> Vec<QueryFigures> {
        let set = set();
        let mut index = SearchIndex::ranked_by(strategy);
        set.put_into(&mut index);
        let mut now = 0;
        let mut asked = 0;
        let mut clock = || {
            now += 1;
            Duration::from_millis(now * now)
        };
        let figures = measure(&set, &index, Hints::Given, &mut clock, &mut |_| asked += 1);
        assert_eq!(asked, 3);
        figures
    }

    #[test]
    fn a_set_is_measured_with_the_callers_clock() {
        let figures = run(StrategyName::Bm25);
        let summary = Summary::of(&figures);
        assert!((summary.recall_at_1 - 0.5).abs() < 1e-9, "{summary:?}");
        assert!((figures[1].ndcg_at_10 - 1.0).abs() < 1e-9);
        // The clock shows 1, 4, 9, 16, 25, 36: the answers took 3, 7 and 11.
        assert_eq!(summary.median_time, Duration::from_millis(7));
        assert_eq!(summary.p99_time, Duration::from_millis(11));
        assert_eq!(summary.refused, 0);
    }

    #[test]
    fn a_refused_query_counts_as_nothing_found() {
        let figures = run(StrategyName::Regex);
        assert!(figures[2].refused && figures[2].recall_at_10 < 1e-9);
        assert_eq!(Summary::of(&figures).refused, 1);
    }

    #[test]
    fn an_empty_set_has_averages() {
        assert_eq!(Summary::of(&[]), Summary::default());
    }
}
