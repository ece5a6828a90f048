//! The commands for people.

mod eval;
mod tools;

use serde_json::{Value, json};
use toolgate_testkit::{AnswerFault, Builtin, Faults, Fixture, StartupExit};

use crate::{
    fixtures::{kit, notes, odd, weather},
    support::{META, Outcome, Workplace, entry, entry_with},
};

fn workplace() -> Workplace {
    let described = json!({ "description": "Notes of the team" });
    Workplace::new(&json!({ "mcpServers": {
        "notes": entry_with(&notes(), described), "weather": entry(&weather()),
    } }))
}

/// Six servers of which one is good.
fn troubled() -> Workplace {
    let dead = StartupExit { code: 3, message: "Error: no licence".to_owned() };
    let mute = Faults::broken_answer("tools/list", AnswerFault::Silence);
    Workplace::new(&json!({ "mcpServers": {
        "notes": entry(&notes()),
        "dead": entry(&kit().with_faults(Faults { exit_at_start: Some(dead), ..Faults::default() })),
        "mute": entry_with(&kit().with_faults(mute), json!({ "connectTimeoutSeconds": 5 })),
        "missing": { "command": "no-such-command-anywhere" },
        "odd": entry(&odd()),
        "off": { "command": "whatever", "disabled": true },
    } }))
}

async fn run(workplace: &Workplace, arguments: &[&str]) -> Outcome {
    workplace.run(arguments).await
}

#[tokio::test]
async fn status_of_servers_that_work() {
    let workplace = workplace();
    let outcome = run(&workplace, &["status"]).await;
    insta::assert_snapshot!(outcome.shown(), @r#"
    exit code 0
    --- stdout
     server   state  tools  loaded  deferred  protocol    remarks
     notes    ready      4       4         0  2025-11-25
     weather  ready      2       2         0  2025-11-25

    A session of all clients is direct: 708 tokens fit into the 10,000 allowed.

     a session         tools  definitions  instructions  together
     without toolgate      6          319             0       319
     direct                9          715            69       784  now, recommended
     stable                6          729            69       798
     dynamic               6          737            69       806
     code                  5          664            57       721

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    Code costs 63 less: tools are searched for first, and called by scripts.
    Without toolgate a session costs 465 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
    let outcome = run(&workplace, &["status", "--tools", "--mode", "dynamic"]).await;
    insta::assert_snapshot!(outcome.shown(), @r#"
    exit code 0
    --- stdout
     server   state  tools  loaded  deferred  protocol    remarks
     notes    ready      4       0         4  2025-11-25
     weather  ready      2       0         2  2025-11-25

    A session of clients up to 2025-11-25 is dynamic: it was asked for.
    A session of clients from 2026-07-28 on is stable: it was asked for.

     a session         tools  definitions  instructions  together
     without toolgate      6          319             0       319
     direct                9          715            69       784  recommended
     stable                6          729            69       798
     dynamic               6          737            69       806  now
     code                  5          664            57       721

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    Code costs 63 less: tools are searched for first, and called by scripts.
    Without toolgate a session costs 465 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.

    notes
      deferred: notes_create_note, notes_find_notes, notes_delete_note, notes_shareNoteWithTeam

    weather
      deferred: weather_forecast, weather_current_conditions
    --- stderr
    "#);
}

#[tokio::test]
async fn status_of_servers_that_fail() {
    let outcome = run(&troubled(), &["status"]).await;
    insta::assert_snapshot!(outcome.shown(), @r#"
    exit code 1
    --- stdout
     server   state   tools  loaded  deferred  protocol    remarks
     notes    ready       4       0         4  2025-11-25
     dead     failed      0       0         0              the process ended before it answered (exit status: 3): Error: no licence; see `toolgate logs dead`
     mute     failed      0       0         0              no answer to tools/list within 5 s; raise `connectTimeoutSeconds` of the server, or see `toolgate logs mute`
     missing  failed      0       0         0              the command `no-such-command-anywhere` was not found; install it, or write its full path as `command`
     odd      ready       5       0         5  2025-11-25  tool `#2` is left out: `name` is missing or not a non-empty string of at most 512 bytes
                                                           tool `#3` is left out: `name` is missing or not a non-empty string of at most 512 bytes
                                                           tool `#4` is left out: the definition is a string, not an object
                                                           tool `no_schema` is left out: `inputSchema` is missing, not an object
                                                           tool `boolean_schema` is left out: `inputSchema` is a boolean, not an object
                                                           the arguments of `odd_invalid_pattern` cannot be checked, because its schema is broken ("([unclosed" is not a "regex"); the server has to mend it, or set `validateArguments: false` for the tool to call it unchecked
                                                           the arguments of `odd_dangling_reference` cannot be checked, because its schema is broken (Pointer '/$defs/absent' does not exist); the server has to mend it, or set `validateArguments: false` for the tool to call it unchecked

    A session of all clients is stable: the tools of mute are not known yet, and what is unknown must not flood a context.

     a session         tools  definitions  instructions  together
     without toolgate      9          374             0       374
     direct               12          785            70       855
     stable                6          729            70       799  now, recommended
     dynamic               6          737            70       807
     code                  5          664            58       722

    Recommended: stable, because the tools of mute are not known yet, and what is unknown must not flood a context.
    Code costs 77 less: tools are searched for first, and called by scripts.
    Without toolgate a session costs 425 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
}

#[tokio::test]
async fn status_for_a_program() {
    let outcome = run(&troubled(), &["status", "--json"]).await;
    assert_eq!(outcome.code, Some(1));
    let status = outcome.json();
    let servers = status["servers"].as_array().unwrap();
    let names: Vec<&str> = servers.iter().map(|row| row["server"].as_str().unwrap()).collect();
    assert_eq!(names, ["notes", "dead", "mute", "missing", "odd"]);
    assert_eq!(servers[0]["state"], "ready");
    assert_eq!(servers[0]["protocolVersion"], "2025-11-25");
    assert_eq!(servers[0]["deferred"].as_array().unwrap().len(), 4);
    assert_eq!(servers[1]["state"], "failed");
    assert!(servers[1]["reason"].as_str().unwrap().contains("Error: no licence"));
    assert_eq!(servers[1]["action"], "see `toolgate logs dead`");
    assert!(servers[2]["reason"].as_str().unwrap().contains("within 5 s"), "{}", servers[2]);
    assert_eq!(servers[4]["state"], "ready");
    assert!(!servers[4]["problems"].as_array().unwrap().is_empty());
    let reason = status["reason"].as_str().unwrap();
    assert!(reason.starts_with("the tools of mute are not known yet"), "{reason}");
    insta::assert_json_snapshot!(status["exposure"], @r#"
    [
      {
        "clients": "all clients",
        "mode": "stable"
      }
    ]
    "#);
}

#[tokio::test]
async fn status_shows_what_a_session_lists_and_why() {
    let mut lines = Vec::new();
    for (search, arguments) in [
        (json!({}), &["status"][..]),
        (json!({ "toolThreshold": 2 }), &["status"]),
        (json!({ "tokenThreshold": 2 }), &["status"]),
        (json!({ "thresholdPercent": 0.1 }), &["status"]),
        (json!({ "enabled": true }), &["status"]),
        (json!({ "enabled": true, "deferred": "dynamic" }), &["status"]),
        (json!({ "enabled": true }), &["status", "--mode", "direct"]),
    ] {
        let servers = json!({ "notes": entry(&notes()) });
        let workplace = Workplace::new(&json!({ "mcpServers": servers, "toolSearch": search }));
        let outcome = run(&workplace, arguments).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let told = outcome.stdout.lines().filter(|line| line.starts_with("A session"));
        lines.extend(told.map(str::to_owned));
    }
    insta::assert_snapshot!(lines.join("\n"), @"
    A session of all clients is direct: 620 tokens fit into the 10,000 allowed.
    A session of all clients is stable: there are 4 tools, and toolThreshold is 2.
    A session of all clients is stable: 821 characters are more than the 2 of tokenThreshold.
    A session of all clients is stable: 620 tokens are more than 200, which is 0.1 % of a context of 200,000 tokens.
    A session of all clients is stable: it was asked for.
    A session of clients up to 2025-11-25 is dynamic: it was asked for.
    A session of clients from 2026-07-28 on is stable: it was asked for.
    A session of all clients is direct: it was asked for.
    ");
}

#[tokio::test]
async fn tokens() {
    let servers = json!({ "notes": entry(&notes()), "kit": entry(&kit()) });
    let workplace = Workplace::deferred(&servers);
    insta::assert_snapshot!(run(&workplace, &["tokens"]).await.shown(), @"
    exit code 0
    --- stdout
     server       tools  tokens  of context
     kit             22     877       0.4 %
     notes            4     231       0.1 %
     all servers     26   1,108       0.6 %

     a session         tools  definitions  instructions  together
     without toolgate     26        1,108             0     1,108
     direct               29        1,529            64     1,593  recommended
     stable                6          729            64       793  now
     dynamic               6          737            64       801
     code                  5          664            52       716

    Recommended: direct, because 1,497 tokens fit into the 10,000 allowed, and no search is needed.
    Code costs 877 less: tools are searched for first, and called by scripts.
    Without toolgate a session costs 485 less, and has no scripts, no search and no policy.
    A session now is stable: it was asked for.
    Counted: name, description and input schema of each listed tool, and the instructions of the handshake.
    --- stderr
    ");
    let outcome = run(&workplace, &["tokens", "--unit", "characters"]).await;
    insta::assert_snapshot!(outcome.shown(), @"
    exit code 0
    --- stdout
     server       tools  characters  of context
     kit             22       3,855       0.5 %
     notes            4         994       0.1 %
     all servers     26       4,849       0.6 %

     a session         tools  definitions  instructions  together
     without toolgate     26        4,849             0     4,849
     direct               29        6,654           294     6,948  recommended
     stable                6        3,220           294     3,514  now
     dynamic               6        3,261           294     3,555
     code                  5        2,922           244     3,166

    Recommended: direct, because 1,497 tokens fit into the 10,000 allowed, and no search is needed.
    Code costs 3,782 less: tools are searched for first, and called by scripts.
    Without toolgate a session costs 2,099 less, and has no scripts, no search and no policy.
    A session now is stable: it was asked for.
    Counted: name, description and input schema of each listed tool, and the instructions of the handshake.
    --- stderr
    ");

    let costs = run(&workplace, &["tokens", "--json"]).await.json();
    let rows = costs["servers"].as_array().unwrap();
    let sum = |field: &str| rows.iter().map(|row| row[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(costs["total"]["tools"], sum("tools"));
    assert_eq!(costs["total"]["cost"], sum("cost"));
    assert_eq!(costs["total"]["tools"], 26);
    assert_eq!(costs["unit"], "tokens");
    assert_eq!(costs["session"]["tools"], META.len());
    assert!(costs["session"]["cost"].as_u64().unwrap() <= 1_000);
    assert_eq!(costs["contextWindow"], 200_000);
    let share = rows[0]["share"].as_f64().unwrap();
    let expected = rows[0]["cost"].as_f64().unwrap() / 200_000.0;
    assert!((share - expected).abs() < 1e-9, "{share} {expected}");
}

#[tokio::test]
async fn tokens_of_a_text() {
    let workplace = Workplace::new(&json!({}));
    let file = workplace.path().join("text.txt");
    std::fs::write(&file, "Hello world, hello tokens!\n").unwrap();
    let count = async |options: &[&str]| {
        let mut arguments = vec!["tokens", "--text", file.to_str().unwrap()];
        arguments.extend(options);
        run(&workplace, &arguments).await
    };
    // No server is started, and no configuration is needed.
    assert_eq!(count(&[]).await.stdout, "6\n");
    assert_eq!(count(&["--json"]).await.json(), json!({ "unit": "tokens", "count": 6 }));
    assert_eq!(count(&["--unit", "characters"]).await.stdout, "27\n");
    let missing = run(&workplace, &["tokens", "--text", "no-such-file"]).await;
    assert!(missing.stderr.contains("cannot read no-such-file"), "{}", missing.stderr);
}

#[tokio::test]
async fn logs() {
    let workplace = workplace();
    insta::assert_snapshot!(run(&workplace, &["logs", "notse"]).await.shown(), @"
exit code 2
--- stdout
--- stderr
error: there is no server `notse` in the configuration
  hint: did you mean notes?
");
    insta::assert_snapshot!(run(&workplace, &["logs", "zzzzzzzz"]).await.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: there is no server `zzzzzzzz` in the configuration
      hint: there are: notes, weather
    ");
    insta::assert_snapshot!(run(&workplace, &["logs", "notes"]).await.shown(), @"
    exit code 0
    --- stdout
    --- stderr
    server `notes` has written nothing yet
    ");
    run(&workplace, &["search", "note"]).await;
    let outcome = run(&workplace, &["logs", "notes"]).await;
    assert!(
        outcome.stdout.contains("[toolgate] connected with protocol version 2025-11-25; 4 tools")
    );
    let outcome = run(&workplace, &["logs", "../../etc/passwd"]).await;
    assert_eq!(outcome.code, Some(2));
}

#[tokio::test]
async fn config_check_and_schema() {
    insta::assert_snapshot!(run(&workplace(), &["config", "check"]).await.shown(), @"
    exit code 0
    --- stdout
    toolgate.json: 2 of 2 servers can be used
    --- stderr
    ");
    let workplace = troubled();
    workplace.rewrite(r#"{ "mcpServers": { "a": { "command": "x", "lazzy": true }, "b": {} } }"#);
    insta::assert_snapshot!(run(&workplace, &["config", "check"]).await.shown(), @"
    exit code 1
    --- stdout
    toolgate.json has an error, see above; 1 of 2 servers can be used
    --- stderr
    warning: toolgate.json:1:42: `mcpServers.a.lazzy` is not a known key; it is ignored
      hint: did you mean `lazy`?
    error: toolgate.json:1:59: `mcpServers.b` has neither a `command` nor a `url`
      hint: add the `command` that starts the server, or the `url` where it runs
    ");
    let outcome = run(&workplace, &["config", "check", "--json"]).await;
    let checked = outcome.json();
    assert_eq!((&checked["servers"], &checked["usable"]), (&json!(2), &json!(1)));
    assert_eq!(checked["problems"][0]["position"], json!({ "line": 1, "column": 42 }));
    assert_eq!(checked["problems"][1]["severity"], "error");

    let schema: Value = run(&workplace, &["config", "schema"]).await.json();
    assert!(schema["properties"]["mcpServers"].is_object(), "{schema}");
}

#[tokio::test]
async fn secrets_are_neither_printed_nor_stored() {
    let secret = "s3cr3t-value-4711";
    let fixture = Fixture::new("s").with_builtins([Builtin::Echo]);
    let dead = StartupExit { code: 1, message: format!("Error: bad key {secret}") };
    let servers = json!({
        "good": entry_with(&fixture, json!({ "env": { "API_KEY": secret } })),
        "dead": entry_with(
            &kit().with_faults(Faults { exit_at_start: Some(dead), ..Faults::default() }),
            json!({ "env": { "API_KEY": secret } }),
        ),
        "web": { "url": "http://127.0.0.1:9/mcp", "headers": { "Authorization": format!("Bearer {secret}") } },
    });
    let workplace = Workplace::new(&json!({ "mcpServers": servers }));
    for arguments in [
        &["status", "--json"][..],
        &["status", "-vvv"],
        &["logs", "dead"],
        &["call", "good_echo", "-vv"],
    ] {
        let outcome = run(&workplace, arguments).await;
        let shown = outcome.shown();
        assert!(!shown.contains(secret), "{arguments:?}: {shown}");
    }
    let found = std::process::Command::new("grep")
        .args(["-rl", secret])
        .arg(workplace.path().join("state"))
        .output();
    assert_eq!(String::from_utf8(found.unwrap().stdout).unwrap(), "");
}
