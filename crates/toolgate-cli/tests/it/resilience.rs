//! Servers that are slow, dead or mad, and ends of all kinds.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolgate_testkit::{
    AnswerFault, Builtin, Faults, Fixture, FixtureEntry, RawClient, StartupExit, StrayOutput,
    within,
};

use crate::{
    fixtures::{kit, notes, weather},
    support::{
        Gateway, META, Workplace, call, call_through, entry, entry_with, is_running, list, program,
        signal, text, until,
    },
};

/// A server that never answers.
fn silent() -> Faults {
    Faults { start_delay_ms: 600_000, ..Faults::default() }
}

/// The process id of a server's own child, which would outlive it.
async fn grandchild(client: &mut RawClient, tool: &str) -> u64 {
    let arguments = json!({ "ignoresTerminate": true });
    let result = call_through(client, tool, arguments).await;
    result["structuredContent"]["pid"].as_u64().unwrap_or_else(|| panic!("{result}"))
}

/// The process ids of the children of a process.
fn children(parent: u32) -> Vec<u64> {
    let output =
        std::process::Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| {
            let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap());
            let (pid, its_parent) = (numbers.next()?, numbers.next()?);
            (its_parent == u64::from(parent)).then_some(pid)
        })
        .collect()
}

async fn gone(what: &str, pids: &[u64]) {
    until(what, async || pids.iter().all(|pid| !is_running(*pid)).then_some(())).await;
}

#[tokio::test]
async fn a_second_start_answers_from_the_cache_while_all_servers_are_starting() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let servers = json!({
        "notes": notes().entry_through_file(&file("notes")).unwrap().to_json(),
        "weather": weather().entry_through_file(&file("weather")).unwrap().to_json(),
    });
    let workplace = Workplace::deferred(&servers);
    let mut client = workplace.connect(&[]).await;
    let query = json!({ "query": "forecast of the weather" });
    let first = call(&mut client, "search_tools", query.clone()).await;
    let names = json!({ "names": ["weather_forecast", "notes_find_notes"] });
    let details = call(&mut client, "get_tool_details", names.clone()).await;
    client.close_stdin();
    client.wait().await.unwrap();

    // The same commands, which now take ten minutes to start.
    notes().with_faults(silent()).entry_through_file(&file("notes")).unwrap();
    weather().with_faults(silent()).entry_through_file(&file("weather")).unwrap();
    let mut client = workplace.connect(&[]).await;
    assert_eq!(call(&mut client, "search_tools", query).await, first);
    assert_eq!(call(&mut client, "get_tool_details", names).await, details);
}

#[tokio::test]
async fn the_cache_is_refreshed_when_a_server_lists_its_tools() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fixture");
    let workplace =
        Workplace::deferred(&json!({ "s": notes().entry_through_file(&file).unwrap().to_json() }));
    let mut client = workplace.connect(&[]).await;
    let search = async |client: &mut Gateway, query: &str| {
        let result = call(client, "search_tools", json!({ "query": query })).await;
        result["structuredContent"]["found"].as_u64().unwrap()
    };
    assert_eq!(search(&mut client, "teal").await, 1);
    client.close_stdin();
    client.wait().await.unwrap();
    weather().entry_through_file(&file).unwrap();
    let mut client = workplace.connect(&[]).await;
    until("the new tools are found", async || {
        (search(&mut client, "postcode").await == 2).then_some(())
    })
    .await;
    assert_eq!(search(&mut client, "teal").await, 0, "the old ones are gone");
}

#[tokio::test]
async fn a_crash_names_the_server_repeats_nothing_and_harms_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls");
    let fragile = Fixture::new("fragile")
        .with_builtins([Builtin::Counter, Builtin::Crash, Builtin::Sleep])
        .with_call_log(&log);
    let servers = json!({ "fragile": entry(&fragile), "kit": entry(&kit()) });
    let mut client = Workplace::deferred(&servers).connect(&[]).await;
    call_through(&mut client, "fragile_counter", json!({})).await;
    let sleep = json!({ "name": "fragile_sleep", "arguments": { "ms": 600_000 } });
    let waiting = json!({ "name": "call_tool", "arguments": sleep });
    let in_flight = client.begin("tools/call", waiting).await.unwrap();
    let other = json!({ "name": "kit_sleep", "arguments": { "ms": 1_000 } });
    let other = json!({ "name": "call_tool", "arguments": other });
    let other = client.begin("tools/call", other).await.unwrap();
    // Requests run beside each other: the crash must not overtake the call that it is to hit.
    until("the call is under way", async || {
        std::fs::read_to_string(&log).unwrap_or_default().contains("\"sleep\"").then_some(())
    })
    .await;

    let crash = call_through(&mut client, "fragile_crash", json!({})).await;
    assert_eq!(crash["isError"], true);
    insta::assert_snapshot!(text(&crash), @"server `fragile` stopped during the call, so it is unknown whether `crash` took effect; it was not repeated, and the server is being restarted (`toolgate logs fragile` shows its last output)");
    let in_flight = client.asides.iter().find(|message| message["id"] == in_flight).cloned();
    let in_flight = match in_flight {
        Some(message) => message,
        None => serde_json::from_str(&client.line().await.unwrap()).unwrap(),
    };
    assert!(text(&in_flight["result"]).contains("server `fragile` stopped"), "{in_flight}");
    let slept = client.answer(other).await.unwrap();
    assert_eq!(text(&slept["result"]), "Slept 1000 ms.", "its neighbour is unharmed");

    // Restarted by itself: a call waits for it. The count shows that it is a new process.
    let counted = call_through(&mut client, "fragile_counter", json!({})).await;
    assert_eq!(counted["structuredContent"]["count"], 1, "{counted}");
    let log = std::fs::read_to_string(&log).unwrap();
    let calls: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = calls.iter().map(|call| call["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["counter", "sleep", "crash", "counter"], "nothing was repeated");
}

#[tokio::test]
async fn slow_dead_and_broken_servers_beside_good_ones() {
    let junk = StrayOutput { at_start: true, between_messages: true, long_line_bytes: 100_000 };
    let dead = StartupExit { code: 3, message: "Error: no licence".to_owned() };
    let servers = json!({
        "slow": entry(&kit().with_faults(silent())),
        "dead": entry(&kit().with_faults(Faults { exit_at_start: Some(dead), ..Faults::default() })),
        "missing": { "command": "no-such-command-anywhere" },
        "closed": { "url": "http://127.0.0.1:9/mcp" },
        "garbage": entry(&kit().with_faults(Faults::broken_answer("tools/list", AnswerFault::Garbage))),
        "chatty": entry(&kit().with_faults(Faults { stray_output: junk, ..Faults::default() })),
        "notes": entry(&notes()),
    });
    let mut client = Workplace::deferred(&servers).connect(&[]).await;
    let query = json!({ "query": "weather forecast, add numbers, find notes", "limit": 20 });
    let result = call(&mut client, "search_tools", query.clone()).await;
    let found = text(&result);
    assert!(found.contains("chatty_add") && found.contains("notes_find_notes"), "{found}");
    assert!(found.contains("Still starting") && found.contains("slow"), "{found}");
    assert!(found.contains("Error: no licence"), "{found}");
    assert!(found.contains("`no-such-command-anywhere` was not found"), "{found}");
    let sum = call_through(&mut client, "chatty_add", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(sum["structuredContent"]["sum"], 3);
    call_through(&mut client, "notes_find_notes", json!({ "words": "x" })).await;

    // They delay the first question for a moment, but not every one after it.
    let hundred = async {
        for _ in 0..100 {
            call(&mut client, "search_tools", query.clone()).await;
        }
    };
    within("a hundred searches", hundred).await;
}

#[tokio::test]
async fn no_process_survives_a_kill() {
    let servers = json!({ "kit": entry(&kit()), "slow": entry(&kit().with_faults(silent())) });
    let mut client = Workplace::deferred(&servers).connect(&[]).await;
    let grandchild = grandchild(&mut client, "kit_spawn_grandchild").await;
    let gateway = client.pid().unwrap();
    let children = children(gateway);
    assert!(children.len() >= 2, "{children:?}");
    assert!(is_running(grandchild));
    signal("KILL", gateway);
    client.wait().await.unwrap();
    gone("no child is left", &children).await;
    gone("no grandchild is left", &[grandchild]).await;
}

/// Ends a gateway with servers of all sorts, and looks whether anything is left.
async fn ends_in_order(end: &str) {
    let stubborn = Faults { ignores_shutdown: true, ..Faults::default() };
    let servers = json!({
        "kit": entry(&kit()), "slow": entry(&kit().with_faults(silent())),
        "stubborn": entry(&kit().with_faults(stubborn)),
    });
    // With a policy there is nothing to say on stderr.
    let config =
        json!({ "mcpServers": servers, "toolSearch": { "enabled": true }, "policy": "off" });
    let mut client = Workplace::new(&config).connect(&[]).await;
    let mut pids = vec![grandchild(&mut client, "kit_spawn_grandchild").await];
    pids.push(grandchild(&mut client, "stubborn_spawn_grandchild").await);
    let gateway = client.pid().unwrap();
    pids.extend(children(gateway));
    match end {
        "EOF" => client.close_stdin(),
        name => signal(name, gateway),
    }
    let status = client.wait().await.unwrap();
    assert_eq!(status.code(), Some(0));
    gone("no process is left", &pids).await;
    assert_eq!(client.stderr().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn it_ends_in_order_when_its_client_leaves() {
    ends_in_order("EOF").await;
}

#[tokio::test]
async fn it_ends_in_order_when_terminated() {
    ends_in_order("TERM").await;
}

#[tokio::test]
async fn it_ends_in_order_when_interrupted() {
    ends_in_order("INT").await;
}

#[tokio::test]
async fn it_ends_in_order_when_its_terminal_is_closed() {
    ends_in_order("HUP").await;
}

#[tokio::test]
async fn an_interrupted_call_is_cancelled_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls");
    let workplace = Workplace::deferred(&json!({ "kit": entry(&kit().with_call_log(&log)) }));
    let config = workplace.config().display().to_string();
    let args = ["call", "kit_sleep", "-a", "ms=600000", "--config", &config].map(str::to_owned);
    let command = FixtureEntry { command: program().to_owned(), args: args.to_vec() };
    let home = workplace.path().join("state").display().to_string();
    let environment = HashMap::from([("TOOLGATE_HOME", home.as_str())]);
    let mut process = RawClient::spawn_with(&command, &environment).unwrap();
    until("the call has arrived", async || log.exists().then_some(())).await;
    let pid = process.pid().unwrap();
    let children = children(pid);
    signal("INT", pid);
    assert_eq!(process.wait().await.unwrap().code(), Some(130));
    assert_eq!(process.stderr().await.unwrap(), ["error: the call was cancelled"]);
    gone("no process is left", &children).await;
}

#[tokio::test]
async fn a_client_that_disconnects_without_a_message() {
    let workplace = Workplace::deferred(&json!({ "kit": entry(&kit()) }));
    for end in ["TERM", "EOF"] {
        let mut client = workplace.serve(&[]);
        let gateway = client.pid().unwrap();
        until("the server was started", async || children(gateway).len().ge(&2).then_some(()))
            .await;
        let children = children(gateway);
        match end {
            "EOF" => client.close_stdin(),
            name => signal(name, gateway),
        }
        let status = client.wait().await.unwrap();
        assert_eq!(status.code(), Some(0), "{end}");
        gone("no process is left", &children).await;
    }
}

#[tokio::test]
async fn junk_on_stdin_does_not_end_it() {
    let workplace = Workplace::deferred(&json!({ "notes": entry(&notes()) }));
    let junk = [
        "junk",
        "",
        "{",
        "[]",
        "null",
        "{}",
        "\u{0}\u{1}",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/made_up","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":78,"method":"tools/call","params":{"name":7}}"#,
        r#"{"jsonrpc":"2.0","id":79,"method":"tools/call"}"#,
    ];
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let mut client = workplace.serve(&[]);
    for line in junk.iter().copied().take(3) {
        client.send_line(line).await.unwrap();
    }
    client.initialize().await.expect("a handshake after junk");
    for line in junk.iter().copied().chain([deep.as_str()]) {
        client.send_line(line).await.unwrap();
        assert_eq!(
            list(&mut client).await.len(),
            META.len(),
            "after {}",
            &line[..line.len().min(80)]
        );
    }
}

#[tokio::test]
async fn the_log_of_a_server_outlives_it_and_is_bounded() {
    let exit = StartupExit { code: 3, message: "Error: no licence\u{1b}[31m".to_owned() };
    let dead = Faults { exit_at_start: Some(exit), ..Faults::default() };
    let chatty = Fixture::new("chatty").with_builtins([Builtin::Stderr, Builtin::Crash]);
    let servers = json!({
        "dead": entry(&kit().with_faults(dead)),
        "chatty": entry_with(&chatty, json!({ "env": { "KEY": "s3cr3t-value-42" } })),
    });
    let workplace = Workplace::deferred(&servers);
    let mut client = workplace.connect(&[]).await;
    call_through(&mut client, "chatty_stderr", json!({ "lines": 50_000 })).await;
    call_through(&mut client, "chatty_crash", json!({})).await;
    client.close_stdin();
    client.wait().await.unwrap();

    let config = ["--config", "toolgate.json"];
    let dead = workplace.run(&[&["logs", "dead"][..], &config].concat()).await;
    assert_eq!(dead.code, Some(0));
    assert!(dead.stdout.contains("Error: no licence"), "{}", dead.stdout);
    assert!(!dead.stdout.contains('\u{1b}'));
    let chatty = workplace.run(&[&["logs", "chatty", "-n", "1000000"][..], &config].concat()).await;
    assert!(chatty.stdout.contains("fixture stderr line 50000"), "the end is there");
    assert!(
        !chatty.stdout.contains("fixture stderr line 25000\n"),
        "what is beyond the rate is not"
    );
    assert!(chatty.stdout.len() < 2 * 1024 * 1024, "{}", chatty.stdout.len());
    let few =
        workplace.run(&[&["logs", "chatty", "-n", "3", "--json"][..], &config].concat()).await;
    assert_eq!(few.json().as_array().unwrap().len(), 3);
}
