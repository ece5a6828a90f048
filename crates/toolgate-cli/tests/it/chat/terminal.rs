//! A chat at a pseudo-terminal.

use serde_json::json;
use toolgate_agent::WireApi;

use super::{Lab, calls, says};
use crate::{endpoint::Play, scripts, typist::Typist};

const API: WireApi = WireApi::Anthropic;
const ALLOW: &str = "Allow [o]nce, [s]ession, [a]lways (for chat), or [N]o? ";

fn asks() -> serde_json::Value {
    json!({ "tools": { "counter": { "approval": "ask" } } })
}

/// The beginning of an answer, and then nothing.
fn hangs() -> Play {
    let mut events = scripts::events(API, &scripts::text("Well, let me see"));
    // The last three end the text, the message and the stream.
    events.truncate(events.len() - 3);
    Play::Silent(events)
}

#[tokio::test]
async fn a_chat_at_a_terminal_streams_and_asks_in_place() {
    let plays = vec![
        calls(API, "kit_counter", json!({})),
        says(API, "Counted."),
        calls(API, "kit_counter", json!({})),
        says(API, "Denied."),
    ];
    let lab = Lab::with(plays, asks(), json!({})).await;
    let mut typist = Typist::at_terminal(lab.command(API, &[]));
    typist.sees("> ").await.types("Count\n").sees(ALLOW).await.types("o\n");
    typist.sees("> ").await.types("Count again\n").sees(ALLOW).await.types("n\n");
    typist.sees("> ").await.types("/exit\n");
    let outcome = typist.end().await;
    assert_eq!((outcome.code, lab.called().len()), (Some(0), 1), "{outcome:?}");
    let screen = outcome.stderr.replace(&id_in(&outcome.stderr), "chat_ID");
    insta::assert_snapshot!(screen, @r#"
    anthropic/m with 1 server. Mode direct: 518 tokens fit into the 1,638 allowed. /help lists commands, Ctrl-D ends.
    > Count
    → kit_counter {}
    chat wants to call kit_counter of the server kit
    with {}
    Asked because of `mcpServers.kit.tools.counter.approval` (toolgate.json:1:16)
    Allow [o]nce, [s]ession, [a]lways (for chat), or [N]o? o
    ← kit_counter: {"count":1}
    Counted.
    (Tokens: 20 new, 10 cache-written, 200 cached, 14 out. Definitions: 305 tokens in the context, 129 if all 4 tools were listed; 0 saved in 2 requests.)
    > Count again
    → kit_counter {}
    chat wants to call kit_counter of the server kit
    with {}
    Asked because of `mcpServers.kit.tools.counter.approval` (toolgate.json:1:16)
    Allow [o]nce, [s]ession, [a]lways (for chat), or [N]o? n
    ✗ kit_counter: `kit_counter` was not called: a person denied it
    Denied.
    (Tokens: 20 new, 10 cache-written, 200 cached, 14 out. Definitions: 305 tokens in the context, 129 if all 4 tools were listed; 0 saved in 4 requests.)
    > /exit
    `toolgate chat --resume chat_ID` continues this chat.
    "#);
}

#[tokio::test]
async fn ctrl_c_stops_the_turn_and_nothing_else() {
    let plays = vec![
        calls(API, "kit_counter", json!({})),
        says(API, "First."),
        hangs(),
        calls(API, "kit_counter", json!({})),
        says(API, "Second."),
    ];
    let lab = Lab::new(plays).await;
    let mut typist = Typist::at_terminal(lab.command(API, &[]));
    typist.sees("> ").await.types("Count\n").sees("> ").await.types("Think\n");
    typist.sees("let me see").await.types("\u{3}");
    typist.sees("> ").await.types("Count\n").sees("> ").await.types("\u{4}");
    let outcome = typist.end().await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("The turn was stopped."), "{outcome:?}");
    // The server is the same process: it counts on.
    let counts = lab.endpoint.body(4).to_string();
    assert!(counts.contains("\\\"count\\\":2") || counts.contains("\"count\":2"), "{counts}");
    assert!(outcome.stderr.contains("Second."), "{outcome:?}");
}

#[tokio::test]
async fn ctrl_c_during_a_question_withdraws_it() {
    let plays = vec![calls(API, "kit_counter", json!({})), says(API, "Hello to you.")];
    let lab = Lab::with(plays, asks(), json!({})).await;
    let mut typist = Typist::at_terminal(lab.command(API, &[]));
    typist.sees("> ").await.types("Count\n").sees(ALLOW).await.types("\u{3}");
    // The next line is a question for the model, and no answer to the question before.
    typist.sees("> ").await.types("o\n").sees("> ").await.types("/exit\n");
    let outcome = typist.end().await;
    assert_eq!((outcome.code, lab.called().len()), (Some(0), 0), "{outcome:?}");
    assert!(outcome.stderr.contains("Hello to you."), "{outcome:?}");
    let waiting = lab.place.run(&["approve", "--json"]).await.json();
    assert_eq!(waiting, json!([]), "nobody waits for it");
    // The model is not told that the call may have been made.
    let told = lab.endpoint.body(1).to_string();
    assert!(told.contains("while a person was asked about this call; it was not made"), "{told}");
}

#[tokio::test]
async fn a_question_at_the_terminal_is_an_event_too() {
    let plays = vec![calls(API, "kit_counter", json!({})), says(API, "Counted.")];
    let lab = Lab::with(plays, asks(), json!({})).await;
    let mut typist = Typist::at_terminal(lab.command(API, &["-p", "Count", "--json"]));
    typist.sees(ALLOW).await.types("o\n");
    let outcome = typist.end().await;
    assert_eq!((outcome.code, lab.called().len()), (Some(0), 1), "{outcome:?}");
    let screen = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(
        screen.contains("\"type\":\"approval_needed\",\"id\":\"c1\",\"name\":\"kit_counter\""),
        "{screen}"
    );
    assert!(screen.contains("chat wants to call kit_counter"), "{screen}");
}

#[tokio::test]
async fn ctrl_c_cancels_the_call_at_the_server() {
    let plays = vec![
        calls(API, "kit_sleep", json!({ "ms": 3_600_000 })),
        calls(API, "kit_last_cancelled", json!({})),
        says(API, "It was cancelled."),
    ];
    let lab = Lab::new(plays).await;
    let mut typist = Typist::at_terminal(lab.command(API, &[]));
    typist.sees("> ").await.types("Sleep\n").sees("→ kit_sleep {\"ms\":3600000}\r\n").await;
    crate::support::until("the call", async || (lab.called() == ["sleep"]).then_some(())).await;
    typist.types("\u{3}").sees("> ").await.types("And?\n").sees("> ").await.types("/exit\n");
    let outcome = typist.end().await;
    let body = lab.endpoint.body(2).to_string();
    assert!(body.contains("requestId"), "{body} {outcome:?}");
    assert!(body.contains("its outcome is not known"), "{body}");
}

#[tokio::test]
async fn ctrl_c_ends_one_question_with_130() {
    let lab = Lab::new(vec![hangs()]).await;
    let mut typist = Typist::at_terminal(lab.command(API, &["-p", "Think"]));
    typist.sees("let me see").await.types("\u{3}");
    let outcome = typist.end().await;
    assert_eq!(outcome.code, Some(130), "{outcome:?}");
}

#[tokio::test]
async fn typed_lines_are_remembered() {
    let lab = Lab::new(vec![says(API, "One."), says(API, "Two.")]).await;
    let editor = |lab: &Lab| {
        let mut command = lab.command(API, &[]);
        command.env("TERM", "xterm");
        Typist::at_terminal(command)
    };
    for up in ["a long question\r", "\u{1b}[A\r"] {
        let mut typist = editor(&lab);
        typist.hears("> ").await.types(up).hears("out.").await.hears("> ").await.types("\u{4}");
        assert_eq!(typist.end().await.code, Some(0));
    }
    let asked = lab.endpoint.body(1)["messages"].to_string();
    assert!(asked.contains("a long question"), "{asked}");
}

fn id_in(screen: &str) -> String {
    let (_, rest) = screen.split_once("--resume ").unwrap_or_else(|| panic!("{screen}"));
    rest.split('`').next().unwrap().to_owned()
}
