//! A client of the legacy era: who has shaken hands, and what it has asked.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use thiserror::Error;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolgate_mcp::{ErrorObject, JsonObject};

use crate::{
    era::Era,
    face::{Asked, Face},
    link::{Link, Outbox, Questions},
    message::{self, Notification, Request, Response},
};

/// The state of a session, whatever carries it.
#[derive(Debug)]
pub(crate) struct Conversation {
    face: Arc<dyn Face>,
    capabilities: Arc<JsonObject>,
    questions: Arc<Questions>,
    in_flight: Mutex<HashMap<String, CancellationToken>>,
    limit: usize,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Why a request is not worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Unwelcome {
    #[error("a request with this id is under way already")]
    Twice,
    #[error("too many requests are under way already")]
    TooMany,
}

impl From<Unwelcome> for ErrorObject {
    fn from(unwelcome: Unwelcome) -> Self {
        Self::invalid_request(unwelcome.to_string(), None)
    }
}

/// How long a cancelled request may take to end by itself, so that the server is told.
const LAST_WORDS: Duration = Duration::from_secs(2);

impl Conversation {
    pub(crate) fn new(
        face: Arc<dyn Face>,
        capabilities: Arc<JsonObject>,
        questions: Arc<Questions>,
        limit: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            face,
            capabilities,
            questions,
            in_flight: Mutex::default(),
            limit,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    pub(crate) fn face(&self) -> &Arc<dyn Face> {
        &self.face
    }

    /// Works on a request aside; its answer is the last word in `outbox`.
    pub(crate) fn request(
        self: &Arc<Self>,
        request: Request,
        outbox: Arc<dyn Outbox>,
    ) -> Result<(), Unwelcome> {
        let cancel = self.stop.child_token();
        let key = request.id.to_string();
        {
            let mut in_flight = self.in_flight.lock();
            if in_flight.contains_key(&key) {
                return Err(Unwelcome::Twice);
            }
            if in_flight.len() >= self.limit {
                return Err(Unwelcome::TooMany);
            }
            in_flight.insert(key.clone(), cancel.clone());
        }
        let conversation = Arc::clone(self);
        self.tasks.spawn(async move {
            let under_way = UnderWay { key, conversation: &conversation };
            let answer = conversation.work(request, &outbox, &cancel).await;
            // Its id is free before the client knows.
            drop(under_way);
            outbox.finish(answer).await;
        });
        Ok(())
    }

    /// Answers, or gives nothing for a request that the client has taken back.
    async fn work(
        &self,
        request: Request,
        outbox: &Arc<dyn Outbox>,
        cancel: &CancellationToken,
    ) -> Option<Value> {
        let Request { id, method, params } = request;
        if method == "ping" {
            return Some(message::answer(&id, Ok(json!({}))));
        }
        let link = Link::legacy(
            Arc::clone(&self.capabilities),
            Arc::clone(outbox),
            Arc::clone(&self.questions),
        );
        let cancel_it = cancel.clone();
        let asked =
            Asked { id: id.clone(), method, params, era: Era::Legacy, link, cancel: cancel_it };
        let mut working = self.face.request(asked);
        let outcome = tokio::select! {
            outcome = &mut working => Some(outcome),
            () = cancel.cancelled() => tokio::time::timeout(LAST_WORDS, working).await.ok(),
        };
        match outcome {
            Some(outcome) if !cancel.is_cancelled() => Some(message::answer(&id, outcome)),
            // What was done all the same is worth telling.
            Some(Ok(result)) if self.stop.is_cancelled() => Some(message::answer(&id, Ok(result))),
            _ if self.stop.is_cancelled() => Some(message::answer(&id, Err(message::stopping()))),
            _ => None,
        }
    }

    pub(crate) async fn notification(&self, notification: Notification) {
        if notification.method == "notifications/cancelled" {
            let id = notification.params.as_ref().and_then(|params| params.get("requestId"));
            let cancel = id.and_then(|id| self.in_flight.lock().get(&id.to_string()).cloned());
            if let Some(cancel) = cancel {
                cancel.cancel();
            }
            return;
        }
        self.face.notification(notification.method, notification.params).await;
    }

    pub(crate) fn response(&self, response: Response) {
        self.questions.answer(response);
    }

    /// Whether it is working on something.
    pub(crate) fn is_busy(&self) -> bool {
        !self.in_flight.lock().is_empty()
    }

    /// Waits until nothing is under way.
    pub(crate) async fn idle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    /// Ready once it is being ended.
    pub(crate) async fn ended(&self) {
        self.stop.cancelled().await;
    }

    /// Ends everything that is under way, and then the face.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.face.close().await;
    }
}

/// Frees a request's id, however its task ends.
struct UnderWay<'a> {
    key: String,
    conversation: &'a Conversation,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.conversation.in_flight.lock().remove(&self.key);
    }
}
