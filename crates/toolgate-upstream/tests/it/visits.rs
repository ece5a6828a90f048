//! Legacy servers that refuse a call until a person has visited a page (-32042).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream},
    time::Instant,
};
use toolgate_upstream::{CallError, CallOptions, Endpoint, InProcessServer, ServerSpec};

use crate::{
    questions::{Person, by},
    support::Gate,
};

/// What the server says after it has refused a call.
#[derive(Debug, Clone, Copy)]
enum Completes {
    Never,
    /// The visit of each call.
    Each,
    /// The visit that all calls require.
    Once,
}

/// Refuses every call.
#[derive(Debug, Clone)]
struct Visits {
    completes: Completes,
    calls: Arc<AtomicUsize>,
}

impl InProcessServer for Visits {
    fn content(&self) -> String {
        "visits".to_owned()
    }

    fn serve(&self, stream: DuplexStream) -> BoxFuture<'static, ()> {
        let server = self.clone();
        Box::pin(async move {
            let (input, mut output) = tokio::io::split(stream);
            let mut lines = BufReader::new(input).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                for answer in server.answers(&serde_json::from_str(&line).unwrap()) {
                    output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
                }
            }
        })
    }
}

impl Visits {
    fn answers(&self, message: &Value) -> Vec<Value> {
        let id = &message["id"];
        let result = |result: Value| vec![json!({ "jsonrpc": "2.0", "id": id, "result": result })];
        let error = |error: Value| json!({ "jsonrpc": "2.0", "id": id, "error": error });
        match message["method"].as_str() {
            _ if id.is_null() => Vec::new(),
            Some("initialize") => result(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "visits", "version": "1" },
            })),
            Some("tools/list") => result(
                json!({ "tools": [{ "name": "files", "inputSchema": { "type": "object" } }] }),
            ),
            Some("tools/call") => {
                let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
                let visit = match self.completes {
                    Completes::Once => "visit".to_owned(),
                    _ => format!("visit-{number}"),
                };
                let elicitation = json!({
                    "mode": "url", "elicitationId": visit, "message": "Log in",
                    "url": format!("https://example.com/{visit}"),
                });
                let data = json!({ "elicitations": [elicitation] });
                let refused =
                    error(json!({ "code": -32042, "message": "Visit first", "data": data }));
                let complete = json!({
                    "jsonrpc": "2.0", "method": "notifications/elicitation/complete",
                    "params": { "elicitationId": visit },
                });
                match self.completes {
                    Completes::Never => vec![refused],
                    Completes::Each | Completes::Once => vec![refused, complete],
                }
            }
            _ => vec![error(json!({ "code": -32601, "message": "Method not found" }))],
        }
    }
}

/// Makes a call as a caller who gets texts, and returns its error, the calls that the server got, and the person.
async fn refused(completes: Completes) -> (CallError, usize, Arc<Person>) {
    let server = Visits { completes, calls: Arc::default() };
    let calls = Arc::clone(&server.calls);
    let gate = Gate::ready(ServerSpec::new("visits", Endpoint::InProcess(Arc::new(server)))).await;
    let person = Arc::new(Person::new("ada"));
    let options = CallOptions { gets_texts: true, ..by(&person) };
    let called = gate.upstream.call(&"visits".into(), "files", None, options).await;
    let error = called.unwrap_err();
    (error, calls.load(Ordering::Relaxed), person)
}

#[tokio::test(start_paused = true)]
async fn a_visit_that_is_not_reported_as_done_ends_the_call_and_is_not_asked_for_again() {
    let started = Instant::now();
    let (error, calls, person) = refused(Completes::Never).await;
    insta::assert_snapshot!(error, @"server `visits` requires a person's visit to https://example.com/visit-1 before it answers `files`, and it did not say within 30 s that the visit is done; make the call again when it is");
    assert_eq!((calls, person.asked().len()), (1, 1));
    assert!(started.elapsed().as_secs() < 40, "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_requires_one_visit_after_the_other_gets_three() {
    let (error, calls, person) = refused(Completes::Each).await;
    assert!(matches!(error, CallError::Refused { .. }), "{error}");
    assert_eq!((calls, person.asked().len()), (4, 3));
}

#[tokio::test(start_paused = true)]
async fn a_visit_that_is_done_is_not_asked_for_again() {
    let (error, calls, person) = refused(Completes::Once).await;
    assert!(matches!(error, CallError::Refused { .. }), "{error}");
    assert_eq!((calls, person.asked().len()), (2, 1));
}
