//! Input requests between clients and servers of both eras, for a host and in pass-through.

use std::{path::Path, sync::Arc};

use serde_json::{Map, Value, json};
use toolgate_gateway::{AggregateFactory, PassthroughFactory, ServiceFactory};
use toolgate_testkit::{Builtin, Fixture, FixtureEra, PostAddress};
use toolgate_upstream::{Endpoint as Address, HttpEndpoint, ServerSpec};

use crate::{
    clients::{host_of, spec},
    support::{Endpoint, Events, body, call, deadline, initialize, status},
};

const ERAS: [FixtureEra; 2] = [FixtureEra::Legacy, FixtureEra::Modern];

fn fixture(era: FixtureEra) -> Fixture {
    Fixture::new("kit").with_era(era).with_builtins([
        Builtin::AskAll,
        Builtin::AskUrl,
        Builtin::Progress,
        Builtin::Echo,
    ])
}

/// What a person, a model and a client's folders answer.
fn answer(question: &Value) -> Value {
    match question["method"].as_str().unwrap() {
        "elicitation/create" => {
            json!({ "action": "accept", "content": { "name": question["params"]["message"] } })
        }
        "sampling/createMessage" => {
            let text = json!({ "type": "text", "text": "hello" });
            json!({ "role": "assistant", "model": "m", "content": text, "odd": 1 })
        }
        "roots/list" => json!({ "roots": [{ "uri": "file:///home", "odd": 2 }] }),
        other => panic!("{other}"),
    }
}

/// Calls as a client of the legacy era, and answers what is asked.
async fn call_legacy(endpoint: &Endpoint, tool: &str, arguments: &Value) -> Value {
    let session = endpoint.session().await;
    let params = json!({ "name": tool, "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params });
    let mut events = Events::new(session.post(&call).send().await.unwrap());
    loop {
        let message = events.message().await;
        if message["id"] == "call" {
            return message;
        }
        let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer(&message) });
        assert_eq!(status(session.post(&reply)).await, 202);
    }
}

/// Calls as a client of the modern era, and answers what is asked.
async fn call_modern(endpoint: &Endpoint, tool: &str, arguments: &Value) -> Value {
    let mut params = json!({ "name": tool, "arguments": arguments });
    loop {
        let message = body(endpoint.modern("tools/call", params.clone())).await;
        let result = &message["result"];
        if result["resultType"] != "input_required" {
            return message;
        }
        let requests = result["inputRequests"].as_object().unwrap();
        let responses: Map<String, Value> =
            requests.iter().map(|(key, question)| (key.clone(), answer(question))).collect();
        params["inputResponses"] = json!(responses);
        params["requestState"] = result["requestState"].clone();
    }
}

/// Whatever the eras of both sides.
async fn asks_and_answers(factory: Arc<dyn ServiceFactory>, tool: &str, introduction: &str) {
    let endpoint = Endpoint::of(factory, Arc::default(), |_| {}).await;
    let arguments = json!({ "rounds": 2 });
    let round = |number: u32| {
        let form = json!({ "method": "elicitation/create",
                           "params": { "message": format!("{introduction}Who are you? ({number})") } });
        let (model, roots) =
            (json!({ "method": "sampling/createMessage" }), json!({ "method": "roots/list" }));
        json!({ "form": answer(&form), "model": answer(&model), "roots": answer(&roots) })
    };
    let expected = json!([round(1), round(2)]);
    let legacy = call_legacy(&endpoint, tool, &arguments).await;
    assert_eq!(legacy["result"]["structuredContent"]["answers"], expected, "{legacy}");
    assert!(legacy["result"].get("resultType").is_none(), "{legacy}");
    let modern = call_modern(&endpoint, tool, &arguments).await;
    assert_eq!(modern["result"]["structuredContent"]["answers"], expected, "{modern}");
    assert_eq!(modern["result"]["resultType"], "complete", "{modern}");
}

#[tokio::test]
async fn questions_of_all_servers_reach_any_client() {
    for era in ERAS {
        let host = host_of([spec("kit", &fixture(era))]);
        // Who asks is said in front.
        let factory = Arc::new(AggregateFactory::new(host.clone()));
        asks_and_answers(factory, "kit_ask_all", "Server \"kit\" asks:\n").await;
        host.shutdown().await;
    }
}

#[tokio::test]
async fn questions_of_one_server_reach_any_client() {
    for era in ERAS {
        let factory = PassthroughFactory::new(spec("kit", &fixture(era)));
        asks_and_answers(Arc::new(factory), "ask_all", "").await;
    }
}

#[tokio::test]
async fn questions_of_one_server_reach_any_client_over_the_older_transport() {
    let serving =
        fixture(FixtureEra::Legacy).serve_sse(([127, 0, 0, 1], 0).into(), PostAddress::Path, None);
    let server = serving.await.unwrap();
    let spec = ServerSpec::new("kit", Address::Http(HttpEndpoint::new(server.url())));
    asks_and_answers(Arc::new(PassthroughFactory::new(spec)), "ask_all", "").await;
}

#[tokio::test]
async fn one_server_is_as_it_is() {
    for era in ERAS {
        let factory = Arc::new(PassthroughFactory::new(spec("kit", &fixture(era))));
        let endpoint = Endpoint::of(factory, Arc::default(), |_| {}).await;
        let listed = body(endpoint.modern("tools/list", json!({}))).await;
        let names: Vec<_> = listed["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["name"])
            .collect();
        assert_eq!(names, ["ask_all", "ask_url", "progress", "echo"], "{listed}");
        let discovered = body(endpoint.modern("server/discover", json!({}))).await;
        let info = &discovered["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(info["name"], "kit", "{discovered}");

        let session = endpoint.session().await;
        let arguments = json!({ "steps": 3 });
        let params =
            json!({ "name": "progress", "arguments": arguments, "_meta": { "progressToken": 7 } });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let messages = Events::new(session.post(&call).send().await.unwrap()).rest().await;
        let (result, reports) = messages.split_last().unwrap();
        assert!(result["result"].is_object(), "{result}");
        assert_eq!(reports.len(), 3, "{reports:?}");
        assert!(reports.iter().all(|report| report["params"]["progressToken"] == 7));
    }
}

#[tokio::test]
async fn the_version_in_the_handshake_is_that_of_the_server() {
    let mut kit = fixture(FixtureEra::Legacy);
    kit.legacy_versions = ["2024-11-05", "2025-03-26", "2025-06-18"].map(str::to_owned).into();
    let factory = Arc::new(PassthroughFactory::new(spec("kit", &kit)));
    let endpoint = Endpoint::of(factory, Arc::default(), |_| {}).await;
    for (requested, answered) in
        [("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-11-25", "2025-06-18")]
    {
        let greeting = body(endpoint.post(&initialize(requested))).await;
        assert_eq!(greeting["result"]["protocolVersion"], answered, "{requested}");
    }
    // The version of the session is the same one: only this one has batches.
    for (requested, is_accepted) in [("2025-03-26", true), ("2025-11-25", false)] {
        let session = endpoint.session_of(requested).await;
        let answered = status(session.post(&json!([call(1, "echo")]))).await;
        assert_eq!(answered.is_success(), is_accepted, "{requested}");
    }
    for (era, versions) in [
        (FixtureEra::Modern, json!(["2026-07-28"])),
        (FixtureEra::Both, json!(["2025-06-18", "2026-07-28"])),
    ] {
        let mut kit = fixture(era);
        kit.legacy_versions = vec!["2025-06-18".to_owned()];
        let factory = Arc::new(PassthroughFactory::new(spec("kit", &kit)));
        let endpoint = Endpoint::of(factory, Arc::default(), |_| {}).await;
        let discovered = body(endpoint.modern("server/discover", json!({}))).await;
        assert_eq!(discovered["result"]["supportedVersions"], versions, "{era:?}");
    }
}

/// The processes that a server has started, which write their ids to a file.
fn logged(log: &Path) -> ServerSpec {
    let mut spec = spec("kit", &fixture(FixtureEra::Legacy));
    if let Address::Stdio(endpoint) = &mut spec.endpoint {
        let script = format!("echo $$ >> '{}'; exec \"$0\" \"$@\"", log.display());
        let command = std::mem::replace(&mut endpoint.command, "/bin/sh".to_owned());
        endpoint.args.splice(0..0, ["-c".to_owned(), script, command]);
    }
    spec
}

fn processes(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn lives(process: &str) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    toolgate_testkit::until(what, async || condition().then_some(())).await;
}

#[tokio::test]
async fn processes_for_later_sessions_are_started_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("processes");
    let factory = Arc::new(PassthroughFactory::new(logged(&log)));
    let endpoint = Endpoint::of(factory, Arc::default(), |_| {}).await;
    let _first = endpoint.session().await;
    assert_eq!(processes(&log).len(), 1, "there may never be a second session");
    let _second = endpoint.session().await;
    until("two more processes", || processes(&log).len() == 4).await;
    let ahead = processes(&log);
    // The third session uses the first of them: that one ends with the session.
    let third = endpoint.session().await;
    assert_eq!(third.call(3, "echo").await.message().await["result"]["structuredContent"]["n"], 3);
    until("another process", || processes(&log).len() == 5).await;
    assert_eq!(status(third.delete()).await, 204);
    until("the end of a process", || ahead[2..].iter().any(|process| !lives(process))).await;
    assert_eq!(ahead[2..].iter().filter(|process| lives(process)).count(), 1);

    // One that has ended meanwhile is not used.
    for process in &processes(&log)[2..] {
        let _ = std::process::Command::new("kill").args(["-9", process]).status().unwrap();
    }
    until("their end", || processes(&log)[2..].iter().all(|process| !lives(process))).await;
    let fourth = endpoint.session().await;
    let answer = fourth.call(4, "echo").await.message().await;
    assert_eq!(answer["result"]["structuredContent"]["n"], 4, "{answer}");
}

#[tokio::test]
async fn a_server_that_ends_is_started_again_for_the_next_session() {
    let fixture = Fixture::new("kit").with_builtins([Builtin::Crash, Builtin::Echo]);
    let factory = Arc::new(PassthroughFactory::new(spec("kit", &fixture)));
    let endpoint = Endpoint::of(factory, Arc::default(), |_| {}).await;
    let session = endpoint.session().await;
    let answer = session.call(1, "crash").await.message().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("ended"), "{answer}");
    // The session is gone with its server, so that the client begins anew.
    let gone = async {
        while status(session.post(&call(2, "echo"))).await != 404 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(deadline(), gone).await.unwrap();
    let session = endpoint.session().await;
    let answer = session.call(3, "echo").await.message().await;
    assert_eq!(answer["result"]["structuredContent"]["n"], 3, "{answer}");

    let crash = body(endpoint.modern("tools/call", json!({ "name": "crash" }))).await;
    assert!(crash["error"].is_object(), "{crash}");
    let again = async {
        loop {
            let answer = body(endpoint.modern("tools/call", json!({ "name": "echo" }))).await;
            if answer["result"].is_object() {
                return;
            }
        }
    };
    tokio::time::timeout(deadline(), again).await.unwrap();
}
