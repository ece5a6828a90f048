//! A model and the tools of a session, with an endpoint that answers from a script.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    thread,
};

use serde_json::{Value, json};

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
