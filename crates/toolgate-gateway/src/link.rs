//! The way back to a client: notifications, and questions with their answers.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use toolgate_mcp::{ErrorObject, JsonObject};
use toolgate_upstream::{InputHandler, InputRequest};

use crate::message;

/// What a face can send while it works on a request, or outside of one.
#[derive(Debug, Clone)]
pub struct Link {
    capabilities: Arc<JsonObject>,
    way: Way,
}

#[derive(Debug, Clone)]
enum Way {
    /// Requests of ours go out as such.
    Messages { outbox: Arc<dyn Outbox>, questions: Arc<Questions> },
    /// Requests of ours become an `input_required` result.
    Said(mpsc::Sender<Said>),
}

/// Where messages to a client go. It never waits for a slow client, except with the last word.
pub(crate) trait Outbox: fmt::Debug + Send + Sync {
    /// Takes a notification or a question, which may be lost where too many wait already.
    fn offer(&self, message: Value);

    /// Takes the answer to a request, or the news that there will be none.
    fn finish(&self, answer: Option<Value>) -> BoxFuture<'_, ()>;
}

/// What a face said while it worked on a request of the modern era.
#[derive(Debug)]
pub(crate) enum Said {
    Notification(Value),
    InputRequest(InputRequest, oneshot::Sender<Result<Value, ErrorObject>>),
}

/// Questions that wait for a client of the legacy era.
#[derive(Debug)]
pub(crate) struct Questions {
    next: AtomicU64,
    open: Mutex<HashMap<u64, oneshot::Sender<Result<Value, ErrorObject>>>>,
    patience: Duration,
}

/// How many questions a client may leave unanswered.
const OPEN_QUESTIONS: usize = 64;

impl Link {
    pub(crate) fn legacy(
        capabilities: Arc<JsonObject>,
        outbox: Arc<dyn Outbox>,
        questions: Arc<Questions>,
    ) -> Self {
        Self { capabilities, way: Way::Messages { outbox, questions } }
    }

    pub(crate) fn modern(capabilities: Arc<JsonObject>, said: mpsc::Sender<Said>) -> Self {
        Self { capabilities, way: Way::Said(said) }
    }

    /// Tells the client something. One that does not listen loses it.
    pub fn notify(&self, method: &str, params: Option<Value>) {
        let message = message::notification(method, params);
        match &self.way {
            Way::Messages { outbox, .. } => outbox.offer(message),
            Way::Said(said) => {
                let _ = said.try_send(Said::Notification(message));
            }
        }
    }

    /// Asks the client something, and waits for its answer as long as is decent. Who stops waiting
    /// takes the question back.
    pub fn ask(&self, question: InputRequest) -> BoxFuture<'static, Result<Value, ErrorObject>> {
        match self.way.clone() {
            Way::Messages { outbox, questions } => Box::pin(questions.ask(outbox, question)),
            Way::Said(said) => Box::pin(async move {
                let (answer, answered) = oneshot::channel();
                let gone = || ErrorObject::internal_error("the client is gone", None);
                said.send(Said::InputRequest(question, answer)).await.map_err(|_| gone())?;
                answered.await.map_err(|_| gone())?
            }),
        }
    }

    /// What the client can be asked.
    pub fn client_capabilities(&self) -> &Arc<JsonObject> {
        &self.capabilities
    }
}

impl InputHandler for Link {
    fn capabilities(&self) -> &JsonObject {
        &self.capabilities
    }

    fn answer(&self, question: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        self.ask(question)
    }
}

impl Questions {
    pub(crate) fn new(patience: Duration) -> Arc<Self> {
        Arc::new(Self { next: AtomicU64::new(1), open: Mutex::default(), patience })
    }

    /// Hands an answer to who waits for it. One that nobody waits for is ignored.
    pub(crate) fn answer(&self, response: message::Response) {
        let id = match &response.id {
            Value::String(id) => id.parse().ok(),
            id => id.as_u64(),
        };
        let asked = id.and_then(|id| self.open.lock().remove(&id));
        if let Some(asked) = asked {
            let _ = asked.send(response.outcome);
        }
    }

    async fn ask(
        self: Arc<Self>,
        outbox: Arc<dyn Outbox>,
        question: InputRequest,
    ) -> Result<Value, ErrorObject> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        {
            let mut open = self.open.lock();
            if open.len() >= OPEN_QUESTIONS {
                let message = "the client has too many questions to answer already";
                return Err(ErrorObject::internal_error(message, None));
            }
            open.insert(id, answer);
        }
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": question.method });
        if let Some(params) = question.params {
            message["params"] = params;
        }
        let waiting = Waiting { id, questions: &self, outbox: &*outbox };
        outbox.offer(message);
        match tokio::time::timeout(self.patience, answered).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(ErrorObject::internal_error("the client is gone", None)),
            Err(_) => {
                drop(waiting);
                Err(ErrorObject::internal_error("the client gave no answer in time", None))
            }
        }
    }
}

/// Takes a question back that nobody waits for any more.
struct Waiting<'a> {
    id: u64,
    questions: &'a Questions,
    outbox: &'a dyn Outbox,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.questions.open.lock().remove(&self.id).is_some() {
            let params = json!({ "requestId": self.id, "reason": "nobody waits for the answer" });
            self.outbox.offer(message::notification("notifications/cancelled", Some(params)));
        }
    }
}
