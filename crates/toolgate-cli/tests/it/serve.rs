//! `toolgate serve`: where it listens, and what it is.

use serde_json::json;
use tokio::net::TcpListener;
use toolgate_testkit::{Builtin, Fixture, FixtureEra};

use crate::{
    fixtures::{kit, notes, weather},
    support::{Workplace, call, entry, list, names, until},
};

fn workplace() -> Workplace {
    let servers = json!({ "notes": entry(&notes()), "weather": entry(&weather()) });
    Workplace::new(&json!({ "mcpServers": servers }))
}

#[tokio::test]
async fn an_address_that_cannot_be_listened_on() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let shown = workplace().run(&["serve", "--http", &address]).await.shown();
    insta::assert_snapshot!(shown.replace(&address, "ADDRESS"), @"
    exit code 1
    --- stdout
    --- stderr
    error: ADDRESS is in use by another program
      hint: choose another port; port 0 takes one that is free
    ");
}

#[tokio::test]
async fn pass_through_of_an_unknown_server() {
    let shown = workplace().run(&["serve", "--passthrough", "nobody"]).await.shown();
    insta::assert_snapshot!(shown, @"
    exit code 2
    --- stdout
    --- stderr
    error: there is no server `nobody`
      hint: there are: notes, weather
    ");
}

#[tokio::test]
async fn one_server_as_it_is() {
    for era in [FixtureEra::Legacy, FixtureEra::Modern] {
        let fixture = Fixture::new("as-it-is")
            .with_era(era)
            .with_instructions("Its own words.")
            .with_builtins([Builtin::Echo, Builtin::Media]);
        let servers = json!({ "kit": entry(&fixture), "other": entry(&notes()) });
        let workplace = Workplace::new(&json!({ "mcpServers": servers }));
        let mut client = workplace.serve(&["--passthrough", "kit"]);
        let greeting = client.initialize().await.unwrap();
        assert!(greeting.to_string().contains("as-it-is"), "{greeting}");
        assert!(greeting.to_string().contains("Its own words."), "{greeting}");
        assert_eq!(names(&list(&mut client).await), ["echo", "media"]);
        let result = call(&mut client, "echo", json!({ "message": "m" })).await;
        assert_eq!(result["structuredContent"]["message"], "m");
        client.close_stdin();
        assert_eq!(client.wait().await.unwrap().code(), Some(0));
    }
}

#[tokio::test]
async fn the_gateway_ends_with_its_passed_through_server() {
    let fixture = Fixture::new("kit").with_builtins([Builtin::Crash]);
    let workplace = Workplace::new(&json!({ "mcpServers": { "kit": entry(&fixture) } }));
    let mut client = workplace.serve(&["--passthrough", "kit"]);
    client.initialize().await.unwrap();
    let params = json!({ "name": "crash", "arguments": {} });
    let answer = client.request("tools/call", params).await.unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains("ended"), "{answer}");
    assert_eq!(client.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn open_calls_do_not_delay_a_client_that_disconnects() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls");
    let fixture = kit().with_call_log(&log);
    let workplace = Workplace::deferred(&json!({ "kit": entry(&fixture) }));
    let mut client = workplace.connect(&[]).await;
    let arguments = json!({ "name": "kit_sleep", "arguments": { "ms": 600_000 } });
    let params = json!({ "name": "call_tool", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params });
    client.send_line(&call.to_string()).await.unwrap();
    until("the call has arrived", async || log.exists().then_some(())).await;
    client.close_stdin();
    assert_eq!(client.wait().await.unwrap().code(), Some(0));
}
