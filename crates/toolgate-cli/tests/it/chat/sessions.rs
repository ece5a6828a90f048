//! Chats that are stored and continued.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use toolgate_agent::WireApi;
use toolgate_testkit::{Fixture, within};

use super::{Lab, calls, command, events, finish, kinds, says};
use crate::{
    endpoint::Endpoint,
    fixtures::tool,
    scripts::WIRES,
    support::{Workplace, entry},
};

#[tokio::test]
async fn a_chat_goes_on_over_each_wire() {
    for api in WIRES {
        let plays = vec![
            calls(api, "kit_echo", json!({ "message": "remember 4711" })),
            says(api, "Noted."),
            says(api, "It was 4711."),
        ];
        let lab = Lab::new(plays).await;
        let first = lab.run(api, &["-p", "Echo it", "--json"]).await;
        let id = events(&first)[0]["id"].as_str().unwrap().to_owned();
        // The model and the URL are those of the chat, whatever the usual model is.
        let mut again = command(&lab.place, &["-p", "What was it?", "--resume", &id]);
        again.env("TOOLGATE_MODEL_KEY", super::KEY).env("TOOLGATE_MODEL", "vllm/other");
        let second = finish(again, "").await;
        assert_eq!(second.stdout, "It was 4711.\n", "{api:?}: {second:?}");
        let (before, after) = (lab.endpoint.body(1), lab.endpoint.body(2));
        // Gemini keeps the pieces of a text.
        for text in ["Echo it", "remember 4711", "ed.", "What was it?"] {
            assert!(after.to_string().contains(text), "{api:?}: {after}");
        }
        // The provider's cache still fits.
        for key in ["tools", "system", "instructions", "systemInstruction"] {
            assert_eq!(before.get(key), after.get(key), "{api:?}: {key}");
        }
    }
}

#[tokio::test]
async fn chats_are_listed_and_the_latest_continues() {
    let api = WireApi::Anthropic;
    let lab = Lab::new(vec![says(api, "One."), says(api, "Two."), says(api, "Three.")]).await;
    assert_eq!(lab.run(api, &["--list"]).await.stderr, "No chat is stored.\n");
    lab.run(api, &["-p", "First question"]).await;
    lab.run(api, &["-p", "Second question"]).await;
    let third = lab.run(api, &["-p", "Third question", "--continue"]).await;
    assert_eq!(third.stdout, "Three.\n", "{third:?}");
    let body = lab.endpoint.body(2).to_string();
    assert!(body.contains("Second question") && !body.contains("First question"), "{body}");
    let list = lab.run(api, &["--list", "--json"]).await.json();
    let titles: Vec<&Value> = list.as_array().unwrap().iter().map(|chat| &chat["title"]).collect();
    assert_eq!(titles, ["Second question", "First question"]);
    assert_eq!(list[0]["model"], "anthropic/m");
    let table = lab.run(api, &["--list"]).await.stdout;
    assert!(table.contains("Second question") && table.contains("last turn"), "{table}");
    // Only the owner can read what was said.
    let id = list[0]["id"].as_str().unwrap();
    let file = lab.place.path().join("state/chats").join(format!("{id}.jsonl"));
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[tokio::test]
async fn a_chat_of_another_wire_is_refused() {
    let lab = Lab::new(vec![says(WireApi::Anthropic, "One.")]).await;
    lab.run(WireApi::Anthropic, &["-p", "Hi"]).await;
    let other = lab.run(WireApi::Gemini, &["-p", "Hi", "--continue"]).await;
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.stderr.contains("choose a model of that provider"), "{other:?}");
}

/// What a chat has read counts after a restart too.
#[tokio::test]
async fn a_chat_that_goes_on_still_carries_what_it_has_read() {
    let free = json!({ "text": { "type": "string" } });
    let says_text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    let secret = "Ada Lovelace owes us 48,200 EUR since the spring of last year";
    let crm = Fixture::new("crm")
        .with_tools([tool("get", "Get a customer.", &free, &[])])
        .with_answer("get", says_text(secret));
    let mail = Fixture::new("mail")
        .with_tools([tool("send", "Send a mail.", &free, &[])])
        .with_answer("send", says_text("sent"));
    let place = Workplace::new(&json!({
        "mcpServers": { "crm": entry(&crm), "mail": entry(&mail) },
        "policy": {
            "default": "allow",
            "labels": { "crm_*": ["private"], "mail_*": ["egress"] },
        },
    }));
    let api = WireApi::Anthropic;
    let endpoint = Endpoint::start(vec![
        calls(api, "crm_get", json!({})),
        says(api, "Read."),
        calls(api, "mail_send", json!({ "text": secret })),
        says(api, "Tried."),
    ])
    .await;
    let ask = |arguments: &[&str]| {
        let model = ["--model", "anthropic/m", "--url", &endpoint.url];
        finish(command(&place, &[arguments, &model[..]].concat()), "")
    };
    assert_eq!(ask(&["-p", "Read it"]).await.stdout, "Read.\n");
    assert_eq!(ask(&["-p", "Send it", "--continue"]).await.stdout, "Tried.\n");
    let body = endpoint.body(3).to_string();
    assert!(!body.contains("\"sent\"") && body.contains("waiting for approval"), "{body}");
}

#[tokio::test]
async fn one_process_at_a_time_continues_a_chat() {
    let api = WireApi::Completions;
    let lab = Lab::new(vec![says(api, "One."), says(api, "Two.")]).await;
    lab.run(api, &["-p", "First"]).await;
    let mut open = lab.command(api, &["--continue", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(open.stdout.take().unwrap()).lines();
    let began = within("the chat begins", lines.next_line()).await.unwrap().unwrap();
    let id = serde_json::from_str::<Value>(&began).unwrap()["id"].as_str().unwrap().to_owned();
    let second = lab.run(api, &["-p", "Second", "--continue"]).await;
    assert_eq!(second.code, Some(2), "{second:?}");
    let told = format!("error: the chat `{id}` is open in another process\n");
    assert!(second.stderr.contains(&told), "{second:?}");
    drop(open.stdin.take());
    assert!(within("its end", open.wait()).await.unwrap().success());
    let third = lab.run(api, &["-p", "Third", "--continue"]).await;
    assert_eq!(third.stdout, "Two.\n", "{third:?}");
    assert_eq!(lab.endpoint.received().len(), 2, "the second one has asked nothing");
}

/// What the first process loaded, saved and was told counts in the second one.
#[tokio::test]
async fn a_chat_that_goes_on_knows_what_was_loaded_and_saved() {
    let api = WireApi::Anthropic;
    let plays = vec![
        calls(api, "search_tools", json!({ "query": "echo a message", "limit": 1 })),
        says(api, "Found."),
        says(api, "Next."),
    ];
    let lab = Lab::with(plays, json!({}), json!({ "toolSearch": { "enabled": true } })).await;
    let first = events(&lab.run(api, &["-p", "Find", "--json", "--tool-changes"]).await);
    let of = |events: &[Value], kind: &str| {
        let place = kinds(events).iter().position(|known| *known == kind).unwrap();
        events[place].clone()
    };
    let before = of(&first, "savings");
    let second = events(&lab.run(api, &["-p", "Go on", "--json", "--continue"]).await);
    let after = of(&second, "savings");
    assert_eq!(after["definitions_in_context"], before["definitions_in_context"]);
    assert!(after["definitions_in_context"].as_u64() > Some(100), "the search itself counts");
    assert!(after["saved"].as_u64() >= before["saved"].as_u64(), "{before} {after}");
    assert_eq!(second[0]["reason"], first[0]["reason"]);
    // The messages need the same header.
    let betas: Vec<_> = lab
        .endpoint
        .received()
        .iter()
        .map(|it| it.header("anthropic-beta").map(str::to_owned))
        .collect();
    assert!(betas[0].is_some() && betas.iter().all(|beta| *beta == betas[0]), "{betas:?}");
    let status = finish(lab.command(api, &["--continue"]), "/tool-search status\n").await;
    assert!(status.stdout.contains("Searches have loaded kit_echo."), "{status:?}");
    assert!(status.stdout.contains("in 3 requests."), "{status:?}");
}
