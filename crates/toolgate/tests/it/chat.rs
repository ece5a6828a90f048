//! A model and the tools of a session, with an endpoint that answers from a script.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    thread,
};

use serde_json::{Value, json};
use toolgate::{AskError, Chat, ChatEvent, Host, Model, ModelPrices};
use toolgate_testkit::within;

use crate::examples::run;

/// Answers one request after the other with these bodies, and returns the bodies of the requests.
fn endpoint(answers: Vec<Value>) -> (String, thread::JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            asked.push(serde_json::from_slice(&body).unwrap());
            let body = answer.to_string();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
        }
        asked
    });
    (url, asked)
}

fn reply(message: &Value, reason: &str) -> Value {
    json!({
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
    })
}

#[test]
fn chat() {
    let call = json!({
        "id": "call_1", "type": "function",
        "function": { "name": "call_tool", "arguments": "{\"name\":\"double\",\"arguments\":{\"n\":21}}" },
    });
    let calls = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let says = json!({ "role": "assistant", "content": "It is 42." });
    let (url, asked) = endpoint(vec![reply(&calls, "tool_calls"), reply(&says, "stop")]);
    let said = run("chat", &["ollama/scripted", "What is twice 21?", &url]);
    assert!(said.ends_with("It is 42.\n"), "{said}");
    assert!(said.starts_with("calls call_tool with "), "{said}");
    // The model got the result of the function.
    let asked = asked.join().unwrap();
    let messages = asked[1]["messages"].as_array().unwrap();
    let result = messages.iter().find(|message| message["role"] == "tool").unwrap();
    assert_eq!(result["content"], "42");
}

/// Never ends.
#[toolgate::tool]
async fn hang() {
    std::future::pending::<()>().await;
}

/// Counts.
#[toolgate::tool]
async fn count() -> u64 {
    1
}

fn calls(name: &str) -> Value {
    let arguments = json!({ "name": name, "arguments": {} }).to_string();
    let call = json!({
        "id": "call_1", "type": "function",
        "function": { "name": "call_tool", "arguments": arguments },
    });
    reply(&json!({ "role": "assistant", "content": null, "tool_calls": [call] }), "tool_calls")
}

fn says(text: &str) -> Value {
    reply(&json!({ "role": "assistant", "content": text }), "stop")
}

async fn host() -> Host {
    Host::builder().without_scripts().tool(hang).tool(count).start().await.unwrap()
}

/// A dollar a token.
const PRICES: ModelPrices =
    ModelPrices { input: 1e6, cached: 1e6, cache_written: 1e6, output: 1e6 };

fn model(url: &str) -> Model {
    Model::new("ollama/scripted").unwrap().url(url)
}

#[tokio::test]
async fn a_question_can_be_cancelled_and_the_conversation_goes_on() {
    let (url, asked) = endpoint(vec![calls("hang"), says("Hello.")]);
    let host = host().await;
    let mut chat = Chat::new(model(&url), host.session());
    let cancel = chat.canceller();
    // Without a question it does nothing.
    cancel.cancel();
    let answer = chat.ask_watching("Hang", |event| {
        if matches!(event, ChatEvent::Call { .. }) {
            cancel.cancel();
        }
    });
    let answer = within("the cancelled question", answer).await;
    assert_eq!(answer, Err(AskError::Cancelled));
    assert_eq!(chat.ask("Hi").await.unwrap(), "Hello.");
    let messages = asked.join().unwrap().pop().unwrap()["messages"].to_string();
    assert!(messages.contains("its outcome is not known"), "{messages}");
    host.shutdown().await;
}

/// Sets one limit.
type Limited = fn(Model) -> Model;

#[tokio::test]
async fn limits_end_a_question() {
    let host = host().await;
    let limits: [(&str, Limited); 3] = [
        ("requests", |model| model.max_requests(1)),
        ("tokens", |model| model.max_tokens(2)),
        ("cost", |model| model.max_cost(2.0, PRICES)),
    ];
    for (name, limited) in limits {
        let (url, _asked) = endpoint(vec![calls("count")]);
        let mut chat = Chat::new(limited(model(&url)), host.session());
        let Err(AskError::Limit { reason, .. }) = chat.ask("Count").await else {
            panic!("{name}: no limit")
        };
        assert!(reason.contains(name), "{reason}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_saved_conversation_continues() {
    let (url, asked) = endpoint(vec![calls("count"), says("One."), says("It was one.")]);
    let host = host().await;
    let mut chat = Chat::new(model(&url).key("sk-secret-99"), host.session());
    assert_eq!(chat.save(), None);
    assert_eq!(chat.ask("Count").await.unwrap(), "One.");
    let saved = chat.save().unwrap();
    assert!(!saved.contains("sk-secret-99"), "{saved}");
    let mut chat = Chat::restore(model(&url), host.session(), &saved).unwrap();
    assert_eq!(chat.ask("What was it?").await.unwrap(), "It was one.");
    let asked = asked.join().unwrap();
    let (before, after) = (&asked[1]["messages"], &asked[2]["messages"]);
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    assert_eq!(before[..], after[..before.len()]);
    assert!(Chat::restore(model(&url), host.session(), "{}").is_err());
    host.shutdown().await;
}
