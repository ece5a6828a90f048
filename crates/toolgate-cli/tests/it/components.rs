//! Languages that components add.

use serde_json::json;

use crate::support::Workplace;

/// A component that was added, as its file says it.
#[cfg(not(feature = "engine-wasm"))]
fn added(place: &Workplace) {
    let record = json!({
        "language": "tiny", "source": "tiny.wasm", "sourceHash": "0".repeat(64),
        "hash": "0".repeat(64), "bytes": 1,
    });
    let home = place.environment();
    let home = home.iter().find(|(name, _)| *name == "TOOLGATE_HOME").unwrap();
    let folder = std::path::Path::new(&home.1).join("engines");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("tiny.json"), record.to_string()).unwrap();
}

#[cfg(not(feature = "engine-wasm"))]
#[tokio::test]
async fn a_program_without_the_feature_says_how_to_build_one_with_it() {
    const BUILD: &str = "cargo build --release --features engine-wasm";
    let place = Workplace::new(&json!({ "mcpServers": {} }));
    let outcome = place.run(&["engines", "add", "tiny.wasm", "--language", "tiny"]).await;
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains(BUILD), "{outcome:?}");
    added(&place);
    let outcome = place.run(&["engines"]).await;
    assert!(outcome.stdout.contains("tiny: WebAssembly component tiny.wasm"), "{outcome:?}");
    assert!(outcome.stdout.contains(BUILD), "{outcome:?}");
    std::fs::write(place.path().join("script.tiny"), "v1").unwrap();
    let outcome = place.run(&["run", "script.tiny", "--language", "tiny"]).await;
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains(BUILD), "{outcome:?}");
}

#[cfg(feature = "engine-wasm")]
#[tokio::test]
async fn a_component_is_added_runs_scripts_and_is_removed() {
    let place = Workplace::new(&json!({ "mcpServers": {} }));
    let text = include_str!("../../../../components/test/language.wat");
    std::fs::write(place.path().join("tiny.wat"), text).unwrap();
    std::fs::write(place.path().join("script.tiny"), "v[1]").unwrap();
    let add = ["engines", "add", "tiny.wat", "--language", "tiny", "--json"];
    let outcome = place.run(&add).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let result = outcome.json();
    assert_eq!(result["added"]["language"], "tiny");
    assert_eq!(result["replaced"], json!(false));
    assert_eq!(place.run(&add).await.json()["replaced"], json!(true));
    let engines = place.run(&["engines", "--json"]).await.json();
    let tiny = engines["engines"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&tiny["language"], &tiny["runs"]), (&json!("tiny"), &json!(true)));
    let outcome = place.run(&["run", "script.tiny", "--language", "tiny"]).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "[1]\n"), "{outcome:?}");
    let outcome = place.run(&["engines", "remove", "tiny"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let outcome = place.run(&["run", "script.tiny", "--language", "tiny"]).await;
    assert!(outcome.stderr.contains("no engine runs the language `tiny`"), "{outcome:?}");
}

#[cfg(feature = "engine-wasm")]
#[tokio::test]
async fn what_cannot_run_scripts_is_not_added() {
    let place = Workplace::empty();
    std::fs::write(place.path().join("other.wat"), "(component)").unwrap();
    let add = |language: &'static str| ["engines", "add", "other.wat", "--language", language];
    let outcome = place.run(&add("other")).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("does not export the function `run`"), "{outcome:?}");
    for (language, words) in [("python", "is built in"), ("../x", "no language can be named")] {
        let outcome = place.run(&add(language)).await;
        assert!(outcome.stderr.contains(words), "{outcome:?}");
    }
}
