//! Assigns the input requests of legacy servers to clients.
//!
//! A legacy server sends its input requests over a connection that many clients share. Over HTTP an
//! input request arrives on the stream of its call. Over stdio the call is unknown. So an input
//! request goes to a client only if it can be for no other.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};
use toolgate_mcp::{
    ErrorObject,
    client::{InputRequest, PERSON_TIMEOUT},
    codes, methods,
};

use crate::{
    calls::{ConnectionState, PendingCall},
    input_handler::can_answer,
};

/// The most input requests of one call, to protect people from abuse.
const MAX_INPUT_REQUESTS_OF_A_CALL: usize = 64;

/// Why an input request has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnaskedReason {
    /// Clients do not know the method.
    UnknownMethod,
    /// No client can answer it.
    Nobody,
    /// It may belong to the call of one client or of another.
    Ambiguous,
    TooMany,
    /// Nobody answered in time, or the call ended.
    Over,
}

/// Answers a server's request through one of `calls`.
pub(crate) async fn answer(
    calls: Result<Vec<Arc<PendingCall>>, UnaskedReason>,
    request: InputRequest,
) -> Result<Value, ErrorObject> {
    let method = request.method.clone();
    let asked = match calls {
        Ok(calls) => ask(&calls, request).await,
        Err(unasked) => Err(unasked),
    };
    asked.unwrap_or_else(|unasked| unasked.answer(&method))
}

/// Finds the calls to which an input request can belong. All are from one caller that can answer.
/// `stream` is the key of the request on whose stream it arrived.
pub(crate) fn find(
    state: &ConnectionState,
    request: &InputRequest,
    stream: Option<i64>,
) -> Result<Vec<Arc<PendingCall>>, UnaskedReason> {
    let mut calls = match stream {
        Some(key) => state.call(key).into_iter().collect(),
        None => of_one_caller(state, &request.method)?,
    };
    match request.method.as_str() {
        methods::ELICITATION_CREATE | methods::SAMPLING_CREATE | methods::ROOTS_LIST => {}
        _ => return Err(UnaskedReason::UnknownMethod),
    }
    calls.retain(|call| {
        call.input_handler
            .as_ref()
            .is_some_and(|handler| can_answer(handler.capabilities(), request))
    });
    if calls.is_empty() {
        return Err(UnaskedReason::Nobody);
    }
    // A client that cancelled a call may not receive its messages.
    calls.sort_by_key(|call| call.over.is_cancelled());
    let asked = calls.iter().map(|call| call.count_input_request()).min();
    if asked.is_some_and(|asked| asked > MAX_INPUT_REQUESTS_OF_A_CALL) {
        return Err(UnaskedReason::TooMany);
    }
    Ok(calls)
}

/// The open calls, if all are from one caller. A call without an input handler has a caller too:
/// its input requests are not for others.
fn of_one_caller(
    state: &ConnectionState,
    method: &str,
) -> Result<Vec<Arc<PendingCall>>, UnaskedReason> {
    let calls = state.calls();
    let Some(first) = calls.first() else { return Ok(calls) };
    // Servers ask for roots outside of calls too, which says nothing about the others.
    if method != methods::ROOTS_LIST {
        state.queue.take_one_caller_at_a_time();
    }
    if calls.iter().all(|other| other.caller() == first.caller()) {
        Ok(calls)
    } else {
        Err(UnaskedReason::Ambiguous)
    }
}

/// Asks as long as a caller waits for one of the calls.
async fn ask(
    calls: &[Arc<PendingCall>],
    request: InputRequest,
) -> Result<Result<Value, ErrorObject>, UnaskedReason> {
    let _open: Vec<_> = calls.iter().map(|call| call.open_input_requests.open()).collect();
    tokio::select! {
        biased;
        _ = join_all(calls.iter().map(|call| call.over.cancelled())) => Err(UnaskedReason::Over),
        answer = answer_of(calls, &request) => answer.ok_or(UnaskedReason::Nobody),
        () = tokio::time::sleep(PERSON_TIMEOUT) => Err(UnaskedReason::Over),
    }
}

/// The answer of the caller through one of its calls. If that call ends before it could ask, the
/// next call is tried.
async fn answer_of(
    calls: &[Arc<PendingCall>],
    request: &InputRequest,
) -> Option<Result<Value, ErrorObject>> {
    let mut last = None;
    for call in calls {
        let Some(handler) = &call.input_handler else { continue };
        let answer = handler.answer(request.clone()).await;
        let could_not_ask = answer.is_err() && call.over.is_cancelled();
        last = Some(answer);
        if !could_not_ask {
            break;
        }
    }
    last
}

impl UnaskedReason {
    /// The response to the server. The handshake declared that such requests are answered. So the
    /// response is the protocol's own form of "no answer", if there is one.
    fn answer(self, method: &str) -> Result<Value, ErrorObject> {
        let refused = |code, why: &str| Err(ErrorObject::new(code, why, None));
        match (self, method) {
            (Self::UnknownMethod, _) => {
                refused(codes::METHOD_NOT_FOUND, "this client does not know the method")
            }
            (Self::Ambiguous, _) => refused(
                codes::INVALID_REQUEST,
                "calls of several clients are under way on this connection, so that it is not known \
                 which client this is for; from now on calls come from one client at a time",
            ),
            (Self::TooMany, _) => refused(
                codes::INVALID_REQUEST,
                "one call may not bring so many requests; no more are answered",
            ),
            (Self::Nobody | Self::Over, methods::ELICITATION_CREATE) => {
                Ok(json!({ "action": "cancel" }))
            }
            (Self::Nobody, methods::ROOTS_LIST) => Ok(json!({ "roots": [] })),
            (Self::Nobody, _) => refused(
                codes::METHOD_NOT_FOUND,
                "the client that this is for cannot be asked such things",
            ),
            (Self::Over, _) => refused(codes::INTERNAL_ERROR, "nobody answered in time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::{FutureExt, future::BoxFuture};
    use tokio::time::Instant;
    use toolgate_mcp::JsonObject;

    use super::*;
    use crate::{
        call_queue::QueuedCaller,
        calls::tests::state,
        connection::CallOptions,
        input_handler::{ClientId, InputHandler},
    };

    /// Answers with its name, or never.
    #[derive(Debug)]
    struct Person(Option<&'static str>, JsonObject);

    /// One of several channels to a client, which is open or closed.
    #[derive(Debug)]
    struct Way(ClientId, Result<&'static str, ()>, JsonObject);

    impl InputHandler for Way {
        fn capabilities(&self) -> &JsonObject {
            &self.2
        }

        fn answer(&self, _request: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
            let gone = |()| ErrorObject::internal_error("the client is gone", None);
            Box::pin(std::future::ready(self.1.map(|said| json!(said)).map_err(gone)))
        }

        fn client(&self) -> Option<ClientId> {
            Some(self.0)
        }
    }

    impl InputHandler for Person {
        fn capabilities(&self) -> &JsonObject {
            &self.1
        }

        fn answer(&self, _request: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
            Box::pin(async {
                match self.0 {
                    Some(name) => Ok(json!(name)),
                    None => std::future::pending().await,
                }
            })
        }
    }

    fn everything() -> JsonObject {
        let everything = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
        everything.as_object().unwrap().clone()
    }

    fn person(name: Option<&'static str>) -> Arc<dyn InputHandler> {
        Arc::new(Person(name, everything()))
    }

    fn way(client: ClientId, said: Result<&'static str, ()>) -> Arc<dyn InputHandler> {
        Arc::new(Way(client, said, everything()))
    }

    fn call(
        state: &ConnectionState,
        handler: Option<&Arc<dyn InputHandler>>,
    ) -> (i64, Arc<PendingCall>) {
        let input_handler = handler.cloned();
        let call = PendingCall::new(&CallOptions { input_handler, ..CallOptions::default() });
        (state.add(call.clone()), call)
    }

    async fn asked(
        state: &ConnectionState,
        method: &str,
        stream: Option<i64>,
    ) -> Result<Value, i64> {
        let request = InputRequest { method: method.to_owned(), params: None };
        let calls = find(state, &request, stream);
        answer(calls, request).await.map_err(|error| error.code)
    }

    #[tokio::test]
    async fn an_input_request_goes_to_the_only_caller() {
        let state = state();
        assert_eq!(asked(&state, "roots/list", None).await, Ok(json!({ "roots": [] })));
        let (ada, bob) = (person(Some("ada")), person(Some("bob")));
        call(&state, Some(&ada));
        call(&state, Some(&ada));
        assert_eq!(asked(&state, "roots/list", None).await, Ok(json!("ada")));
        call(&state, Some(&bob));
        assert_eq!(asked(&state, "roots/list", None).await, Err(-32600));
        assert_eq!(asked(&state, "roots/list", Some(3)).await, Ok(json!("bob")));
        assert_eq!(asked(&state, "roots/list", Some(2)).await, Ok(json!("ada")));
        assert_eq!(asked(&state, "sampling/createMessage", Some(9)).await, Err(-32601));
        assert_eq!(asked(&state, "odd/question", Some(3)).await, Err(-32601));
        state.forget(3);
        assert_eq!(asked(&state, "roots/list", None).await, Ok(json!("ada")));
        call(&state, None);
        assert_eq!(asked(&state, "roots/list", None).await, Err(-32600));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_still_work_on_a_cancelled_call() {
        let state = state();
        let (ada, bob) = (person(Some("ada")), person(Some("bob")));
        call(&state, Some(&ada));
        call(&state, Some(&bob));
        state.abandon(1, (None, None), std::future::pending());
        assert_eq!(asked(&state, "roots/list", None).await, Err(-32600));
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert_eq!(asked(&state, "roots/list", None).await, Ok(json!("bob")));
    }

    #[tokio::test]
    async fn the_calls_of_one_client_are_of_one_caller() {
        let (state, ada) = (state(), ClientId::unique());
        for _ in 1..8 {
            // Calls that have ended reach no client.
            call(&state, Some(&way(ada, Err(())))).1.over.cancel();
        }
        for newest in ["eight", "nine", "ten"] {
            call(&state, Some(&way(ada, Ok(newest))));
            assert_eq!(asked(&state, "roots/list", None).await, Ok(json!(newest)));
        }
        call(&state, Some(&way(ClientId::unique(), Ok("bob"))));
        assert_eq!(asked(&state, "roots/list", None).await, Err(-32600));
    }

    #[tokio::test(start_paused = true)]
    async fn the_slot_of_a_cancelled_call_ends_with_its_response_or_in_time() {
        let state = state();
        let (ada, bob) = (person(Some("ada")), person(Some("bob")));
        let bobs = QueuedCaller::of(Some(&bob));
        state.queue.take_one_caller_at_a_time();
        for is_answered in [true, false] {
            let slot = state.slot(QueuedCaller::of(Some(&ada))).await;
            let (key, _) = call(&state, Some(&ada));
            let (response, answered) = tokio::sync::oneshot::channel::<()>();
            let answered = async {
                let _ = answered.await;
            };
            state.abandon(key, (slot, None), answered);
            let (mut waiting, started) = (Box::pin(state.slot(bobs)), Instant::now());
            assert!((&mut waiting).now_or_never().is_none());
            // The caller itself does not wait, and gets the input request.
            assert!(state.slot(QueuedCaller::of(Some(&ada))).now_or_never().is_some());
            assert_eq!(asked(&state, "roots/list", None).await, Ok(json!("ada")));
            if is_answered {
                let _ = response.send(());
            } else {
                std::mem::forget(response);
            }
            assert!(waiting.await.is_some());
            assert_eq!(started.elapsed().as_secs(), if is_answered { 0 } else { 10 });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn callers_do_not_wait_long_for_a_person_at_another_client() {
        let state = state();
        let (nobody, bob) = (person(None), person(Some("bob")));
        state.queue.take_one_caller_at_a_time();
        let slot = state.slot(QueuedCaller::of(Some(&nobody))).await;
        call(&state, Some(&nobody));
        let started = Instant::now();
        tokio::select! {
            _ = asked(&state, "roots/list", None) => panic!("nobody answers"),
            slot = state.slot(QueuedCaller::of(Some(&bob))) => assert!(slot.is_none()),
        }
        assert_eq!(started.elapsed().as_secs(), 30);
        // A call that merely takes its time is waited for.
        let ends = async {
            tokio::time::sleep(Duration::from_mins(2)).await;
            drop(slot);
        };
        let (admitted, ()) = tokio::join!(state.slot(QueuedCaller::of(Some(&bob))), ends);
        assert!(admitted.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_input_request_times_out() {
        let state = state();
        let nobody = person(None);
        let (_, pending) = call(&state, Some(&nobody));
        let started = Instant::now();
        let cancelled = Ok(json!({ "action": "cancel" }));
        assert_eq!(asked(&state, "elicitation/create", None).await, cancelled);
        assert_eq!(asked(&state, "sampling/createMessage", None).await, Err(-32603));
        assert_eq!(started.elapsed(), 2 * PERSON_TIMEOUT);
        // If the call has ended, it does not wait at all.
        pending.over.cancel();
        assert_eq!(asked(&state, "elicitation/create", None).await, cancelled);
        assert_eq!(started.elapsed(), 2 * PERSON_TIMEOUT);
    }
}
