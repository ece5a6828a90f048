//! `toolgate eval`, and ways to rank.

use serde_json::json;

use super::{run, workplace};
use crate::support::Workplace;

fn with_file(content: &str) -> Workplace {
    let workplace = Workplace::empty();
    std::fs::write(workplace.path().join("set.json"), content).unwrap();
    workplace
}

fn set() -> String {
    json!({
        "corpus": [
            { "id": "disk_read", "server": "disk", "name": "read", "desc": "Read a file" },
            { "id": "disk_remove", "server": "disk", "name": "remove", "desc": "Delete a file" },
            { "id": "sky_forecast", "server": "sky", "name": "forecast", "desc": "Weather ahead" },
        ],
        "queries": [
            { "q": "read a file", "labels": [["disk_read"]] },
            { "q": "rain tomorrow", "labels": [["sky_forecast"]] },
            { "q": "(", "labels": [["disk_remove"]] },
        ],
    })
    .to_string()
}

#[tokio::test]
async fn strategies_side_by_side() {
    let workplace = with_file(&set());
    let arguments = ["eval", "set.json", "--strategy", "bm25", "--strategy", "hybrid"];
    let outcome = run(&workplace, &arguments).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    for part in ["R@5", "nDCG@10", "bm25", "hybrid", "R@5 against the first", "set "] {
        assert!(outcome.stdout.contains(part), "{part}: {}", outcome.stdout);
    }
    let told = run(&workplace, &[&arguments[..], &["--json"]].concat()).await.json();
    let [words, both] = [&told[0]["strategies"][0], &told[0]["strategies"][1]];
    assert_eq!((&words["strategy"], &both["strategy"]), (&json!("bm25"), &json!("hybrid")));
    assert_eq!(told[0]["tools"], 3);
    assert!(words["recallAt5"].as_f64() < both["recallAt5"].as_f64(), "{told}");
    assert!(both["recallAt5Change"]["mean"].as_f64() > Some(0.3), "{told}");
}

#[tokio::test]
async fn styles_and_single_queries_are_shown() {
    let styled = set()
        .replace("\"q\":\"read a file\"", "\"q\":\"read a file\",\"style\":\"terse\"")
        .replace("\"q\":\"rain tomorrow\"", "\"q\":\"rain tomorrow\",\"style\":\"chatty\"");
    let workplace = with_file(&styled);
    let arguments = ["eval", "set.json", "--strategy", "hybrid", "--queries"];
    let outcome = run(&workplace, &arguments).await;
    for part in ["MRR", "set, terse", "set, chatty", "found by hybrid", "rain tomorrow"] {
        assert!(outcome.stdout.contains(part), "{part}: {}", outcome.stdout);
    }
    let told = run(&workplace, &[&arguments[..], &["--json"]].concat()).await.json();
    let row = &told[0]["strategies"][0];
    assert_eq!(row["styles"]["terse"]["mrr"], 1.0, "{row}");
    assert_eq!(row["each"][0]["rank"], 1, "{row}");
    assert_eq!(row["each"][0]["found"][0], "disk_read", "{row}");
    let told =
        run(&workplace, &["eval", "set.json", "--strategy", "hybrid", "--json"]).await.json();
    assert!(told[0]["strategies"][0].get("each").is_none(), "{told}");
}

#[tokio::test]
async fn refused_queries_are_counted_and_unknown_labels_named() {
    let workplace = with_file(&set().replace("[[\"disk_remove\"]]", "[[\"disk_gone\"]]"));
    let outcome = run(&workplace, &["eval", "set.json", "--strategy", "regex"]).await;
    assert!(outcome.stdout.contains("1 refused"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("1 labels name no tool, such as `disk_gone`"));
}

#[tokio::test]
async fn an_invalid_labelled_set_is_an_error_with_a_reason() {
    for (content, reason) in [
        ("{\"corpus\": [", "is not JSON"),
        ("{\"corpus\": [{\"id\": 7}]}", "is not a labelled set"),
        ("[]", "is not a labelled set"),
    ] {
        let outcome = run(&with_file(content), &["eval", "set.json"]).await;
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(reason), "{}", outcome.stderr);
        assert!(outcome.stdout.is_empty());
    }
    let outcome = run(&Workplace::empty(), &["eval", "nowhere.json"]).await;
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("nowhere.json cannot be read"), "{}", outcome.stderr);
}

#[tokio::test]
async fn a_search_is_ranked_as_asked() {
    let workplace = workplace();
    let pattern = ["search", "^notes_.*note$", "--strategy", "regex", "--detail", "name", "--json"];
    let outcome = run(&workplace, &pattern).await;
    assert_eq!(outcome.json()["found"], 2, "{outcome:?}");
    let outcome = run(&workplace, &["search", "create_(note", "--strategy", "regex"]).await;
    insta::assert_snapshot!(outcome.shown(), @r"
    exit code 2
    --- stdout
    --- stderr
    error: The query is not a regular expression: unclosed group
        create_(note
               ^
    ");
    let outcome = run(&workplace, &["search", "note", "--strategy", "magic"]).await;
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("hybrid, bm25, embedding, keyword, regex, subagent"));
}
