//! Who waits for what on a line.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{ErrorObject, meta::SUBSCRIPTION_ID, methods};

use super::{ConnectionHandler, trouble::Trouble};
use crate::{
    clock::{Asking, PERSON_PATIENCE},
    input_handler::InputRequest,
    raw,
};

/// More questions than this at a time are not answered: a server that asks without end and never
/// reads would fill the memory with answers.
const MAX_QUESTIONS: usize = 64;

/// How answers to a server's questions get there.
pub(super) type Outlet = Arc<dyn Fn(Value) -> BoxFuture<'static, ()> + Send + Sync>;

/// The requests and questions of one line.
pub(super) struct Exchange {
    sink: Arc<dyn ConnectionHandler>,
    next_id: AtomicI64,
    pending: Mutex<HashMap<i64, Pending>>,
    /// By the text of their ids; each can be withdrawn.
    questions: Mutex<HashMap<String, CancellationToken>>,
    asking: Asking,
    closed: CancellationToken,
}

struct Pending {
    key: Value,
    /// The client's own token, which the server gives back.
    progress_token: Option<Value>,
    is_subscription: bool,
    answer: oneshot::Sender<Result<Value, Trouble>>,
}

/// A request whose answer is waited for. Dropping it forgets the request.
pub(super) struct Waiting<'a> {
    exchange: &'a Exchange,
    id: i64,
    answer: oneshot::Receiver<Result<Value, Trouble>>,
}

impl Exchange {
    pub(super) fn new(sink: Arc<dyn ConnectionHandler>) -> Arc<Self> {
        Arc::new(Self {
            sink,
            next_id: AtomicI64::new(1),
            pending: Mutex::default(),
            questions: Mutex::default(),
            asking: Asking::default(),
            closed: CancellationToken::new(),
        })
    }

    /// Notes a request before it is sent.
    pub(super) fn begin(&self, key: Value, method: &str, params: Option<&Value>) -> Waiting<'_> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let meta = params.and_then(|params| params.get("_meta"));
        let progress_token = meta.and_then(|meta| meta.get("progressToken")).cloned();
        let is_subscription = method == methods::LISTEN;
        let pending = Pending { key, progress_token, is_subscription, answer: sender };
        self.pending.lock().insert(id, pending);
        // Whoever closed the line in the meantime did not see this one.
        if self.closed.is_cancelled() {
            self.pending.lock().remove(&id);
        }
        Waiting { exchange: self, id, answer }
    }

    pub(super) fn is_pending(&self, id: i64) -> bool {
        self.pending.lock().contains_key(&id)
    }

    /// The questions that are open.
    pub(super) fn asking(&self) -> &Asking {
        &self.asking
    }

    /// Takes a message of the server. `stream` is the request on whose stream it came.
    pub(super) fn receive(self: &Arc<Self>, message: Value, stream: Option<i64>, outlet: &Outlet) {
        let Value::Object(mut message) = message else { return };
        let id = message.remove("id").filter(|id| !id.is_null());
        let method = message.remove("method");
        match (method, id) {
            (Some(Value::String(method)), Some(id)) => {
                let question = InputRequest { method, params: message.remove("params") };
                self.question(id, question, stream, outlet);
            }
            (Some(Value::String(method)), None) => {
                self.notification(&method, message.remove("params"), stream);
            }
            (Some(_), _) => {}
            (None, Some(id)) => {
                if let Some(id) = number(&id) {
                    self.answer(id, read_answer(message));
                }
            }
            // Servers leave out the id of what they could not read; on a stream it is known.
            (None, None) => {
                if let (Some(id), true) = (stream, message.contains_key("error")) {
                    self.answer(id, read_answer(message));
                }
            }
        }
    }

    /// Ends the wait for the answer to a request.
    pub(super) fn answer(&self, id: i64, answer: Result<Value, Trouble>) {
        let pending = self.pending.lock().remove(&id);
        if let Some(pending) = pending {
            let _ = pending.answer.send(answer);
        }
    }

    /// Ends everything.
    pub(super) fn close(&self) {
        self.closed.cancel();
        // Whoever waits learns it from the senders that are dropped here.
        let pending = std::mem::take(&mut *self.pending.lock());
        drop(pending);
        let questions = std::mem::take(&mut *self.questions.lock());
        questions.values().for_each(CancellationToken::cancel);
    }

    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    fn notification(&self, method: &str, params: Option<Value>, stream: Option<i64>) {
        let param = |name: &str| params.as_ref().and_then(|params| params.get(name));
        if method == methods::CANCELLED
            && let Some(id) = param("requestId")
        {
            let withdrawn = self.questions.lock().remove(&id.to_string());
            if let Some(withdrawn) = withdrawn {
                withdrawn.cancel();
            } else if let Some(id) = number(id).filter(|id| self.is_subscription(*id)) {
                // From 2026-07-28 on, a server ends a subscription in this way.
                self.answer(id, Err(Trouble::NoAnswer));
            }
            // Whatever it was about, its number is of this line and means nothing beyond it.
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
        self.sink.notification(about.as_ref(), method, params);
    }

    fn is_subscription(&self, id: i64) -> bool {
        self.pending.lock().get(&id).is_some_and(|request| request.is_subscription)
    }

    fn question(
        self: &Arc<Self>,
        id: Value,
        question: InputRequest,
        stream: Option<i64>,
        outlet: &Outlet,
    ) {
        let outlet = Arc::clone(outlet);
        let withdrawn = CancellationToken::new();
        {
            let mut questions = self.questions.lock();
            if questions.len() >= MAX_QUESTIONS || questions.contains_key(&id.to_string()) {
                return;
            }
            questions.insert(id.to_string(), withdrawn.clone());
        }
        let about = self.whose(stream);
        // Asked here and not in the task, so that the order of all that comes is kept.
        let answering = if question.method == methods::PING {
            Box::pin(async { Ok(json!({})) })
        } else {
            self.sink.question(about.as_ref(), question)
        };
        let exchange = Arc::clone(self);
        tokio::spawn(async move {
            let answering = async {
                let _open = exchange.asking.open();
                let late = || ErrorObject::internal_error("nobody answered in time", None);
                let answer = tokio::time::timeout(PERSON_PATIENCE, answering).await;
                let answer = answer.unwrap_or_else(|_| Err(late()));
                let (part, content) = match answer {
                    Ok(result) => ("result", result),
                    Err(error) => ("error", serde_json::to_value(error).unwrap_or_default()),
                };
                outlet(json!({ "jsonrpc": "2.0", "id": id, part: content })).await;
            };
            withdrawn.run_until_cancelled(answering).await;
            exchange.questions.lock().remove(&id.to_string());
        });
    }

    /// The key of the request that a question is about.
    fn whose(&self, stream: Option<i64>) -> Option<Value> {
        let pending = self.pending.lock();
        let of_stream = stream.and_then(|id| pending.get(&id));
        let mut others = pending.values().filter(|request| !request.is_subscription);
        let only = others.next().filter(|_| others.next().is_none());
        of_stream.or(only).map(|request| request.key.clone())
    }
}

impl Waiting<'_> {
    pub(super) fn id(&self) -> i64 {
        self.id
    }

    /// Waits for the answer.
    pub(super) async fn answered(&mut self) -> Result<Value, Trouble> {
        (&mut self.answer).await.unwrap_or(Err(Trouble::Closed))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.exchange.pending.lock().remove(&self.id);
    }
}

fn read_answer(mut message: Map<String, Value>) -> Result<Value, Trouble> {
    if let Some(error) = message.get("error") {
        return Err(Trouble::Refused(ErrorObject::from_any(error)));
    }
    message.remove("result").ok_or_else(|| {
        Trouble::Refused(raw::unreadable_error("it has neither a result nor an error"))
    })
}

/// An id of ours. Some servers send the number back as a string.
fn number(id: &Value) -> Option<i64> {
    match id {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    /// Answers no question but that of the method `now`.
    struct Sink(mpsc::UnboundedSender<(Option<Value>, String)>);

    impl ConnectionHandler for Sink {
        fn notification(&self, about: Option<&Value>, method: &str, _params: Option<Value>) {
            self.0.send((about.cloned(), method.to_owned())).unwrap();
        }

        fn question(
            &self,
            about: Option<&Value>,
            question: InputRequest,
        ) -> BoxFuture<'static, Result<Value, ErrorObject>> {
            self.0.send((about.cloned(), question.method.clone())).unwrap();
            Box::pin(async move {
                if question.method == "now" { Ok(json!(1)) } else { std::future::pending().await }
            })
        }
    }

    type Came = mpsc::UnboundedReceiver<(Option<Value>, String)>;

    fn exchange() -> (Arc<Exchange>, Came, Outlet, mpsc::UnboundedReceiver<Value>) {
        let (sink, came) = mpsc::unbounded_channel();
        let (sender, answers) = mpsc::unbounded_channel();
        let outlet: Outlet = Arc::new(move |answer| {
            let _ = sender.send(answer);
            Box::pin(async {})
        });
        (Exchange::new(Arc::new(Sink(sink))), came, outlet, answers)
    }

    #[tokio::test]
    async fn a_server_that_asks_without_end_is_not_listened_to() {
        let (exchange, mut came, outlet, mut answers) = exchange();
        for id in 0..MAX_QUESTIONS + 10 {
            exchange.receive(json!({ "id": id, "method": "later" }), None, &outlet);
        }
        assert_eq!(came.len(), MAX_QUESTIONS);
        // One that is withdrawn makes room for another.
        let withdrawn =
            json!({ "method": "notifications/cancelled", "params": { "requestId": 3 } });
        exchange.receive(withdrawn, None, &outlet);
        exchange.receive(json!({ "id": "x", "method": "now" }), None, &outlet);
        assert_eq!(answers.recv().await, Some(json!({ "jsonrpc": "2.0", "id": "x", "result": 1 })));
        exchange.receive(json!({ "id": "y", "method": "ping" }), None, &outlet);
        assert_eq!(answers.recv().await.unwrap()["result"], json!({}));
        while let Ok((_, method)) = came.try_recv() {
            assert!(method == "later" || method == "now", "{method}");
        }
        exchange.close();
        assert!(exchange.questions.lock().is_empty());
    }

    #[tokio::test]
    async fn what_comes_is_about_what_it_says_or_the_only_request_there_is() {
        let (exchange, mut came, outlet, _answers) = exchange();
        let meta = json!({ "_meta": { "progressToken": [1] } });
        let first = exchange.begin(json!("a"), "tools/call", Some(&meta));
        let question = json!({ "id": 1, "method": "q" });
        exchange.receive(question, None, &outlet);
        assert_eq!(came.try_recv().unwrap().0, Some(json!("a")));
        let listen = exchange.begin(json!("b"), "subscriptions/listen", None);
        exchange.receive(json!({ "id": 2, "method": "q" }), None, &outlet);
        assert_eq!(came.try_recv().unwrap().0, Some(json!("a")));
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
            exchange.receive(message.clone(), stream, &outlet);
            assert_eq!(came.try_recv().unwrap().0, about.map(|key| json!(key)), "{message}");
        }
        drop((first, third));
        assert!(!exchange.is_pending(third_id));
    }

    #[tokio::test]
    async fn answers_end_their_request_however_odd_they_are() {
        let (exchange, _came, outlet, _answers) = exchange();
        for (message, good) in [
            (json!({ "result": null }), true),
            (json!({ "error": "boom" }), false),
            (json!({ "jsonrpc": "2.0" }), false),
        ] {
            let mut waiting = exchange.begin(Value::Null, "x", None);
            let mut answer = message.clone();
            answer["id"] = json!(waiting.id().to_string());
            exchange.receive(answer, None, &outlet);
            assert_eq!(waiting.answered().await.is_ok(), good, "{message}");
        }
        for odd in [json!(1), json!([]), json!({}), json!({ "id": 99 }), json!({ "method": 1 })] {
            exchange.receive(odd, None, &outlet);
        }
        let mut listen = exchange.begin(Value::Null, "subscriptions/listen", None);
        let ended =
            json!({ "method": "notifications/cancelled", "params": { "requestId": listen.id() } });
        exchange.receive(ended, None, &outlet);
        assert!(matches!(listen.answered().await, Err(Trouble::NoAnswer)));
        let mut last = exchange.begin(Value::Null, "x", None);
        exchange.close();
        assert!(matches!(last.answered().await, Err(Trouble::Closed)));
        let mut late = exchange.begin(Value::Null, "x", None);
        assert!(matches!(late.answered().await, Err(Trouble::Closed)));
    }
}
