//! Servers that are left alone until they are needed, and servers that are switched off.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture};

use super::{logged, starts};
use crate::{
    fixtures::{notes, weather},
    support::{DIRECT_META, META, Workplace, call, call_through, entry, list, names, text, until},
    typist::agree,
};

const SERVERS: [&str; 3] = ["search_available_servers", "enable_server", "disable_server"];

#[tokio::test]
async fn a_lazy_server_starts_with_the_first_call() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let lazy = json!({ "lazy": true, "description": "Notes and their colours" });
    let servers = json!({ "notes": logged(&notes(), &log, lazy), "weather": entry(&weather()) });
    let workplace = Workplace::deferred(&servers);
    let mut gateway = workplace.connect(&[]).await;
    let listed = list(&mut gateway).await;
    assert_eq!(names(&listed), [&META[..], &SERVERS].concat());

    // Nothing but its description is known.
    let found = call(&mut gateway, "search_tools", json!({ "query": "colour of a note" })).await;
    insta::assert_snapshot!(text(&found), @r#"
    No tool matches "colour of a note". The servers:
    - notes (not connected): Notes and their colours
    - weather (2 tools)

    Not connected, and may have it: notes (Notes and their colours). To connect: enable_server.
    "#);
    assert_eq!(starts(&log), 0);

    // A name that could only be its own connects it.
    let result = call_through(&mut gateway, "notes_find_notes", json!({ "words": "x" })).await;
    assert_ne!(result["isError"], true, "{result}");
    assert_eq!(starts(&log), 1);
    // The cache is complete after a normal end.
    gateway.close_stdin();
    assert!(gateway.wait().await.unwrap().success());

    // The next time its tools are cached, and it still is not started.
    let mut gateway = workplace.connect(&[]).await;
    let found = call(&mut gateway, "search_tools", json!({ "query": "colour of a note" })).await;
    insta::assert_snapshot!(text(&found), @r#"
    4 of 6 tools for "colour of a note":

    notes (4 tools; not connected, a call connects it): Notes and their colours
    - notes_find_notes(words: string): Look for notes by their words.
    - notes_create_note(title: string, body?: string, colour?: "amber" | "teal"): Write a new note. It is saved at once.
    - notes_shareNoteWithTeam(id: string, readers: object[]): Let others read a note.
    - notes_delete_note(id: string): Throw a note away for good.

    To call: call_tool. What parameters mean: get_tool_details.
    "#);
    assert_eq!(found["structuredContent"]["servers"][0]["connected"], false);
    let details = json!({ "names": ["notes_create_note"] });
    assert!(text(&call(&mut gateway, "get_tool_details", details).await).contains("amber"));
    assert_eq!(starts(&log), 1, "to look is not to need");
    call_through(&mut gateway, "notes_find_notes", json!({ "words": "x" })).await;
    assert_eq!(starts(&log), 2);
}

#[tokio::test]
async fn enabling_connects_and_names_the_tools() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let lazy = json!({ "lazy": true, "description": "Notes and their colours" });
    let workplace = Workplace::deferred(&json!({ "notes": logged(&notes(), &log, lazy) }));
    let mut gateway = workplace.connect(&[]).await;
    let query = json!({ "query": "something for notes" });
    let found = call(&mut gateway, "search_available_servers", query.clone()).await;
    insta::assert_snapshot!(text(&found), @r#"
    For "something for notes":
    - notes (not connected): Notes and their colours
    To connect a server: enable_server.
    "#);
    assert_eq!(starts(&log), 0);
    let enabled = call(&mut gateway, "enable_server", json!({ "name": "notes" })).await;
    insta::assert_snapshot!(text(&enabled), @"Server notes is connected: 4 tools (notes_create_note, notes_find_notes, notes_delete_note, notes_shareNoteWithTeam). search_tools finds them.");
    assert_eq!(starts(&log), 1);
    let found = call(&mut gateway, "search_available_servers", query).await;
    insta::assert_snapshot!(text(&found), @r#"
    For "something for notes":
    - notes (connected): Notes and their colours
    To connect a server: enable_server.
    "#);
    let unknown = call(&mut gateway, "enable_server", json!({ "name": "note" })).await;
    insta::assert_snapshot!(text(&unknown), @"There is no server `note`. Nearest: notes.");
    assert_eq!(unknown["isError"], true);
}

#[tokio::test]
async fn a_small_lazy_set_is_direct_and_has_enable_server() {
    let lazy = json!({ "notes": { "command": "nothing-of-this-name", "lazy": true } });
    let workplace = Workplace::new(&json!({ "mcpServers": lazy }));
    let mut gateway = workplace.connect(&[]).await;
    let listed = list(&mut gateway).await;
    assert_eq!(names(&listed), [&DIRECT_META[..], &SERVERS].concat());
    let failed = call(&mut gateway, "enable_server", json!({ "name": "notes" })).await;
    assert_eq!(failed["isError"], true);
    insta::assert_snapshot!(text(&failed), @"Server notes is enabled and could not be connected: the command `nothing-of-this-name` was not found; install it, or write its full path as `command`.");
    let status = workplace.run(&["status"]).await;
    insta::assert_snapshot!(status.shown(), @r#"
    exit code 0
    --- stdout
     server  state  tools  loaded  deferred  protocol  remarks
     notes   idle       0       0         0            lazy: connected when needed

    A session of all clients is direct: 610 tokens fit into the 10,000 allowed.

     a session         tools  definitions  instructions  together
     without toolgate      0            0             0         0
     direct                6          610            62       672  now, recommended
     stable                9          950            62     1,012
     dynamic               9          958            62     1,020
     code                  8          885            50       935

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let counter = Fixture::new("counter").with_builtins([Builtin::Counter]);
    let resting = json!({ "lazy": true, "idleTimeoutSeconds": 0.2 });
    let workplace = Workplace::deferred(&json!({ "c": logged(&counter, &log, resting) }));
    let mut gateway = workplace.connect(&[]).await;
    let count = async |gateway: &mut _| {
        call_through(gateway, "c_counter", json!({})).await["structuredContent"]["count"].take()
    };
    assert_eq!(count(&mut gateway).await, 1);
    until("the end of the process", async || {
        let logs = workplace.run(&["logs", "c"]).await.stdout;
        // On a busy machine it may be idle between its connection and the first call, too.
        (logs.matches("it was idle").count() == starts(&log)).then_some(())
    })
    .await;
    assert_eq!(count(&mut gateway).await, 1, "it is another process");
    assert!(starts(&log) >= 2);
}

#[tokio::test]
async fn disabling_does_not_change_the_list_of_an_open_session() {
    for mode in ["direct", "stable", "dynamic", "code"] {
        let servers = json!({
            "notes": entry(&notes()),
            "weather": { "command": "nothing-of-this-name", "lazy": true },
        });
        let workplace = Workplace::new(&json!({ "mcpServers": servers }));
        let mut gateway = workplace.connect(&["--mode", mode]).await;
        let find = json!({ "query": "find notes" });
        // So that a dynamic session has something of it in its list.
        call(&mut gateway, "search_tools", find.clone()).await;
        let before = serde_json::to_string(&list(&mut gateway).await).unwrap();
        let disabled = call(&mut gateway, "disable_server", json!({ "name": "notes" })).await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(text(&disabled), @"Server notes is disabled. Its tools stay listed in this conversation, and their calls are refused until enable_server; new conversations do not see them.");
        }
        let after = serde_json::to_string(&list(&mut gateway).await).unwrap();
        assert_eq!(before, after, "{mode}: a prompt cache holds");
        let refused = call_through(&mut gateway, "notes_find_notes", json!({ "words": "x" })).await;
        assert_eq!(refused["isError"], true, "{mode}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(text(&refused), @"server `notes` is not connected: it is disabled; `enable_server` or `toolgate enable notes` enables it");
        }
        let found = call(&mut gateway, "search_tools", find.clone()).await;
        assert_eq!(found["structuredContent"]["found"], 0, "{mode}: {found}");

        let mut other = workplace.connect(&["--mode", mode]).await;
        let seen = serde_json::to_string(&list(&mut other).await).unwrap();
        assert!(!seen.contains("notes_"), "{mode}: a new conversation does not see it");
        call(&mut other, "enable_server", json!({ "name": "notes" })).await;
        let result = call_through(&mut other, "notes_find_notes", json!({ "words": "x" })).await;
        assert_ne!(result["isError"], true, "{mode}: {result}");
    }
}

#[tokio::test]
async fn people_disable_and_enable_servers() {
    let workplace =
        Workplace::deferred(&json!({ "notes": entry(&notes()), "weather": entry(&weather()) }));
    let shown = async |arguments: &[&str]| workplace.run(arguments).await.shown();
    workplace.run(&["search", "weather"]).await;
    insta::assert_snapshot!(shown(&["disable", "weather"]).await, @"
    exit code 0
    --- stdout
    weather is disabled: toolgate refuses its calls, and new sessions do not list it.
    --- stderr
    ");
    insta::assert_snapshot!(shown(&["disable", "weather"]).await, @"
    exit code 0
    --- stdout
    weather was disabled already.
    --- stderr
    ");
    insta::assert_snapshot!(shown(&["status"]).await, @r#"
    exit code 0
    --- stdout
     server   state     tools  loaded  deferred  protocol    remarks
     notes    ready         4       0         4  2025-11-25
     weather  disabled      2       0         0              `toolgate enable weather` enables it

    A session of all clients is stable: it was asked for.

     a session         tools  definitions  instructions  together
     without toolgate      6          319             0       319
     direct               10          845            64       909  recommended
     stable                9          950            64     1,014  now
     dynamic               9          958            64     1,022
     code                  8          885            52       937

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    Without toolgate a session costs 590 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
    let mut gateway = workplace.connect(&[]).await;
    assert_eq!(names(&list(&mut gateway).await), [&META[..], &SERVERS].concat());
    let found = call(&mut gateway, "search_tools", json!({ "query": "weather forecast" })).await;
    insta::assert_snapshot!(text(&found), @r#"
    No tool matches "weather forecast". The servers:
    - notes (4 tools)
    - weather (disabled)

    Disabled by a person, and may have it: weather. They enable it: toolgate enable.
    "#);
    // A model cannot enable a server that a person disabled.
    let refused = call(&mut gateway, "enable_server", json!({ "name": "weather" })).await;
    assert_eq!(refused["isError"], true, "{refused}");
    insta::assert_snapshot!(text(&refused), @"Server weather cannot be enabled: a person switched it off, and switches it on: `toolgate enable weather`.");
    // Nor is it told to try.
    let refused = call_through(&mut gateway, "weather_forecast", json!({ "place": "x" })).await;
    insta::assert_snapshot!(text(&refused), @"server `weather` is not connected: it is disabled; a person disabled it, and `toolgate enable weather` enables it");
    let record = workplace.run(&["audit"]).await.stdout;
    assert!(record.contains("  server weather  (shell"), "{record}");
    let enabled = agree(&workplace, &["enable", "weather"]).await;
    insta::assert_snapshot!(enabled.shown(), @"
    exit code 0
    --- stdout
    weather is enabled.
    --- stderr
    A person disabled the server weather.
    Enable it again? [y/N] y
    ");
    insta::assert_snapshot!(shown(&["enable", "wether"]).await, @"
    exit code 2
    --- stdout
    --- stderr
    error: there is no server `wether`
      hint: did you mean weather?
    ");
    let mut gateway = workplace.connect(&[]).await;
    assert_eq!(names(&list(&mut gateway).await), META);
}

#[tokio::test]
async fn scripts_cannot_enable_or_disable_servers() {
    let lazy = json!({ "notes": { "command": "nothing-of-this-name", "lazy": true } });
    let workplace = Workplace::deferred(&lazy);
    let mut gateway = workplace.connect(&[]).await;
    let code = "return await enable_server({name: \"notes\"})";
    let result: Value = call(&mut gateway, "run_code", json!({ "code": code })).await;
    assert_eq!(result["isError"], true, "{result}");
    let through = call_through(&mut gateway, "enable_server", json!({ "name": "notes" })).await;
    assert_eq!(through["isError"], true, "{through}");
}

#[tokio::test]
async fn enable_server_is_listed_only_if_there_is_something_to_enable() {
    let workplace = Workplace::deferred(&json!({ "notes": entry(&notes()) }));
    let mut gateway = workplace.connect(&[]).await;
    assert_eq!(names(&list(&mut gateway).await), META);
    let answer = gateway.call("enable_server", json!({ "name": "notes" })).await.unwrap();
    assert!(answer.get("error").is_some(), "{answer}");
}
