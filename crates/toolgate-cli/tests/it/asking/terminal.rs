//! The person at a terminal, with a real pseudo-terminal.

use std::time::Duration;

use serde_json::json;
use toolgate_testkit::scaled;

use super::{called, workplace};
use crate::{support::signal, typist::Typist};

const PROMPT: &str = "Allow [o]nce, [s]ession, [a]lways (for shell), or [N]o? ";
const EXTENT: &str = "or only where (such as path=src/*)? ";
const CALL: [&str; 3] = ["call", "kit_counter", "{}"];

#[tokio::test]
async fn the_answer_at_the_terminal_decides() {
    let (workplace, log) = workplace(&json!({}));
    let mut typist = Typist::start(&workplace, &CALL);
    typist.sees(PROMPT).await.types("perhaps\n").sees(PROMPT).await.types("yes\n");
    let outcome = typist.end().await;
    assert_eq!((outcome.code, called(&log).len()), (Some(0), 1), "{outcome:?}");
    insta::assert_snapshot!(outcome.shown(), @r#"
    exit code 0
    --- stdout
    {"count":1}
    --- stderr
    shell wants to call kit_counter of the server kit
    with {}
    Asked because of `mcpServers.kit.tools.counter.approval` (toolgate.json:1:16)
    Allow [o]nce, [s]ession, [a]lways (for shell), or [N]o? perhaps
    Allow [o]nce, [s]ession, [a]lways (for shell), or [N]o? yes
    "#);
    for no in ["no\n", "\n", "\u{4}"] {
        let mut typist = Typist::start(&workplace, &CALL);
        typist.sees(PROMPT).await.types(no);
        let outcome = typist.end().await;
        assert_eq!(outcome.code, Some(1), "{no:?}: {outcome:?}");
        assert!(outcome.stderr.contains("a person denied it"), "{no:?}: {outcome:?}");
    }
    assert_eq!(called(&log).len(), 1, "once is once");
    let waiting = workplace.run(&["approve", "--json"]).await.json();
    assert_eq!(waiting, json!([]), "who has answered is not asked again");
}

#[tokio::test]
async fn always_at_the_terminal_covers_only_the_given_arguments() {
    let (workplace, log) = workplace(&json!({}));
    let call = |tag: &str| json!({ "tag": tag }).to_string();
    let mut typist = Typist::start(&workplace, &["call", "kit_counter", &call("a-1")]);
    typist.sees(PROMPT).await.types("always\n");
    typist.sees(EXTENT).await.types("tag=b*\n").sees(EXTENT).await.types("tag prefix b-\n");
    typist.sees(EXTENT).await.types("tag prefix a-\n");
    let outcome = typist.end().await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    insta::assert_snapshot!(outcome.stderr, @r#"
    shell wants to call kit_counter of the server kit
    with {"tag":"a-1"}
    Asked because of `mcpServers.kit.tools.counter.approval` (toolgate.json:1:16)
    Allow [o]nce, [s]ession, [a]lways (for shell), or [N]o? always
    With [T]hese arguments, [a]ny, or only where (such as path=src/*)? tag=b*
    in `tag=b*` the `*` stands where it has no meaning; write FOLDER/*, or NAME matches REGEX, or NAME host HOST
    With [T]hese arguments, [a]ny, or only where (such as path=src/*)? tag prefix b-
    the call itself does not meet this condition
    With [T]hese arguments, [a]ny, or only where (such as path=src/*)? tag prefix a-
    "#);
    let covered = workplace.run(&["call", "kit_counter", &call("a-2")]).await;
    assert_eq!(covered.code, Some(0), "{covered:?}");
    let other = workplace.run(&["call", "kit_counter", &call("b-1")]).await;
    assert!(other.stderr.contains("waiting for approval"), "nobody is at a terminal: {other:?}");
    assert_eq!(called(&log).len(), 2);
    let mut typist = Typist::start(&workplace, &["call", "kit_counter", &call("c")]);
    typist.sees(PROMPT).await.types("a\n").sees(EXTENT).await.types("\n");
    assert_eq!(typist.end().await.code, Some(0));
    let grants = workplace.run(&["grants"]).await.stdout;
    let told: Vec<&str> =
        grants.lines().filter_map(|line| line.split_once("  ")).map(|it| it.1).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    kit/counter for shell: always, only where tag begins with "a-" (by shell)
    kit/counter for shell: always, the arguments that were shown (by shell)
    "#);
}

#[tokio::test]
async fn an_interrupted_question_makes_no_call() {
    let (workplace, log) = workplace(&json!({}));
    let mut typist = Typist::start(&workplace, &CALL);
    typist.sees(PROMPT).await;
    // What Ctrl-C does.
    signal("INT", typist.pid());
    let outcome = typist.end().await;
    assert!(outcome.stderr.ends_with("error: the call was cancelled\n"), "{outcome:?}");
    assert_eq!((outcome.code, called(&log).len()), (Some(130), 0), "{outcome:?}");
    let waiting = workplace.run(&["approve", "--json"]).await.json();
    assert_eq!(waiting, json!([]), "nobody waits for it");
}

#[tokio::test]
async fn a_script_at_the_terminal_asks_and_waits() {
    let limit = scaled(Duration::from_secs(3));
    let (workplace, log) = workplace(&json!({ "timeoutSeconds": limit.as_secs_f64() }));
    let code = "const all = await Promise.all([1, 2].map((n) => kit_counter({ n })));
        return all.length";
    std::fs::write(workplace.path().join("count.ts"), code).unwrap();
    let prompt = "Allow [o]nce, [r]un, [s]ession, [a]lways (for shell), or [N]o? ";
    let mut typist = Typist::start(&workplace, &["run", "count.ts"]);
    typist.sees(prompt).await;
    // Longer than the script may take.
    tokio::time::sleep(limit + Duration::from_millis(500)).await;
    // Two calls at once are two questions, one after the other.
    typist.types("o\n").sees(prompt).await.types("o\n");
    let outcome = typist.end().await;
    assert_eq!((outcome.stdout.as_str(), outcome.code), ("2\n", Some(0)), "{outcome:?}");
    assert_eq!(called(&log).len(), 2);
}
