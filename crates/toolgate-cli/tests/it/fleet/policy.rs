//! A policy that is saved for all nodes.

use serde_json::{Value, json};
use toolgate_store::SharedStore as _;

use super::{FleetNode, FleetPlace, lists};
use crate::{
    support::{Outcome, program, text, until},
    typist::{Typist, agree},
    web::OpenPage,
};

/// A policy with labels, that denies one tool.
fn denying(tool: &str) -> Value {
    json!({
        "default": "allow",
        "labels": { "kit_echo": ["private"] },
        "rules": [{ "tool": tool, "verdict": "deny", "reason": "saved for all" }],
    })
}

/// Saves a policy at a machine, as a person who agrees.
async fn save(node: &FleetNode, policy: &Value, more: &[&str]) -> Outcome {
    std::fs::write(node.place.path().join("policy.json"), policy.to_string()).unwrap();
    agree(&node.place, &[&["policy", "save", "policy.json"], more].concat()).await
}

/// The same where nobody is asked.
async fn refused(node: &FleetNode, policy: &Value, more: &[&str]) -> Outcome {
    std::fs::write(node.place.path().join("policy.json"), policy.to_string()).unwrap();
    let arguments = [&["policy", "save", "policy.json"], more].concat();
    Typist::start(&node.place, &arguments).end().await
}

/// Calls the tool that is denied.
async fn is_refused(node: &FleetNode) -> bool {
    let call = json!({ "name": "kit_write", "arguments": { "id": 1 } });
    let answer = node.client().answer("tools/call", call).await;
    answer.get("error").is_some() || answer["result"]["isError"] == true
}

/// Waits until a node offers a tool, or does not.
async fn offers(node: &FleetNode, tool: &str, expected: bool) {
    let what = format!("{tool}: {expected}");
    until(&what, async || (lists(node, tool).await == expected).then_some(())).await;
}

#[tokio::test]
async fn a_saved_policy_holds_on_all_nodes_and_after_a_restart() {
    let Some(place) = FleetPlace::start(json!({ "default": "allow" })).await else { return };
    let (first, second) = (place.node().await, place.node().await);
    for node in [&first, &second] {
        offers(node, "kit_write", true).await;
    }
    let of_file = first.place.run(&["policy"]).await;
    assert!(of_file.stdout.contains("none is saved in the database of the fleet"), "{of_file:?}");

    let saved = save(&first, &denying("kit_write"), &[]).await;
    assert_eq!(saved.code, Some(0), "{saved:?}");
    assert!(saved.stdout.contains("as version 1"), "{saved:?}");
    assert!(saved.stderr.contains("\"saved for all\""), "the person saw it: {saved:?}");
    for node in [&first, &second] {
        offers(node, "kit_write", false).await;
        assert!(lists(node, "kit_guarded").await && is_refused(node).await);
        let file = std::fs::read_to_string(node.place.config()).unwrap();
        assert!(!file.contains("saved for all"), "no file changes");
        let shown = node.place.run(&["policy", "--json"]).await.json();
        assert_eq!(shown["source"]["fleet"]["version"], 1, "{shown}");
        assert_eq!(shown["source"]["fleet"]["savedBy"], "shell:somebody", "{shown}");
        assert_eq!(shown["labels"][0]["labels"], json!(["private"]), "{shown}");
    }
    // Neither does a node that starts now use that of its file.
    let third = place.node().await;
    offers(&third, "kit_guarded", true).await;
    assert!(!lists(&third, "kit_write").await);
    let explained = third.place.run(&["policy", "check", "kit_write"]).await;
    assert!(explained.stdout.contains("policy 1 of the fleet:"), "{explained:?}");

    let removed = agree(&second.place, &["policy", "remove"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    for node in [&first, &second, &third] {
        offers(node, "kit_write", true).await;
    }
    let again = second.place.run(&["policy", "remove"]).await;
    assert!(again.stderr.contains("counts already"), "{again:?}");
    let audit = second.place.run(&["audit", "--json"]).await.stdout;
    assert!(audit.contains("policy saved for all nodes, version 1"), "{audit}");
    assert!(audit.contains("policy removed for all nodes, version 2"), "{audit}");
}

#[tokio::test]
async fn a_node_with_a_broken_file_uses_the_saved_policy_too() {
    let Some(place) = FleetPlace::start(json!({ "default": "allow" })).await else { return };
    let (first, second) = (place.node().await, place.node().await);
    offers(&second, "kit_write", true).await;
    let file = std::fs::read_to_string(second.place.config()).unwrap();
    second.place.rewrite("{ \"mcpServers\": {");
    let saved = save(&first, &denying("kit_write"), &[]).await;
    assert_eq!(saved.code, Some(0), "{saved:?}");
    offers(&second, "kit_write", false).await;
    // The mended file does not bring its own policy back.
    let mended = file.replace("\"kit\"", "\"tool\"");
    second.place.rewrite(&mended);
    offers(&second, "tool_guarded", true).await;
    let saved = save(&first, &denying("tool_guarded"), &[]).await;
    assert_eq!(saved.code, Some(0), "{saved:?}");
    offers(&second, "tool_guarded", false).await;
    offers(&second, "tool_write", true).await;
}

#[tokio::test]
async fn two_savers_do_not_overwrite_each_other_in_silence() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let node = place.node().await;
    // Both have seen version 0 when they are asked.
    let file = |name: &str, tool: &str| {
        std::fs::write(node.place.path().join(name), denying(tool).to_string()).unwrap();
    };
    file("one.json", "kit_write");
    file("other.json", "kit_guarded");
    let mut one = Typist::start(&node.place, &["policy", "save", "one.json"]);
    let mut other = Typist::start(&node.place, &["policy", "save", "other.json"]);
    one.sees("[y/N] ").await;
    other.sees("[y/N] ").await;
    one.types("y\n");
    let one = one.end().await;
    assert_eq!(one.code, Some(0), "{one:?}");
    other.types("y\n");
    let other = other.end().await;
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.stderr.contains("has changed since"), "{other:?}");
    let exported = node.place.run(&["policy", "export"]).await;
    assert_eq!(exported.json(), denying("kit_write"), "{exported:?}");
    assert!(exported.stderr.contains("version 1, saved by shell:somebody"), "{exported:?}");
    let late = refused(&node, &denying("kit_guarded"), &["--replace", "0"]).await;
    assert!(late.stderr.contains("is of version 1, not 0"), "{late:?}");
    let asked = save(&node, &denying("kit_guarded"), &["--replace", "1"]).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert!(asked.stderr.contains("version 1, saved by shell:somebody"), "{asked:?}");
}

#[tokio::test]
async fn only_a_person_saves_a_policy_and_only_one_without_mistakes() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let node = place.node().await;
    let path = node.place.path().join("policy.json");
    std::fs::write(&path, denying("kit_write").to_string()).unwrap();
    for arguments in [&["policy", "save", "policy.json"][..], &["policy", "save", "-"]] {
        let nobody = node.place.run_with_input(arguments, "\"off\"").await;
        assert_eq!(nobody.code, Some(2), "{nobody:?}");
        assert!(nobody.stderr.contains("there is no terminal to ask at"), "{nobody:?}");
    }
    // A server of toolgate has a terminal of its own and answers for the person.
    for command in ["policy save policy.json", "policy remove"] {
        let below = node.place.command(&[]);
        let below = below.as_std();
        let mut shell = std::process::Command::new("bash");
        // The mark of a server.
        shell.args(["-c", &format!("ulimit -x 5 && exec '{}' {command}", program())]);
        shell.current_dir(node.place.path());
        shell.envs(below.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let server = Typist::run_command(shell.into()).end().await;
        assert!(server.stderr.contains("a server cannot give permissions"), "{server:?}");
    }
    let mut refusing = Typist::start(&node.place, &["policy", "save", "policy.json"]);
    refusing.sees("[y/N] ").await.types("n\n");
    assert_eq!(refusing.end().await.code, Some(1));
    for (wrong, why) in [
        (json!({ "rules": [{ "verdict": "perhaps" }] }), "`policy.rules[0].verdict`"),
        (json!({ "futureKey": 1 }), "`policy.futureKey`"),
        (
            json!({ "rules": [{ "tool": "a", "verdict": "deny",
            "when": { "arguments": { "p": { "under": "${command:id}" } } } }] }),
            "cannot be read here",
        ),
    ] {
        let refused = refused(&node, &wrong, &[]).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused.stderr.contains("is not understood") && refused.stderr.contains(why),
            "{refused:?}"
        );
    }
    let shown = node.place.run(&["policy", "--json"]).await.json();
    assert_eq!(
        shown["source"]["fleet"],
        json!({
            "version": 0, "isSaved": false, "savedBy": null, "savedAt": null,
        })
    );
}

#[tokio::test]
async fn a_saved_policy_that_a_node_cannot_read_denies_every_call() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let node = place.node().await;
    offers(&node, "kit_write", true).await;
    let fleet = place.fleet().await;
    for (version, content) in [
        json!({ "format": 2, "rules": "of a newer version" }),
        json!({ "format": 1, "policy": { "default": "allow", "newer": 1 }, "by": "x", "at": 1 }),
    ]
    .into_iter()
    .enumerate()
    {
        let saving = std::sync::Arc::clone(&fleet);
        let saved = tokio::task::spawn_blocking(move || {
            saving.policy().replace(version as u64, Some(&content.to_string())).unwrap()
        });
        assert!(saved.await.unwrap().is_some());
        offers(&node, "kit_write", false).await;
        let why = format!("policy {} of the fleet", version + 1);
        let shown = node.place.run(&["policy"]).await;
        assert!(
            shown.stderr.contains(&why) && shown.stderr.contains("every call is denied"),
            "{shown:?}"
        );
        let called = node.place.run(&["call", "kit_write", "{\"id\":1}"]).await;
        assert_ne!(called.code, Some(0), "{called:?}");
        let started = place.node().await;
        assert!(!lists(&started, "kit_write").await);
    }
    assert_eq!(super::effects(&place.log()), std::collections::BTreeMap::new());
    // A person mends it.
    let saved = save(&node, &json!({ "default": "allow" }), &[]).await;
    assert_eq!(saved.code, Some(0), "{saved:?}");
    offers(&node, "kit_write", true).await;
}

#[tokio::test]
async fn while_the_database_is_away_the_last_policy_counts() {
    let Some(mut place) = FleetPlace::start(json!({ "default": "allow" })).await else { return };
    let node = place.node().await;
    let saved = save(&node, &denying("kit_write"), &[]).await;
    assert_eq!(saved.code, Some(0), "{saved:?}");
    offers(&node, "kit_write", false).await;
    place.postgres.kill();
    assert!(is_refused(&node).await);
    // An edit of the file is no reason to use the policy in it.
    let file = std::fs::read_to_string(node.place.config()).unwrap();
    node.place.rewrite(&file.replace("\"leaseSeconds\": 1", "\"leaseSeconds\": 2"));
    let started = place.workplace().run(&["serve", "--http", "127.0.0.1:0"]).await;
    assert_eq!(started.code, Some(1), "{started:?}");
    assert!(started.stderr.contains("the shared database cannot be used"), "{started:?}");
    assert!(!lists(&node, "kit_write").await);
    place.postgres.resume().unwrap();
    let is_back = async || (node.place.run(&["policy"]).await.code == Some(0)).then_some(());
    until("the database is back", is_back).await;
    let removed = agree(&node.place, &["policy", "remove"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    offers(&node, "kit_write", true).await;
    assert_eq!(super::effects(&place.log()), std::collections::BTreeMap::new());
}

#[tokio::test]
async fn the_page_saves_for_all_nodes_and_says_where_the_policy_is() {
    let Some(place) = FleetPlace::start(json!({ "default": "allow" })).await else { return };
    let node = place.node().await;
    offers(&node, "kit_write", true).await;
    let machine = place.workplace();
    let page = OpenPage::start(&machine).await;
    let before = page.get("/ui/policy").await;
    assert!(before.contains("none is saved in the database of the fleet"), "{before}");
    let policy = denying("kit_write").to_string();
    let tried = page.post("/ui/policy/what-if", &[("policy", &policy)]).await;
    let tried = tried.text().await.unwrap();
    assert!(tried.contains("holds on all nodes within a second"), "{tried}");
    let digest = |shown: &str| {
        let (_, rest) = shown.split_once("name=\"before\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let seen = digest(&tried);
    let save = async |before: &str| {
        let fields = [("policy", policy.as_str()), ("before", before), ("action", "save")];
        page.post("/ui/policy/what-if", &fields).await.text().await.unwrap()
    };
    save(&seen).await;
    let after = page.get("/ui/policy").await;
    assert!(after.contains("as version 1") && after.contains("saved by page:somebody"), "{after}");
    offers(&node, "kit_write", false).await;
    let refused = save(&seen).await;
    assert!(refused.contains("has changed since"), "{refused}");
    let fields = [("before", digest(&after)), ("action", "remove".to_owned())];
    let fields = fields.each_ref().map(|(key, value)| (*key, value.as_str()));
    page.post("/ui/policy/what-if", &fields).await;
    offers(&node, "kit_write", true).await;
    let call = json!({ "name": "kit_write", "arguments": { "id": 3 } });
    assert!(text(&node.client().request("tools/call", call).await).contains("written"));
}
