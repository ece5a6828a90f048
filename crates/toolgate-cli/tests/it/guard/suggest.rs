//! Proposals of labels and rules, and a person who accepts them.

use serde_json::json;
use toolgate_testkit::Fixture;

use crate::{
    fixtures::tool,
    support::{Workplace, entry},
    typist::Typist,
};

fn workplace() -> Workplace {
    let text = |name: &str| json!({ name: { "type": "string" } });
    let crm = Fixture::new("crm").with_tools([
        tool("list_customers", "List the customers.", &json!({}), &[]),
        tool("delete_customer", "Delete a customer.", &text("id"), &["id"]),
    ]);
    let web = Fixture::new("web").with_tools([
        tool("fetch_page", "Fetch a page of the web.", &text("url"), &["url"]),
        tool("now", "The time.", &json!({}), &[]),
    ]);
    let (crm, web) = (entry(&crm), entry(&web));
    Workplace::with_text(&format!(
        "{{\n  // Our servers.\n  \"mcpServers\": {{ \"crm\": {crm}, \"web\": {web} }}, // two\n}}\n"
    ))
}

#[tokio::test]
async fn labels_and_rules_are_proposed_with_their_reasons() {
    let place = workplace();
    insta::assert_snapshot!(place.run(&["policy", "suggest"]).await.shown());
    let rows = place.run(&["policy", "suggest", "--json", "--server", "web"]).await.json();
    assert_eq!(rows[0]["tool"], "web/fetch_page");
    assert_eq!(rows[0]["labels"][0]["label"], "untrusted");
    let alone = place.run(&["policy", "suggest", "--write"]).await;
    assert!(alone.stderr.contains("a person has to agree"), "{alone:?}");
}

#[tokio::test]
async fn what_a_person_accepts_is_written_and_the_rest_of_the_file_stays() {
    let place = workplace();
    let before = std::fs::read_to_string(place.config()).unwrap();
    let status = place.run(&["status"]).await.stdout;
    assert!(status.contains("Data flow is not watched"), "{status}");
    let mut typist = Typist::start(&place, &["policy", "suggest", "--write"]);
    let all =
        |server: &str| format!("Accept this for {server}: [y]es, [e]ach tool by itself, or [N]o? ");
    typist.sees(&all("crm")).await.types("each\n");
    typist.sees("Accept this? [y/N] ").await.types("n\n");
    typist.sees("Accept this? [y/N] ").await.types("y\n");
    typist.sees(&all("web")).await.types("y\n");
    let outcome = typist.end().await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let after = std::fs::read_to_string(place.config()).unwrap();
    assert!(after.starts_with(&before[..before.find("// two").unwrap() - 2]), "{after}");
    assert!(after.contains("// Our servers.") && after.contains("// two"), "{after}");
    let copy = place.path().join("toolgate.json.1.bak");
    assert_eq!(std::fs::read_to_string(copy).unwrap(), before);
    let policy = place.run(&["policy"]).await.stdout;
    for line in [
        "default: ask-destructive",
        "label `web/fetch_page`: untrusted, egress",
        "ask `crm/delete_customer`",
    ] {
        assert!(policy.contains(line), "{line}: {policy}");
    }
    assert!(!policy.contains("list_customers"), "it was not accepted: {policy}");
    let status = place.run(&["status"]).await.stdout;
    assert!(!status.contains("Data flow is not watched"), "{status}");
}
