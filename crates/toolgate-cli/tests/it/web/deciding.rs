//! What a person decides at the page besides calls: definitions, the policy, tokens and logins.

use std::fs;

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{OpenPage, records, screens::hostile, workplace};
use crate::{
    fixtures::tool,
    support::{Workplace, entry, until},
};

/// The value of a hidden field, of the form with this text before it.
fn hidden(html: &str, after: &str, name: &str) -> String {
    let (_, rest) = html.split_once(after).unwrap_or_else(|| panic!("no {after}: {html}"));
    let (_, rest) = rest.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// A screen, once it contains a text.
async fn with(page: &OpenPage, path: &str, text: &str) -> String {
    until(text, async || Some(page.get(path).await).filter(|html| html.contains(text))).await
}

#[tokio::test]
async fn suspicious_definitions_are_shown_where_a_person_looks() {
    let page = OpenPage::start(&hostile()).await;
    let overview = with(&page, "/ui", "Definitions that need attention").await;
    assert!(overview.contains("href=\"/ui/tools/records_list\""), "{overview}");
    let server = page.get("/ui/servers/records").await;
    assert!(server.contains("Suspicious definitions"), "{server}");
    assert!(page.get("/ui/servers").await.contains("suspicious finding"));
    let tool = page.get("/ui/tools/records_list").await;
    assert!(tool.contains("Its definition is suspicious:"), "{tool}");
}

/// A workplace whose definitions are approved, and then one of them is another.
async fn changed_definition(approvals: Value) -> Workplace {
    let config = |text: &str| {
        let list = json!({ "default": "allow" });
        let records = records().with_tools([tool("extra", text, &json!({}), &[])]);
        json!({ "mcpServers": { "records": entry(&records) }, "policy": list, "approvals": approvals })
    };
    let place = Workplace::new(&config("Say hello."));
    let approved = place.run(&["definitions", "approve", "--all"]).await;
    assert_eq!(approved.code, Some(0), "{}", approved.shown());
    place.rewrite(&config("Say goodbye.").to_string());
    place
}

#[tokio::test]
async fn a_changed_definition_is_approved_as_it_was_seen() {
    let place = changed_definition(json!({})).await;
    let page = OpenPage::start(&place).await;
    let overview = with(&page, "/ui", "held back").await;
    assert!(overview.contains("href=\"/ui/servers/records#held\""), "{overview}");
    let shown = page.get("/ui/servers/records").await;
    assert!(shown.contains("Say [-hello.-]{+goodbye.+}"), "{shown}");
    let digest = hidden(&shown, "value=\"records_extra\"", "digest");
    let approve = async |digest: &str| {
        let fields = [("action", "approve"), ("definition", "records_extra"), ("digest", digest)];
        page.post("/ui/servers/records", &fields).await;
        page.get("/ui/servers/records").await
    };
    let refused = approve("other").await;
    assert!(refused.contains("the definition has changed since"), "{refused}");
    let approved = approve(&digest).await;
    assert!(approved.contains("records_extra is approved as it is now."), "{approved}");
    with(&page, "/ui/servers/records", "href=\"/ui/tools/records_extra\"").await;
    assert_eq!(place.run(&["definitions", "--json"]).await.json(), json!([]));
    let log = place.run(&["audit", "--json"]).await.stdout;
    assert!(log.contains("\"caller\":\"page"), "{log}");
}

#[tokio::test]
async fn who_asks_for_a_password_approves_no_definition_on_the_page() {
    let place = changed_definition(json!({ "presence": "password" })).await;
    let page = OpenPage::start(&place).await;
    let shown = with(&page, "/ui/servers/records", "Held back until you approve").await;
    assert!(!shown.contains("Approve it as it is shown"), "{shown}");
    let fields = [("action", "approve"), ("definition", "records_extra"), ("digest", "x")];
    page.post("/ui/servers/records", &fields).await;
    let said = page.get("/ui/servers/records").await;
    assert!(said.contains("asks for more than this page"), "{said}");
}

#[tokio::test]
async fn a_tried_policy_is_saved_after_its_effect_was_seen() {
    let config =
        json!({ "mcpServers": { "records": entry(&records()) }, "policy": { "default": "allow" } });
    let text = config.to_string().replacen('{', "{\n  // Ours.\n", 1);
    let place = Workplace::with_text(&text);
    let page = OpenPage::start(&place).await;
    page.knows("records_list").await;
    page.post("/ui/tools/records_list", &[]).await;
    let policy = json!({ "default": "allow", "rules": [
        { "tool": "records_list", "verdict": "deny", "reason": "lists are secret" },
    ] });
    let policy = policy.to_string();
    let tried = page.post("/ui/policy/what-if", &[("policy", &policy)]).await;
    let tried = tried.text().await.unwrap();
    assert!(tried.contains("1 call of the last 1 would be decided differently"), "{tried}");
    assert_eq!(fs::read_to_string(place.config()).unwrap(), text, "nothing is saved yet");
    let before = hidden(&tried, "Keep it", "before");
    let save = async |policy: &str, before: &str| {
        let fields = [("action", "save"), ("policy", policy), ("before", before)];
        page.post("/ui/policy/what-if", &fields).await
    };
    for (policy, before, why) in [
        (policy.as_str(), "other", "has changed since"),
        ("{ \"default\": \"maybe\" }", &before, "not understood"),
    ] {
        let refused = save(policy, before).await.text().await.unwrap();
        assert!(refused.contains("Nothing was saved") && refused.contains(why), "{refused}");
        assert_eq!(fs::read_to_string(place.config()).unwrap(), text, "{why}");
    }
    let saved = save(&policy, &before).await;
    assert_eq!(saved.status(), StatusCode::SEE_OTHER);
    let written = fs::read_to_string(place.config()).unwrap();
    assert!(written.contains("// Ours.") && written.contains("lists are secret"), "{written}");
    let shown = page.get("/ui/policy").await;
    assert!(shown.contains("and holds.") && shown.contains("lists are secret"), "{shown}");
    let denied = page.post("/ui/tools/records_list", &[]).await.text().await.unwrap();
    assert!(!denied.contains("4711, 4712"), "{denied}");
}

#[tokio::test]
async fn a_token_is_made_and_shown_once() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    let fields = [("action", "create-token"), ("name", "laptop"), ("days", "7")];
    let made = page.post("/ui/access", &fields).await.text().await.unwrap();
    let (_, rest) = made.split_once("id=\"new-token\">").unwrap_or_else(|| panic!("{made}"));
    let token = rest.split('<').next().unwrap();
    assert!(token.len() > 20, "{token}");
    let later = page.get("/ui/access").await;
    assert!(later.contains("laptop") && !later.contains(token), "{later}");
    let listed = place.run(&["token", "list", "--json"]).await.json();
    assert_eq!(listed[0]["name"], "laptop", "{listed}");
    assert!(listed[0]["expires"].is_string(), "{listed}");
    for (fields, why) in [
        ([("action", "create-token"), ("name", "laptop"), ("days", "")], "laptop"),
        ([("action", "create-token"), ("name", "other"), ("namespaces", "none")], "none"),
    ] {
        let refused = page.post("/ui/access", &fields).await.text().await.unwrap();
        assert!(refused.contains("No token was made") && refused.contains(why), "{refused}");
    }
    page.post("/ui/access", &[("action", "revoke-login"), ("what", "x"), ("caller", "y")]).await;
    assert!(page.get("/ui/access").await.contains("there is no such login"));
}

#[tokio::test]
async fn records_are_filtered_by_time_and_tools_are_listed() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    page.knows("records_list").await;
    page.post("/ui/tools/records_list", &[]).await;
    let rows = async |query: &str| {
        page.get(&format!("/ui/audit?{query}")).await.matches("<th scope=\"row\">").count()
    };
    assert_eq!(rows("since=2020-01-01T00%3A00&until=2100-01-01T00%3A00").await, 1);
    assert_eq!(rows("since=2100-01-01T00%3A00").await, 0);
    assert_eq!(rows("until=2020-01-01T00%3A00").await, 0);
    let tools = page.get("/ui/tools").await;
    assert!(tools.contains("2 tools of 1 server"), "{tools}");
    assert!(tools.contains("href=\"/ui/tools/records_delete\""), "{tools}");
}
