//! Matches requests and responses on one connection.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    clock::{OpenInputRequests, PERSON_TIMEOUT},
    connection::{ConnectionHandler, InputRequest, RelatedRequest},
    failure::HttpError,
};
use crate::{ErrorObject, JsonObject, meta::SUBSCRIPTION_ID, methods, response_message};

/// The most open requests of a server. A server that asks without end and never reads would fill
/// the memory with responses.
const MAX_INPUT_REQUESTS: usize = 64;

/// How much of a line is kept that is no message.
const KEPT_OF_STRAY: usize = 200;

/// Carries responses to a server's requests.
pub(super) type Responder = Arc<dyn Fn(Value) -> BoxFuture<'static, ()> + Send + Sync>;

/// Why a request has no result.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// The error of the server.
    Refused(ErrorObject),
    /// There is a response that cannot be read.
    Unreadable(String),
    /// The connection has ended.
    Closed,
    /// The stream of the response ended without it.
    NoResponse,
    Http(HttpError),
}

impl From<HttpError> for ExchangeError {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}

/// The requests of both ends of one connection.
pub(super) struct Exchange {
    handler: Arc<dyn ConnectionHandler>,
    next_id: AtomicI64,
    pending: Mutex<HashMap<i64, Pending>>,
    /// The requests of the server by the text of their ids. Each can be withdrawn.
    input_requests: Mutex<HashMap<String, CancellationToken>>,
    open_input_requests: OpenInputRequests,
    /// The first line that the server wrote and that is no message.
    stray: OnceLock<String>,
    closed: CancellationToken,
}

struct Pending {
    key: Value,
    /// The token that notifications of progress repeat.
    progress_token: Option<Value>,
    is_subscription: bool,
    sent: Arc<AtomicBool>,
    response: oneshot::Sender<Result<Value, ExchangeError>>,
}

/// A request whose response is awaited. Dropping it forgets the request.
pub(super) struct AwaitedResponse {
    exchange: Arc<Exchange>,
    id: i64,
    sent: Arc<AtomicBool>,
    response: oneshot::Receiver<Result<Value, ExchangeError>>,
}

impl Exchange {
    pub(super) fn new(handler: Arc<dyn ConnectionHandler>) -> Arc<Self> {
        Arc::new(Self {
            handler,
            next_id: AtomicI64::new(1),
            pending: Mutex::default(),
            input_requests: Mutex::default(),
            open_input_requests: OpenInputRequests::default(),
            stray: OnceLock::new(),
            closed: CancellationToken::new(),
        })
    }

    pub(super) fn handler(&self) -> &dyn ConnectionHandler {
        self.handler.as_ref()
    }

    /// Keeps the first line that is no message. It has no secrets.
    pub(super) fn note_stray(&self, line: &str) {
        self.stray.get_or_init(|| line.chars().take(KEPT_OF_STRAY).collect());
    }

    pub(super) fn first_stray(&self) -> Option<&str> {
        self.stray.get().map(String::as_str)
    }

    /// Registers a request before it is sent.
    pub(super) fn begin(
        self: &Arc<Self>,
        key: Value,
        method: &str,
        params: Option<&Value>,
    ) -> AwaitedResponse {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, response) = oneshot::channel();
        let sent = Arc::new(AtomicBool::new(false));
        let meta = params.and_then(|params| params.get("_meta"));
        let progress_token = meta.and_then(|meta| meta.get(crate::meta::PROGRESS_TOKEN)).cloned();
        let is_subscription = method == methods::LISTEN;
        let pending = Pending {
            key,
            progress_token,
            is_subscription,
            sent: Arc::clone(&sent),
            response: sender,
        };
        self.pending.lock().insert(id, pending);
        // `close` may have run before the insertion.
        if self.closed.is_cancelled() {
            self.pending.lock().remove(&id);
        }
        AwaitedResponse { exchange: Arc::clone(self), id, sent, response }
    }

    /// Notes that a request may have reached the server from now on.
    pub(super) fn mark_sent(&self, id: i64) {
        if let Some(pending) = self.pending.lock().get(&id) {
            pending.sent.store(true, Ordering::Release);
        }
    }

    pub(super) fn is_pending(&self, id: i64) -> bool {
        self.pending.lock().contains_key(&id)
    }

    pub(super) fn open_input_requests(&self) -> &OpenInputRequests {
        &self.open_input_requests
    }

    /// Handles a message of the server. Returns whether it is a message. `stream` is the request on
    /// whose stream it arrived.
    pub(super) fn receive(
        self: &Arc<Self>,
        message: Value,
        stream: Option<i64>,
        responder: &Responder,
    ) -> bool {
        let Value::Object(mut message) = message else { return false };
        let id = message.remove("id").filter(|id| !id.is_null());
        // Log lines can have ids and methods too. Only JSON with `jsonrpc` is a message.
        let is_json_rpc = message.contains_key("jsonrpc");
        let is_response = message.contains_key("result") || message.contains_key("error");
        match (message.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) if is_json_rpc => {
                let request = InputRequest { method, params: message.remove("params") };
                self.input_request(id, request, stream, responder);
            }
            (Some(Value::String(method)), None) if is_json_rpc => {
                self.notification(&method, message.remove("params"), stream);
            }
            (None, Some(id)) if is_json_rpc || is_response => {
                if let Some(id) = number(&id) {
                    self.respond(id, read_response(message));
                }
            }
            // Servers leave out the id of a request that they could not read; on a stream it is
            // known.
            (None, None) if is_response => {
                if let (Some(id), true) = (stream, message.contains_key("error")) {
                    self.respond(id, read_response(message));
                }
            }
            _ => return false,
        }
        true
    }

    /// Ends the wait for the response to a request.
    pub(super) fn respond(&self, id: i64, response: Result<Value, ExchangeError>) {
        let pending = self.pending.lock().remove(&id);
        if let Some(pending) = pending {
            let _ = pending.response.send(response);
        }
    }

    /// Ends everything.
    pub(super) fn close(&self) {
        self.closed.cancel();
        // Dropping the senders ends all waits.
        let pending = std::mem::take(&mut *self.pending.lock());
        drop(pending);
        let input_requests = std::mem::take(&mut *self.input_requests.lock());
        input_requests.values().for_each(CancellationToken::cancel);
    }

    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    fn notification(&self, method: &str, params: Option<Value>, stream: Option<i64>) {
        let param = |name: &str| params.as_ref().and_then(|params| params.get(name));
        if method == methods::CANCELLED
            && let Some(id) = param("requestId")
        {
            let withdrawn = self.input_requests.lock().remove(&id.to_string());
            if let Some(withdrawn) = withdrawn {
                withdrawn.cancel();
            } else if let Some(id) = number(id).filter(|id| self.is_subscription(*id)) {
                // From 2026-07-28 on, a server ends a subscription in this way.
                self.respond(id, Err(ExchangeError::NoResponse));
            }
            // The id belongs to this connection and means nothing beyond it.
            return;
        }
        let about = {
            let pending = self.pending.lock();
            let by_token = || {
                let token = param("progressToken").filter(|_| method == methods::PROGRESS)?;
                pending.values().find(|request| request.progress_token.as_ref() == Some(token))
            };
            let by_subscription = || {
                let id = number(param("_meta")?.get(SUBSCRIPTION_ID)?)?;
                pending.get(&id)
            };
            let by_stream = || pending.get(&stream?);
            let request = by_token().or_else(by_subscription).or_else(by_stream);
            request.map(|request| request.key.clone())
        };
        self.handler.notification(about.as_ref(), method, params);
    }

    fn is_subscription(&self, id: i64) -> bool {
        self.pending.lock().get(&id).is_some_and(|request| request.is_subscription)
    }

    fn input_request(
        self: &Arc<Self>,
        id: Value,
        request: InputRequest,
        stream: Option<i64>,
        responder: &Responder,
    ) {
        let responder = Arc::clone(responder);
        let withdrawn = CancellationToken::new();
        {
            let mut open = self.input_requests.lock();
            if open.len() >= MAX_INPUT_REQUESTS || open.contains_key(&id.to_string()) {
                return;
            }
            open.insert(id.to_string(), withdrawn.clone());
        }
        // Called here and not in the task, so that the order of messages is kept.
        let answering = if request.method == methods::PING {
            Box::pin(async { Ok(json!({})) })
        } else {
            self.handler.input_request(self.related(stream), request)
        };
        let exchange = Arc::clone(self);
        tokio::spawn(async move {
            let answering = async {
                let _open = exchange.open_input_requests.open();
                let late = || ErrorObject::internal_error("nobody answered in time", None);
                let answer = tokio::time::timeout(PERSON_TIMEOUT, answering).await;
                responder(response_message(&id, answer.unwrap_or_else(|_| Err(late())))).await;
            };
            withdrawn.run_until_cancelled(answering).await;
            exchange.input_requests.lock().remove(&id.to_string());
        });
    }

    /// The request to which an input request belongs.
    fn related(&self, stream: Option<i64>) -> Option<RelatedRequest> {
        let pending = self.pending.lock();
        let related =
            |request: &Pending, is_certain| RelatedRequest { key: request.key.clone(), is_certain };
        if let Some(request) = stream.and_then(|id| pending.get(&id)) {
            return Some(related(request, true));
        }
        let mut others = pending.values().filter(|request| !request.is_subscription);
        let only = others.next().filter(|_| others.next().is_none());
        only.map(|request| related(request, false))
    }
}

impl AwaitedResponse {
    pub(super) fn id(&self) -> i64 {
        self.id
    }

    /// Whether the request may have reached the server.
    pub(super) fn was_sent(&self) -> bool {
        self.sent.load(Ordering::Acquire)
    }

    /// Waits for the response.
    pub(super) async fn received(&mut self) -> Result<Value, ExchangeError> {
        (&mut self.response).await.unwrap_or(Err(ExchangeError::Closed))
    }
}

impl Drop for AwaitedResponse {
    fn drop(&mut self) {
        self.exchange.pending.lock().remove(&self.id);
    }
}

fn read_response(mut message: JsonObject) -> Result<Value, ExchangeError> {
    if let Some(error) = message.get("error") {
        return Err(ExchangeError::Refused(ErrorObject::from_any(error)));
    }
    message
        .remove("result")
        .ok_or_else(|| ExchangeError::Unreadable("it has neither a result nor an error".to_owned()))
}

/// An id of ours. Some servers send the number back as a string.
pub(super) fn number(id: &Value) -> Option<i64> {
    id.as_i64().or_else(|| id.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    /// Answers only requests of the method `now`.
    struct Handler(mpsc::UnboundedSender<(Option<Value>, String)>);

    impl ConnectionHandler for Handler {
        fn notification(&self, about: Option<&Value>, method: &str, _params: Option<Value>) {
            self.0.send((about.cloned(), method.to_owned())).unwrap();
        }

        fn input_request(
            &self,
            about: Option<RelatedRequest>,
            request: InputRequest,
        ) -> BoxFuture<'static, Result<Value, ErrorObject>> {
            self.0.send((about.map(|about| about.key), request.method.clone())).unwrap();
            Box::pin(async move {
                if request.method == "now" { Ok(json!(1)) } else { std::future::pending().await }
            })
        }
    }

    type Received = mpsc::UnboundedReceiver<(Option<Value>, String)>;

    fn exchange() -> (Arc<Exchange>, Received, Responder, mpsc::UnboundedReceiver<Value>) {
        let (sink, received) = mpsc::unbounded_channel();
        let (sender, answers) = mpsc::unbounded_channel();
        let responder: Responder = Arc::new(move |answer| {
            let _ = sender.send(answer);
            Box::pin(async {})
        });
        (Exchange::new(Arc::new(Handler(sink))), received, responder, answers)
    }

    fn receive(
        exchange: &Arc<Exchange>,
        mut message: Value,
        stream: Option<i64>,
        responder: &Responder,
    ) {
        if let Some(message) = message.as_object_mut() {
            message.insert("jsonrpc".to_owned(), json!("2.0"));
        }
        exchange.receive(message, stream, responder);
    }

    #[test]
    fn log_lines_are_not_messages() {
        let (exchange, _received, responder, _answers) = exchange();
        for stray in [
            json!({ "hello": 1 }),
            json!({ "level": 30, "id": 1, "msg": "x" }),
            json!({ "level": "info", "method": "GET" }),
            json!("text"),
        ] {
            assert!(!exchange.receive(stray.clone(), None, &responder), "{stray}");
        }
        assert!(exchange.receive(json!({ "id": 7, "result": {} }), None, &responder));
    }

    #[tokio::test]
    async fn input_requests_of_a_server_are_limited() {
        let (exchange, mut received, responder, mut answers) = exchange();
        for id in 0..MAX_INPUT_REQUESTS + 10 {
            receive(&exchange, json!({ "id": id, "method": "later" }), None, &responder);
        }
        assert_eq!(received.len(), MAX_INPUT_REQUESTS);
        // A withdrawn request frees its slot.
        let withdrawn =
            json!({ "method": "notifications/cancelled", "params": { "requestId": 3 } });
        receive(&exchange, withdrawn, None, &responder);
        receive(&exchange, json!({ "id": "x", "method": "now" }), None, &responder);
        assert_eq!(answers.recv().await, Some(json!({ "jsonrpc": "2.0", "id": "x", "result": 1 })));
        receive(&exchange, json!({ "id": "y", "method": "ping" }), None, &responder);
        assert_eq!(answers.recv().await.unwrap()["result"], json!({}));
        while let Ok((_, method)) = received.try_recv() {
            assert!(method == "later" || method == "now", "{method}");
        }
        exchange.close();
        assert!(exchange.input_requests.lock().is_empty());
    }

    #[tokio::test]
    async fn an_input_request_belongs_to_its_request_or_the_only_open_one() {
        let (exchange, mut received, responder, _answers) = exchange();
        let meta = json!({ "_meta": { "progressToken": [1] } });
        let first = exchange.begin(json!("a"), "tools/call", Some(&meta));
        let question = json!({ "id": 1, "method": "q" });
        receive(&exchange, question, None, &responder);
        assert_eq!(received.try_recv().unwrap().0, Some(json!("a")));
        let listen = exchange.begin(json!("b"), "subscriptions/listen", None);
        receive(&exchange, json!({ "id": 2, "method": "q" }), None, &responder);
        assert_eq!(received.try_recv().unwrap().0, Some(json!("a")));
        let third = exchange.begin(json!("c"), "tools/call", None);
        let third_id = third.id();
        for (message, stream, about) in [
            (json!({ "id": 3, "method": "q" }), None, None),
            (json!({ "id": 4, "method": "q" }), Some(third_id), Some("c")),
            (json!({ "method": "n" }), None, None),
            (json!({ "method": "n" }), Some(third_id), Some("c")),
            (
                json!({ "method": "notifications/progress", "params": { "progressToken": [1] } }),
                Some(third_id),
                Some("a"),
            ),
            (
                json!({ "method": "n", "params": { "_meta": { SUBSCRIPTION_ID: listen.id().to_string() } } }),
                None,
                Some("b"),
            ),
        ] {
            receive(&exchange, message.clone(), stream, &responder);
            assert_eq!(received.try_recv().unwrap().0, about.map(|key| json!(key)), "{message}");
        }
        drop((first, third));
        assert!(!exchange.is_pending(third_id));
    }

    #[tokio::test]
    async fn unusual_responses_end_their_request() {
        let (exchange, _received, responder, _answers) = exchange();
        for (message, good) in [
            (json!({ "result": null }), true),
            (json!({ "error": "boom" }), false),
            (json!({ "jsonrpc": "2.0" }), false),
        ] {
            let mut waiting = exchange.begin(Value::Null, "x", None);
            let mut answer = message.clone();
            answer["id"] = json!(waiting.id().to_string());
            receive(&exchange, answer, None, &responder);
            assert_eq!(waiting.received().await.is_ok(), good, "{message}");
        }
        for odd in [json!(1), json!([]), json!({}), json!({ "id": 99 }), json!({ "method": 1 })] {
            receive(&exchange, odd, None, &responder);
        }
        let mut listen = exchange.begin(Value::Null, "subscriptions/listen", None);
        let ended =
            json!({ "method": "notifications/cancelled", "params": { "requestId": listen.id() } });
        receive(&exchange, ended, None, &responder);
        assert!(matches!(listen.received().await, Err(ExchangeError::NoResponse)));
        let mut last = exchange.begin(Value::Null, "x", None);
        exchange.close();
        assert!(matches!(last.received().await, Err(ExchangeError::Closed)));
        let mut late = exchange.begin(Value::Null, "x", None);
        assert!(matches!(late.received().await, Err(ExchangeError::Closed)));
    }
}
