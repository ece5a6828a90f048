//! What a person is asked, and what they are told.

use super::*;

#[cfg(unix)]
#[tokio::test]
async fn a_person_is_asked_where_two_differ_and_before_anything_is_written() {
    let place = Workplace::empty();
    let mut one = entry(&kit());
    one["env"] = json!({ "REGION": "north" });
    let mut two = one.clone();
    two["env"] = json!({ "REGION": "south" });
    for (file, server) in [(".cursor/mcp.json", &one), (".kiro/settings/mcp.json", &two)] {
        let path = place.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, json!({ "mcpServers": { "kit": server } }).to_string()).unwrap();
    }
    let before = all_files(place.path());
    let mut typist = Typist::start(&place, &["setup", "--no-probe"]);
    typist
        .hears("`kit` of Kiro is the same server as `kit` of Cursor, but has another REGION:")
        .await;
    typist.hears("first (Cursor): REGION = north").await;
    typist.hears("second (Kiro): REGION = south").await;
    typist.sees("Use the [F]irst, the [s]econd, or [b]oth? ").await.types("s\r");
    typist.sees("Write these files? [y/N] ").await.types("n\r");
    let refused = typist.end().await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(all_files(place.path()) == before);

    let mut typist = Typist::start(&place, &["setup", "--no-probe"]);
    typist.sees("[b]oth? ").await.types("b\r");
    typist.sees("Write these files? [y/N] ").await.types("y\r");
    let done = typist.end().await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let own = servers(&place.path().join(".config/toolgate/toolgate.json"), "mcpServers");
    assert_eq!(
        (&own["kit"]["env"]["REGION"], &own["kit-2"]["env"]["REGION"]),
        (&json!("north"), &json!("south"))
    );
    assert!(done.stdout.contains("`kit` of Kiro is called `kit-2`"), "{done:?}");
    // Without a terminal and --yes nothing is done.
    let alone = place.run(&["setup"]).await;
    assert_eq!(alone.code, Some(2), "{alone:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_person_may_take_over_a_server_that_does_not_start() {
    let place = Workplace::empty();
    let dead = json!({ "command": "no-such-program-of-setup" });
    let other = json!({ "command": "no-other-program-of-setup" });
    let there = json!({ "mcpServers": { "dead": dead, "gone": other } });
    let cursor = put(&place, ".cursor/mcp.json", &there);
    let mut typist = Typist::start(&place, &["setup"]);
    typist.hears("`dead` of Cursor does not start here: the command").await;
    typist.sees("Take it over all the same? [y/N] ").await.types("n\r");
    typist.hears("`gone` of Cursor does not start here: the command").await;
    typist.sees("Take it over all the same? [y/N] ").await.types("y\r");
    typist.sees("Write these files? [y/N] ").await.types("y\r");
    let done = typist.end().await;
    assert_eq!(done.code, Some(1), "{done:?}");
    let left = servers(&cursor, "mcpServers");
    assert_eq!(left.keys().collect::<Vec<_>>(), ["dead", "toolgate"], "{done:?}");
    let own = servers(&place.path().join(".config/toolgate/toolgate.json"), "mcpServers");
    assert_eq!(own.keys().collect::<Vec<_>>(), ["gone"], "{done:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn differences_of_tools_are_named_and_costs_are_honest() {
    let place = Workplace::empty();
    let mut less = entry(&kit());
    less["disabled_tools"] = json!(["echo"]);
    let mut approved = entry(&kit());
    approved["alwaysAllow"] = json!(["echo"]);
    put(&place, ".cursor/mcp.json", &json!({ "mcpServers": { "kit": entry(&kit()) } }));
    put(&place, ".config/crush/crush.json", &json!({ "mcp": { "c1": less } }));
    put(&place, ".roo/unused.json", &json!({}));
    put(&place, ".kiro/settings/mcp.json", &json!({ "mcpServers": { "kit": approved } }));
    put(&place, ".codeium/windsurf/mcp_config.json", &json!({ "mcpServers": {} }));
    let dry = place.run(&["setup", "--dry-run"]).await;
    assert_eq!(dry.code, Some(0), "{dry:?}");
    for line in [
        "`c1` of Crush is the same server as `kit` of Cursor, but has another disabled_tools: the first one is used",
        "`alwaysAllow` of `kit` of Kiro is not taken over",
        "Windsurf: a session starts with ",
    ] {
        assert!(dry.stdout.contains(line), "{line}: {}", dry.stdout);
    }
    let report = place.run(&["setup", "--dry-run", "--json"]).await.json();
    let tokens = place.run(&["tokens", "--json", "--config", ".cursor/mcp.json"]).await.json();
    assert_eq!(report["tokensBefore"], tokens["modes"]["without"]["together"], "{tokens}");
    let cursor = report["clients"].as_array().unwrap().iter().find(|it| it["client"] == "cursor");
    assert_eq!(cursor.unwrap()["tokensNow"], report["tokensBefore"], "{report}");

    // No answer but the three is taken for one of them.
    let before = all_files(place.path());
    let mut typist = Typist::start(&place, &["setup", "--no-probe"]);
    typist.sees("[b]oth? ").await.types("n\r");
    let refused = typist.end().await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(all_files(place.path()) == before);
}
