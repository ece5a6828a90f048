//! Every pair of eras, against a server that does what a test wants.

mod policy;

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
use toolgate_broker::{RawChannel, SendPermit};
use toolgate_host::{HostSettings, PassthroughGuard};
use toolgate_mcp::{ErrorObject, JsonRpcRequest, JsonRpcResponse, codes, meta};
use toolgate_upstream::{
    ConnectionClient, ConnectionHandler, InputRequest, RawRequest, RelatedRequest, RequestError,
};

use super::{PassthroughFactory, connection::ServerConnector};
use crate::{
    channel::{ClientChannel, MessageSink, PendingInputRequests},
    era::Era,
    modern::{ModernRequest, RequestEvent},
    service::{AuthenticatedClient, ClientInfo, IncomingRequest, McpService, ServiceFactory},
};

type ReceivedMessage = (String, Option<Value>);

/// A server with results for tests.
#[derive(Clone)]
struct Server {
    era: Era,
    info: Arc<Value>,
    handler: Arc<Mutex<Option<Arc<dyn ConnectionHandler>>>>,
    /// Requests and notifications that came, in their order.
    received: Arc<Mutex<Vec<ReceivedMessage>>>,
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
        let info = match era {
            Era::Legacy => json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities,
                                   "serverInfo": { "name": "s", "icons": [] }, "odd": 1 }),
            Era::Modern => json!({ "supportedVersions": ["2026-07-28"], "resultType": "complete",
                                   "capabilities": capabilities, "ttlMs": 7, "odd": 1,
                                   "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s" } } }),
        };
        Self {
            era,
            info: Arc::new(info),
            handler: Arc::default(),
            received: Arc::default(),
            results: Arc::default(),
            closed: CancellationToken::new(),
        }
    }

    fn handler(&self) -> Arc<dyn ConnectionHandler> {
        self.handler.lock().clone().unwrap()
    }

    fn methods(&self) -> Vec<String> {
        self.received.lock().iter().map(|(method, _)| method.clone()).collect()
    }

    fn last(&self, method: &str) -> Value {
        let received = self.received.lock();
        let last = received.iter().rev().find(|(received, _)| received == method);
        last.unwrap_or_else(|| panic!("no {method}")).1.clone().unwrap()
    }

    async fn answer(&self, request: RawRequest) -> Result<Value, ErrorObject> {
        let RawRequest { key, method, params, cancel, .. } = request;
        self.received.lock().push((method.clone(), params.clone()));
        let params = params.unwrap_or_default();
        let page = params.get("cursor").and_then(Value::as_str).unwrap_or_default();
        if let Some(result) = self.results.lock().get(&format!("{method}{page}")) {
            return Ok(result.clone());
        }
        match (method.as_str(), self.era) {
            ("tools/call", Era::Legacy) if params["name"] == "ask" => {
                let related = Some(RelatedRequest { key, is_certain: true });
                let asked = self.handler().input_request(related, input_request()).await?;
                Ok(json!({ "asked": asked }))
            }
            ("tools/call", Era::Modern) if params["name"] == "ask" => {
                if let Some(responses) = params.get("inputResponses") {
                    assert_eq!(params["requestState"], "of the server");
                    return Ok(json!({ "resultType": "complete", "asked": responses["q"] }));
                }
                let InputRequest { method, params } = input_request();
                let requests = json!({ "q": { "method": method, "params": params } });
                Ok(json!({ "resultType": "input_required", "inputRequests": requests,
                           "requestState": "of the server" }))
            }
            ("tools/call", _) if params["name"] == "progress" => {
                let token = &params["_meta"]["progressToken"];
                let report = json!({ "progressToken": token, "progress": params["n"] });
                self.handler().notification(None, "notifications/progress", Some(report));
                Ok(json!({}))
            }
            ("subscriptions/listen", Era::Modern) => {
                let params = json!({ "_meta": { meta::SUBSCRIPTION_ID: 99 } });
                let method = "notifications/subscriptions/acknowledged";
                self.handler().notification(Some(&key), method, Some(params.clone()));
                let method = "notifications/tools/list_changed";
                self.handler().notification(Some(&key), method, Some(params.clone()));
                cancel.cancelled().await;
                self.received.lock().push(("cancelled".to_owned(), None));
                Ok(params)
            }
            ("resources/read", _) if params["uri"] == "x:words" => {
                let words = "not for strangers: Ada Lovelace owes us 48,200 EUR since the spring";
                Err(ErrorObject::invalid_params(words, None))
            }
            ("missing", _) => {
                Err(ErrorObject::new(codes::RESOURCE_NOT_FOUND, "gone", Some(json!(1))))
            }
            _ => Ok(json!({ "got": params, "odd": 1.5 })),
        }
    }
}

impl ServerConnector for Server {
    fn connect(
        &self,
        _owner: Arc<str>,
        _era: Era,
        _client: ConnectionClient,
        handler: Arc<dyn ConnectionHandler>,
    ) -> BoxFuture<'_, Result<Arc<dyn RawChannel>, ErrorObject>> {
        *self.handler.lock() = Some(handler);
        Box::pin(std::future::ready(Ok(Arc::new(self.clone()) as Arc<dyn RawChannel>)))
    }
}

impl RawChannel for Server {
    fn era(&self) -> Era {
        self.era
    }

    fn server_info(&self) -> &Value {
        &self.info
    }

    fn request(
        &self,
        _permit: SendPermit,
        request: RawRequest,
    ) -> BoxFuture<'_, Result<Value, RequestError>> {
        Box::pin(async move { self.answer(request).await.map_err(RequestError::Refused) })
    }

    fn notify<'a>(
        &'a self,
        _permit: SendPermit,
        method: &'a str,
        params: Option<Value>,
    ) -> BoxFuture<'a, Result<(), RequestError>> {
        self.received.lock().push((method.to_owned(), params));
        Box::pin(std::future::ready(Ok(())))
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.closed.cancelled())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.cancel();
        Box::pin(std::future::ready(()))
    }
}

/// Records the messages to a legacy client.
#[derive(Debug, Default)]
struct RecordingSink {
    messages: Mutex<VecDeque<Value>>,
    more: Notify,
}

impl MessageSink for RecordingSink {
    fn send(&self, message: Value) {
        self.messages.lock().push_back(message);
        self.more.notify_one();
    }

    fn finish(&self, _answer: Option<Value>) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl RecordingSink {
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
    service: Arc<dyn McpService>,
    sink: Arc<RecordingSink>,
    pending: Arc<PendingInputRequests>,
}

impl Legacy {
    async fn of(server: &Server) -> Self {
        Self::guarded(server, None).await
    }

    async fn guarded(server: &Server, guard: Option<Arc<PassthroughGuard>>) -> Self {
        let (sink, pending) = (
            Arc::new(RecordingSink::default()),
            PendingInputRequests::new(Duration::from_secs(10)),
        );
        let channel =
            ClientChannel::legacy(Arc::default(), Arc::clone(&sink) as _, Arc::clone(&pending));
        let service = open_guarded(server, Era::Legacy, Some(channel), guard).await;
        service.notification("notifications/initialized".to_owned(), None).await;
        Self { service, sink, pending }
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        let outbox = Arc::clone(&self.sink) as Arc<dyn MessageSink>;
        let channel = ClientChannel::legacy(Arc::default(), outbox, Arc::clone(&self.pending));
        let asked = IncomingRequest {
            id: json!("id"),
            method: method.to_owned(),
            params: Some(params),
            era: Era::Legacy,
            channel,
            cancel: CancellationToken::new(),
        };
        self.service.request(asked).await
    }
}

async fn open(server: &Server, era: Era, channel: Option<ClientChannel>) -> Arc<dyn McpService> {
    open_guarded(server, era, channel, None).await
}

async fn open_guarded(
    server: &Server,
    era: Era,
    channel: Option<ClientChannel>,
    guard: Option<Arc<PassthroughGuard>>,
) -> Arc<dyn McpService> {
    let (info, capabilities) = (json!({}), serde_json::Map::new());
    let client = ClientInfo {
        caller: AuthenticatedClient::local(),
        era,
        info,
        capabilities,
        requested_version: None,
        channel,
    };
    let server = Arc::new(server.clone());
    let settings = HostSettings::new(Vec::new());
    let unguarded = || Arc::new(PassthroughGuard::new(&settings, &"s".into()));
    let guard = guard.unwrap_or_else(unguarded);
    PassthroughFactory::of(server, guard).open(client).await.unwrap()
}

fn modern(
    service: &Arc<dyn McpService>,
    id: Value,
    method: &str,
    mut params: Value,
) -> ModernRequest {
    params["_meta"][meta::PROTOCOL_VERSION] = json!("2026-07-28");
    params["_meta"][meta::CLIENT_CAPABILITIES] = json!({});
    let request = JsonRpcRequest { id, method: method.to_owned(), params: Some(params) };
    ModernRequest::start(Arc::clone(service), request, None)
}

async fn notification(running: &mut ModernRequest) -> Value {
    match running.next_event().await {
        RequestEvent::Notification(message) => message,
        other => panic!("{other:?}"),
    }
}

async fn done(running: &mut ModernRequest) -> Result<Value, ErrorObject> {
    match running.next_event().await {
        RequestEvent::Finished(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

fn input_request() -> InputRequest {
    let params = Some(json!({ "message": "well?", "odd": 1 }));
    InputRequest { method: "elicitation/create".to_owned(), params }
}

#[tokio::test]
async fn everything_passes_between_legacy_peers() {
    let server = Server::new(Era::Legacy);
    let client = Legacy::of(&server).await;
    let greeting =
        client.service.server_info(Era::Legacy).await.unwrap().into_initialize("2025-03-26");
    assert_eq!(greeting["protocolVersion"], "2025-03-26");
    assert_eq!((&greeting["serverInfo"]["icons"], &greeting["odd"]), (&json!([]), &json!(1)));
    assert_eq!(greeting["capabilities"]["odd"], json!([1]));

    let params = json!({ "odd": { "a": 1e3 }, "_meta": { "progressToken": "t", "odd": 2 } });
    let result = client.ask("odd/method", params.clone()).await.unwrap();
    assert_eq!(result, json!({ "got": params, "odd": 1.5 }));
    let error = client.ask("missing", json!({})).await.unwrap_err();
    assert_eq!((error.code, error.data), (-32002, Some(json!(1))));
    for method in ["notifications/odd", "notifications/roots/list_changed"] {
        client.service.notification(method.to_owned(), Some(json!({ "a": 1 }))).await;
        assert_eq!(server.last(method), json!({ "a": 1 }));
    }
    server.handler().notification(None, "notifications/odd", Some(json!({ "b": 1 })));
    assert_eq!(client.sink.next().await["params"]["b"], 1);

    let asking = client.ask("tools/call", json!({ "name": "ask" }));
    let answering = async {
        let asked = client.sink.next().await;
        assert_eq!(asked["params"], input_request().params.unwrap());
        client
            .pending
            .respond(JsonRpcResponse { id: asked["id"].clone(), outcome: Ok(json!("yes")) });
    };
    let (result, ()) = tokio::join!(asking, answering);
    assert_eq!(result.unwrap()["asked"], "yes");
    assert!(!server.methods().contains(&"notifications/initialized".to_owned()));
}

#[tokio::test]
async fn a_modern_client_with_a_legacy_server() {
    let server = Server::new(Era::Legacy);
    let service = open(&server, Era::Modern, None).await;
    let greeting = service.server_info(Era::Modern).await.unwrap().into_discover();
    assert_eq!(greeting["_meta"]["io.modelcontextprotocol/serverInfo"]["icons"], json!([]));
    assert!(greeting.get("protocolVersion").is_none() && greeting.get("serverInfo").is_none());

    let mut running = modern(&service, json!(1), "tools/list", json!({ "cursor": "c" }));
    let result = done(&mut running).await.unwrap();
    assert_eq!(result["got"], json!({ "cursor": "c" }), "what only its era knows is left out");
    assert_eq!((&result["resultType"], &result["ttlMs"]), (&json!("complete"), &json!(0)));
    let error = done(&mut modern(&service, json!(1), "missing", json!({}))).await.unwrap_err();
    assert_eq!(error.code, -32602);
    let refused = done(&mut modern(&service, json!(1), "ping", json!({}))).await.unwrap_err();
    assert_eq!(refused.code, -32601);

    let mut running = modern(&service, json!(1), "tools/call", json!({ "name": "ask" }));
    assert!(matches!(running.next_event().await, RequestEvent::InputRequired));
    let asked = running.input_required("state");
    assert_eq!(asked["inputRequests"]["1"]["params"], input_request().params.unwrap());
    running.respond(json!({ "1": "yes" }).as_object().unwrap());
    assert_eq!(done(&mut running).await.unwrap()["asked"], "yes");

    let level = json!({ "_meta": { "io.modelcontextprotocol/logLevel": "debug" } });
    done(&mut modern(&service, json!(1), "tools/list", level)).await.unwrap();
    assert_eq!(server.last("logging/setLevel"), json!({ "level": "debug" }));
}

#[tokio::test]
async fn the_same_ids_and_tokens_of_two_clients_are_kept_apart() {
    for era in [Era::Legacy, Era::Modern] {
        let server = Server::new(era);
        let service = open(&server, Era::Modern, None).await;
        let params = |n| json!({ "name": "progress", "n": n, "_meta": { "progressToken": "t" } });
        let mut one = modern(&service, json!(1), "tools/call", params(1));
        let mut two = modern(&service, json!(1), "tools/call", params(2));
        for (running, n) in [(&mut one, 1), (&mut two, 2)] {
            let message = notification(running).await;
            assert_eq!(message["params"], json!({ "progressToken": "t", "progress": n }));
            done(running).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_modern_client_listens_at_a_legacy_server() {
    let server = Server::new(Era::Legacy);
    let service = open(&server, Era::Modern, None).await;
    let filter = json!({ "toolsListChanged": true, "promptsListChanged": true,
                         "resourceSubscriptions": ["a:1"] });
    let listen = |id: &str| {
        modern(&service, json!(id), "subscriptions/listen", json!({ "notifications": filter }))
    };
    let (mut one, mut two) = (listen("one"), listen("two"));
    for (running, id) in [(&mut one, "one"), (&mut two, "two")] {
        let acknowledged = notification(running).await;
        assert_eq!(acknowledged["params"]["_meta"][meta::SUBSCRIPTION_ID], id);
        let accepted = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:1"] });
        assert_eq!(acknowledged["params"]["notifications"], accepted, "what the server offers");
    }
    let handler = server.handler();
    handler.notification(None, "notifications/prompts/list_changed", None);
    handler.notification(None, "notifications/resources/updated", Some(json!({ "uri": "a:2" })));
    handler.notification(None, "notifications/resources/updated", Some(json!({ "uri": "a:1" })));
    handler.notification(None, "notifications/tools/list_changed", None);
    for (running, id) in [(&mut one, "one"), (&mut two, "two")] {
        let updated = notification(running).await;
        assert_eq!(
            updated["params"],
            json!({ "uri": "a:1", "_meta": { meta::SUBSCRIPTION_ID: id } })
        );
        assert_eq!(notification(running).await["method"], "notifications/tools/list_changed");
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
async fn a_legacy_client_with_a_modern_server() {
    let server = Server::new(Era::Modern);
    let client = Legacy::of(&server).await;
    let greeting =
        client.service.server_info(Era::Legacy).await.unwrap().into_initialize("2025-11-25");
    assert_eq!(greeting["serverInfo"]["name"], "s");
    assert!(["ttlMs", "supportedVersions", "_meta"].iter().all(|key| greeting.get(key).is_none()));

    // What the server announces is listened to, as soon as the client is ready.
    let listened = server.last("subscriptions/listen");
    assert_eq!(listened, json!({ "notifications": { "toolsListChanged": true } }));
    let changed = client.sink.next().await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert!(changed["params"].get("_meta").is_none(), "{changed}");

    let asking = client.ask("tools/call", json!({ "name": "ask" }));
    let answering = async {
        let asked = client.sink.next().await;
        assert_eq!(asked["params"], input_request().params.unwrap());
        client
            .pending
            .respond(JsonRpcResponse { id: asked["id"].clone(), outcome: Ok(json!("yes")) });
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
async fn everything_passes_between_modern_peers() {
    let server = Server::new(Era::Modern);
    let service = open(&server, Era::Modern, None).await;
    let mut running = modern(&service, json!(1), "odd/method", json!({ "odd": 1 }));
    let got = &done(&mut running).await.unwrap()["got"];
    assert_eq!(
        (&got["odd"], &got["_meta"][meta::PROTOCOL_VERSION]),
        (&json!(1), &json!("2026-07-28"))
    );

    let mut running = modern(&service, json!(1), "tools/call", json!({ "name": "ask" }));
    let asked = done(&mut running).await.unwrap();
    assert_eq!(asked["requestState"], "of the server");
    let retry = json!({ "name": "ask", "requestState": "of the server",
                        "inputResponses": { "q": "yes" } });
    let mut running = modern(&service, json!(2), "tools/call", retry);
    assert_eq!(done(&mut running).await.unwrap()["asked"], "yes");

    let params = json!({ "notifications": { "toolsListChanged": true } });
    let mut running = modern(&service, json!("l"), "subscriptions/listen", params);
    for method in ["subscriptions/acknowledged", "tools/list_changed"] {
        let message = notification(&mut running).await;
        assert_eq!(message["method"], format!("notifications/{method}"));
        assert_eq!(
            message["params"]["_meta"][meta::SUBSCRIPTION_ID],
            "l",
            "by the client's own id"
        );
    }
}
