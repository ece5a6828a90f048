//! Turns against an endpoint that others wrote: npm `@copilotkit/aimock`.

use std::{process::Stdio, sync::Arc};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};
use toolgate_agent::{AgentEvent, Conversation, EndReason, ModelSettings, ToolDiscovery, WireApi};
use toolgate_testkit::{installed_servers, within};

use crate::{
    lab::{TestTools, read, settings},
    scripts::WIRES,
};

/// The endpoint. It ends when its stdin does.
struct Aimock {
    url: String,
    _process: Child,
}

async fn start() -> Option<Aimock> {
    let package = installed_servers()?.aimock()?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/aimock.mjs");
    let mut process = Command::new("node")
        .arg(script)
        .arg(package)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let url = within("the URL of aimock", lines.next_line()).await.unwrap().unwrap();
    Some(Aimock { url, _process: process })
}

fn conversation(api: WireApi, aimock: &Aimock) -> (Conversation, Arc<TestTools>) {
    let base = match api {
        WireApi::Responses | WireApi::Completions => format!("{}/v1", aimock.url),
        WireApi::Anthropic | WireApi::Gemini => aimock.url.clone(),
    };
    let mut model = ModelSettings::new(api, &base, "m");
    model.key = Some("mock".to_owned().into());
    model.discovery = Some(ToolDiscovery::Direct);
    let tools = TestTools::new();
    let provider = model.provider().unwrap();
    let conversation =
        Conversation::new(provider, Arc::<TestTools>::clone(&tools), settings()).unwrap();
    (conversation, tools)
}

#[tokio::test]
async fn ordinary_turns() {
    for api in WIRES {
        let Some(aimock) = start().await else { return };
        let (mut conversation, tools) = conversation(api, &aimock);
        let (_, end) = read(conversation.ask("hello")).await;
        assert_eq!(end.unwrap().text, "Good morning to you.", "{api:?}");
        let (_, end) = read(conversation.ask("Use the tools")).await;
        let end = end.unwrap();
        assert_eq!(
            (end.reason, end.text.as_str()),
            (EndReason::Answered, "It is noon."),
            "{api:?}"
        );
        assert_eq!(tools.called(), ["time_now"], "{api:?}");
        assert_eq!(tools.calls.lock()[0].arguments["title"], "Rome", "{api:?}");
    }
}

#[tokio::test]
async fn cut_streams_429_and_500_are_tried_again() {
    for api in WIRES {
        let Some(aimock) = start().await else { return };
        for question in ["limit", "broken", "cut"] {
            // A conversation of its own: aimock counts the questions, not the conversations.
            let (mut conversation, _) = conversation(api, &aimock);
            let (events, end) = read(conversation.ask(question)).await;
            assert_eq!(end.unwrap().text, format!("After {question}."), "{api:?}");
            let retries = events.iter().filter(|event| matches!(event, AgentEvent::Retry { .. }));
            assert_eq!(retries.count(), 1, "{api:?} {question}: {events:?}");
        }
    }
}
