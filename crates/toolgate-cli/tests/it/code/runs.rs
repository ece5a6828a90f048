//! Limits, cancelling, many at once.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_testkit::scaled;

use super::{run, workplace};
use crate::support::{META, call, list, names, notification, text, until};

#[tokio::test]
async fn errors_name_the_limit_and_keep_the_output() {
    // A script that waits meets the limit of time, and no other script is to meet it.
    let waits = json!({ "timeoutSeconds": scaled(Duration::from_secs(5)).as_secs_f64() });
    let waiting = "console.log('here'); await kit_sleep({ ms: 600000 });";
    meet_limits(&waits, &[(waiting, "codeMode.timeoutSeconds")]).await;
    let others =
        json!({ "timeoutSeconds": 3600, "cpuSeconds": 0.3, "memoryMb": 16, "maxCalls": 3 });
    let cases = [
        ("console.log('here'); while (true) {}", "codeMode.cpuSeconds"),
        (
            "console.log('here'); const all = []; while (true) all.push('x'.repeat(99999) + all.length);",
            "codeMode.memoryMb",
        ),
        ("console.log('here'); await new Promise(() => {});", "can no longer happen"),
        (
            "console.log('here'); for (let n = 0; n < 9; n++) await kit_add({ a: n, b: n });",
            "codeMode.maxCalls",
        ),
        ("console.log('here'); const deep = () => deep() + 1; deep();", "stack"),
    ];
    meet_limits(&others, &cases).await;
}

/// Runs scripts that meet a limit each; `expected` is part of the message.
async fn meet_limits(limits: &Value, cases: &[(&str, &str)]) {
    let mut client = workplace(limits).connect(&[]).await;
    for (code, expected) in cases {
        let answer = run(&mut client, code).await;
        assert_eq!(answer["isError"], true, "{code}: {answer}");
        assert!(text(&answer).starts_with("here\n"), "{code}: {answer}");
        assert!(text(&answer).contains(expected), "{code}: {answer}");
        assert!(text(&run(&mut client, "return 'fine'").await).starts_with("fine"), "after {code}");
    }
}

#[tokio::test]
async fn cancelling_the_request_stops_the_run_and_its_calls() {
    let mut client = workplace(&json!({ "timeoutSeconds": 60 })).connect(&[]).await;
    run(&mut client, "return 1").await;
    // The server has the slow call when it has answered the quick one, which is reported.
    let code = "const slow = kit_sleep({ ms: 60000 }); await kit_add({ a: 1, b: 1 }); await slow;";
    let id = client
        .begin("tools/call", json!({
            "name": "run_code", "arguments": { "code": code }, "_meta": { "progressToken": "t" },
        }))
        .await
        .unwrap();
    notification(&mut client, "notifications/progress").await;
    client
        .notify("notifications/cancelled", json!({ "requestId": id, "reason": "enough" }))
        .await
        .unwrap();
    let cancelled = until("the server hears of it", async || {
        let answer = run(&mut client, "return (await kit_last_cancelled({})).lastCancelled").await;
        text(&answer).contains("requestId").then_some(())
    });
    cancelled.await;
}

#[tokio::test]
async fn runs_do_not_wait_for_each_other() {
    let mut client = workplace(&json!({ "timeoutSeconds": 3600 })).connect(&[]).await;
    let slow = json!({ "name": "run_code", "arguments": { "code": "await kit_sleep({ ms: 600000 }); return 'slow'" } });
    client.begin("tools/call", slow).await.unwrap();
    let answer = run(&mut client, "return 'quick'").await;
    assert!(text(&answer).starts_with("quick"));
}

#[tokio::test]
async fn scripts_can_be_off_or_the_only_way_to_call() {
    let mut client = workplace(&json!({ "enabled": false })).connect(&[]).await;
    let tools = list(&mut client).await;
    assert_eq!(names(&tools), [META[0], META[1], META[2], "read_output"]);
    let refused = run(&mut client, "return 1").await;
    insta::assert_snapshot!(text(&refused), @"Scripts are switched off here (codeMode.enabled); use call_tool.");

    let mut client = workplace(&json!({})).connect(&["--mode", "code"]).await;
    let tools = list(&mut client).await;
    assert_eq!(
        names(&tools),
        ["search_tools", "get_tool_details", "run_code", "resume_run", "read_output"]
    );
    let found =
        call(&mut client, "search_tools", json!({ "query": "add numbers", "limit": 1 })).await;
    assert!(text(&found).contains("run_code") && !text(&found).contains("call_tool"), "{found}");
}

#[tokio::test]
async fn arguments_and_results_of_scripts_are_unchanged() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let values = json!([
        null, true, 0, -1, 9_007_199_254_740_993_i64, u64::MAX, 0.1, 1e308, "", "é漢\u{1f600}\u{0}\u{2028}",
        {"__proto__": {"x": 1}, "constructor": 2, "": []}, [[[[]]]], {"toJSON": 1},
    ]);
    let code = format!(
        "const sent = JSON.parse({});\nconst all = Object.fromEntries([['value', sent]]);\nconst got = await kit_echo(all);\n\
         return got.value;",
        Value::String(values.to_string())
    );
    let answer = run(&mut client, &code).await;
    let (value, _) = text(&answer).rsplit_once('\n').unwrap();
    let back: Value = serde_json::from_str(value).unwrap();
    // What JSON.parse of JavaScript itself rounds is rounded before it is sent.
    let mut expected = values;
    expected[4] = json!(9_007_199_254_740_992_i64);
    assert_eq!(back.as_array().unwrap().len(), expected.as_array().unwrap().len());
    for (got, wanted) in back.as_array().unwrap().iter().zip(expected.as_array().unwrap()) {
        if wanted.as_u64() != Some(u64::MAX) {
            assert_eq!(got, wanted);
        }
    }
    let big = run(
        &mut client,
        "const all = Object.fromEntries([['value', 9007199254740993n]]); return (await kit_echo(all)).value",
    )
    .await;
    assert!(text(&big).starts_with("9007199254740993"), "{big}");
}
