//! Resources and prompts of several servers through one gateway.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, FixtureEra, RawClient};

use crate::support::{
    Gateway, Workplace, call, call_through, entry, entry_with, notification, text, until,
};

/// A server with a resource, a template, a prompt, and a tool that links to the resource.
fn shop(name: &str) -> Fixture {
    Fixture::new(name)
        .with_builtins([Builtin::Echo])
        .with_tool(json!({ "name": "link", "inputSchema": { "type": "object" } }))
        .with_answer(
            "link",
            json!({ "content": [
                { "type": "text", "text": "see" },
                { "type": "resource_link", "uri": "file:///notes", "name": "notes" },
            ] }),
        )
        .with_resources([
            json!({ "uri": "file:///notes", "name": "notes", "icons": [{ "src": "x" }] }),
        ])
        .with_templates([json!({ "uriTemplate": "note:///{id}", "name": "note" })])
        .with_prompts([json!({ "name": "greet", "title": "Greeting" })])
}

/// Two servers that have the same names for everything, and one that cannot be started.
fn workplace() -> Workplace {
    Workplace::deferred(&json!({
        "left": entry(&shop("left").with_instructions("Ask the left one first.")),
        "dead": { "command": "/nonexistent/server" },
        "right": entry(&shop("right")),
    }))
}

async fn ask(client: &mut RawClient, method: &str, params: Value) -> Value {
    let mut answer = client.request(method, params).await.unwrap();
    assert!(answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].take()
}

async fn read(client: &mut RawClient, uri: &Value) -> String {
    let result = ask(client, "resources/read", json!({ "uri": uri })).await;
    assert_eq!(result["contents"][0]["uri"], *uri);
    result["contents"][0]["text"].as_str().unwrap().to_owned()
}

/// A client of a gateway whose servers have come up.
async fn connected(workplace: &Workplace) -> Gateway {
    let mut client = workplace.connect(&[]).await;
    until("both servers list", async || {
        let listed = ask(&mut client, "resources/list", json!({})).await;
        (listed["resources"].as_array().unwrap().len() == 2).then_some(())
    })
    .await;
    client
}

/// Ends a gateway in order, so that its caches are written.
async fn leave(mut client: Gateway) {
    client.close_stdin();
    assert!(client.wait().await.unwrap().success());
}

#[tokio::test]
async fn two_servers_with_the_same_names_stay_apart() {
    let mut client = connected(&workplace()).await;
    let listed = ask(&mut client, "resources/list", json!({})).await;
    insta::assert_json_snapshot!(listed, @r#"
    {
      "resources": [
        {
          "uri": "toolgate://left/file:///notes",
          "name": "notes",
          "icons": [
            {
              "src": "x"
            }
          ]
        },
        {
          "uri": "toolgate://right/file:///notes",
          "name": "notes",
          "icons": [
            {
              "src": "x"
            }
          ]
        }
      ],
      "_meta": {
        "toolgate/incomplete": {
          "dead": "it is not connected"
        }
      }
    }
    "#);
    let templates = ask(&mut client, "resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"][1]["uriTemplate"], "toolgate://right/note:///{id}");
    let note = json!("toolgate://right/note:///7");
    assert_eq!(read(&mut client, &note).await, "right has note:///7");
    for (place, server) in ["left", "right"].into_iter().enumerate() {
        let uri = &listed["resources"][place]["uri"];
        assert_eq!(read(&mut client, uri).await, format!("{server} has file:///notes"));
    }
    let prompts = ask(&mut client, "prompts/list", json!({})).await;
    assert_eq!(
        prompts["prompts"],
        json!([
            { "name": "left_greet", "title": "Greeting" },
            { "name": "right_greet", "title": "Greeting" },
        ])
    );
    let params = json!({ "name": "right_greet", "arguments": { "who": "you" } });
    let prompt = ask(&mut client, "prompts/get", params).await;
    assert_eq!(
        prompt["messages"][0]["content"]["text"],
        "right says \"greet\" with {\"who\":\"you\"}"
    );
    assert_eq!(prompt["messages"][1]["content"]["uri"], "toolgate://right/file:///notes");
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "left_greet" },
        "argument": { "name": "who", "value": "y" },
    });
    let completed = ask(&mut client, "completion/complete", params).await;
    assert_eq!(completed["completion"]["values"], json!(["greet", "y"]));
}

#[tokio::test]
async fn a_link_in_a_result_can_be_followed() {
    let mut client = connected(&workplace()).await;
    let result = call_through(&mut client, "right_link", json!({})).await;
    let link = &result["content"][1]["uri"];
    assert_eq!(*link, "toolgate://right/file:///notes");
    assert_eq!(read(&mut client, link).await, "right has file:///notes");
    // By a model whose client does not know of resources.
    let shown = call(&mut client, "read_output", json!({ "id": link })).await;
    assert_eq!(text(&shown), "right has file:///notes\n[the end; 23 bytes in all]");
    #[cfg(unix)]
    {
        let code = "const blocks = await right_link({}); return blocks[1].uri;";
        let run = call(&mut client, "run_code", json!({ "code": code })).await;
        assert!(text(&run).contains("toolgate://right/file:///notes"), "{run}");
    }
}

#[tokio::test]
async fn a_client_gets_updates_of_its_subscriptions() {
    let mut client = connected(&workplace()).await;
    let uri = "toolgate://right/file:///notes";
    ask(&mut client, "resources/subscribe", json!({ "uri": uri })).await;
    for (server, told) in
        [("left", "file:///notes"), ("right", "file:///other"), ("right", "file:///notes")]
    {
        let arguments = json!({
            "announce": "notifications/resources/updated",
            "params": json!({ "uri": told, "odd": server }).to_string(),
        });
        let params = json!({ "name": format!("{server}_greet"), "arguments": arguments });
        ask(&mut client, "prompts/get", params).await;
    }
    let told = notification(&mut client, "notifications/resources/updated").await;
    assert_eq!(told, json!({ "uri": uri, "odd": "right" }), "nothing else is for it");

    let arguments = json!({ "announce": "notifications/prompts/list_changed" });
    ask(&mut client, "prompts/get", json!({ "name": "left_greet", "arguments": arguments })).await;
    notification(&mut client, "notifications/prompts/list_changed").await;
}

#[tokio::test]
async fn an_unreadable_resource_is_an_error_with_a_reason() {
    let mut client = connected(&workplace()).await;
    for (uri, code) in [
        ("toolgate://nobody/file:///notes", -32002),
        ("toolgate://left/file:///none", -32002),
        ("file:///notes", -32602),
        ("toolgate://dead/file:///notes", -32603),
    ] {
        let answer = client.request("resources/read", json!({ "uri": uri })).await.unwrap();
        assert_eq!(answer["error"]["code"], code, "{uri}: {answer}");
    }
}

#[tokio::test]
async fn cached_instructions_are_quoted_from_the_second_start() {
    let workplace = workplace();
    leave(connected(&workplace).await).await;
    // What servers say is in the cache by now, so that no client waits for it.
    let mut client = workplace.serve(&[]);
    let greeting = client.initialize().await.unwrap();
    let instructions =
        greeting["result"]["instructions"].as_str().unwrap_or_else(|| panic!("{greeting}"));
    let own = "\n\nWhat servers say about themselves (quoted):\n\nleft:\n> Ask the left one first.";
    assert!(instructions.ends_with(own), "{instructions}");
    assert_eq!(
        greeting["result"]["capabilities"],
        json!({
            "tools": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true },
            "prompts": { "listChanged": true },
            "completions": {},
            "logging": {},
        })
    );
}

#[tokio::test]
async fn prompts_have_the_prefix_and_instructions_the_budget() {
    let left = shop("left").with_instructions("Ask the left one first.");
    let workplace = Workplace::new(&json!({
        "mcpServers": { "left": entry_with(&left, json!({ "prefix": "l" })) },
        "toolSearch": { "enabled": true, "instructionsBudget": 0 },
    }));
    let mut client = workplace.connect(&[]).await;
    let names = until("its prompts", async || {
        let listed = ask(&mut client, "prompts/list", json!({})).await;
        listed["prompts"][0]["name"].as_str().map(str::to_owned)
    })
    .await;
    assert_eq!(names, "l_greet");
    leave(client).await;
    let greeting = workplace.serve(&[]).initialize().await.unwrap();
    assert!(
        !greeting["result"]["instructions"].as_str().unwrap().contains("left one"),
        "{greeting}"
    );
}

/// The parameters of a request of 2026-07-28.
fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "raw-client", "version": "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

#[tokio::test]
async fn a_modern_client_listens_to_servers_of_either_era() {
    let workplace = Workplace::deferred(&json!({
        "old": entry(&shop("old")), "new": entry(&shop("new").with_era(FixtureEra::Modern)),
    }));
    let mut client = workplace.serve(&[]);
    let uris = ["toolgate://old/file:///notes", "toolgate://new/file:///notes"];
    let wanted = json!({
        "promptsListChanged": true,
        "resourceSubscriptions": [uris[0], uris[1], "toolgate://nobody/x"],
    });
    let params = modern(json!({ "notifications": wanted }));
    let id = client.begin("subscriptions/listen", params).await.unwrap();
    let accepted = notification(&mut client, "notifications/subscriptions/acknowledged").await;
    assert_eq!(
        accepted["notifications"],
        json!({ "promptsListChanged": true, "resourceSubscriptions": uris })
    );
    for (server, uri) in ["old", "new"].into_iter().zip(uris) {
        let read = ask(&mut client, "resources/read", modern(json!({ "uri": uri }))).await;
        assert_eq!(read["contents"][0]["text"], format!("{server} has file:///notes"));
        assert_eq!(read["resultType"], "complete");
        let announcement = json!({
            "announce": "notifications/resources/updated",
            "params": json!({ "uri": "file:///notes" }).to_string(),
        });
        let name = format!("{server}_greet");
        let params = modern(json!({ "name": name, "arguments": announcement }));
        // The stream to a modern server opens in its own time.
        let update = until("an update", async || {
            ask(&mut client, "prompts/get", params.clone()).await;
            // A late update of the server before is none of this one.
            let is_update = |aside: &&Value| {
                aside["method"] == "notifications/resources/updated"
                    && aside["params"]["uri"] == uri
            };
            client.asides.iter().find(is_update).map(|aside| aside["params"].clone())
        })
        .await;
        assert_eq!(update["_meta"], json!({ "io.modelcontextprotocol/subscriptionId": id }));
    }
}
