//! What the ranking must not fall below on labelled sets that are not part of the project.
//!
//! They are read from the folder that `TOOLGATE_EVAL` names. The floors are a few points under what
//! was measured (`docs/search.md`): the small sets move by one or two points with every query, and
//! other halves of them differ by more. They are to catch a ranking that broke, not to praise it.

use std::{env, fs, path::PathBuf, time::Duration};

use toolgate_search::{
    SearchIndex, StrategyName,
    evaluation::{Hints, LabelledSet, Summary, measure},
};

/// The set, and the least recall@5 of hybrid, bm25, embedding and keyword, in hundredths.
const FLOORS: &[(&str, [u32; 4])] = &[
    ("livemcp_route", [66, 60, 60, 48]),
    ("livemcp_task", [41, 40, 33, 10]),
    ("livemcp_step", [72, 72, 72, 48]),
    ("metatool", [76, 63, 72, 31]),
    ("mcpproxy_golden", [86, 74, 86, 54]),
    ("stabletoolbench", [66, 64, 51, 0]),
];

const STRATEGIES: [StrategyName; 4] =
    [StrategyName::Hybrid, StrategyName::Bm25, StrategyName::Embedding, StrategyName::Keyword];

#[test]
#[ignore = "needs a folder of labelled sets: TOOLGATE_EVAL"]
fn labelled_sets_are_ranked_no_worse_than_before() {
    let folder = PathBuf::from(env::var_os("TOOLGATE_EVAL").expect("TOOLGATE_EVAL is a folder"));
    let mut measured = 0;
    let mut fallen = Vec::new();
    for (name, floors) in FLOORS {
        let Ok(text) = fs::read_to_string(folder.join(name).with_extension("json")) else {
            continue;
        };
        let set: LabelledSet = serde_json::from_str(&text).expect("a labelled set");
        measured += 1;
        let mut recalls = Vec::new();
        for (strategy, floor) in STRATEGIES.into_iter().zip(floors) {
            let mut index = SearchIndex::ranked_by(strategy);
            set.put_into(&mut index);
            let figures =
                measure(&set, &index, Hints::Ignored, &mut || Duration::ZERO, &mut |_| {});
            let recall = 100.0 * Summary::of(&figures).recall_at_5;
            if recall < f64::from(*floor) {
                fallen.push(format!("{name}, {strategy}: recall@5 {recall:.1}, at least {floor}"));
            }
            recalls.push(recall);
        }
        if recalls[0] < recalls[1] {
            fallen.push(format!("{name}: meaning takes away from words alone: {recalls:.1?}"));
        }
    }
    assert!(measured > 0, "no set that is known in {}", folder.display());
    assert!(fallen.is_empty(), "{fallen:#?}");
}
