//! Usage memory: stored, shown, erased, off.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture};

use crate::{
    fixtures::{notes, tool, weather},
    support::{Gateway, Workplace, call, call_through, entry, entry_with, text, until},
};

/// Two tools that a query about keeping a thought may mean; the words favour the second.
fn thoughts() -> Fixture {
    let text = json!({ "text": { "type": "string" } });
    Fixture::new("thoughts").with_tools([
        tool("jot", "Note an idea or a thought in the diary.", &text, &["text"]),
        tool("keep_idea", "Keep an idea in the box of ideas that came up.", &text, &["text"]),
        tool("fail", "Always fails.", &json!({}), &[]),
    ])
}

fn servers() -> Value {
    json!({ "thoughts": entry(&thoughts()), "notes": entry(&notes()), "weather": entry(&weather()) })
}

const ASKED: &str = "keep the idea that came to me under the shower";
const PARAPHRASE: &str = "an idea came to me in the shower, keep it";

/// The first tool that a search gives.
async fn first(client: &mut Gateway, query: &str) -> String {
    let result = call(client, "search_tools", json!({ "query": query, "limit": 3 })).await;
    let servers = result["structuredContent"]["servers"].as_array().unwrap();
    servers[0]["tools"][0]["name"].as_str().unwrap().to_owned()
}

/// Ends a gateway in order; what it has to write is then written.
async fn close(mut client: Gateway) {
    client.close_stdin();
    assert!(client.wait().await.unwrap().success());
}

/// Searches, and calls a tool that is not the first.
async fn use_jot(workplace: &Workplace) {
    let mut client = workplace.connect(&[]).await;
    assert_eq!(first(&mut client, ASKED).await, "thoughts_keep_idea");
    let result = call_through(&mut client, "thoughts_jot", json!({ "text": "x" })).await;
    assert!(result.get("isError").is_none(), "{result}");
    close(client).await;
}

async fn remembered(workplace: &Workplace) -> Vec<Value> {
    let outcome = workplace.run(&["usage", "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.json().as_array().unwrap().clone()
}

#[tokio::test]
async fn a_tool_that_was_called_twice_ranks_first_in_the_next_session() {
    let workplace = Workplace::deferred(&servers());
    use_jot(&workplace).await;
    // Once may have been by mistake, so the second one begins as the first one did.
    use_jot(&workplace).await;
    let mut client = workplace.connect(&[]).await;
    assert_eq!(first(&mut client, PARAPHRASE).await, "thoughts_jot");
    let result = call(&mut client, "search_tools", json!({ "query": PARAPHRASE })).await;
    assert!(text(&result).contains("thoughts_jot(text: string) [used before]"), "{result}");
    assert_eq!(first(&mut client, "weather of tomorrow").await, "weather_forecast");
    assert_eq!(first(&mut client, "keep_idea").await, "thoughts_keep_idea", "called by name");
    let told = workplace.run(&["search", PARAPHRASE, "--limit", "1", "--json"]).await.json();
    assert_eq!(told["servers"][0]["tools"][0]["name"], "thoughts_jot", "as the model sees it");

    // The gateway that runs forgets too.
    let outcome = workplace.run(&["usage", "erase", "--tool", "jot"]).await;
    assert_eq!(outcome.stdout, "1 query erased.\n", "{outcome:?}");
    assert_eq!(first(&mut client, PARAPHRASE).await, "thoughts_keep_idea");
    assert!(remembered(&workplace).await.is_empty());
}

#[tokio::test]
async fn a_tool_is_remembered_by_its_identity() {
    let workplace = Workplace::deferred(&servers());
    use_jot(&workplace).await;
    use_jot(&workplace).await;
    let renamed = entry_with(&thoughts(), json!({ "prefix": "mind" }));
    let config = json!({
        "mcpServers": { "thoughts": renamed, "notes": entry(&notes()) },
        "toolSearch": { "enabled": true },
    });
    workplace.rewrite(&config.to_string());
    let mut client = workplace.connect(&[]).await;
    assert_eq!(first(&mut client, PARAPHRASE).await, "mind_jot");
    close(client).await;
    let config = json!({ "mcpServers": { "notes": entry(&notes()) } });
    workplace.rewrite(&config.to_string());
    let outcome = workplace.run(&["search", PARAPHRASE]).await;
    assert!(!outcome.stdout.contains("jot"), "gone is gone: {outcome:?}");
}

#[tokio::test]
async fn usage_is_shown_and_erased() {
    let workplace = Workplace::deferred(&servers());
    let outcome = workplace.run(&["usage"]).await;
    insta::assert_snapshot!(outcome.shown(), @r"
    exit code 0
    --- stdout
    --- stderr
    search has not learned anything yet: it learns from a search and a call of what it found
    ");
    use_jot(&workplace).await;
    use_jot_again_and_a_note(&workplace).await;
    let outcome = workplace.run(&["usage"]).await;
    // The times are of today.
    let shown: Vec<&str> =
        outcome.stdout.lines().map(|line| line.split("20").next().unwrap().trim_end()).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    server    tool        query                                           good  against  effect        last
    notes     find_notes  look for notes                                     1        0  higher
    thoughts  jot         keep the idea that came to me under the shower     2        0  may be first
    ");
    let rows = remembered(&workplace).await;
    assert_eq!(rows[1]["count"], 2, "{rows:?}");
    assert_eq!(
        workplace.run(&["usage", "--server", "notes", "--json"]).await.json(),
        json!([rows[0]])
    );

    let mut told = Vec::new();
    for arguments in [
        &["usage", "erase", "--tool", "nothing"][..],
        &["usage", "erase", "--json"],
        &["usage", "erase", "--all", "--server", "notes"],
        &["usage", "erase", "--server", "notes"],
        &["usage", "erase", "--all"],
        &["usage", "erase", "--all"],
    ] {
        let outcome = workplace.run(arguments).await;
        told.push(format!("$ toolgate {}\n{}", arguments.join(" "), outcome.shown()));
    }
    insta::assert_snapshot!(told.join("\n"), @r"
    $ toolgate usage erase --tool nothing
    exit code 0
    --- stdout
    There was nothing to erase.
    --- stderr

    $ toolgate usage erase --json
    exit code 2
    --- stdout
    --- stderr
    error: there is nothing selected to erase
      hint: name a tool or a server: --tool NAME, --server NAME; or --all

    $ toolgate usage erase --all --server notes
    exit code 2
    --- stdout
    --- stderr
    error: the argument '--all' cannot be used with '--server <NAME>'

    Usage: toolgate usage erase --all --config <FILE>

    For more information, try '--help'.

    $ toolgate usage erase --server notes
    exit code 0
    --- stdout
    1 query erased.
    --- stderr

    $ toolgate usage erase --all
    exit code 0
    --- stdout
    1 query erased.
    --- stderr

    $ toolgate usage erase --all
    exit code 0
    --- stdout
    There was nothing to erase.
    --- stderr
    ");
    assert!(remembered(&workplace).await.is_empty());
    assert!(!workplace.path().join("state/usage/usage.jsonl").exists());
}

async fn use_jot_again_and_a_note(workplace: &Workplace) {
    let mut client = workplace.connect(&[]).await;
    first(&mut client, ASKED).await;
    // By its name, as a client does that has it in its list.
    call(&mut client, "thoughts_jot", json!({ "text": "x" })).await;
    first(&mut client, "look for notes").await;
    call_through(&mut client, "notes_find_notes", json!({ "words": "x" })).await;
    close(client).await;
}

#[tokio::test]
async fn usage_memory_can_be_off() {
    let workplace = Workplace::deferred(&servers());
    use_jot(&workplace).await;
    let file = workplace.path().join("state/usage/usage.jsonl");
    let before = std::fs::read(&file).unwrap();
    let off = json!({ "enabled": true, "usageMemory": false });
    workplace.rewrite(&json!({ "mcpServers": servers(), "toolSearch": off }).to_string());
    use_jot(&workplace).await;
    let mut client = workplace.connect(&[]).await;
    assert_eq!(first(&mut client, PARAPHRASE).await, "thoughts_keep_idea");
    close(client).await;
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let outcome = workplace.run(&["usage"]).await;
    assert!(outcome.stderr.contains("`toolSearch.usageMemory` is false"), "{outcome:?}");
    assert_eq!(workplace.run(&["usage", "erase", "--all"]).await.code, Some(0));
    use_jot(&workplace).await;
    assert!(!file.exists(), "nothing is written");
}

#[tokio::test]
async fn failed_calls_count_against_and_unsearched_and_secret_queries_are_not_stored() {
    let kit = Fixture::new("kit").with_builtins([Builtin::Echo, Builtin::Fail]);
    let env = json!({ "env": { "TOKEN": "correct horse" } });
    let workplace = Workplace::deferred(&json!({ "kit": entry_with(&kit, env) }));
    let mut client = workplace.connect(&[]).await;
    first(&mut client, "fail on purpose").await;
    call_through(&mut client, "kit_fail", json!({ "message": "no" })).await;
    first(&mut client, "echo with the token correct horse").await;
    call_through(&mut client, "kit_echo", json!({ "message": "x" })).await;
    first(&mut client, "echo ghp_16C7e42F292c6912E7710c838347Ae178B4a").await;
    call_through(&mut client, "kit_echo", json!({ "message": "x" })).await;
    close(client).await;
    workplace.run(&["search", "echo a message"]).await;
    workplace.run(&["call", "kit_echo", "-a", "message=x"]).await;
    let rows = remembered(&workplace).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    let [tool, good, against, effect] =
        ["tool", "count", "against", "effect"].map(|key| &rows[0][key]);
    assert_eq!(
        (tool, good, against, effect),
        (&json!("fail"), &json!(0), &json!(1), &json!("none")),
        "{rows:?}"
    );
}

#[tokio::test]
async fn two_gateways_share_it() {
    let workplace = Workplace::deferred(&servers());
    let (mut one, mut two) = (workplace.connect(&[]).await, workplace.connect(&[]).await);
    assert_eq!(first(&mut two, PARAPHRASE).await, "thoughts_keep_idea");
    for round in 0..5 {
        for (client, name) in [(&mut one, "one"), (&mut two, "two")] {
            first(client, &format!("{ASKED} {name} {round}")).await;
            call_through(client, "thoughts_jot", json!({ "text": "x" })).await;
        }
    }
    until("the other's uses are read", async || {
        (first(&mut two, PARAPHRASE).await == "thoughts_jot").then_some(())
    })
    .await;
    let result = call(&mut one, "search_tools", json!({ "query": PARAPHRASE })).await;
    assert!(text(&result).contains("thoughts_jot"));
    close(one).await;
    close(two).await;
    assert_eq!(remembered(&workplace).await.len(), 10, "nothing is lost");
}
