//! Instances of servers that ask: each session has its own.

use std::{path::Path, sync::Arc};

use futures::future::join_all;
use serde_json::json;
use tokio::sync::Notify;
use toolgate_testkit::Builtin;
use toolgate_upstream::{CallError, CallOptions, ClientId, InstanceMode, ServerSpec};

use crate::{
    processes::is_alive,
    questions::{Person, answers, asking, by},
    support::{Gate, NAME, command, lines, logged, until},
};

/// A server that begins its calls in order. `ask` asks at once, `wait` answers when the file exists.
/// It writes its id, and what it begins, to the log.
const IN_ORDER: &str = r#"
import json, os, sys, threading, time
log, file = sys.argv[1], sys.argv[2]
lock = threading.Lock()
def note(what):
    with lock, open(log, "a") as out: out.write(f"{os.getpid()} {what}\n")
def send(message):
    with lock: print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def text(id, said): send({"id": id, "result": {"content": [{"type": "text", "text": said}]}})
def wait(id):
    while not os.path.exists(file): time.sleep(0.01)
    text(id, "waited")
note("started")
asked = {}
for line in sys.stdin:
    message = json.loads(line)
    id, method, params = message.get("id"), message.get("method"), message.get("params", {})
    if method is None and id in asked: text(asked.pop(id), json.dumps(message.get("result", message.get("error"))))
    elif method == "initialize":
        send({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ["ask", "wait", "echo"]]}})
    elif method == "tools/call":
        name = params["name"]
        note(name)
        if name == "ask":
            asked[f"q{id}"] = id
            send({"id": f"q{id}", "method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}})
        elif name == "wait": threading.Thread(target=wait, args=[id], daemon=True).start()
        else: text(id, "echo")
    elif method == "prompts/list":
        note("list")
        threading.Thread(target=wait, args=[id], daemon=True).start()
    elif method == "ping": send({"id": id, "result": {}})
    elif id is not None: send({"id": id, "error": {"code": -32601, "message": "unknown"}})
"#;

fn in_order(log: &Path, file: &Path) -> ServerSpec {
    let (log, file) = (log.to_str().unwrap(), file.to_str().unwrap());
    command("python3", &["-c", IN_ORDER, log, file])
}

/// What the server noted, without the ids of processes.
fn noted(log: &Path) -> Vec<String> {
    let without_id = |line: String| line.split_once(' ').unwrap().1.to_owned();
    lines(log).into_iter().map(without_id).collect()
}

fn processes(log: &Path) -> usize {
    noted(log).iter().filter(|what| *what == "started").count()
}

async fn said(gate: &Gate, tool: &str, person: &Arc<Person>) -> String {
    let result = gate.call_with(tool, json!({}), by(person)).await.unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn nobody_waits_while_another_client_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("processes");
    let gate = Gate::ready(logged(&asking(), &log, "")).await;
    let held = Arc::new(Notify::new());
    let (ada, bob) = (Arc::new(Person::new("ada").behind(&held)), Arc::new(Person::new("bob")));
    let others = async {
        ada.until_asked(1).await;
        // Ada answers only after these calls.
        gate.call_with("client", json!({}), by(&bob)).await.unwrap();
        let said = answers(&gate, "ask_form", json!({}), by(&bob)).await;
        assert_eq!(said[0]["form"]["content"]["name"], "bob");
        assert_eq!(lines(&log).len(), 2, "bob has a process of his own");
        gate.call_with("client", json!({}), by(&ada)).await.unwrap();
        assert_eq!(lines(&log).len(), 2, "ada keeps the first one");
        held.notify_one();
    };
    let (said, ()) = tokio::join!(answers(&gate, "ask_form", json!({}), by(&ada)), others);
    assert_eq!(said[0]["form"]["content"]["name"], "ada");
    assert_eq!((ada.asked().len(), bob.asked().len()), (1, 1));
    assert_eq!(gate.told.asking(), [NAME.into()]);
    assert_eq!(gate.told.listings_of(NAME), 1, "the second process lists the same tools");
}

#[tokio::test]
async fn the_first_question_does_not_wait_for_the_call_of_another_client() {
    let folder = tempfile::tempdir().unwrap();
    let (log, file) = (folder.path().join("log"), folder.path().join("go"));
    let gate = Gate::ready(in_order(&log, &file)).await;
    let (ada, bob) = (Arc::new(Person::new("ada")), Arc::new(Person::new("bob")));
    let asks = async {
        until("the other call", || noted(&log).contains(&"wait".to_owned())).await;
        let answer = said(&gate, "ask", &ada).await;
        // Only now the other call can end.
        std::fs::write(&file, "").unwrap();
        answer
    };
    let (waited, answer) = tokio::join!(said(&gate, "wait", &bob), asks);
    assert_eq!(waited, "waited");
    assert!(answer.contains("ada"), "{answer}");
    assert_eq!(bob.asked(), []);
    assert_eq!(processes(&log), 2);
}

#[tokio::test]
async fn the_first_question_waits_where_both_clients_may_have_state_in_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let (log, file) = (folder.path().join("log"), folder.path().join("go"));
    let gate = Gate::ready(in_order(&log, &file)).await;
    let people = ["ada", "bob", "eve"].map(|name| Arc::new(Person::new(name)));
    let [ada, bob, eve] = &people;
    for person in [ada, bob] {
        assert_eq!(said(&gate, "echo", person).await, "echo");
    }
    let asks = async {
        until("the other call", || noted(&log).contains(&"wait".to_owned())).await;
        said(&gate, "ask", ada).await
    };
    let goes_on = async {
        until("the question", || !gate.told.asking().is_empty()).await;
        // A third client waits for neither.
        assert_eq!(said(&gate, "echo", eve).await, "echo");
        assert_eq!(processes(&log), 2);
        assert_eq!(ada.asked(), []);
        std::fs::write(&file, "").unwrap();
    };
    let (waited, answer, ()) = tokio::join!(said(&gate, "wait", bob), asks, goes_on);
    assert_eq!(waited, "waited");
    assert!(answer.contains("ada"), "{answer}");
    assert_eq!((bob.asked(), eve.asked()), (vec![], vec![]));
}

#[tokio::test]
async fn clients_that_cause_the_first_questions_at_once_are_all_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (log, file) = (folder.path().join("log"), folder.path().join("go"));
    let gate = Gate::ready(in_order(&log, &file)).await;
    let people = ["ada", "bob", "eve"].map(|name| Arc::new(Person::new(name)));
    let answers = join_all(people.iter().map(|person| said(&gate, "ask", person))).await;
    for (answer, name) in answers.iter().zip(["ada", "bob", "eve"]) {
        assert!(answer.contains(name), "{answers:?}");
    }
    assert_eq!(people.map(|person| person.asked().len()), [1; 3]);
    assert_eq!(processes(&log), 3);
}

#[tokio::test]
async fn clients_share_a_process_once_its_tools_have_answered_without_asking() {
    let folder = tempfile::tempdir().unwrap();
    let (log, file) = (folder.path().join("log"), folder.path().join("go"));
    std::fs::write(&file, "").unwrap();
    let gate = Gate::ready(in_order(&log, &file)).await;
    let people = ["ada", "bob", "eve"].map(|name| Arc::new(Person::new(name)));
    assert_eq!(said(&gate, "wait", &people[0]).await, "waited");
    std::fs::remove_file(&file).unwrap();
    let calls = join_all(people.iter().map(|person| said(&gate, "wait", person)));
    let goes_on = async {
        let waits = || noted(&log).iter().filter(|what| *what == "wait").count();
        until("all calls", || waits() == 4).await;
        std::fs::write(&file, "").unwrap();
    };
    let (answers, ()) = tokio::join!(calls, goes_on);
    assert_eq!(answers, ["waited"; 3]);
    assert_eq!(processes(&log), 1);
}

#[tokio::test]
async fn a_call_waits_for_a_process_where_all_are_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let (log, file) = (folder.path().join("log"), folder.path().join("go"));
    let gate = Gate::ready(ServerSpec { asks: true, ..in_order(&log, &file) }).await;
    let others: Vec<_> = (0..16).map(|_| Arc::new(Person::new("other"))).collect();
    let busy = join_all(others.iter().map(|person| said(&gate, "wait", person)));
    let ada = Arc::new(Person::new("ada"));
    let asks = async {
        let waits = || noted(&log).iter().filter(|what| *what == "wait").count();
        until("all processes are in use", || waits() == 16).await;
        let mut answer = std::pin::pin!(said(&gate, "ask", &ada));
        assert!(futures::poll!(&mut answer).is_pending());
        std::fs::write(&file, "").unwrap();
        answer.await
    };
    let (_, answer) = tokio::join!(busy, asks);
    assert!(answer.contains("ada"), "{answer}");
    assert_eq!(noted(&log).iter().filter(|what| *what == "ask").count(), 1);
}

#[tokio::test]
async fn a_session_that_ends_ends_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("processes");
    let spec = ServerSpec { asks: true, ..logged(&asking(), &log, "") };
    let gate = Gate::ready(spec).await;
    let (ada, bob) = (Arc::new(Person::new("ada")), Arc::new(Person::new("bob")));
    for person in [&ada, &bob] {
        gate.call_with("client", json!({}), by(person)).await.unwrap();
    }
    let started = lines(&log);
    let lives = |process: &String| is_alive(process);
    assert_eq!(started.iter().filter(|it| lives(it)).count(), 2);
    drop(bob);
    until("the end of the second process", || !lives(&started[1])).await;
    // The first process is for the next client then.
    drop(ada);
    let eve = Arc::new(Person::new("eve"));
    gate.call_with("client", json!({}), by(&eve)).await.unwrap();
    assert_eq!(lines(&log), started);
    assert!(lives(&started[0]));
}

#[tokio::test]
async fn a_client_that_is_gone_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (log, file) = (folder.path().join("log"), folder.path().join("never"));
    let gate = Gate::ready(ServerSpec { asks: true, ..in_order(&log, &file) }).await;
    let ada = Arc::new(Person::new("ada"));
    tokio::select! {
        waited = said(&gate, "wait", &ada) => panic!("{waited}"),
        () = until("the call", || noted(&log).contains(&"wait".to_owned())) => {}
    }
    drop(ada);
    // The server still works on the call of the client that is gone, and asks for another one.
    let bob = Arc::new(Person::new("bob"));
    let answer = said(&gate, "ask", &bob).await;
    assert!(answer.contains("bob"), "{answer}");
    assert_eq!(processes(&log), 2);
}

#[tokio::test]
async fn a_list_keeps_no_client_from_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let (log, file) = (folder.path().join("log"), folder.path().join("go"));
    let gate = Gate::ready(in_order(&log, &file)).await;
    let (server, options) = (NAME.into(), CallOptions::default());
    let listing = gate.upstream.request(&server, "prompts/list", None, options);
    let ada = Arc::new(Person::new("ada"));
    let calls = async {
        until("the list", || noted(&log).contains(&"list".to_owned())).await;
        assert_eq!(said(&gate, "echo", &ada).await, "echo");
        assert_eq!(processes(&log), 1);
        std::fs::write(&file, "").unwrap();
    };
    let (listed, ()) = tokio::join!(listing, calls);
    listed.unwrap();
}

#[tokio::test]
async fn a_modern_client_keeps_its_process_after_a_cancelled_call() {
    let folder = tempfile::tempdir().unwrap();
    let (log, file) = (folder.path().join("log"), folder.path().join("never"));
    let gate = Gate::ready(ServerSpec { asks: true, ..in_order(&log, &file) }).await;
    let client = ClientId::unique();
    let call = || Arc::new(Person::new("ada").of_modern(&client));
    let waits = call();
    let cancelled = by(&waits);
    let cancel = cancelled.cancel.clone();
    let (waited, ()) = tokio::join!(gate.call_with("wait", json!({}), cancelled), async {
        until("the call", || noted(&log).contains(&"wait".to_owned())).await;
        cancel.cancel();
    });
    assert!(matches!(waited, Err(CallError::Cancelled)), "{waited:?}");
    assert_eq!(said(&gate, "echo", &call()).await, "echo");
    assert_eq!(processes(&log), 1);
}

#[tokio::test]
async fn a_server_has_a_limited_number_of_processes() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("processes");
    let spec = ServerSpec {
        instances: InstanceMode::PerSession,
        ..logged(&asking().with_builtins([Builtin::Counter]), &log, "")
    };
    let gate = Gate::ready(spec).await;
    let people: Vec<_> = (0..18).map(|_| Arc::new(Person::new("ada"))).collect();
    for person in &people {
        gate.call_with("counter", json!({}), by(person)).await.unwrap();
    }
    let lives = |process: &String| is_alive(process);
    let alive = || lines(&log).iter().filter(|process| lives(process)).count();
    until("the end of idle processes", || alive() == 16).await;
    assert_eq!(lines(&log).len(), 18, "those that were idle for longest made room");
    // The newest still has its process, and with it its state.
    let counted = gate.call_with("counter", json!({}), by(&people[17])).await.unwrap();
    assert_eq!(counted["structuredContent"]["count"], 2, "{counted}");
    gate.upstream.shutdown().await;
    assert_eq!(alive(), 0);
}

#[tokio::test]
async fn a_shared_server_has_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("processes");
    let spec = ServerSpec { instances: InstanceMode::Shared, ..logged(&asking(), &log, "") };
    let gate = Gate::ready(spec).await;
    for name in ["ada", "bob"] {
        let person = Arc::new(Person::new(name));
        let said = answers(&gate, "ask_form", json!({}), by(&person)).await;
        assert_eq!(said[0]["form"]["content"]["name"], name);
    }
    assert_eq!(lines(&log).len(), 1);
}

#[tokio::test]
async fn a_disabled_server_has_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("processes");
    let spec = ServerSpec { asks: true, ..logged(&asking(), &log, "") };
    let gate = Gate::ready(spec).await;
    let (ada, bob) = (Arc::new(Person::new("ada")), Arc::new(Person::new("bob")));
    for person in [&ada, &bob] {
        gate.call_with("client", json!({}), by(person)).await.unwrap();
    }
    gate.upstream.disable(NAME, "ask the owner");
    let lives = |process: &String| is_alive(process);
    until("the end of all processes", || !lines(&log).iter().any(&lives)).await;
    for person in [&ada, &bob] {
        let error = gate.call_with("client", json!({}), by(person)).await.unwrap_err();
        assert!(error.to_string().contains("ask the owner"), "{error}");
    }
    gate.upstream.enable(NAME);
    for person in [&ada, &bob] {
        gate.call_with("client", json!({}), by(person)).await.unwrap();
    }
    assert_eq!(lines(&log).len(), 4);
}
