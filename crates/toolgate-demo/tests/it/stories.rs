//! What somebody who tries the demo would do.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolgate_catalog::TokenCounter;
use toolgate_demo::{Instance, call};

fn open(server: &str) -> impl FnMut(&str, Value) -> Value {
    let mut instance = Instance::open(server).unwrap();
    move |tool, arguments| instance.call(tool, arguments).unwrap()
}

#[test]
fn many_errors_have_few_messages_and_become_few_issues() {
    let errors = call("logging", "getLogs", json!({ "level": "error", "since": "12h" })).unwrap();
    let entries = errors.as_array().unwrap();
    let messages: BTreeSet<&str> =
        entries.iter().map(|entry| entry["message"].as_str().unwrap()).collect();
    assert!(entries.len() > 100, "{}", entries.len());
    assert_eq!(messages.len(), 7);
    assert!(TokenCounter::shared().count(&errors.to_string()) > 10_000);
    let times: Vec<&str> =
        entries.iter().map(|entry| entry["timestamp"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|one, two| one >= two), "newest first");

    let mut ticketing = open("ticketing");
    let before = ticketing("listIssues", json!({}))["total"].as_u64().unwrap();
    for message in messages {
        let issue = ticketing("createIssue", json!({ "title": message, "priority": "high" }));
        assert_eq!(issue["status"], "open");
    }
    assert_eq!(ticketing("listIssues", json!({}))["total"], before + 7);
}

#[test]
fn a_time_after_the_demo_is_refused_with_a_hint() {
    let arguments = json!({ "since": "2031-01-01T00:00:00.000Z" });
    let error = call("logging", "getLogs", arguments).unwrap_err().to_string();
    assert!(error.contains("give a duration such as 6h"), "{error}");
}

#[test]
fn an_issue_lives_through_its_states() {
    let mut ticketing = open("ticketing");
    let id = ticketing("createIssue", json!({ "title": "New", "labels": ["bug"] }))["id"].clone();
    assert_eq!(id, "ISS-1001");
    ticketing("assignIssue", json!({ "issueId": id, "assignee": "hana" }));
    ticketing("addComment", json!({ "issueId": id, "body": "Looking into it." }));
    ticketing("addLabels", json!({ "issueId": id, "labels": ["bug", "search"] }));
    ticketing("addWatcher", json!({ "issueId": id, "user": "priya" }));
    ticketing("linkIssues", json!({ "issueId": id, "targetId": "ISS-103", "type": "relates_to" }));
    ticketing("closeIssue", json!({ "issueId": id }));
    let issue = ticketing("getIssue", json!({ "issueId": id }));
    assert_eq!(issue["status"], "closed");
    assert_eq!(issue["resolution"], "fixed");
    assert_eq!(issue["assignee"], "hana");
    assert_eq!(issue["labels"], json!(["bug", "search"]));
    assert_eq!(issue["watchers"], json!(["priya"]));
    assert_eq!(issue["comments"][0]["body"], "Looking into it.");
    assert_eq!(issue["links"][0]["targetId"], "ISS-103");
    assert!(issue["updatedAt"].as_str() > issue["createdAt"].as_str());
    ticketing("deleteIssue", json!({ "issueId": id }));
    assert_eq!(ticketing("searchIssues", json!({ "query": "ISS-1001" }))["total"], 0);
}

#[test]
fn stock_moves_and_never_falls_below_zero() {
    let mut inventory = Instance::open("inventory").unwrap();
    let transfer = json!({
        "sku": "SKU-100",
        "from_warehouse": "north",
        "to_warehouse": "returns",
        "quantity": 50,
    });
    let moved = inventory.call("transfer_stock", transfer.clone()).unwrap();
    assert_eq!(moved["from"]["quantity"], 30);
    assert_eq!(moved["to"]["quantity"], 50);
    let error = inventory.call("transfer_stock", transfer).unwrap_err().to_string();
    assert_eq!(error, "There are only 30 pieces in north");
}

#[test]
fn a_rollback_restores_the_release_before() {
    let mut deploy = open("deploy");
    let arguments = json!({ "environment": "production", "service": "shop", "reason": "Timeouts" });
    assert_eq!(deploy("rollback_deployment", arguments)["version"], "2026.10.1");
    assert_eq!(
        deploy("get_deployment", json!({ "deployment_id": "DPL-507" }))["status"],
        "rolled_back"
    );
}

#[test]
fn free_slots_are_free() {
    let mut calendar = open("calendar");
    let slots = calendar(
        "find_free_slots",
        json!({
            "attendees": ["amara"],
            "duration_minutes": 60,
            "from": "2026-10-16T08:00:00Z",
            "to": "2026-10-16T17:00:00Z",
        }),
    );
    let slots = slots.as_array().unwrap();
    assert_eq!(slots[0]["start"], "2026-10-16T08:00:00Z");
    assert_eq!(slots[1]["start"], "2026-10-16T10:00:00Z");
    for slot in slots {
        let arguments = json!({ "user": "amara", "start": slot["start"], "end": slot["end"] });
        assert_eq!(calendar("check_availability", arguments)["available"], true);
    }
}

#[test]
fn a_submitted_expense_is_among_the_expenses_of_its_quarter() {
    let mut team = open("team");
    let expense = json!({
        "employee_id": "ENG-001",
        "amount": 12.5,
        "category": "meals",
        "date": "2026-10-02",
        "description": "Lunch",
    });
    let submitted = team("submit_expense", expense);
    let expenses = team("get_expenses", json!({ "employee_id": "ENG-001", "quarter": "Q4" }));
    assert!(expenses.as_array().unwrap().contains(&submitted));
}

#[test]
fn two_runs_give_the_same_answers() {
    for (server, tool, arguments) in [
        ("logging", "getLogs", json!({})),
        ("team", "get_expenses", json!({ "employee_id": "ENG-007", "quarter": "Q2" })),
        ("metrics", "queryMetric", json!({ "metric": "cpu.usage", "service": "api" })),
    ] {
        assert_eq!(
            call(server, tool, arguments.clone()).unwrap(),
            call(server, tool, arguments).unwrap()
        );
    }
}
