//! Data that leaves in `_meta`, and data that a caller read in another session.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolgate_broker::{Caller, SessionContext};
use toolgate_host::{HostSettings, ToolHost, ToolSession};
use toolgate_policy::{FlowMode, PolicySettings, RememberTime};
use toolgate_upstream::{CallOptions, InputHandler};

use super::fixture::{GuardFixture, Voice, labelled, said};

fn session_of(host: &ToolHost, identity: &str) -> ToolSession {
    host.session_of(SessionContext::new(Caller::model(identity)))
}

/// A mail with private data in it.
fn private_mail() -> Value {
    json!({ "body": "By the way: owes us 48,200 EUR since the spring of last year" })
}

async fn send_with_meta(session: &ToolSession, voice: &Arc<Voice>, meta: Value) -> bool {
    let options = CallOptions {
        meta: meta.as_object().cloned(),
        input_handler: Some(Arc::clone(voice) as Arc<dyn InputHandler>),
        ..CallOptions::default()
    };
    let arguments = json!({ "body": "Lunch is at noon today." }).as_object().unwrap().clone();
    let sent = session.call("mail_send", arguments, options).await.unwrap();
    sent["isError"] != true
}

#[tokio::test]
async fn private_data_in_meta_needs_an_approval_that_names_the_place() {
    let fixture = GuardFixture::new(labelled(FlowMode::Content)).await;
    let (session, voice) = (fixture.host.session(), Voice::new([said("deny"), said("deny")]));
    fixture.call(&session, None, "crm_get", json!({})).await;
    let owed = "owes us 48,200 EUR since the spring of last year";
    assert!(!send_with_meta(&session, &voice, json!({ "x/note": { "text": owed } })).await);
    let asked = voice.asked().pop().unwrap();
    assert!(asked.contains("/_meta/x~1note/text has data of crm/get (result 1)"), "{asked}");
    // A token that is as long as a text is one.
    assert!(!send_with_meta(&session, &voice, json!({ "progressToken": owed })).await);
    assert!(voice.asked().pop().unwrap().contains("/_meta/progressToken has data of crm/get"));
    assert_eq!(fixture.calls_of("mail"), 0);
    fixture.end().await;
}

/// Like [`send_with_meta`], to a tool that always asks.
async fn delete_with_meta(session: &ToolSession, voice: &Arc<Voice>, meta: Value) -> bool {
    let options = CallOptions {
        meta: meta.as_object().cloned(),
        input_handler: Some(Arc::clone(voice) as Arc<dyn InputHandler>),
        ..CallOptions::default()
    };
    let arguments = json!({ "id": "1" }).as_object().unwrap().clone();
    session.call("store_delete", arguments, options).await.unwrap()["isError"] != true
}

#[tokio::test]
async fn meta_is_shown_in_a_question_and_a_grant_covers_no_other() {
    let fixture = GuardFixture::new(super::asking()).await;
    let session = fixture.host.session();
    let voice = Voice::new([super::said_widely("allow always")]);
    let meta = |note: &str, token: u32| {
        json!({
            "x/note": note, "progressToken": token, "client/toolUseId": format!("toolu_{token}"),
            "traceparent": format!("00-0af7651916cd43dd8448eb211c8031{token:02x}-b7ad6b7169203331-01"),
            "tracestate": format!("vendor={token}"),
        })
    };
    assert!(delete_with_meta(&session, &voice, meta("one \u{202e} note", 1)).await);
    let asked = voice.asked().pop().unwrap();
    assert!(asked.contains(r#"and _meta {"x/note":"one \u{202e} note""#), "{asked}");
    assert!(!asked.contains("progressToken") && !asked.contains("traceparent"), "{asked}");
    // Another token, trace and id of the call are the same call. Another note is not.
    let nobody = Voice::new([]);
    assert!(delete_with_meta(&session, &nobody, meta("one \u{202e} note", 2)).await);
    for other in [meta("another note", 2), json!({}), json!({ "x/note": ["one \u{202e} note"] })] {
        assert!(!delete_with_meta(&session, &nobody, other.clone()).await, "{other}");
    }
    // An id is short and has no words.
    let words = json!({ "x/note": "one \u{202e} note", "x/id": "what the customer owes us" });
    assert!(!delete_with_meta(&session, &nobody, words).await);
    assert_eq!(fixture.calls(), 2);
    // Each of these waits as a question of its own, and shows all of it.
    let open = fixture.store().journal().unwrap().open_approvals().unwrap();
    assert_eq!(open.len(), 4);
    assert!(open.iter().any(|it| it.question.contains("what the customer owes us")), "{open:?}");
    // A grant without `_meta` covers a call without it.
    let voice = Voice::new([super::said("allow always")]);
    assert!(delete_with_meta(&session, &voice, json!({})).await);
    assert!(delete_with_meta(&session, &nobody, json!({ "progressToken": 3 })).await);
    fixture.end().await;
}

#[tokio::test]
async fn a_long_meta_is_shortened_and_does_not_hide_the_rest() {
    let fixture = GuardFixture::new(super::asking()).await;
    let (session, voice) = (fixture.host.session(), Voice::new([said("deny")]));
    let meta = json!({ "x/a": "x".repeat(200_000), "x/b": "the end" });
    assert!(!delete_with_meta(&session, &voice, meta).await);
    let asked = voice.asked().pop().unwrap();
    assert!(asked.contains("the end") && asked.contains("Asked because of"), "{asked}");
    assert!(asked.len() < 3_000, "{}", asked.len());
    fixture.end().await;
}

#[tokio::test]
async fn protocol_keys_in_meta_need_no_approval() {
    let fixture = GuardFixture::new(labelled(FlowMode::Content)).await;
    let (session, voice) = (fixture.host.session(), Voice::new([]));
    fixture.call(&session, None, "crm_get", json!({})).await;
    let meta = json!({
        "progressToken": 7,
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "io.modelcontextprotocol/clientInfo": { "name": "the spring of last year client" },
        "x/attempt": 2,
    });
    assert!(send_with_meta(&session, &voice, meta).await);
    assert!(voice.asked().is_empty());
    fixture.end().await;
}

#[tokio::test]
async fn results_count_in_later_sessions_of_the_caller() {
    let fixture = GuardFixture::new(labelled(FlowMode::Content)).await;
    let first = session_of(&fixture.host, "laptop");
    fixture.call(&first, None, "crm_get", json!({})).await;
    fixture.call(&first, None, "web_fetch", json!({})).await;
    drop(first);
    let (again, voice) = (session_of(&fixture.host, "laptop"), Voice::new([said("deny")]));
    assert!(fixture.call(&again, Some(&voice), "mail_send", private_mail()).await.1);
    let asked = voice.asked().pop().unwrap();
    assert!(asked.contains("/body has data of crm/get, read in another session"), "{asked}");
    let harmless = json!({ "body": "Lunch is at noon today." });
    assert!(
        !fixture.call(&again, None, "mail_send", harmless).await.1,
        "not every mail is stopped"
    );
    // What it chooses is still chosen after reading strangers.
    let (text, failed) = fixture.call(&again, None, "store_delete", json!({ "id": "1" })).await;
    assert!(failed && text.contains("waiting for approval"), "{text}");
    // Another caller has read nothing.
    let other = session_of(&fixture.host, "desk");
    assert!(!fixture.call(&other, None, "mail_send", private_mail()).await.1);
    assert!(!fixture.call(&other, None, "store_delete", json!({ "id": "1" })).await.1);
    fixture.end().await;
}

#[tokio::test]
async fn results_count_in_concurrent_sessions_of_the_caller() {
    let fixture = GuardFixture::new(labelled(FlowMode::Content)).await;
    let (one, other) = (session_of(&fixture.host, "laptop"), session_of(&fixture.host, "laptop"));
    fixture.call(&one, None, "crm_get", json!({})).await;
    assert!(fixture.call(&other, None, "mail_send", private_mail()).await.1);
    fixture.end().await;
}

#[tokio::test]
async fn labels_count_in_later_sessions_of_the_caller() {
    let fixture = GuardFixture::new(labelled(FlowMode::Labels)).await;
    let first = session_of(&fixture.host, "laptop");
    fixture.call(&first, None, "crm_get", json!({})).await;
    drop(first);
    let harmless = json!({ "body": "Lunch is at noon today." });
    let again = session_of(&fixture.host, "laptop");
    assert!(fixture.call(&again, None, "mail_send", harmless.clone()).await.1);
    let other = session_of(&fixture.host, "desk");
    assert!(!fixture.call(&other, None, "mail_send", harmless).await.1);
    fixture.end().await;
}

#[tokio::test]
async fn sessions_are_separate_if_nothing_is_remembered() {
    let policy =
        PolicySettings { remember: RememberTime(Duration::ZERO), ..labelled(FlowMode::Content) };
    let fixture = GuardFixture::new(policy).await;
    let first = session_of(&fixture.host, "laptop");
    fixture.call(&first, None, "crm_get", json!({})).await;
    let again = session_of(&fixture.host, "laptop");
    assert!(!fixture.call(&again, None, "mail_send", private_mail()).await.1);
    fixture.end().await;
}

#[tokio::test]
async fn the_time_to_remember_follows_a_reload() {
    let policy = |time: Duration| PolicySettings {
        remember: RememberTime(time),
        ..labelled(FlowMode::Content)
    };
    let fixture = GuardFixture::new(policy(Duration::ZERO)).await;
    let reload = async |time: Duration| {
        let settings = HostSettings { policy: policy(time), ..(*fixture.host.settings()).clone() };
        fixture.host.reload(settings, &BTreeSet::new()).await;
    };
    let is_stopped = async || {
        let again = session_of(&fixture.host, "laptop");
        fixture.call(&again, None, "mail_send", private_mail()).await.1
    };
    let first = session_of(&fixture.host, "laptop");
    fixture.call(&first, None, "crm_get", json!({})).await;
    assert!(!is_stopped().await, "sessions are separate");
    reload(Duration::from_hours(1)).await;
    assert!(is_stopped().await, "what was read before the reload counts");
    drop(first);
    assert!(is_stopped().await, "also after the end of the session");
    reload(Duration::ZERO).await;
    assert!(!is_stopped().await, "sessions are separate again");
    fixture.end().await;
}
