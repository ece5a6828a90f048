//! Extensions of the protocol, between clients and servers of both eras.

mod apps;
mod groups;
mod skills;
mod unknown;

use serde_json::{Value, json};
use toolgate_testkit::RawClient;

use crate::support::{Gateway, Workplace};

/// The parameters of a request of 2026-07-28, of a client with these extensions.
fn modern(mut params: Value, extensions: &Value) -> Value {
    let capabilities = json!({ "extensions": extensions });
    if params.get("_meta").is_none() {
        params["_meta"] = json!({});
    }
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientInfo"] =
        json!({ "name": "raw-client", "version": "1" });
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params
}

/// A client of 2025-11-25 that declares these extensions, and the answer to its handshake.
async fn connect_with(
    workplace: &Workplace,
    arguments: &[&str],
    extensions: &Value,
) -> (Gateway, Value) {
    let mut client = workplace.serve(arguments);
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "extensions": extensions },
        "clientInfo": { "name": "raw-client", "version": "1.0.0" },
    });
    let mut answer = client.request("initialize", params).await.unwrap();
    client.notify("notifications/initialized", json!({})).await.unwrap();
    (client, answer["result"].take())
}

/// Sends a request; gives its result.
async fn ask(client: &mut RawClient, method: &str, params: Value) -> Value {
    let mut answer = client.request(method, params).await.unwrap();
    assert!(answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].take()
}

/// Sends a request; gives its error.
async fn refused(client: &mut RawClient, method: &str, params: Value) -> Value {
    let mut answer = client.request(method, params).await.unwrap();
    assert!(answer.get("result").is_none(), "{method}: {answer}");
    answer["error"].take()
}
