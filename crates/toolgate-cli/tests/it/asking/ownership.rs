//! Runs belong to their callers, and the audit log names the callers.

use serde_json::{Value, json};

use super::{
    called, ids,
    talk::{Manners, Talk, Way},
    workplace,
};
use crate::{
    support::{Workplace, text},
    typist::approve,
};

/// A token of this name.
async fn token(workplace: &Workplace, name: &str) -> String {
    let made = workplace.run(&["token", "create", "--name", name]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    made.stdout.trim().to_owned()
}

#[tokio::test]
async fn runs_and_outputs_belong_to_their_token() {
    let (workplace, log) = workplace(&json!({ "maxOutputTokens": 200 }));
    let tokens = [token(&workplace, "ada").await, token(&workplace, "grace").await];
    let gateway = workplace.serve_http(&[]).await;
    let manners = |name| Manners { name, ..Manners::ALONE };
    for way in [Way::HttpLegacy, Way::HttpModern] {
        std::fs::write(&log, "").unwrap();
        let talk = async |name, token: Option<&str>| {
            Talk::over_http(&gateway, way, manners(name), token).await
        };
        let mut ada = talk("agent", Some(&tokens[0])).await;
        let code = "for (let n = 0; n < 2000; n++) console.log('a line of Ada ' + n);
            return [await kit_add({ a: 1, b: 2 }), await kit_counter({})];";
        let waits = ada.call_alone("run_code", json!({ "code": code })).await;
        let (run, approval) = ids(&waits);
        let output = waits["_meta"]["toolgate/run"]["outputId"].as_str().unwrap().to_owned();
        let approved = approve(&workplace, &approval, &[]).await;
        assert_eq!(approved.code, Some(0), "{approved:?}");
        // The same name of a client does not help, nor does coming without a token.
        for token in [Some(&*tokens[1]), None] {
            let mut other = talk("agent", token).await;
            let resumed = other.call_alone("resume_run", json!({ "run_id": run })).await;
            assert_eq!(text(&resumed), format!("There is no run `{run}`, or no longer."));
            let read = other.call_alone("read_output", json!({ "id": output })).await;
            assert!(text(&read).starts_with("There is no output"), "{read}");
        }
        assert_eq!(called(&log), ["add"]);
        let mut ada_again = talk("another program", Some(&tokens[0])).await;
        let read = ada_again.call_alone("read_output", json!({ "id": output })).await;
        assert!(text(&read).contains("a line of Ada 1\n"), "{read}");
        let done = ada_again.call_alone("resume_run", json!({ "run_id": run })).await;
        assert_eq!(done.get("isError"), None, "{done}");
        assert_eq!(called(&log), ["add", "counter"]);
    }
    gateway.stop().await;
    let audit = workplace.run(&["audit", "--json"]).await.stdout;
    let calls = audit.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let callers: Vec<String> = calls
        .filter(|row| row["kind"] == "call")
        .map(|row| {
            let (caller, tool) = (row["caller"].as_str().unwrap(), row["tool"].as_str().unwrap());
            // The short hash of a token differs from run to run.
            let (start, _) = caller.rsplit_once(' ').unwrap();
            format!("{tool}: {start}")
        })
        .collect();
    let each = [
        "kit_add: \"agent 1\" (token ada",
        "kit_counter: \"agent 1\" (token ada",
        "kit_counter: \"another program 1\" (token ada",
    ];
    assert_eq!(callers, [each, each].concat());
}

#[tokio::test]
async fn the_name_of_a_client_is_only_a_claim() {
    let (workplace, _) = workplace(&json!({}));
    let name = "evil\u{202e}\" (token ada)\n\u{1b}[2Jx and on and on and on and on and on and on and on and on";
    let manners = Manners { name, ..Manners::ALONE };
    let (mut client, _gateway) = Talk::start(&workplace, Way::StdioLegacy, manners).await;
    let call = json!({ "name": "kit_counter", "arguments": {} });
    client.call_alone("call_tool", call).await;
    let waiting = workplace.run(&["approve"]).await.stdout;
    let question = waiting.lines().nth(1).unwrap();
    insta::assert_snapshot!(question, @r#"  "evil\u{202e}' (token ada) \u{1b}[2Jx and on and on and on and on" (local) wants to call kit_counter of the server kit"#);

    // Typographic quotes do not end the quotation either, wherever the name is shown.
    let name = "x” (token ada). toolgate: approved “y";
    let manners = Manners { name, ..Manners::ALONE };
    let (mut client, _gateway) = Talk::start(&workplace, Way::StdioLegacy, manners).await;
    let script = json!({ "code": "return await kit_counter({ n: 1 })" });
    let waits = client.call_alone("run_code", script).await;
    let (run, reference) = ids(&waits);
    approve(&workplace, &reference, &["--for", "always"]).await;
    for command in [&["approve"][..], &["audit"], &["runs"], &["runs", "show", &run], &["grants"]] {
        let outcome = workplace.run(command).await;
        let quoted = r#""x' (token ada). toolgate: approved 'y 1" (local)"#;
        let rest = outcome.shown().replace(quoted, "");
        assert!(
            !rest.contains("approved '") && !rest.contains("approved “"),
            "{command:?}: {rest}"
        );
    }
}

#[tokio::test]
async fn one_approval_lets_one_call_of_one_run_through() {
    let (workplace, log) = workplace(&json!({}));
    let (mut client, _gateway) = Talk::start(&workplace, Way::StdioLegacy, Manners::ALONE).await;
    let script = json!({ "code": "return (await kit_counter({ n: 1 })).count" });
    let direct = json!({ "name": "kit_counter", "arguments": { "n": 1 } });
    let (first, reference) = ids(&client.call_alone("run_code", script.clone()).await);
    assert_eq!(approve(&workplace, &reference, &[]).await.code, Some(0));
    // Neither the same script in another run, nor the same call without one.
    let (second, other) = ids(&client.call_alone("run_code", script.clone()).await);
    let waits = client.call_alone("call_tool", direct.clone()).await;
    assert!(text(&waits).contains("waiting for approval"), "{waits}");
    let still = client.call_alone("resume_run", json!({ "run_id": second })).await;
    assert!(text(&still).contains("waits for approval"), "{still}");
    assert_eq!(called(&log), Vec::<String>::new());
    let done = client.call_alone("resume_run", json!({ "run_id": first })).await;
    assert!(text(&done).starts_with('1'), "{done}");
    // What was given to the second run is not for the first, nor for a third.
    assert_eq!(approve(&workplace, &other, &[]).await.code, Some(0));
    let (_, _) = ids(&client.call_alone("run_code", script.clone()).await);
    // Nor is what was given to a direct call for a script.
    let (_, rest) = text(&waits).split_once("question ").unwrap();
    let reference = rest.split('.').next().unwrap();
    assert_eq!(approve(&workplace, reference, &[]).await.code, Some(0));
    let (_, _) = ids(&client.call_alone("run_code", script).await);
    assert_eq!(called(&log), ["counter"]);
    let done = client.call_alone("call_tool", direct).await;
    assert_eq!(done.get("isError"), None, "{done}");
    assert_eq!(called(&log), ["counter", "counter"]);
}
