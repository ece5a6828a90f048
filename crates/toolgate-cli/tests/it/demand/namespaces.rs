//! Namespaces.

use serde_json::json;

use crate::{
    fixtures::{notes, weather},
    guard::records,
    support::{DIRECT_META, META, Workplace, entry, list, names, text},
};

#[tokio::test]
async fn a_namespace_has_its_own_servers_and_mode() {
    let workplace = Workplace::new(&json!({
        "mcpServers": { "notes": entry(&notes()), "weather": entry(&weather()) },
        "namespaces": {
            "outside": { "servers": ["weather"], "exclusive": true },
            "all": { "servers": ["notes", "weather"], "mode": "stable" },
        },
    }));
    let seen = async |arguments: &[&str]| {
        let mut gateway = workplace.connect(arguments).await;
        let listed = list(&mut gateway).await;
        names(&listed).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let default = seen(&[]).await;
    assert_eq!(default[..DIRECT_META.len()], DIRECT_META);
    let servers = &default[DIRECT_META.len()..];
    assert!(servers.iter().all(|name| name.starts_with("notes_")), "{default:?}");
    let outside = [&DIRECT_META[..], &["weather_forecast", "weather_current_conditions"]].concat();
    assert_eq!(seen(&["--namespace", "outside"]).await, outside);
    assert_eq!(seen(&["--namespace", "all"]).await, META);

    // A server that is disabled in one namespace is enabled in the others.
    let off = workplace.run(&["disable", "weather", "--namespace", "all"]).await;
    assert_eq!(off.code, Some(0), "{off:?}");
    assert_eq!(seen(&["--namespace", "outside"]).await, outside);
    let status = workplace.run(&["status", "--namespace", "all", "--json"]).await.json();
    assert_eq!(status["servers"][1]["state"], "disabled", "{status}");
    insta::assert_snapshot!(
        workplace.run(&["status", "--namespace", "al"]).await.shown().replace(
            &workplace.path().display().to_string(), "HERE"
        ),
        @"
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.json has no namespace `al`
      hint: did you mean all?
    "
    );
}

#[tokio::test]
async fn a_namespace_has_its_own_policy() {
    let workplace = Workplace::new(&json!({
        "mcpServers": { "records": entry(&records()) },
        "policy": "allow",
        "codeMode": { "enabled": false },
        "namespaces": {
            "readers": { "servers": ["records"],
                         "policy": { "rules": [{ "tool": "records_delete", "verdict": "deny" }] } },
            "careful": { "servers": ["records"], "policy": { "flow": "labels", "labels": {
                "records_list": "private", "records_delete": "egress" } } },
        },
    }));
    let gateway = workplace.serve_http(&[]).await;
    let (all, readers) = (gateway.client(), gateway.client_of("readers"));
    let careful = gateway.client_of("careful");
    let id = json!({ "id": "7" });
    assert_eq!(names(&all.list().await), ["read_output", "records_list", "records_delete"]);
    let deleted = all.call("records_delete", id.clone()).await;
    assert_ne!(deleted["isError"], true, "{deleted}");
    assert_eq!(
        names(&readers.list().await),
        ["read_output", "records_list"],
        "what is denied is not shown"
    );
    let denied =
        readers.refused("tools/call", json!({ "name": "records_delete", "arguments": id }));
    insta::assert_snapshot!(denied.await["message"].as_str().unwrap(), @"there is no tool `records_delete`; did you mean `records_list`?");

    // The same calls, with labels and without.
    for (client, waits) in [(&all, false), (&careful, true)] {
        client.call("records_list", json!({})).await;
        let deleted = client.call("records_delete", id.clone()).await;
        assert_eq!(text(&deleted).contains("waiting for approval"), waits, "{deleted}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn the_policy_of_a_namespace_is_explained() {
    let workplace = Workplace::new(&json!({
        "mcpServers": { "records": entry(&records()) },
        "policy": "ask",
        "namespaces": { "readers": { "servers": ["records"], "policy": {
            "default": "deny", "rules": [{ "tool": "records_list", "verdict": "allow" }],
        } } },
    }));
    let shell = async |arguments: &[&str]| workplace.run(arguments).await.shown();
    insta::assert_snapshot!(shell(&["policy", "--namespace", "readers"]).await, @"
    exit code 0
    --- stdout
    default: deny (every call is refused unless a rule allows it)
    claims: all
    flow: program
    new tools: allow
    findings: warn
    allow `records_list`; `namespaces.readers.policy.rules[0]` (toolgate.json:20:11)
    --- stderr
    ");
    insta::assert_snapshot!(
        shell(&["policy", "check", "records_delete", "--namespace", "readers"]).await, @r#"
    exit code 0
    --- stdout
    deny: no rule applies, and the default is "deny"
      Every call is denied. The tool is not listed, not found and not callable in scripts.
    --- stderr
    "#);
    insta::assert_snapshot!(shell(&["policy", "check", "records_delete"]).await, @r#"
    exit code 0
    --- stdout
    ask: no rule applies, and the default is "ask"; the tool does not count as read-only
    --- stderr
    "#);
}

/// What is held back there is not forgotten in silence.
#[tokio::test]
async fn approving_all_says_which_namespaces_it_does_not_look_at() {
    let workplace = Workplace::new(&json!({
        "mcpServers": { "weather": entry(&weather()) },
        "namespaces": { "outside": { "servers": ["weather"], "exclusive": true } },
    }));
    let approved = workplace.run(&["definitions", "approve", "--all"]).await;
    insta::assert_snapshot!(approved.shown(), @"
    exit code 0
    --- stdout
    No definition is approved: no server that was looked at has any.
    --- stderr
    the servers of the namespace `outside` were not looked at, because it is exclusive; `toolgate definitions --namespace outside` looks at them
    ");
    let looked =
        workplace.run(&["definitions", "approve", "--all", "--namespace", "outside"]).await;
    assert!(looked.stdout.contains("2 definitions are approved"), "{looked:?}");
    let listed = workplace.run(&["definitions"]).await;
    assert!(listed.stderr.contains("`outside` were not looked at"), "{listed:?}");
}
