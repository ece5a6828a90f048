//! The same over lines.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
        WriteHalf,
    },
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use toolgate_gateway::{ServiceFactory, serve_lines};

use crate::{
    probe::{Probe, ProbeFactory},
    support::{call, deadline, initialize, modern, reaches},
};

pub(crate) struct Client {
    pub(crate) probe: Arc<Probe>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    pub(crate) stop: CancellationToken,
    pub(crate) serving: JoinHandle<()>,
}

impl Client {
    /// Of a probe.
    pub(crate) fn start() -> Self {
        let probe = Arc::new(Probe::default());
        Self::of(Arc::new(ProbeFactory(Arc::clone(&probe))), probe)
    }

    /// Of something else.
    pub(crate) fn of(factory: Arc<dyn ServiceFactory>, probe: Arc<Probe>) -> Self {
        let stop = CancellationToken::new();
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(theirs);
        let serving = tokio::spawn(serve_lines(factory, reader, writer, stop.clone()));
        let (reader, writer) = tokio::io::split(ours);
        Self { probe, lines: BufReader::new(reader).lines(), writer, stop, serving }
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.write(&format!("{message}\n")).await;
    }

    async fn write(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(deadline(), self.lines.next_line()).await.unwrap().unwrap();
        serde_json::from_str(&line.expect("it has ended")).unwrap()
    }

    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.say(message).await;
        self.hear().await
    }
}

fn modern_call(id: u64, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": modern(params) })
}

#[tokio::test]
async fn a_legacy_client_calls_and_is_asked() {
    let mut client = Client::start();
    let ping = client.ask(&json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" })).await;
    assert_eq!(ping["result"], json!({}));
    let refused = client.ask(&call(1, "echo")).await;
    assert_eq!(refused["error"]["code"], -32602, "before the handshake");
    let greeting = client.ask(&initialize("2025-03-26")).await;
    assert_eq!(greeting["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(client.ask(&initialize("2025-03-26")).await["error"]["code"], -32600);
    assert_eq!(client.ask(&call(1, "echo")).await["result"]["echo"]["n"], 1);
    client.say(&call(2, "ask")).await;
    for _ in 0..2 {
        let question = client.hear().await;
        client.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "a": 1 } })).await;
    }
    assert_eq!(client.hear().await["result"]["answers"], json!([{ "a": 1 }, { "a": 1 }]));
}

#[tokio::test]
async fn a_modern_client_calls_and_is_asked() {
    let mut client = Client::start();
    let discover = json!({ "jsonrpc": "2.0", "id": 0, "method": "server/discover",
                           "params": modern(json!({})) });
    assert_eq!(client.ask(&discover).await["result"]["resultType"], "complete");
    let asked = client.ask(&modern_call(1, json!({ "name": "ask_both" }))).await;
    let state = &asked["result"]["requestState"];
    let responses = json!({ "1": { "a": 1 }, "2": { "a": 2 } });
    let params = json!({ "name": "ask_both", "requestState": state, "inputResponses": responses });
    let answer = client.ask(&modern_call(2, params)).await;
    assert_eq!(answer["id"], 2);
    assert_eq!(answer["result"]["answers"], json!([{ "a": 1 }, { "a": 2 }]));
    client.say(&modern_call(3, json!({ "name": "wait" }))).await;
    reaches(&client.probe.waiting, 1).await;
    let params = json!({ "requestId": 3 });
    client
        .say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
        .await;
    reaches(&client.probe.cancelled, 1).await;
    assert_eq!(
        client.ask(&modern_call(3, json!({ "name": "echo" }))).await["id"],
        3,
        "and no answer"
    );
}

#[tokio::test]
async fn an_invalid_line_gets_an_error_and_the_session_continues() {
    let mut client = Client::start();
    client.say(&initialize("2025-11-25")).await;
    client.hear().await;
    client.write("\n  \nnonsense\n").await;
    let answer = client.hear().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
    client.write("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":[]}\r\n").await;
    let answer = client.hear().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(4), &json!(-32600)));
    let giant = "a".repeat(17 * 1024 * 1024);
    client.write(&format!("{giant}\n")).await;
    assert_eq!(client.hear().await["error"]["code"], -32700);
    assert_eq!(client.ask(&call(1, "echo")).await["result"]["echo"]["n"], 1);
}

#[tokio::test]
async fn the_gateway_ends_soon_after_its_client() {
    let mut client = Client::start();
    client.say(&initialize("2025-11-25")).await;
    client.hear().await;
    client.say(&call(1, "wait")).await;
    reaches(&client.probe.waiting, 1).await;
    client.say(&call(2, "echo")).await;
    client.writer.shutdown().await.unwrap();
    assert_eq!(client.hear().await["id"], 2, "what was asked before is still answered");
    tokio::time::timeout(deadline(), client.serving).await.unwrap().unwrap();
    assert_eq!(*client.probe.cancelled.borrow(), 1);
}

#[tokio::test]
async fn a_batch_is_answered_by_a_batch() {
    let mut client = Client::start();
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/odd" });
    let greeting = initialize("2025-03-26");
    let early =
        client.ask(&json!([{ "jsonrpc": "2.0", "id": "p", "method": "ping" }, greeting])).await;
    assert_eq!(early[0], json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
    let told = early[1]["error"]["message"].as_str().unwrap();
    assert_eq!(told, "this request cannot be in a batch; send it alone");
    client.ask(&greeting).await;

    let batch = json!([
        call(1, "wait"),
        note,
        call(2, "echo"),
        call(3, "missing"),
        call(2, "echo"),
        modern_call(4, json!({ "name": "echo" })),
        call(5, "ask"),
        "odd"
    ]);
    client.say(&batch).await;
    reaches(&client.probe.waiting, 1).await;
    // What is asked meanwhile is no answer, and does not wait for the others.
    for _ in 0..2 {
        let question = client.hear().await;
        client.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": {} })).await;
    }
    assert_eq!(client.ask(&call(9, "echo")).await["id"], 9, "nor does another request");
    client.probe.release.notify_one();
    let answers = client.hear().await;
    let mut ids: Vec<_> = answers.as_array().unwrap().iter().map(|one| &one["id"]).collect();
    ids.sort_by_key(|id| id.as_u64());
    assert_eq!(json!(ids), json!([null, 1, 2, 2, 3, 4, 5]), "{answers}");
    assert_eq!(client.probe.notifications.lock().as_slice(), ["notifications/odd"]);

    // A batch without requests, or whose requests were all taken back, has no answer.
    client.say(&json!([note, note])).await;
    client.say(&json!([call(6, "wait")])).await;
    reaches(&client.probe.waiting, 2).await;
    let params = json!({ "requestId": 6 });
    client
        .say(&json!([{ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }]))
        .await;
    reaches(&client.probe.cancelled, 1).await;
    assert_eq!(client.ask(&call(7, "echo")).await["id"], 7);
}

#[tokio::test]
async fn only_one_version_has_batches() {
    let mut client = Client::start();
    client.ask(&initialize("2025-06-18")).await;
    let refused = client.ask(&json!([call(1, "echo"), call(2, "echo")])).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(null), &json!(-32600)));
    assert_eq!(client.ask(&call(3, "echo")).await["id"], 3);
}
