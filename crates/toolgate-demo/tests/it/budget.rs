//! The budget example: who of engineering went over their travel budget in the third quarter?

use serde_json::{Value, json};
use toolgate_demo::call;

fn list(tool: &str, arguments: Value) -> Vec<Value> {
    call("team", tool, arguments).unwrap().as_array().unwrap().clone()
}

/// The members who spent more than their travel limit, by a sum over some of their expenses.
fn over_budget(counts: fn(&Value) -> bool) -> Vec<String> {
    let mut over = Vec::new();
    for member in list("get_team_members", json!({ "department": "engineering" })) {
        let budget = call("team", "get_budget_by_level", json!({ "level": member["level"] }));
        let expenses =
            list("get_expenses", json!({ "employee_id": member["id"], "quarter": "Q3" }));
        let counted = expenses.iter().filter(|expense| counts(expense));
        let total: f64 = counted.map(|expense| expense["amount"].as_f64().unwrap()).sum();
        if total > budget.unwrap()["travel_limit"].as_f64().unwrap() {
            over.push(format!("{} {total:.2}", member["name"].as_str().unwrap()));
        }
    }
    over
}

#[test]
fn three_engineers_went_over_their_travel_budget() {
    let over = over_budget(|expense| expense["category"] == "travel");
    assert_eq!(over, ["Hana Kobayashi 9376.45", "Lucia Moretti 6515.46", "Omar Farouk 13111.68"]);
}

#[test]
fn no_other_engineer_is_near_the_budget() {
    // A model that forgets to filter by category must still find the right three.
    assert_eq!(over_budget(|_| true).len(), 3);
}

#[test]
fn there_are_two_thousand_line_items_to_read() {
    let members = list("get_team_members", json!({ "department": "engineering" }));
    assert_eq!(members.len(), 20);
    let mut items = 0;
    let mut characters = 0;
    for member in members {
        let expenses =
            list("get_expenses", json!({ "employee_id": member["id"], "quarter": "Q3" }));
        items += expenses.len();
        characters += json!(expenses).to_string().len();
        for expense in &expenses {
            assert_eq!(expense["employee_id"], member["id"]);
            let date = expense["date"].as_str().unwrap();
            assert!(("2026-07-01"..="2026-09-30").contains(&date), "{date}");
            assert!(expense["amount"].as_f64().unwrap() > 0.0);
        }
    }
    assert_eq!(items, 2_000);
    assert!(characters > 300_000, "{characters}");
}

#[test]
fn scripts_pass_arguments_in_the_order_of_the_schema() {
    let definitions = toolgate_demo::definitions("team").unwrap();
    let order = |name: &str| {
        let definition = definitions.iter().find(|definition| definition["name"] == name).unwrap();
        let properties = definition["inputSchema"]["properties"].as_object().unwrap();
        properties.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(order("get_team_members"), ["department"]);
    assert_eq!(order("get_expenses"), ["employee_id", "quarter"]);
    assert_eq!(order("get_budget_by_level"), ["level"]);
}
