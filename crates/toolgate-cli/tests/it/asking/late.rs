//! Scripts whose approvals come late, or not at all.

use std::time::Duration;

use serde_json::json;
use toolgate_testkit::scaled;

use super::{
    called, ids, said,
    talk::{Manners, Talk, Way},
    workplace,
};
use crate::{support::text, typist::approve};

/// One allowed call, and one that needs an approval.
const SCRIPT: &str = "const sum = (await kit_add({ a: 1, b: 2 })).sum;
const before = Date.now();
let timer;
const late = new Promise((done) => { timer = setTimeout(() => done('too late'), LATE); });
const counted = await Promise.race([kit_counter({}), late]);
clearTimeout(timer);
return [sum, counted.count, Date.now() - before < LATE];";

/// The time limit of the run: more than it needs on a busy machine, and less than the person takes.
fn limit() -> Duration {
    scaled(Duration::from_secs(5))
}

fn script() -> String {
    SCRIPT.replace("LATE", &(limit() / 2).as_millis().to_string())
}

async fn answered_late(way: Way) {
    let (workplace, log) = workplace(&json!({ "timeoutSeconds": limit().as_secs_f64() }));
    let (mut client, _gateway) = Talk::start(&workplace, way, Manners::ASKED).await;
    let person = async |question: serde_json::Value| {
        let message = question["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("A script of \"kind 1\" (local) wants"), "{message}");
        assert_eq!(called(&log), ["add"], "what came before was done, and nothing else");
        tokio::time::sleep(limit() + Duration::from_millis(500)).await;
        said("allow once")
    };
    let done = client.call("run_code", json!({ "code": script() }), person).await;
    assert!(text(&done).starts_with("[3,1,true]"), "{way:?}: {done}");
    assert_eq!(called(&log), ["add", "counter"], "{way:?}");
}

#[tokio::test]
async fn a_script_waits_for_a_person_longer_than_it_may_run_stdio() {
    answered_late(Way::StdioLegacy).await;
}

#[tokio::test]
async fn a_script_waits_for_a_person_longer_than_it_may_run_stdio_modern() {
    answered_late(Way::StdioModern).await;
}

#[tokio::test]
async fn a_script_waits_for_a_person_longer_than_it_may_run_http() {
    answered_late(Way::HttpLegacy).await;
}

#[tokio::test]
async fn a_script_waits_for_a_person_longer_than_it_may_run_http_modern() {
    answered_late(Way::HttpModern).await;
}

#[tokio::test]
async fn a_run_waits_and_continues_after_the_approval() {
    for way in Way::ALL {
        let (workplace, log) = workplace(&json!({}));
        let (mut client, _gateway) = Talk::start(&workplace, way, Manners::ALONE).await;
        let waits = client.call_alone("run_code", json!({ "code": script() })).await;
        let (run, approval) = ids(&waits);
        let shown = text(&waits).replace(&run, "RUN").replace(&approval, "APPROVAL");
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown, @r#"
            The run waits for approval.
            Calls completed: kit_add.
            Waiting for approval: kit_counter.
              kit_counter({})
            kit_counter waits for approval, question APPROVAL: `toolgate approve`, in a person's own terminal, asks them.
            Once it is approved, resume_run(run_id: "RUN") goes on.
            "#);
        }
        let approved = approve(&workplace, &approval, &[]).await;
        assert_eq!(approved.code, Some(0), "{approved:?}");
        let done = client.call_alone("resume_run", json!({ "run_id": run })).await;
        assert!(text(&done).starts_with("[3,1,true]"), "{way:?}: {done}");
        assert_eq!(called(&log), ["add", "counter"], "{way:?}");
    }
}

#[tokio::test]
async fn a_run_whose_question_was_denied_says_so() {
    for way in Way::ALL {
        let (workplace, log) = workplace(&json!({}));
        let (mut client, _gateway) = Talk::start(&workplace, way, Manners::ALONE).await;
        let waits = client.call_alone("run_code", json!({ "code": script() })).await;
        let (run, approval) = ids(&waits);
        let denied = workplace.run(&["approve", &approval, "--deny"]).await;
        assert_eq!(denied.code, Some(0), "{denied:?}");
        let failed = client.call_alone("resume_run", json!({ "run_id": run })).await;
        assert_eq!(failed["isError"], true, "{way:?}: {failed}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(text(&failed).replace(&run, "RUN"), @r#"
            ToolError: `kit_counter` was not called: a person denied it
              at line 5, column 37: const counted = await Promise.race([kit_counter({}), late]);
            Calls completed: kit_add.
            Failed: kit_counter.
              kit_counter({}): `kit_counter` was not called: a person denied it
            resume_run(run_id: "RUN", code?) goes on, with corrected code if need be; what completed is not repeated.
            "#);
        }
        assert_eq!(called(&log), ["add"], "{way:?}");
    }
}
