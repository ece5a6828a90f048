//! What the ranking must not fall below, on tools and queries that were written for it.
//!
//! The figures of the thresholds are a little under what was measured; the table in `docs/search.md`
//! has others. A change that lowers one of them needs a better reason than this file.

use std::time::Duration;

use serde::Deserialize;
use toolgate_search::{
    Query, SearchIndex, StrategyName,
    evaluation::{Hints, LabelledSet, QueryFigures, Summary, measure},
};

use crate::catalogue::keys;

const SET: &str = include_str!("../data/quality.json");

/// What the set says of its queries beside the labels.
#[derive(Deserialize)]
struct Languages {
    queries: Vec<Language>,
}

#[derive(Deserialize)]
struct Language {
    lang: String,
}

fn set() -> LabelledSet {
    serde_json::from_str(SET).unwrap_or_default()
}

fn figures(strategy: StrategyName) -> Vec<QueryFigures> {
    let set = set();
    let mut index = SearchIndex::ranked_by(strategy);
    set.put_into(&mut index);
    measure(&set, &index, Hints::Ignored, &mut || Duration::ZERO, &mut || {})
}

#[test]
fn the_set_is_large_enough_to_mean_something() {
    let set = set();
    let languages: Languages = serde_json::from_str(SET).unwrap();
    let mut other: Vec<_> = languages.queries.iter().map(|query| query.lang.as_str()).collect();
    other.sort_unstable();
    other.dedup();
    assert!(set.corpus.len() >= 150 && set.queries.len() >= 200 && other.len() >= 8);
    assert!(set.unknown_labels().is_empty());
}

#[test]
fn each_strategy_is_as_good_as_it_was() {
    for (strategy, recall_at_1, recall_at_5) in [
        (StrategyName::Hybrid, 0.77, 0.94),
        (StrategyName::Embedding, 0.77, 0.92),
        (StrategyName::Bm25, 0.56, 0.75),
        (StrategyName::Keyword, 0.30, 0.55),
    ] {
        let summary = Summary::of(&figures(strategy));
        assert!(summary.recall_at_1 >= recall_at_1, "{strategy}: {summary:?}");
        assert!(summary.recall_at_5 >= recall_at_5, "{strategy}: {summary:?}");
    }
}

#[test]
fn other_languages_find_tools_that_are_described_in_english() {
    let languages: Languages = serde_json::from_str(SET).unwrap();
    let asked = figures(StrategyName::Hybrid);
    let foreign: Vec<QueryFigures> = asked
        .into_iter()
        .zip(&languages.queries)
        .filter(|(_, query)| query.lang != "en")
        .map(|(figures, _)| figures)
        .collect();
    let summary = Summary::of(&foreign);
    assert!(summary.queries >= 30 && summary.recall_at_5 >= 0.85, "{summary:?}");
}

#[test]
fn the_right_one_of_near_duplicates_is_first() {
    let mut index = SearchIndex::new();
    set().put_into(&mut index);
    for (text, expected) in [
        ("send a notification to one user", "notify_send_user_notification"),
        ("send a notification to a channel", "notify_send_channel_notification"),
        ("send a notification to a team", "notify_send_team_notification"),
        ("delete a user's notification", "notify_delete_user_notification"),
        ("delete the notification of a channel", "notify_delete_channel_notification"),
        ("list the notifications of a user", "notify_list_user_notifications"),
        ("list the notifications of a channel", "notify_list_channel_notifications"),
        ("turn off the light", "home_turn_off_light"),
        ("turn on the light", "home_turn_on_light"),
        ("close pull request", "repo_close_pull_request"),
        ("merge pull request", "repo_merge_pull_request"),
    ] {
        let hits = index.search(&Query::new(text, 3)).unwrap();
        assert_eq!(keys(&hits).first(), Some(&expected), "{text}: {:?}", keys(&hits));
    }
}
