//! Every pair of eras, against a server that does what a test wants.

mod guarded;

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolgate_host::ServerGuard;
use toolgate_mcp::ErrorObject;
use toolgate_upstream::{
    ConnectionClient, ConnectionHandler, InputRequest, RawRequest, RelatedRequest,
};

use super::{
    PassthroughSource,
    wire::{Dial, Wire},
};
use crate::{
    caller::Caller,
    era::Era,
    face::{Asked, Client, Face, Source},
    link::{Link, Outbox, Questions},
    message::{Request, Response},
    running::{Running, Step},
};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

type Heard = (String, Option<Value>);

/// A server.
#[derive(Clone)]
struct Server {
    era: Era,
    greeting: Arc<Value>,
    sink: Arc<Mutex<Option<Arc<dyn ConnectionHandler>>>>,
    /// Requests and notifications that came, in their order.
    heard: Arc<Mutex<Vec<Heard>>>,
    /// What it answers, by the method and the cursor.
    results: Arc<Mutex<HashMap<String, Value>>>,
    closed: CancellationToken,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Server")
    }
}

impl Server {
    fn new(era: Era) -> Self {
        let listed = json!({ "listChanged": true });
        let capabilities = json!({ "tools": listed, "logging": {},
                                   "resources": { "subscribe": true }, "odd": [1] });
        let greeting = match era {
            Era::Legacy => json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities,
                                   "serverInfo": { "name": "s", "icons": [] }, "odd": 1 }),
            Era::Modern => json!({ "supportedVersions": ["2026-07-28"], "resultType": "complete",
                                   "capabilities": capabilities, "ttlMs": 7, "odd": 1,
                                   "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s" } } }),
        };
        Self {
            era,
            greeting: Arc::new(greeting),
            sink: Arc::default(),
            heard: Arc::default(),
            results: Arc::default(),
            closed: CancellationToken::new(),
        }
    }

    fn sink(&self) -> Arc<dyn ConnectionHandler> {
        self.sink.lock().clone().unwrap()
    }

    fn methods(&self) -> Vec<String> {
        self.heard.lock().iter().map(|(method, _)| method.clone()).collect()
    }

    fn last(&self, method: &str) -> Value {
        let heard = self.heard.lock();
        let last = heard.iter().rev().find(|(heard, _)| heard == method);
        last.unwrap_or_else(|| panic!("no {method}")).1.clone().unwrap()
    }

    async fn answer(&self, request: RawRequest) -> Result<Value, ErrorObject> {
        let RawRequest { key, method, params, cancel } = request;
        self.heard.lock().push((method.clone(), params.clone()));
        let params = params.unwrap_or_default();
        let page = params.get("cursor").and_then(Value::as_str).unwrap_or_default();
        if let Some(result) = self.results.lock().get(&format!("{method}{page}")) {
            return Ok(result.clone());
        }
        match (method.as_str(), self.era) {
            ("tools/call", Era::Legacy) if params["name"] == "ask" => {
                let related = Some(RelatedRequest { key, is_certain: true });
                let asked = self.sink().input_request(related, question()).await?;
                Ok(json!({ "asked": asked }))
            }
            ("tools/call", Era::Modern) if params["name"] == "ask" => {
                if let Some(responses) = params.get("inputResponses") {
                    assert_eq!(params["requestState"], "of the server");
                    return Ok(json!({ "resultType": "complete", "asked": responses["q"] }));
                }
                let InputRequest { method, params } = question();
                let requests = json!({ "q": { "method": method, "params": params } });
                Ok(json!({ "resultType": "input_required", "inputRequests": requests,
                           "requestState": "of the server" }))
            }
            ("tools/call", _) if params["name"] == "progress" => {
                let token = &params["_meta"]["progressToken"];
                let report = json!({ "progressToken": token, "progress": params["n"] });
                self.sink().notification(None, "notifications/progress", Some(report));
                Ok(json!({}))
            }
            ("subscriptions/listen", Era::Modern) => {
                let told = json!({ "_meta": { SUBSCRIPTION: 99 } });
                let method = "notifications/subscriptions/acknowledged";
                self.sink().notification(Some(&key), method, Some(told.clone()));
                let method = "notifications/tools/list_changed";
                self.sink().notification(Some(&key), method, Some(told.clone()));
                cancel.cancelled().await;
                self.heard.lock().push(("cancelled".to_owned(), Some(params)));
                Ok(told)
            }
            ("resources/read", _) if params["uri"] == "x:words" => {
                let words = "not for strangers: Ada Lovelace owes us 48,200 EUR since the spring";
                Err(ErrorObject::invalid_params(words, None))
            }
            ("missing", _) => Err(ErrorObject::resource_not_found("gone", Some(json!(1)))),
            _ => Ok(json!({ "got": params, "odd": 1.5 })),
        }
    }
}

impl Dial for Server {
    fn dial(
        &self,
        _era: Era,
        _client: ConnectionClient,
        sink: Arc<dyn ConnectionHandler>,
    ) -> BoxFuture<'_, Result<Arc<dyn Wire>, ErrorObject>> {
        *self.sink.lock() = Some(sink);
        Box::pin(std::future::ready(Ok(Arc::new(self.clone()) as Arc<dyn Wire>)))
    }
}

impl Wire for Server {
    fn era(&self) -> Era {
        self.era
    }

    fn greeting(&self) -> &Value {
        &self.greeting
    }

    fn request(&self, request: RawRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        Box::pin(self.answer(request))
    }

    fn notify<'a>(&'a self, method: &'a str, params: Option<Value>) -> BoxFuture<'a, ()> {
        self.heard.lock().push((method.to_owned(), params));
        Box::pin(std::future::ready(()))
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.closed.cancelled())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.cancel();
        Box::pin(std::future::ready(()))
    }
}

/// A client of the legacy era: what it is told, and how it answers.
#[derive(Debug, Default)]
struct Told {
    messages: Mutex<VecDeque<Value>>,
    more: Notify,
}

impl Outbox for Told {
    fn offer(&self, message: Value) {
        self.messages.lock().push_back(message);
        self.more.notify_one();
    }

    fn finish(&self, _answer: Option<Value>) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Told {
    async fn next(&self) -> Value {
        loop {
            if let Some(message) = self.messages.lock().pop_front() {
                return message;
            }
            let more = tokio::time::timeout(Duration::from_secs(10), self.more.notified());
            more.await.expect("nothing is said");
        }
    }
}

struct Legacy {
    face: Arc<dyn Face>,
    told: Arc<Told>,
    questions: Arc<Questions>,
}

impl Legacy {
    async fn of(server: &Server) -> Self {
        Self::guarded(server, None).await
    }

    async fn guarded(server: &Server, guard: Option<Arc<ServerGuard>>) -> Self {
        let (told, questions) =
            (Arc::new(Told::default()), Questions::new(Duration::from_secs(10)));
        let outlet = Link::legacy(Arc::default(), Arc::clone(&told) as _, Arc::clone(&questions));
        let face = open_guarded(server, Era::Legacy, Some(outlet), guard).await;
        face.notification("notifications/initialized".to_owned(), None).await;
        Self { face, told, questions }
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        let outbox = Arc::clone(&self.told) as Arc<dyn Outbox>;
        let link = Link::legacy(Arc::default(), outbox, Arc::clone(&self.questions));
        let asked = Asked {
            id: json!("id"),
            method: method.to_owned(),
            params: Some(params),
            era: Era::Legacy,
            link,
            cancel: CancellationToken::new(),
        };
        self.face.request(asked).await
    }
}

async fn open(server: &Server, era: Era, outlet: Option<Link>) -> Arc<dyn Face> {
    open_guarded(server, era, outlet, None).await
}

async fn open_guarded(
    server: &Server,
    era: Era,
    outlet: Option<Link>,
    guard: Option<Arc<ServerGuard>>,
) -> Arc<dyn Face> {
    let (info, capabilities) = (json!({}), serde_json::Map::new());
    let client = Client { caller: Caller::local(), era, info, capabilities, outlet };
    let server = Arc::new(server.clone());
    PassthroughSource { server, guard }.open(client).await.unwrap()
}

fn modern(face: &Arc<dyn Face>, id: Value, method: &str, mut params: Value) -> Running {
    params["_meta"][VERSION] = json!("2026-07-28");
    params["_meta"][CAPABILITIES] = json!({});
    let request = Request { id, method: method.to_owned(), params: Some(params) };
    Running::start(Arc::clone(face), request)
}

async fn told(running: &mut Running) -> Value {
    match running.step().await {
        Step::Notification(message) => message,
        other => panic!("{other:?}"),
    }
}

async fn done(running: &mut Running) -> Result<Value, ErrorObject> {
    match running.step().await {
        Step::Done(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

fn question() -> InputRequest {
    let params = Some(json!({ "message": "well?", "odd": 1 }));
    InputRequest { method: "elicitation/create".to_owned(), params }
}

#[tokio::test]
async fn between_legacy_and_legacy_all_passes() {
    let server = Server::new(Era::Legacy);
    let client = Legacy::of(&server).await;
    let greeting = client.face.greeting(Era::Legacy).await.unwrap().into_initialize("2025-03-26");
    assert_eq!(greeting["protocolVersion"], "2025-03-26");
    assert_eq!((&greeting["serverInfo"]["icons"], &greeting["odd"]), (&json!([]), &json!(1)));
    assert_eq!(greeting["capabilities"]["odd"], json!([1]));

    let params = json!({ "odd": { "a": 1e3 }, "_meta": { "progressToken": "t", "odd": 2 } });
    let result = client.ask("odd/method", params.clone()).await.unwrap();
    assert_eq!(result, json!({ "got": params, "odd": 1.5 }));
    let error = client.ask("missing", json!({})).await.unwrap_err();
    assert_eq!((error.code, error.data), (-32002, Some(json!(1))));
    for method in ["notifications/odd", "notifications/roots/list_changed"] {
        client.face.notification(method.to_owned(), Some(json!({ "a": 1 }))).await;
        assert_eq!(server.last(method), json!({ "a": 1 }));
    }
    server.sink().notification(None, "notifications/odd", Some(json!({ "b": 1 })));
    assert_eq!(client.told.next().await["params"]["b"], 1);

    let asking = client.ask("tools/call", json!({ "name": "ask" }));
    let answering = async {
        let asked = client.told.next().await;
        assert_eq!(asked["params"], question().params.unwrap());
        client.questions.answer(Response { id: asked["id"].clone(), outcome: Ok(json!("yes")) });
    };
    let (result, ()) = tokio::join!(asking, answering);
    assert_eq!(result.unwrap()["asked"], "yes");
    assert!(!server.methods().contains(&"notifications/initialized".to_owned()));
}

#[tokio::test]
async fn a_modern_client_at_a_legacy_server() {
    let server = Server::new(Era::Legacy);
    let face = open(&server, Era::Modern, None).await;
    let greeting = face.greeting(Era::Modern).await.unwrap().into_discover();
    assert_eq!(greeting["_meta"]["io.modelcontextprotocol/serverInfo"]["icons"], json!([]));
    assert!(greeting.get("protocolVersion").is_none() && greeting.get("serverInfo").is_none());

    let mut running = modern(&face, json!(1), "tools/list", json!({ "cursor": "c" }));
    let result = done(&mut running).await.unwrap();
    assert_eq!(result["got"], json!({ "cursor": "c" }), "what only its era knows is left out");
    assert_eq!((&result["resultType"], &result["ttlMs"]), (&json!("complete"), &json!(0)));
    let error = done(&mut modern(&face, json!(1), "missing", json!({}))).await.unwrap_err();
    assert_eq!(error.code, -32602);
    let refused = done(&mut modern(&face, json!(1), "ping", json!({}))).await.unwrap_err();
    assert_eq!(refused.code, -32601);

    let mut running = modern(&face, json!(1), "tools/call", json!({ "name": "ask" }));
    assert!(matches!(running.step().await, Step::Waiting));
    let asked = running.input_required("state");
    assert_eq!(asked["inputRequests"]["1"]["params"], question().params.unwrap());
    running.answer(json!({ "1": "yes" }).as_object().unwrap());
    assert_eq!(done(&mut running).await.unwrap()["asked"], "yes");

    let level = json!({ "_meta": { "io.modelcontextprotocol/logLevel": "debug" } });
    done(&mut modern(&face, json!(1), "tools/list", level)).await.unwrap();
    assert_eq!(server.last("logging/setLevel"), json!({ "level": "debug" }));
}

#[tokio::test]
async fn the_same_ids_and_tokens_of_two_clients_are_told_apart() {
    for era in [Era::Legacy, Era::Modern] {
        let server = Server::new(era);
        let face = open(&server, Era::Modern, None).await;
        let params = |n| json!({ "name": "progress", "n": n, "_meta": { "progressToken": "t" } });
        let mut one = modern(&face, json!(1), "tools/call", params(1));
        let mut two = modern(&face, json!(1), "tools/call", params(2));
        for (running, n) in [(&mut one, 1), (&mut two, 2)] {
            let message = told(running).await;
            assert_eq!(message["params"], json!({ "progressToken": "t", "progress": n }));
            done(running).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_modern_client_listens_at_a_legacy_server() {
    let server = Server::new(Era::Legacy);
    let face = open(&server, Era::Modern, None).await;
    let filter = json!({ "toolsListChanged": true, "promptsListChanged": true,
                         "resourceSubscriptions": ["a:1"] });
    let listen = |id: &str| {
        modern(&face, json!(id), "subscriptions/listen", json!({ "notifications": filter }))
    };
    let (mut one, mut two) = (listen("one"), listen("two"));
    for (running, id) in [(&mut one, "one"), (&mut two, "two")] {
        let acknowledged = told(running).await;
        assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION], id);
        let accepted = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:1"] });
        assert_eq!(acknowledged["params"]["notifications"], accepted, "what the server offers");
    }
    let sink = server.sink();
    sink.notification(None, "notifications/prompts/list_changed", None);
    sink.notification(None, "notifications/resources/updated", Some(json!({ "uri": "a:2" })));
    sink.notification(None, "notifications/resources/updated", Some(json!({ "uri": "a:1" })));
    sink.notification(None, "notifications/tools/list_changed", None);
    for (running, id) in [(&mut one, "one"), (&mut two, "two")] {
        let updated = told(running).await;
        assert_eq!(updated["params"], json!({ "uri": "a:1", "_meta": { SUBSCRIPTION: id } }));
        assert_eq!(told(running).await["method"], "notifications/tools/list_changed");
    }
    drop(one);
    let until = |expected: bool| {
        let server = server.clone();
        async move {
            let gone = "resources/unsubscribe".to_owned();
            while server.methods().contains(&gone) != expected {
                tokio::task::yield_now().await;
            }
        }
    };
    assert!(!server.methods().contains(&"resources/unsubscribe".to_owned()));
    drop(two);
    tokio::time::timeout(Duration::from_secs(10), until(true)).await.unwrap();
}

#[tokio::test]
async fn a_legacy_client_at_a_modern_server() {
    let server = Server::new(Era::Modern);
    let client = Legacy::of(&server).await;
    let greeting = client.face.greeting(Era::Legacy).await.unwrap().into_initialize("2025-11-25");
    assert_eq!(greeting["serverInfo"]["name"], "s");
    assert!(["ttlMs", "supportedVersions", "_meta"].iter().all(|key| greeting.get(key).is_none()));

    // What the server announces is listened to, as soon as the client is ready.
    let listened = server.last("subscriptions/listen");
    assert_eq!(listened, json!({ "notifications": { "toolsListChanged": true } }));
    let told = client.told.next().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert!(told["params"].get("_meta").is_none(), "{told}");

    let asking = client.ask("tools/call", json!({ "name": "ask" }));
    let answering = async {
        let asked = client.told.next().await;
        assert_eq!(asked["params"], question().params.unwrap());
        client.questions.answer(Response { id: asked["id"].clone(), outcome: Ok(json!("yes")) });
    };
    let (result, ()) = tokio::join!(asking, answering);
    assert_eq!(result.unwrap(), json!({ "asked": "yes" }), "without a resultType");

    client.ask("resources/subscribe", json!({ "uri": "a:1" })).await.unwrap();
    let listened = server.last("subscriptions/listen");
    assert_eq!(listened["notifications"]["resourceSubscriptions"], json!(["a:1"]));
    client.ask("resources/unsubscribe", json!({ "uri": "a:1" })).await.unwrap();
    let listened = server.last("subscriptions/listen");
    assert!(listened["notifications"].get("resourceSubscriptions").is_none());
    client.ask("logging/setLevel", json!({ "level": "error" })).await.unwrap();
    let result = client.ask("tools/list", json!({})).await.unwrap();
    assert_eq!(result["got"]["_meta"]["io.modelcontextprotocol/logLevel"], "error");
}

#[tokio::test]
async fn between_modern_and_modern_all_passes() {
    let server = Server::new(Era::Modern);
    let face = open(&server, Era::Modern, None).await;
    let mut running = modern(&face, json!(1), "odd/method", json!({ "odd": 1 }));
    let got = &done(&mut running).await.unwrap()["got"];
    assert_eq!((&got["odd"], &got["_meta"][VERSION]), (&json!(1), &json!("2026-07-28")));

    let mut running = modern(&face, json!(1), "tools/call", json!({ "name": "ask" }));
    let asked = done(&mut running).await.unwrap();
    assert_eq!(asked["requestState"], "of the server");
    let retry = json!({ "name": "ask", "requestState": "of the server",
                        "inputResponses": { "q": "yes" } });
    let mut running = modern(&face, json!(2), "tools/call", retry);
    assert_eq!(done(&mut running).await.unwrap()["asked"], "yes");

    let params = json!({ "notifications": { "toolsListChanged": true } });
    let mut running = modern(&face, json!("l"), "subscriptions/listen", params);
    for method in ["subscriptions/acknowledged", "tools/list_changed"] {
        let message = told(&mut running).await;
        assert_eq!(message["method"], format!("notifications/{method}"));
        assert_eq!(message["params"]["_meta"][SUBSCRIPTION], "l", "by the client's own id");
    }
}
