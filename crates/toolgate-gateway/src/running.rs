//! A request of the modern era: it runs, says things, and may have to wait for its client's answers.

use std::{
    any::Any,
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_mcp::{ErrorObject, JsonObject};
use toolgate_upstream::InputRequest;

use crate::{
    caller::Caller,
    era::{Declared, Era},
    face::{Asked, Face},
    link::{Link, Said},
    message::{self, Request},
    token,
};

/// A request under way. Dropping it cancels it.
#[derive(Debug)]
pub(crate) struct Running {
    method: String,
    said: mpsc::Receiver<Said>,
    outcome: oneshot::Receiver<Result<Value, ErrorObject>>,
    done: Option<Result<Value, ErrorObject>>,
    open: BTreeMap<String, Open>,
    asked: u64,
    /// What must not go away while it runs or waits.
    keeps: Option<Arc<dyn Any + Send + Sync>>,
    cancel: DropGuard,
}

#[derive(Debug)]
struct Open {
    question: InputRequest,
    answer: oneshot::Sender<Result<Value, ErrorObject>>,
}

/// What came of a request since one last looked.
#[derive(Debug)]
pub(crate) enum Step {
    /// It said something.
    Notification(Value),
    /// It waits for answers of the client.
    Waiting,
    /// It has come to its end.
    Done(Result<Value, ErrorObject>),
}

/// Notifications that wait for a slow client. More are lost; a result never is.
const QUEUED: usize = 256;
/// How long what is cancelled has to come to its end.
const LAST_WORDS: Duration = Duration::from_millis(300);

impl Running {
    pub(crate) fn start(face: Arc<dyn Face>, request: Request) -> Self {
        let capabilities = Declared::of(request.params.as_ref()).capabilities().cloned();
        let (sender, said) = mpsc::channel(QUEUED);
        let (finished, outcome) = oneshot::channel();
        let cancel = CancellationToken::new();
        let method = request.method.clone();
        let asked = Asked {
            id: request.id,
            method: request.method,
            params: request.params,
            era: Era::Modern,
            link: Link::modern(Arc::new(capabilities.unwrap_or_default()), sender),
            cancel: cancel.clone(),
        };
        let guard = cancel.drop_guard();
        tokio::spawn(async move {
            let _ = finished.send(face.request(asked).await);
        });
        let open = BTreeMap::new();
        Self { method, said, outcome, done: None, open, asked: 0, keeps: None, cancel: guard }
    }

    /// Keeps something for as long as it runs or waits, unless it keeps something already.
    pub(crate) fn keep(&mut self, kept: Arc<dyn Any + Send + Sync>) {
        self.keeps.get_or_insert(kept);
    }

    /// What comes next. Notifications come before the end that follows them.
    pub(crate) async fn step(&mut self) -> Step {
        loop {
            if let Some(outcome) = self.done.take() {
                // Said before the end, and not yet heard.
                while let Ok(said) = self.said.try_recv() {
                    if let Said::Notification(message) = said {
                        self.done = Some(outcome);
                        return Step::Notification(message);
                    }
                }
                return Step::Done(outcome);
            }
            // Who asked may no longer want to know.
            self.open.retain(|_, open| !open.answer.is_closed());
            tokio::select! {
                biased;
                Some(said) = self.said.recv() => match said {
                    Said::Notification(message) => return Step::Notification(message),
                    Said::InputRequest(question, answer) => self.note(question, answer),
                },
                outcome = &mut self.outcome => {
                    let broken = || Err(ErrorObject::internal_error("the request broke down", None));
                    self.done = Some(outcome.unwrap_or_else(|_| broken()));
                }
                // Only reached with a question open: what is asked together goes out together.
                () = tokio::task::yield_now(), if !self.open.is_empty() => return Step::Waiting,
            }
        }
    }

    /// Cancels it, and gives its last word: the result where there is one all the same, such as that
    /// of a subscription.
    pub(crate) async fn end(&mut self) -> Result<Value, ErrorObject> {
        self.cancel.token().cancel();
        let ending = async {
            loop {
                match self.step().await {
                    Step::Done(outcome) => return outcome.ok(),
                    Step::Waiting => return None,
                    Step::Notification(_) => {}
                }
            }
        };
        let outcome = tokio::time::timeout(LAST_WORDS, ending).await;
        outcome.ok().flatten().ok_or_else(message::stopping)
    }

    /// Hands over what the client answered. What it did not answer stays open.
    pub(crate) fn answer(&mut self, responses: &JsonObject) {
        for (key, response) in responses {
            if let Some(open) = self.open.remove(key) {
                let _ = open.answer.send(Ok(response.clone()));
            }
        }
    }

    /// The result that asks the client.
    pub(crate) fn input_required(&self, state: &str) -> Value {
        let requests: Map<String, Value> = self
            .open
            .iter()
            .map(|(key, open)| {
                let mut request = json!({ "method": open.question.method });
                if let Some(params) = &open.question.params {
                    request["params"] = params.clone();
                }
                (key.clone(), request)
            })
            .collect();
        json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state })
    }

    fn note(
        &mut self,
        question: InputRequest,
        answer: oneshot::Sender<Result<Value, ErrorObject>>,
    ) {
        self.asked += 1;
        self.open.insert(self.asked.to_string(), Open { question, answer });
    }
}

/// Requests that wait until their clients come back with answers.
#[derive(Debug)]
pub(crate) struct Suspended {
    table: Mutex<HashMap<String, Entry>>,
    limit: usize,
    /// What one caller may have of it.
    share: usize,
    patience: Duration,
}

#[derive(Debug)]
struct Entry {
    caller: Caller,
    place: Arc<str>,
    until: Instant,
    running: Running,
}

impl Suspended {
    pub(crate) fn new(limit: usize, share: usize, patience: Duration) -> Self {
        Self { table: Mutex::default(), limit, share, patience }
    }

    /// Keeps a request, and gives the result that asks its client. `place` is where it has to come
    /// back to.
    pub(crate) fn park(
        &self,
        caller: &Caller,
        place: &Arc<str>,
        running: Running,
    ) -> Result<Value, ErrorObject> {
        let state = token::unguessable()?;
        let result = running.input_required(&state);
        let now = Instant::now();
        let mut table = self.table.lock();
        table.retain(|_, entry| entry.until > now);
        let theirs = table.values().filter(|entry| entry.caller == *caller).count();
        if table.len() >= self.limit || theirs >= self.share {
            let message = "too many requests wait for answers of their clients; try again later";
            return Err(ErrorObject::internal_error(message, None));
        }
        let (caller, place) = (caller.clone(), Arc::clone(place));
        table.insert(state, Entry { caller, place, until: now + self.patience, running });
        Ok(result)
    }

    /// Goes on with the request that waits for what this one brings, or starts it. One that goes on
    /// with nothing is no new one: what it was begun with may have been done already.
    pub(crate) fn resume_or_start(
        &self,
        caller: &Caller,
        place: &Arc<str>,
        face: Arc<dyn Face>,
        request: Request,
    ) -> Result<Running, ErrorObject> {
        if let Some(running) = self.resume(caller, place, &request) {
            return Ok(running);
        }
        let params = request.fields();
        let brings =
            |key: &str| params.and_then(|all| all.get(key)).is_some_and(|it| !it.is_null());
        if !face.has_states() && (brings("requestState") || brings("inputResponses")) {
            let message = "this `requestState` is unknown, expired or not yours, so that nothing was \
                           called; start the call again without `requestState` and `inputResponses`";
            return Err(ErrorObject::invalid_params(message, None));
        }
        Ok(Running::start(face, request))
    }

    /// Gives back the request that `retry` goes on with, once its answers are handed over. Nothing
    /// where it names none of ours, of this caller, at this place, of this method.
    fn resume(&self, caller: &Caller, place: &Arc<str>, retry: &Request) -> Option<Running> {
        let params = retry.fields()?;
        let state = params.get("requestState")?.as_str()?;
        let mut table = self.table.lock();
        let entry = table.get(state)?;
        let fits = entry.caller == *caller
            && entry.place == *place
            && entry.running.method == retry.method
            && entry.until > Instant::now();
        if !fits {
            return None;
        }
        let mut running = table.remove(state)?.running;
        drop(table);
        if let Some(Value::Object(responses)) = params.get("inputResponses") {
            running.answer(responses);
        }
        Some(running)
    }

    /// Cancels those whose clients did not come back.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        self.table.lock().retain(|_, entry| entry.until > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that asks at once and waits for ever.
    fn waiting() -> Running {
        let (said, heard) = mpsc::channel(QUEUED);
        let (answer, _) = oneshot::channel();
        let question = InputRequest { method: "roots/list".to_owned(), params: None };
        said.try_send(Said::InputRequest(question, answer)).unwrap();
        Running {
            method: "tools/call".to_owned(),
            said: heard,
            outcome: oneshot::channel().1,
            done: None,
            open: BTreeMap::new(),
            asked: 0,
            keeps: None,
            cancel: CancellationToken::new().drop_guard(),
        }
    }

    #[test]
    fn what_one_caller_began_no_other_can_go_on_with() {
        let suspended = Suspended::new(8, 8, Duration::from_mins(1));
        let (here, there): (Arc<str>, Arc<str>) = ("/mcp".into(), "/mcp/work".into());
        let (mine, other) = (Caller::named("me"), Caller::named("other"));
        let result = suspended.park(&mine, &here, waiting()).unwrap();
        let retry = |method: &str, state: &Value| Request {
            id: json!(2),
            method: method.to_owned(),
            params: Some(json!({ "requestState": state })),
        };
        let state = &result["requestState"];
        assert!(suspended.resume(&other, &here, &retry("tools/call", state)).is_none());
        assert!(suspended.resume(&mine, &there, &retry("tools/call", state)).is_none());
        assert!(suspended.resume(&mine, &here, &retry("prompts/get", state)).is_none());
        assert!(suspended.resume(&mine, &here, &retry("tools/call", &json!("x"))).is_none());
        assert!(suspended.resume(&mine, &here, &retry("tools/call", state)).is_some());
        assert!(suspended.resume(&mine, &here, &retry("tools/call", state)).is_none(), "once");
    }

    #[test]
    fn one_caller_cannot_take_the_place_of_all() {
        let suspended = Suspended::new(4, 2, Duration::from_mins(1));
        let here: Arc<str> = "/mcp".into();
        let park = |name: &str| suspended.park(&Caller::named(name), &here, waiting()).is_ok();
        assert_eq!([park("greedy"), park("greedy"), park("greedy")], [true, true, false]);
        assert_eq!([park("one"), park("two"), park("three")], [true, true, false]);
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_is_not_asked() {
        let mut running = waiting();
        let (done, outcome) = oneshot::channel();
        running.outcome = outcome;
        done.send(Ok(json!(1))).unwrap();
        assert!(matches!(running.step().await, Step::Done(Ok(_))));
    }
}
