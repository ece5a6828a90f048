//! Calls of unknown outcome, and a failing journal.

use std::{path::PathBuf, time::Duration};

use serde_json::{Value, json};

use crate::{
    fixtures::kit,
    support::{Workplace, entry, until},
    typist::agree,
};

/// A server with all built-in tools, and the log of its calls.
fn workplace(code_mode: &Value) -> (Workplace, PathBuf) {
    let place = Workplace::empty();
    let log = place.path().join("calls.log");
    let server = entry(&kit().with_call_log(&log));
    place.rewrite(&json!({ "mcpServers": { "kit": server }, "codeMode": code_mode }).to_string());
    (place, log)
}

fn called(log: &PathBuf) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let calls = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    calls.map(|call| call["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until a tool was called, which takes a while.
async fn is_called(log: &PathBuf, name: &str) {
    until("the call", async || called(log).iter().any(|it| it == name).then_some(())).await;
}

#[tokio::test]
async fn a_call_of_unknown_outcome_is_repeated_only_by_a_person() {
    let (workplace, log) = workplace(&json!({}));
    let code = "const one = await kit_counter({});
        await kit_sleep({ ms: 3000 });
        return [one.count, (await kit_add({ a: 1, b: 2 })).sum]";
    std::fs::write(workplace.path().join("slow.ts"), code).unwrap();
    let mut child = workplace.command(&["run", "slow.ts"]).spawn().unwrap();
    is_called(&log, "sleep").await;
    child.kill().await.unwrap();
    let runs = workplace.run(&["runs", "--json"]).await.json();
    assert_eq!(runs[0]["state"], "interrupted", "{runs}");
    let id = runs[0]["id"].as_str().unwrap();

    let told = workplace.run(&["run", "--resume", id]).await;
    insta::assert_snapshot!(told.shown().replace(id, "ID"), @r#"
    exit code 1
    --- stdout
    --- stderr
    error: ToolError: the outcome of this call is unknown: it was sent before the run was interrupted; it is not repeated
      at line 2, column 15: await kit_sleep({ ms: 3000 });
    Calls completed: kit_counter.
    Failed: kit_sleep.
      kit_sleep({"ms":3000}): the outcome of this call is unknown: it was sent before the run was interrupted; it is not repeated
    the outcome of call 1, kit_sleep, is unknown; it was not repeated
      hint: `toolgate run --resume ID --repeat-unknown` repeats the calls of unknown outcome
      hint: `toolgate run --resume ID` resumes the run without repeating completed calls
    "#);
    assert_eq!(called(&log), ["counter", "sleep"], "it is not repeated by itself");
    let repeated = agree(&workplace, &["run", "--resume", id, "--repeat-unknown"]).await;
    assert_eq!((repeated.stdout.as_str(), repeated.code), ("[1,3]\n", Some(0)), "{repeated:?}");
    assert_eq!(called(&log), ["counter", "sleep", "sleep", "add"]);
}

#[tokio::test]
async fn a_person_can_allow_a_call_of_unknown_outcome_by_number() {
    let (workplace, log) = workplace(&json!({}));
    let code =
        "await Promise.all([kit_sleep({ ms: 3000 }), kit_sleep({ ms: 3001 })]); return 'both'";
    std::fs::write(workplace.path().join("slow.ts"), code).unwrap();
    let mut child = workplace.command(&["run", "slow.ts"]).spawn().unwrap();
    until("both calls", async || (called(&log).len() == 2).then_some(())).await;
    child.kill().await.unwrap();
    let runs = workplace.run(&["runs", "--json"]).await.json();
    let id = runs[0]["id"].as_str().unwrap();
    let named = agree(&workplace, &["runs", "repeat", id, "1"]).await;
    assert_eq!(named.code, Some(0), "{named:?}");
    let resumed = workplace.run(&["run", "--resume", id, "--json"]).await;
    let told = resumed.json();
    assert_eq!(told["run"]["unknown"], json!([{ "call": 0, "name": "kit_sleep" }]), "{told}");
    assert!(called(&log).len() <= 3, "the other one is not repeated: {:?}", called(&log));
}

#[tokio::test]
async fn the_outcome_of_a_call_is_unknown_if_its_server_crashed() {
    let (workplace, log) = workplace(&json!({}));
    std::fs::write(workplace.path().join("crash.ts"), "return await kit_crash({})").unwrap();
    let told = workplace.run(&["run", "crash.ts", "--json"]).await.json();
    assert_eq!(told["run"]["unknown"], json!([{ "call": 0, "name": "kit_crash" }]), "{told}");
    let runs = workplace.run(&["runs", "--json"]).await.json();
    let id = runs[0]["id"].as_str().unwrap();
    let again = workplace.run(&["run", "--resume", id, "--json"]).await.json();
    assert_eq!(again["run"]["unknown"], told["run"]["unknown"], "{again}");
    assert_eq!(called(&log), ["crash"], "it is not repeated by itself");
    let named = agree(&workplace, &["runs", "repeat", id, "0"]).await;
    assert_eq!(named.code, Some(0), "{named:?}");
    let record = workplace.run(&["audit", "--json"]).await.stdout;
    let last: Value = serde_json::from_str(record.lines().last().unwrap()).unwrap();
    assert_eq!((&last["kind"], &last["tool"]), (&json!("repeat"), &json!("kit_crash")), "{last}");
    assert_eq!(last["run"], id, "{last}");
}

#[tokio::test]
async fn no_call_is_made_after_the_journal_failed() {
    let (workplace, log) = workplace(&json!({}));
    let code = "const done = [];
        try { await kit_sleep({ ms: 2000 }); done.push('slept'); }
        finally { done.push(await kit_counter({})); }
        return done";
    std::fs::write(workplace.path().join("slow.ts"), code).unwrap();
    let child = workplace.command(&["run", "slow.ts"]).spawn().unwrap();
    is_called(&log, "sleep").await;
    let journal = rusqlite::Connection::open(workplace.path().join("state/journal.db")).unwrap();
    journal.busy_timeout(Duration::from_secs(30)).unwrap();
    journal.execute_batch("DROP TABLE calls").unwrap();
    let output = child.wait_with_output().await.unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let told = told.replace(&workplace.path().display().to_string(), "HOME");
    // How far the script got before it was ended differs.
    let first = told.lines().next().unwrap();
    insta::assert_snapshot!(first, @"error: The run was ended: the journal HOME/state/journal.db cannot be used: no such table: calls.");
    assert!(!told.contains("--resume"), "what is not written down cannot go on: {told}");
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(called(&log), ["sleep"], "no call without a record");
}

#[tokio::test]
async fn results_that_are_too_large_for_a_script_are_not_stored() {
    let (workplace, _) = workplace(&json!({ "maxResultBytes": 100_000 }));
    let code = "const sizes = [];
        for (const bytes of [1000, 4000000]) {
          try { sizes.push((await kit_big({ bytes })).length); }
          catch (error) { sizes.push(error.message.split(';')[0]); }
        }
        return sizes";
    let done = workplace.run_with_input(&["run", "-"], code).await;
    insta::assert_snapshot!(done.stdout, @r#"[1000,"the call was made, but its result has 4000002 bytes, 100000 bytes are allowed"]"#);
    let files = std::fs::read_dir(workplace.path().join("state")).unwrap();
    let files = files
        .map(Result::unwrap)
        .filter(|file| file.file_name().to_string_lossy().starts_with("journal.db"));
    let bytes: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
    assert!((1..1_000_000).contains(&bytes), "{bytes}");
    let runs = workplace.run(&["runs", "--json"]).await.json();
    let shown = workplace.run(&["runs", "show", runs[0]["id"].as_str().unwrap(), "--json"]).await;
    let calls = &shown.json()["timeline"];
    assert_eq!(calls[0]["result"].as_str().unwrap().len(), 1_000);
    assert!(calls[1]["error"].as_str().unwrap().contains("the call was made"), "{}", calls[1]);
}

#[tokio::test]
async fn ctrl_c_does_not_reach_workers() {
    let (workplace, log) = workplace(&json!({}));
    let code = "await kit_sleep({ ms: 600000 })";
    std::fs::write(workplace.path().join("slow.ts"), code).unwrap();
    // Started like a foreground job of a shell.
    let child = workplace.command(&["run", "slow.ts"]).process_group(0).spawn().unwrap();
    is_called(&log, "sleep").await;
    let group = format!("-{}", child.id().unwrap());
    let sent = std::process::Command::new("kill").args(["-INT", "--", &group]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().await.unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("cancelled") && !told.contains("signal"), "{told}");
    let runs = workplace.run(&["runs", "--json"]).await.json();
    assert_ne!(runs[0]["state"], "interrupted", "{runs}");
}
