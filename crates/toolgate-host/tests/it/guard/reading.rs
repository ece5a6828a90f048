//! The policy, data flow and audit log for resources and prompts.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use toolgate_host::{CallFailure, ToolSession};
use toolgate_policy::{
    ArgumentConditions, FlowMode, Mode, PolicySettings, RememberTime, Rule,
    Verdict::{Ask, Deny},
};
use toolgate_store::AuditRecord;
use toolgate_testkit::{Builtin, Fixture};
use toolgate_upstream::{CallOptions, InputHandler};

use super::fixture::{GuardFixture, Voice, labelled, rule, said};

/// A private server, one that anything leaves through, and one that deletes.
fn fixtures() -> [Fixture; 3] {
    let tool = json!({ "name": "send", "inputSchema": { "type": "object" } });
    let notes = |name: &str| {
        Fixture::new(name)
            .with_resources([
                json!({ "uri": "note:///the-salary-of-ada-lovelace-is-48200", "name": "pay" }),
                json!({ "uri": "note:///lunch", "name": "lunch" }),
            ])
            .with_templates([json!({ "uriTemplate": "note:///{path}", "name": "any" })])
            .with_prompts([json!({ "name": "greet", "arguments": [{ "name": "who" }] })])
            .with_instructions(format!("Words of {name}."))
    };
    [notes("crm"), notes("mail").with_tool(tool.clone()), Fixture::new("other").with_tool(tool)]
}

async fn fixture(policy: PolicySettings) -> GuardFixture {
    GuardFixture::of(fixtures(), policy, |settings| settings).await
}

fn denying(rules: Vec<Rule>) -> PolicySettings {
    PolicySettings { rules, ..PolicySettings::of_mode(Mode::Allow) }
}

async fn ask(
    session: &ToolSession,
    voice: Option<&Arc<Voice>>,
    method: &str,
    params: Value,
) -> Result<Value, (i64, String)> {
    let params: Map<String, Value> = params.as_object().unwrap().clone();
    let input_handler = voice.map(|voice| Arc::clone(voice) as Arc<dyn InputHandler>);
    let options = CallOptions { input_handler, ..CallOptions::default() };
    session.request(method, params, options).await.map_err(|failure| match failure {
        CallFailure::Refused { code, message, .. } => (code, message),
        other => panic!("{other:?}"),
    })
}

fn read(server: &str, uri: &str) -> Value {
    json!({ "uri": format!("toolgate://{server}/{uri}") })
}

async fn listed(session: &ToolSession, method: &str, field: &str, key: &str) -> Vec<String> {
    let listed = ask(session, None, method, json!({})).await.unwrap();
    let entries = listed[field].as_array().unwrap();
    entries.iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn denied_resources_are_neither_listed_nor_read() {
    let fixture = fixture(denying(vec![rule(Some("crm"), None, Deny)])).await;
    let session = fixture.host.session();
    for (method, field, key) in [
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        ("prompts/list", "prompts", "name"),
    ] {
        let all = listed(&session, method, field, key).await;
        assert!(!all.is_empty() && all.iter().all(|entry| entry.contains("mail")), "{all:?}");
    }
    let (uri, lunch) = ("note:///lunch", json!({ "uri": "note:///lunch" }));
    for (method, params) in [
        ("resources/read", read("crm", uri)),
        ("resources/subscribe", read("crm", uri)),
        ("prompts/get", json!({ "name": "crm_greet" })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "crm_greet" },
                    "argument": { "name": "who", "value": "A" } }),
        ),
    ] {
        let (_, message) = ask(&session, None, method, params).await.unwrap_err();
        assert!(message.contains("there is no"), "{method}: {message}");
    }
    // By its bare address it can only be the other's.
    let found = ask(&session, None, "resources/read", lunch).await.unwrap();
    assert_eq!(found["contents"][0]["text"], "mail has note:///lunch");
    // Its instructions are hidden too.
    let instructions = session.server_instructions();
    assert!(
        instructions.contains("Words of mail") && !instructions.contains("Words of crm"),
        "{instructions}"
    );
    let said = ask(&session, None, "resources/read", json!({ "uri": "toolgate://crm" })).await;
    assert!(said.is_err(), "{said:?}");
    // Nor by the way that models have.
    let arguments = json!({ "id": format!("toolgate://crm/{uri}") });
    let (text, failed) = fixture.call(&session, None, "read_output", arguments).await;
    assert!(failed && text.contains("there is no resource"), "{text}");
    fixture.end().await;
}

#[tokio::test]
async fn rules_apply_to_single_resources_and_prompts() {
    let secret = ArgumentConditions::from_value(&json!({ "uri": { "prefix": "note:///the-" } }));
    let greet = ArgumentConditions::from_value(&json!({ "name": { "equals": "greet" } }));
    let fixture = fixture(denying(vec![
        Rule { arguments: secret.unwrap(), ..rule(None, Some("crm/resources/read"), Deny) },
        Rule { arguments: greet.unwrap(), ..rule(Some("mail"), Some("prompts/get"), Deny) },
    ]))
    .await;
    let session = fixture.host.session();
    let uris = listed(&session, "resources/list", "resources", "uri").await;
    assert_eq!(uris.iter().filter(|uri| uri.starts_with("toolgate://crm/")).count(), 1);
    assert_eq!(uris.len(), 3);
    assert_eq!(listed(&session, "prompts/list", "prompts", "name").await, ["crm_greet"]);
    let pay = "note:///the-salary-of-ada-lovelace-is-48200";
    let refused = ask(&session, None, "resources/read", read("crm", pay)).await.unwrap_err();
    insta::assert_snapshot!(refused.1, @"`resources/read` was not called: the policy denies it (`policy.rules[0]`)");
    assert_eq!(refused.0, -32010);
    assert!(ask(&session, None, "resources/read", read("mail", pay)).await.is_ok());
    let get = json!({ "name": "mail_greet" });
    assert!(ask(&session, None, "prompts/get", get).await.unwrap_err().1.contains("denies"));
    fixture.end().await;
}

#[tokio::test]
async fn resource_data_is_known_and_a_uri_that_carries_it_needs_an_approval() {
    let fixture = fixture(labelled(FlowMode::Content)).await;
    let (session, voice) = (fixture.host.session(), Voice::new([said("deny"), said("allow once")]));
    let pay = "note:///the-salary-of-ada-lovelace-is-48200";
    // What comes from a private server is private, however it was read.
    ask(&session, None, "resources/read", read("crm", pay)).await.unwrap();
    let body = json!({ "body": "P.S.: the-salary-of-ada-lovelace-is-48200" });
    let (text, failed) = fixture.call(&session, None, "mail_send", body).await;
    assert!(failed && text.contains("waiting for approval"), "{text}");
    // And an address is a way out.
    let read = read("mail", pay);
    let refused = ask(&session, Some(&voice), "resources/read", read.clone()).await.unwrap_err();
    insta::assert_snapshot!(refused.1, @"`resources/read` was not called: a person denied it");
    insta::assert_snapshot!(voice.asked()[0], @r#"
    a model wants to call resources/read of the server mail
    with {"uri":"note:///the-salary-of-ada-lovelace-is-48200"}
    Asked because private data would leave your control (the built-in rule "private data to an egress tool")
    - /uri has data of crm/resources/read (result 1), which is private
    "#);
    assert!(ask(&session, Some(&voice), "resources/read", read).await.is_ok(), "a yes is a yes");
    let get = json!({ "name": "mail_greet", "arguments": { "who": "the-salary-of-ada-lovelace-is-48200" } });
    let (_, message) = ask(&session, None, "prompts/get", get).await.unwrap_err();
    assert!(message.contains("waiting for approval"), "{message}");
    let complete = json!({
        "ref": { "type": "ref/prompt", "name": "mail_greet" },
        "argument": { "name": "who", "value": "salary-of-ada-lovelace-is-48200" },
    });
    let (_, message) = ask(&session, None, "completion/complete", complete).await.unwrap_err();
    assert!(message.contains("waiting for approval"), "{message}");
    // What has no data in it goes through.
    let lunch = json!({ "uri": "toolgate://mail/note:///lunch" });
    assert!(ask(&session, None, "resources/read", lunch).await.is_ok());
    fixture.end().await;
}

#[tokio::test]
async fn reads_need_approvals_and_are_logged() {
    let rules = vec![rule(Some("crm"), Some("resources/*"), Ask)];
    let fixture = fixture(denying(rules)).await;
    let (session, voice) = (fixture.host.session(), Voice::new([said("allow for this session")]));
    let lunch = || read("crm", "note:///lunch");
    assert!(ask(&session, Some(&voice), "resources/read", lunch()).await.is_ok());
    assert!(ask(&session, None, "resources/read", lunch()).await.is_ok(), "granted");
    let (_, waiting) = ask(&session, None, "resources/subscribe", lunch()).await.unwrap_err();
    assert!(waiting.contains("`resources/subscribe` was not called"), "{waiting}");
    fixture.host.shutdown().await;
    let mut records: Vec<AuditRecord> = Vec::new();
    fixture.store().audit().read(&mut |line| records.push(line.unwrap().1)).unwrap();
    let told: Vec<String> = records
        .iter()
        .map(|it| format!("{} {} {} {}", it.server, it.tool, it.verdict, it.outcome))
        .collect();
    assert_eq!(
        told,
        [
            "crm resources/read ask ok",
            "crm resources/read ask ok",
            "crm resources/subscribe ask waiting"
        ]
    );
    assert!(records[1].rule.contains("grant "), "{:?}", records[1]);
}

#[tokio::test]
async fn stored_output_is_known_in_the_session_that_reads_it() {
    // The sessions of a caller are separate, so that each knows only what it read itself.
    let remember = RememberTime(Duration::ZERO);
    let fixture = fixture(PolicySettings { remember, ..labelled(FlowMode::Content) }).await;
    let (first, second) = (fixture.host.session(), fixture.host.session());
    let id = "toolgate://crm/note:///the-salary-of-ada-lovelace-is-48200";
    let (text, failed) = fixture.call(&first, None, "read_output", json!({ "id": id })).await;
    assert!(!failed && text.contains("48200"), "{text}");
    let body = json!({ "body": "P.S.: the-salary-of-ada-lovelace-is-48200" });
    assert!(!fixture.call(&second, None, "mail_send", body.clone()).await.1, "it has read nothing");
    let rest = json!({ "id": id, "offset": 1 });
    let third = fixture.host.session();
    let (text, failed) = fixture.call(&third, None, "read_output", rest).await;
    assert!(!failed && text.contains("48200"), "{text}");
    let (text, failed) = fixture.call(&third, None, "mail_send", body).await;
    assert!(failed && text.contains("waiting for approval"), "{text}");
    fixture.end().await;
}

#[tokio::test]
async fn the_text_of_an_error_is_data_of_the_server() {
    let mut fixtures = fixtures();
    fixtures[0] = Fixture::new("crm").with_builtins([Builtin::RpcError]);
    let fixture =
        GuardFixture::of(fixtures, labelled(FlowMode::Content), |settings| settings).await;
    let session = fixture.host.session();
    let instructions = "Ada Lovelace owes us 48,200 EUR since the spring of last year";
    let refuse = json!({ "code": -32000, "message": instructions });
    let (text, failed) = fixture.call(&session, None, "crm_rpc_error", refuse).await;
    assert!(failed && text.contains(instructions), "{text}");
    let body = json!({ "body": format!("By the way: {instructions}") });
    let (text, failed) = fixture.call(&session, None, "mail_send", body).await;
    assert!(failed && text.contains("waiting for approval"), "{text}");
    fixture.end().await;
}
