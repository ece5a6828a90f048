//! Assigns the input requests of legacy servers to clients.
//!
//! A legacy server sends its input requests over a connection that many clients may share. Over HTTP
//! an input request arrives on the stream of its call. Over stdio the call is unknown. So an input
//! request goes to a client only if it can be for no other. Where calls of several clients are open,
//! it waits until the server has answered those of all but one. That happens once: after the first
//! input request, each client has its own instance of the server.

use std::sync::Arc;

use futures::future::{join_all, select_all};
use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_mcp::{
    ErrorObject, JsonObject,
    client::{InputRequest, PERSON_TIMEOUT},
    codes, extensions, methods,
};

use crate::{
    calls::{CallStage, PendingCall},
    input_handler::{InputHandler, can_answer},
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
    /// It may belong to the call of one client or of another, and that will not become known.
    Ambiguous,
    TooMany,
    /// Nobody answered in time, or the call ended.
    Over,
}

/// How many input requests of a connection wait until their calls are known.
pub(crate) type HeldInputRequests = watch::Sender<usize>;

/// Answers a server's request, which belongs to one of `calls`.
pub(crate) async fn answer(
    calls: Vec<Arc<PendingCall>>,
    held: &HeldInputRequests,
    extensions: &JsonObject,
    request: InputRequest,
) -> Result<Value, ErrorObject> {
    let method = request.method.clone();
    let calls = of_one_client(calls, held).await;
    let asked = match calls.and_then(|calls| able(calls, extensions, &request)) {
        Ok(calls) => ask(&calls, request).await,
        Err(unasked) => Err(unasked),
    };
    asked.unwrap_or_else(|unasked| unasked.answer(&method))
}

/// Waits until the calls that are left are all from one client. A call without an input handler has
/// a client too: its input requests are not for others.
///
/// A call is ruled out only when the server has answered it. After a cancellation it is not known
/// whether the server has asked for that call.
async fn of_one_client(
    mut calls: Vec<Arc<PendingCall>>,
    held: &HeldInputRequests,
) -> Result<Vec<Arc<PendingCall>>, UnaskedReason> {
    let is_of_one = |calls: &[Arc<PendingCall>]| {
        calls.iter().map(|call| call.client()).is_sorted_by(|one, other| one == other)
    };
    if is_of_one(&calls) {
        return Ok(calls);
    }
    let _held = Held::new(held);
    let mut all_held = held.subscribe();
    while !is_of_one(&calls) {
        let open = calls.len();
        let ended = calls.iter().map(|call| Box::pin(call.reached(CallStage::Unanswered)));
        let ended = tokio::select! {
            biased;
            (stage, index, _) = select_all(ended) => (stage == CallStage::Answered).then_some(index),
            // If every call waits for an answer, none will end. A call that is refused one goes on.
            _ = all_held.wait_for(|held| *held >= open) => None,
        };
        calls.remove(ended.ok_or(UnaskedReason::Ambiguous)?);
    }
    Ok(calls)
}

/// Counts an input request that waits until its call is known.
struct Held<'a>(&'a HeldInputRequests);

impl<'a> Held<'a> {
    fn new(held: &'a HeldInputRequests) -> Self {
        held.send_modify(|held| *held += 1);
        Self(held)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}

/// The calls whose client can answer.
fn able(
    mut calls: Vec<Arc<PendingCall>>,
    extensions: &JsonObject,
    request: &InputRequest,
) -> Result<Vec<Arc<PendingCall>>, UnaskedReason> {
    let method = request.method.as_str();
    let is_known = [methods::ELICITATION_CREATE, methods::SAMPLING_CREATE, methods::ROOTS_LIST]
        .contains(&method);
    let takes = |handler: &dyn InputHandler| {
        if is_known {
            can_answer(handler.capabilities(), request)
        } else {
            methods::is_of_unknown_extension(method) && shares_extension(handler, extensions)
        }
    };
    calls.retain(|call| call.input_handler.as_deref().is_some_and(takes));
    if calls.is_empty() {
        return Err(if is_known { UnaskedReason::Nobody } else { UnaskedReason::UnknownMethod });
    }
    // A client that cancelled a call may not receive its messages.
    calls.sort_by_key(|call| call.has_reached(CallStage::Abandoned));
    let asked = calls.iter().map(|call| call.count_input_request()).min();
    if asked.is_some_and(|asked| asked > MAX_INPUT_REQUESTS_OF_A_CALL) {
        return Err(UnaskedReason::TooMany);
    }
    Ok(calls)
}

/// Whether a client takes the requests of extensions, and declares one of these that toolgate does not know.
fn shares_extension(handler: &dyn InputHandler, extensions: &JsonObject) -> bool {
    let declared = extensions::declared(handler.capabilities());
    handler.takes_requests()
        && extensions::unknown(extensions).any(|name| declared.contains_key(name))
}

/// Asks as long as a caller waits for one of the calls.
async fn ask(
    calls: &[Arc<PendingCall>],
    request: InputRequest,
) -> Result<Result<Value, ErrorObject>, UnaskedReason> {
    let _open: Vec<_> = calls.iter().map(|call| call.open_input_requests.open()).collect();
    let withdrawn = calls.iter().map(|call| Box::pin(call.ask_until_withdrawn()));
    let _answered = Answered(calls);
    tokio::select! {
        biased;
        _ = join_all(calls.iter().map(|call| call.reached(CallStage::Abandoned))) => {
            Err(UnaskedReason::Over)
        }
        answer = answer_of(calls, &request) => answer.ok_or(UnaskedReason::Nobody),
        _ = select_all(withdrawn) => Err(UnaskedReason::Over),
        () = tokio::time::sleep(PERSON_TIMEOUT) => Err(UnaskedReason::Over),
    }
}

/// Notes on drop that the client is no longer asked for these calls.
struct Answered<'a>(&'a [Arc<PendingCall>]);

impl Drop for Answered<'_> {
    fn drop(&mut self) {
        for call in self.0 {
            call.note_answered();
        }
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
        call.note_elicitation(request);
        let answer = handler.answer(request.clone()).await;
        let could_not_ask = answer.is_err() && call.has_reached(CallStage::Abandoned);
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
                 which client this is for",
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
    use futures::{FutureExt, future::BoxFuture};
    use tokio::time::Instant;
    use toolgate_mcp::client::{ConnectionHandler as _, RelatedRequest};

    use super::*;
    use crate::{
        calls::{ConnectionState, tests::state},
        connection::CallOptions,
        input_handler::ClientId,
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
            Some(self.0.clone())
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

    fn way(client: &ClientId, said: Result<&'static str, ()>) -> Arc<dyn InputHandler> {
        Arc::new(Way(client.clone(), said, everything()))
    }

    fn call(
        state: &ConnectionState,
        handler: Option<&Arc<dyn InputHandler>>,
    ) -> (i64, Arc<PendingCall>) {
        let input_handler = handler.cloned();
        let options = CallOptions { input_handler, ..CallOptions::default() };
        let call = PendingCall::new(methods::TOOLS_CALL, true, &options);
        (state.add(call.clone()), call)
    }

    /// Asks as a server does. The input request arrives now, also if the future is polled later.
    fn asked(
        state: &ConnectionState,
        method: &str,
        stream: Option<i64>,
    ) -> BoxFuture<'static, Result<Value, i64>> {
        let request = InputRequest { method: method.to_owned(), params: None };
        let about = stream.map(|key| RelatedRequest { key: json!(key), is_certain: true });
        let answer = state.input_request(about, request);
        Box::pin(async move { answer.await.map_err(|error| error.code) })
    }

    #[tokio::test]
    async fn an_input_request_goes_to_the_only_client() {
        let state = state();
        assert_eq!(asked(&state, "roots/list", None).await, Ok(json!({ "roots": [] })));
        let (ada, bob) = (person(Some("ada")), person(Some("bob")));
        call(&state, Some(&ada));
        call(&state, Some(&ada));
        assert_eq!(asked(&state, "roots/list", None).await, Ok(json!("ada")));
        call(&state, Some(&bob));
        assert_eq!(asked(&state, "roots/list", Some(3)).await, Ok(json!("bob")));
        assert_eq!(asked(&state, "roots/list", Some(2)).await, Ok(json!("ada")));
        assert_eq!(asked(&state, "sampling/createMessage", Some(9)).await, Err(-32601));
        assert_eq!(asked(&state, "odd/question", Some(3)).await, Err(-32601));
        state.forget(3);
        // A subscription is open for long, and no server asks for it.
        state.add(PendingCall::new(methods::LISTEN, true, &CallOptions::default()));
        assert_eq!(asked(&state, "roots/list", None).await, Ok(json!("ada")));
    }

    #[tokio::test]
    async fn an_input_request_waits_until_it_can_be_for_one_client_only() {
        let state = state();
        let (ada, bob) = (person(Some("ada")), person(Some("bob")));
        for (other, answer) in [(Some(&bob), json!("ada")), (None, json!("ada"))] {
            let (asking, _) = call(&state, Some(&ada));
            let (ending, _) = call(&state, other);
            let mut question = asked(&state, "roots/list", None);
            // A call that comes later cannot be the one.
            let (later, _) = call(&state, Some(&person(Some("eve"))));
            assert!((&mut question).now_or_never().is_none());
            state.forget(ending);
            assert_eq!(question.await, Ok(answer));
            state.forget(asking);
            state.forget(later);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_input_request_for_a_cancelled_call_reaches_no_other_client() {
        for is_answered in [true, false] {
            let state = state();
            call(&state, Some(&person(Some("ada"))));
            let (cancelled, _) = call(&state, Some(&person(Some("bob"))));
            let question = asked(&state, "roots/list", None);
            let (response, answered) = tokio::sync::oneshot::channel::<()>();
            state.abandon(cancelled, None, std::future::pending(), async {
                let _ = answered.await;
            });
            if is_answered {
                response.send(()).unwrap();
                assert_eq!(question.await, Ok(json!("ada")));
            } else {
                assert_eq!(question.await, Err(-32600));
                drop(response);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_out_of_the_way_when_the_server_has_read_that_it_is_cancelled() {
        let state = state();
        let (cancelled, pending) = call(&state, Some(&person(Some("bob"))));
        let (tell, told) = tokio::sync::oneshot::channel::<()>();
        let read = async { drop(told.await) };
        state.abandon(cancelled, None, read, std::future::pending());
        let started = Instant::now();
        // Until then the question may be for that call.
        call(&state, Some(&person(Some("ada"))));
        let mut early = asked(&state, "roots/list", None);
        assert!((&mut early).now_or_never().is_none());
        tell.send(()).unwrap();
        pending.reached(CallStage::Withdrawn).await;
        assert_eq!(asked(&state, "roots/list", None).await, Ok(json!("ada")));
        state.forget(2);
        // These roots are of nobody's call.
        assert_eq!(asked(&state, "roots/list", None).await, Ok(json!({ "roots": [] })));
        assert_eq!(started.elapsed().as_secs(), 0);
    }

    #[tokio::test]
    async fn of_input_requests_that_wait_for_each_other_one_is_refused() {
        let state = state();
        call(&state, Some(&person(Some("ada"))));
        call(&state, Some(&person(Some("bob"))));
        let (third, _) = call(&state, Some(&person(Some("eve"))));
        let mut questions = [asked(&state, "roots/list", None), asked(&state, "roots/list", None)];
        for question in &mut questions {
            assert!(question.now_or_never().is_none());
        }
        state.forget(third);
        let [one, mut other] = questions;
        assert_eq!(one.await, Err(-32600));
        // The call for which it was goes on, and ends.
        assert!((&mut other).now_or_never().is_none());
        state.forget(1);
        assert_eq!(other.await, Ok(json!("bob")));
    }

    #[tokio::test]
    async fn the_calls_of_one_session_are_of_one_client() {
        let (state, ada) = (state(), ClientId::unique());
        for _ in 1..8 {
            // Calls that have ended reach no client.
            call(&state, Some(&way(&ada, Err(())))).1.reach(CallStage::Abandoned);
        }
        for newest in ["eight", "nine", "ten"] {
            call(&state, Some(&way(&ada, Ok(newest))));
            assert_eq!(asked(&state, "roots/list", None).await, Ok(json!(newest)));
        }
        call(&state, Some(&way(&ClientId::unique(), Ok("bob"))));
        assert!(asked(&state, "roots/list", None).now_or_never().is_none());
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
        pending.reach(CallStage::Abandoned);
        assert_eq!(asked(&state, "elicitation/create", None).await, cancelled);
        assert_eq!(started.elapsed(), 2 * PERSON_TIMEOUT);
    }
}
