//! One client as a fixture sees it: a stdio connection or an HTTP session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::outbox::Outbox;

/// One client.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Where messages go that belong to no request.
    pub(crate) standing: Outbox,
    /// Whether `initialize` was answered.
    initialized: AtomicBool,
    /// The parameters of its `initialize`.
    introduction: Mutex<Value>,
    next_question: AtomicU64,
    /// The server's own requests that wait for the client's answer, by id.
    questions: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    /// The client's requests that are being worked on, by the text of their id.
    running: Mutex<HashMap<String, CancellationToken>>,
}

impl Peer {
    /// A client that has sent nothing yet.
    pub(crate) fn new(standing: Outbox) -> Self {
        Self {
            standing,
            initialized: AtomicBool::new(false),
            introduction: Mutex::default(),
            next_question: AtomicU64::new(1),
            questions: Mutex::default(),
            running: Mutex::default(),
        }
    }

    /// Whether the legacy handshake is done.
    pub(crate) fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::SeqCst)
    }

    /// Notes that the legacy handshake is done, with its parameters.
    pub(crate) fn set_initialized(&self, introduction: &Value) {
        *self.introduction.lock() = introduction.clone();
        self.initialized.store(true, Ordering::SeqCst);
    }

    /// The parameters of the client's `initialize`.
    pub(crate) fn introduction(&self) -> Value {
        self.introduction.lock().clone()
    }

    /// Sends a request of the server's own over `outbox`. The receiver gets the client's whole
    /// answer, an error included.
    pub(crate) fn ask(
        &self,
        outbox: &Outbox,
        method: &str,
        params: Option<&Value>,
    ) -> oneshot::Receiver<Value> {
        let number = self.next_question.fetch_add(1, Ordering::SeqCst);
        let id = format!("fixture-{number}");
        let (sender, receiver) = oneshot::channel();
        self.questions.lock().insert(id.clone(), sender);
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        if let Some(params) = params {
            message["params"] = params.clone();
        }
        outbox.initiate(&message);
        receiver
    }

    /// Takes the client's answer to a request of the server's own.
    pub(crate) fn take_answer(&self, message: Value) {
        let question = message["id"].as_str().and_then(|id| self.questions.lock().remove(id));
        if let Some(question) = question {
            let _ = question.send(message);
        }
    }

    /// Notes that a request is being worked on; the token fires when the client cancels it.
    pub(crate) fn begin(&self, id: &Value) -> CancellationToken {
        let token = CancellationToken::new();
        self.running.lock().insert(id.to_string(), token.clone());
        token
    }

    /// Notes that a request is done.
    pub(crate) fn finish(&self, id: &Value) {
        self.running.lock().remove(&id.to_string());
    }

    /// Cancels a request; says whether it was still being worked on.
    pub(crate) fn cancel(&self, id: &Value) -> bool {
        let token = self.running.lock().remove(&id.to_string());
        token.inspect(CancellationToken::cancel).is_some()
    }

    /// Cancels everything, for the end of a connection.
    pub(crate) fn cancel_all(&self) {
        self.running.lock().drain().for_each(|(_, token)| token.cancel());
    }
}
