//! The input requests of a call that may become a task.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use toolgate_mcp::{ErrorObject, JsonObject};
use toolgate_upstream::{ClientId, InputHandler, InputRequest};

use super::{ClientTask, state::TaskState};
use crate::channel::ClientChannel;

/// Asks the client: in the response to the call, or once the call is a task, in the state of the task.
#[derive(Debug)]
pub(in crate::aggregate) struct TaskInputs {
    pub(in crate::aggregate) channel: ClientChannel,
    pub(in crate::aggregate) task: Arc<ClientTask>,
}

impl TaskInputs {
    async fn ask(&self, key: Option<&str>, request: InputRequest) -> Result<Value, ErrorObject> {
        let mut asked = Some(request);
        // Decided under the lock of the state: the call becomes no task while its client is asked.
        let mut waiting = None;
        self.task.state.send_if_modified(|state| {
            if !state.is_task {
                state.asked += 1;
                return true;
            }
            let (responder, response) = oneshot::channel();
            waiting = Some(response);
            asked.take().is_some_and(|request| state.ask(key, request, responder))
        });
        if let Some(request) = asked {
            let _open = OpenQuestion(&self.task.state);
            return match key {
                Some(key) => self.channel.answer_keyed(key, request).await,
                None => self.channel.answer(request).await,
            };
        }
        let _withdrawn = WithdrawnQuestion(&self.task.state);
        let ended = || Err(ErrorObject::internal_error("the task has ended", None));
        match waiting {
            Some(response) => response.await.unwrap_or_else(|_| ended()),
            None => ended(),
        }
    }
}

impl InputHandler for TaskInputs {
    fn capabilities(&self) -> &JsonObject {
        self.channel.capabilities()
    }

    fn answer(&self, request: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        Box::pin(self.ask(None, request))
    }

    fn notify(&self, method: &str, params: Value) {
        InputHandler::notify(&self.channel, method, params);
    }

    fn answer_keyed<'a>(
        &'a self,
        key: &'a str,
        request: InputRequest,
    ) -> BoxFuture<'a, Result<Value, ErrorObject>> {
        Box::pin(self.ask(Some(key), request))
    }

    fn is_asked_by_results(&self) -> bool {
        self.channel.is_asked_by_results()
    }

    fn may_decide(&self) -> BoxFuture<'_, bool> {
        self.channel.may_decide()
    }

    fn client(&self) -> Option<ClientId> {
        self.channel.client()
    }
}

/// An input request at the client.
struct OpenQuestion<'a>(&'a watch::Sender<TaskState>);

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.asked = state.asked.saturating_sub(1));
    }
}

/// An input request of a task, which may be withdrawn.
struct WithdrawnQuestion<'a>(&'a watch::Sender<TaskState>);

impl Drop for WithdrawnQuestion<'_> {
    fn drop(&mut self) {
        self.0.send_if_modified(TaskState::remove_withdrawn);
    }
}
