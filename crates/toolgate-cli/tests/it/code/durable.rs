//! Runs that are looked at, and go on.

use serde_json::{Value, json};
use toolgate_testkit::{Fixture, RawClient};

use super::{python, run, workplace};
use crate::{
    fixtures::kit,
    support::{Workplace, call, entry, entry_with, text},
    typist::{agree, approve},
};

/// Resumes a run.
async fn resume(client: &mut RawClient, id: &str, code: Option<&str>) -> Value {
    let mut arguments = json!({ "run_id": id });
    if let Some(code) = code {
        arguments["code"] = json!(code);
    }
    call(client, "resume_run", arguments).await
}

pub(super) fn id_of(result: &Value) -> &str {
    result["_meta"]["toolgate/run"]["id"].as_str().unwrap_or_else(|| panic!("no id: {result}"))
}

/// The text of a result, with a placeholder for its id.
pub(super) fn shown(result: &Value) -> String {
    text(result).replace(id_of(result), "ID")
}

#[tokio::test]
async fn a_failed_run_continues_with_corrected_code_and_repeats_nothing() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let code = "const a = await kit_counter({});\nconst b = await kit_counter({});\nreturn a.counts + b.oops.x;";
    let failed = run(&mut client, code).await;
    insta::assert_snapshot!(shown(&failed), @r#"
    TypeError: cannot read property 'x' of undefined
      at line 3, column 19: return a.counts + b.oops.x;
    hint: the last result of `kit_counter` is { count: number }
    Calls completed: kit_counter ×2.
    resume_run(run_id: "ID", code?) goes on, with corrected code if need be; what completed is not repeated.
    "#);
    let corrected =
        code.replace("a.counts + b.oops.x", "[a.count, b.count, (await kit_counter({})).count]");
    let id = id_of(&failed).to_owned();
    let done = resume(&mut client, &id, Some(&corrected)).await;
    assert!(text(&done).starts_with("[1,2,3]"), "{done}");
    assert_eq!(id_of(&done), id);

    let again = resume(&mut client, &id, None).await;
    assert_eq!(again["isError"], true);
    insta::assert_snapshot!(text(&again).replace(&id, "ID"), @"Run `ID` has run to its end; there is nothing to resume.");
    let unknown = resume(&mut client, "run_0", None).await;
    insta::assert_snapshot!(text(&unknown), @"There is no run `run_0`, or no longer.");
}

#[tokio::test]
async fn code_that_makes_other_calls_is_refused_and_changes_nothing() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let failed = run(&mut client, "await kit_add({ a: 1, b: 1 }); throw new Error('x')").await;
    let id = id_of(&failed).to_owned();
    let other = resume(&mut client, &id, Some("await kit_add({ a: 2, b: 2 }); return 1")).await;
    insta::assert_snapshot!(shown(&other), @r#"
    The script does not do what it did before: call 0 was kit_add({"a":1,"b":1}) and is now kit_add({"a":2,"b":2}).
    Calls completed: kit_add.
    resume_run(run_id: "ID") takes code that makes the same calls first; run_code starts a new run.
    "#);
    // Nor may it end without a call that was made.
    let short = resume(&mut client, &id, Some("return 1")).await;
    insta::assert_snapshot!(shown(&short), @r#"
    The script does not do what it did before: call 0 was kit_add({"a":1,"b":1}), and it ends without it.
    Calls completed: kit_add.
    resume_run(run_id: "ID") takes code that makes the same calls first; run_code starts a new run.
    "#);
    // The code is still the first.
    let same = resume(&mut client, &id, None).await;
    assert!(text(&same).starts_with("Error: x"), "{same}");
    // What failed may be done in another way.
    let failed =
        run(&mut client, "await kit_counter({}); await kit_fail({ message: 'no' });").await;
    let code = "const a = await kit_counter({}); await kit_add({ a: 1, b: 2 }); return a.count";
    let done = resume(&mut client, id_of(&failed), Some(code)).await;
    assert!(text(&done).starts_with('1'), "{done}");
}

#[tokio::test]
async fn a_run_that_runs_is_not_run_twice() {
    let workplace = workplace(&json!({}));
    let mut client = workplace.connect(&[]).await;
    let code = "await kit_add({ a: 1, b: 1 }); await kit_sleep({ ms: 60000 });";
    let request = json!({
        "name": "run_code", "arguments": { "code": code }, "_meta": { "progressToken": "t" },
    });
    let begun = client.begin("tools/call", request).await.unwrap();
    crate::support::notification(&mut client, "notifications/progress").await;
    let runs = workplace.run(&["runs", "--json"]).await.json();
    assert_eq!(runs[0]["state"], "running", "{runs}");
    let id = runs[0]["id"].as_str().unwrap().to_owned();
    let refused = resume(&mut client, &id, None).await;
    assert!(text(&refused).ends_with("is still running."), "{refused}");
    let refused = workplace.run(&["run", "--resume", &id]).await;
    assert!(refused.stderr.contains("is still running"), "{refused:?}");

    // After the cancellation the run is free again, and its open call is not repeated.
    client.notify("notifications/cancelled", json!({ "requestId": begun })).await.unwrap();
    let resumed = crate::support::until("the run ends", async || {
        let resumed = resume(&mut client, &id, None).await;
        (!text(&resumed).contains("still running")).then_some(resumed)
    });
    let resumed = resumed.await;
    insta::assert_snapshot!(text(&resumed).replace(&id, "ID"), @r#"
    ToolError: the outcome of this call is unknown: it was sent before the run was interrupted; it is not repeated
      at line 1, column 38: await kit_add({ a: 1, b: 1 }); await kit_sleep({ ms: 60000 });
    Calls completed: kit_add.
    Failed: kit_sleep.
      kit_sleep({"ms":60000}): the outcome of this call is unknown: it was sent before the run was interrupted; it is not repeated
    Outcome unknown, not repeated: kit_sleep (call 1). A person can have it repeated, in their own terminal: toolgate runs repeat ID CALL
    resume_run(run_id: "ID", code?) goes on, with corrected code if need be; what completed is not repeated.
    "#);

    // Until a person says so.
    let state = async || {
        let told = workplace.run(&["runs", "show", &id, "--json"]).await.json();
        told["timeline"][1]["state"].clone()
    };
    assert_eq!(state().await, "unknown");
    let repeated = agree(&workplace, &["runs", "repeat", &id, "1"]).await;
    assert_eq!(repeated.code, Some(0), "{repeated:?}");
    assert_eq!(state().await, "not made");
}

#[tokio::test]
async fn a_resumed_run_emits_content_and_media_again() {
    let workplace = workplace(&json!({}));
    let mut client = workplace.connect(&[]).await;
    let code = "blocks = await kit_media()\nfor block in blocks:\n    if block.get('type') == 'image':\n        await emit(block)\nprint(len(blocks))\nawait kit_counter()\nFAILS";
    let failed = python(&mut client, &code.replace("FAILS", "raise ValueError('x')")).await;
    let image = |result: &Value| -> Vec<Value> {
        let content = result["content"].as_array().unwrap();
        content.iter().filter(|block| block["type"] == "image").cloned().collect()
    };
    assert_eq!(image(&failed).len(), 1, "{failed}");
    let id = id_of(&failed).to_owned();
    // Another process resumes it from the journal.
    drop(client);
    let mut client = workplace.connect(&[]).await;
    let code = code.replace("FAILS", "[block for block in blocks if block.get('type') == 'image']");
    let done = resume(&mut client, &id, Some(&code)).await;
    assert_eq!(done.get("isError"), None, "{done}");
    // Emitted, and returned.
    assert_eq!(image(&done), [image(&failed), image(&failed)].concat());
}

#[tokio::test]
async fn a_run_waits_for_a_person_and_continues_after_the_approval() {
    let settings = json!({ "tools": { "counter": { "approval": "ask" } } });
    let workplace = Workplace::new(&json!({
        "mcpServers": { "kit": entry_with(&kit(), settings) }, "toolSearch": { "enabled": true },
    }));
    let mut client = workplace.connect(&[]).await;
    let code = "const sum = (await kit_add({ a: 1, b: 2 })).sum;\nconsole.log('before');\nreturn [sum, (await kit_counter({})).count];";
    let waits = run(&mut client, code).await;
    let approval =
        waits["_meta"]["toolgate/run"]["waiting"][0]["reference"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(shown(&waits).replace(&approval, "APPROVAL"), @r#"
    before
    The run waits for approval.
    Calls completed: kit_add.
    Waiting for approval: kit_counter.
      kit_counter({})
    kit_counter waits for approval, question APPROVAL: `toolgate approve`, in a person's own terminal, asks them.
    Once it is approved, resume_run(run_id: "ID") goes on.
    "#);
    let id = id_of(&waits).to_owned();
    // Nobody has approved it.
    let waits = resume(&mut client, &id, None).await;
    assert!(text(&waits).contains("waits for approval"), "{waits}");
    let shown = workplace.run(&["runs", "show", &id]).await;
    assert!(shown.stdout.contains("waiting") && shown.stdout.contains("ask"), "{shown:?}");
    let approved = approve(&workplace, &approval, &[]).await;
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let done = resume(&mut client, &id, None).await;
    assert!(text(&done).starts_with("before\nReturned: [3,1]"), "{done}");
}

#[tokio::test]
async fn runs_of_other_callers_are_unknown() {
    let workplace = workplace(&json!({}));
    let code = "await kit_add({ a: 1, b: 1 }); throw new Error('x')";
    let failed = workplace.run_with_input(&["run", "-", "--json"], code).await.json();
    let id = failed["run"]["id"].as_str().unwrap();
    let mut client = workplace.connect(&[]).await;
    let refused = resume(&mut client, id, None).await;
    assert_eq!(text(&refused), format!("There is no run `{id}`, or no longer."));
    // A person can look after any.
    let failed = run(&mut client, code).await;
    let id = id_of(&failed);
    let resumed = workplace
        .run_with_input(
            &["run", "--resume", id, "-"],
            &code.replace("throw new Error('x')", "return 7"),
        )
        .await;
    assert_eq!((resumed.stdout.as_str(), resumed.code), ("7\n", Some(0)), "{resumed:?}");
}

#[tokio::test]
async fn no_call_is_made_without_a_journal() {
    let place = Workplace::empty();
    let log = place.path().join("calls.log");
    place.rewrite(
        &json!({ "mcpServers": { "kit": entry(&kit().with_call_log(&log)) } }).to_string(),
    );
    std::fs::create_dir_all(place.path().join("state/journal.db")).unwrap();
    let outcome = place.run_with_input(&["run", "-"], "return await kit_counter({})").await;
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(
        outcome.stderr.contains("the journal") && outcome.stderr.contains("cannot be used"),
        "{outcome:?}"
    );
    assert!(!log.exists(), "{outcome:?}");
}

#[tokio::test]
async fn runs_are_listed_and_shown() {
    let workplace = workplace(&json!({ "journal": { "runs": 2 } }));
    let none = workplace.run(&["runs"]).await;
    assert_eq!((none.stdout.as_str(), none.code), ("", Some(0)), "{none:?}");
    for number in 0..3 {
        let code = format!("await kit_add({{ a: {number}, b: 1 }});\nreturn {number}");
        assert_eq!(workplace.run_with_input(&["run", "-"], &code).await.code, Some(0));
    }
    let runs = workplace.run(&["runs", "--json"]).await.json();
    // Old runs are removed when the next run begins.
    assert!((2..=3).contains(&runs.as_array().unwrap().len()), "{runs}");
    let id = runs[0]["id"].as_str().unwrap();
    let told = workplace.run(&["runs", "show", id, "--json"]).await.json();
    assert_eq!(told["timeline"][0]["name"], "kit_add");
    assert_eq!(told["timeline"][0]["arguments"], json!({ "a": 2, "b": 1 }));
    assert_eq!(told["timeline"][0]["result"], json!({ "sum": 3 }));
    assert_eq!(told["timeline"][0]["verdict"], "allow");
    assert_eq!(told["state"], "done");
    let shown = workplace.run(&["runs", "show", &id[..8]]).await;
    for part in ["   1  await kit_add({ a: 2, b: 1 });", "completed", "allow", "output:\n2\n"] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    let unknown = workplace.run(&["runs", "show", "run_nothing"]).await;
    insta::assert_snapshot!(unknown.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: there is no run `run_nothing`, or several ids begin like this
      hint: `toolgate runs` lists them
    ");
    let refused = workplace.run(&["runs", "repeat", id, "0"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

/// A caught error has the blocks that the server sent, also in a resumed run.
#[tokio::test]
async fn the_content_of_an_error_is_that_of_the_server() {
    let image = json!({ "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" });
    let content =
        json!([{ "type": "text", "text": "no" }, image, { "type": "text", "text": "why" }]);
    let desk = Fixture::new("desk")
        .with_tool(json!({ "name": "fail", "inputSchema": { "type": "object" } }))
        .with_answer("fail", json!({ "isError": true, "content": content }));
    let wanted = "3 no image toolgate-media:1 why desk_fail no/why";
    let typescript = "let shown = '';\n\
         try { await desk_fail({}); } catch (e) {\n\
           const [a, b, c] = e.content;\n\
           shown = [e.content.length, a.text, b.type, b.data, c.text, e.tool, e.message.replace('\\n', '/')].join(' ');\n\
         }\n";
    let python_code = "shown = ''\n\
         try:\n    await desk_fail()\nexcept ToolError as e:\n    a, b, c = e.content\n    \
         shown = ' '.join([str(len(e.content)), a['text'], b['type'], b['data'], c['text'], e.tool, e.message.replace('\\n', '/')])\n";
    for (engine, is_python) in [("monty", false), ("monty", true), ("auto", true)] {
        let workplace = Workplace::new(&json!({
            "mcpServers": { "desk": entry(&desk) }, "codeMode": { "python": engine },
        }));
        let mut client = workplace.connect(&[]).await;
        let failed = if is_python {
            python(&mut client, &format!("{python_code}raise ValueError(shown)")).await
        } else {
            run(&mut client, &format!("{typescript}throw new Error(shown);")).await
        };
        assert!(text(&failed).contains(wanted), "{engine}: {failed}");
        let corrected = if is_python {
            format!("{python_code}shown")
        } else {
            format!("{typescript}return shown;")
        };
        let resumed = resume(&mut client, id_of(&failed), Some(&corrected)).await;
        assert!(text(&resumed).starts_with(&format!("{wanted}\n")), "{engine}: {resumed}");
        let shown = workplace.run(&["runs", "show", id_of(&failed), "--json"]).await.json();
        assert_eq!(shown["timeline"][0]["error"], "no\nwhy", "{shown}");
    }
}
