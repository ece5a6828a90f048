//! What servers ask, and who is asked.
//!
//! A server of the older protocol sends a request of its own over a connection that the calls of
//! many clients share. Over HTTP it comes on the stream of the call that it is about; on pipes it
//! does not say. A question goes to a client only where it can be no other's.

use futures::future::join_all;
use rmcp::service::InboundStreamOrigin;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{ErrorObject, codes};

use crate::{
    clock::PERSON_PATIENCE,
    input_handler::{InputRequest, can_answer},
    tap::Heard,
    ticket::Ticket,
};

/// The most questions that one call may bring. A person who has answered this many is being played
/// with.
const MAX_QUESTIONS_OF_A_CALL: usize = 64;

/// Why nobody was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unasked {
    /// It is no question that clients know.
    Unknown,
    /// Nobody is there who could be asked this.
    Nobody,
    /// It may be about the call of one client or of another.
    Ambiguous,
    TooMany,
    /// Nobody answered in time, or the call was given up.
    Over,
}

/// Answers a server's request.
pub(crate) async fn answer(
    heard: &Heard,
    question: InputRequest,
    origin: Option<&InboundStreamOrigin>,
    withdrawn: &CancellationToken,
) -> Result<Value, ErrorObject> {
    let method = question.method.clone();
    let asked = match find(heard, &question, origin) {
        Ok(calls) => ask(&calls, question, withdrawn).await,
        Err(unasked) => Err(unasked),
    };
    match asked {
        Ok(answer) => answer,
        Err(unasked) => unasked.answer(&method),
    }
}

/// Finds whose question it is: the calls that it can be about, all of one caller that can be asked.
fn find(
    heard: &Heard,
    question: &InputRequest,
    origin: Option<&InboundStreamOrigin>,
) -> Result<Vec<Ticket>, Unasked> {
    let mut calls = match origin {
        Some(InboundStreamOrigin::OutboundRequest(id)) => heard.call(id).into_iter().collect(),
        Some(InboundStreamOrigin::Unassociated) | None => of_one_caller(heard)?,
    };
    match question.method.as_str() {
        "elicitation/create" | "sampling/createMessage" | "roots/list" => {}
        _ => return Err(Unasked::Unknown),
    }
    calls.retain(|call| {
        call.respondent().is_some_and(|asked| can_answer(asked.capabilities(), question))
    });
    if calls.is_empty() {
        return Err(Unasked::Nobody);
    }
    // Whoever has given a call up may hear no more of it.
    calls.sort_by_key(Ticket::is_over);
    let asked = calls.iter().map(Ticket::count_question).min();
    if asked.is_some_and(|asked| asked > MAX_QUESTIONS_OF_A_CALL) {
        return Err(Unasked::TooMany);
    }
    Ok(calls)
}

/// The calls in flight, if all are of one caller. A call that nobody answers for is a caller too: its
/// question is not for others.
fn of_one_caller(heard: &Heard) -> Result<Vec<Ticket>, Unasked> {
    let calls = heard.calls();
    let Some(first) = calls.first() else { return Ok(calls) };
    heard.turns.take_in_turn();
    if calls.iter().all(|other| other.caller() == first.caller()) {
        Ok(calls)
    } else {
        Err(Unasked::Ambiguous)
    }
}

/// Asks, for as long as anybody wants to know.
async fn ask(
    calls: &[Ticket],
    question: InputRequest,
    withdrawn: &CancellationToken,
) -> Result<Result<Value, ErrorObject>, Unasked> {
    let _open: Vec<_> = calls.iter().map(|call| call.asking().open()).collect();
    tokio::select! {
        biased;
        _ = join_all(calls.iter().map(Ticket::over)) => Err(Unasked::Over),
        () = withdrawn.cancelled() => Err(Unasked::Over),
        answer = answer_of(calls, &question) => answer.ok_or(Unasked::Nobody),
        () = tokio::time::sleep(PERSON_PATIENCE) => Err(Unasked::Over),
    }
}

/// The answer of the caller, by way of one of its calls: where that ended before it could ask, by way
/// of the next.
async fn answer_of(
    calls: &[Ticket],
    question: &InputRequest,
) -> Option<Result<Value, ErrorObject>> {
    let mut said = None;
    for call in calls {
        let Some(respondent) = call.respondent() else { continue };
        let answer = respondent.answer(question.clone()).await;
        let asked_in_vain = answer.is_err() && call.is_over();
        said = Some(answer);
        if !asked_in_vain {
            break;
        }
    }
    said
}

impl Unasked {
    /// What the server is told. It was promised that such questions are answered, so that where the
    /// protocol has words for "nobody answered" they are used.
    fn answer(self, method: &str) -> Result<Value, ErrorObject> {
        let refused = |code, why: &str| Err(ErrorObject::new(code, why.to_owned(), None));
        match (self, method) {
            (Self::Unknown, _) => {
                refused(codes::METHOD_NOT_FOUND, "this client does not know this kind of question")
            }
            (Self::Ambiguous, _) => refused(
                codes::INVALID_REQUEST,
                "calls of several clients are under way on this connection, so that it is not known \
                 whom this is for; from now on calls come from one client at a time",
            ),
            (Self::TooMany, _) => refused(
                codes::INVALID_REQUEST,
                "one call may not bring so many questions; no more are answered",
            ),
            (Self::Nobody | Self::Over, "elicitation/create") => Ok(json!({ "action": "cancel" })),
            (Self::Nobody, "roots/list") => Ok(json!({ "roots": [] })),
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
    use std::{sync::Arc, time::Duration};

    use futures::{FutureExt, future::BoxFuture};
    use rmcp::model::{
        ClientJsonRpcMessage, ClientRequest, CustomRequest, GetExtensions, RequestId,
    };
    use tokio::time::Instant;
    use toolgate_mcp::JsonObject;

    use super::*;
    use crate::{
        input_handler::{ClientId, InputHandler},
        turns::Caller,
    };

    /// Answers with its name, or never.
    #[derive(Debug)]
    struct Person(Option<&'static str>, JsonObject);

    /// One of several ways to a client, which is open or not.
    #[derive(Debug)]
    struct Way(ClientId, Result<&'static str, ()>, JsonObject);

    impl InputHandler for Way {
        fn capabilities(&self) -> &JsonObject {
            &self.2
        }

        fn answer(&self, _question: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
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

        fn answer(&self, _question: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
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

    fn heard() -> Arc<Heard> {
        Arc::new(Heard::new(Arc::default(), |_, _| {}))
    }

    fn call(heard: &Heard, id: i64, respondent: Option<&Arc<dyn InputHandler>>) -> Ticket {
        let ticket = Ticket::new(None, respondent.cloned());
        let mut request = ClientRequest::CustomRequest(CustomRequest::new("x", None));
        request.extensions_mut().insert(ticket.clone());
        heard.outgoing(&ClientJsonRpcMessage::request(request, RequestId::Number(id)));
        ticket
    }

    async fn asked(heard: &Heard, method: &str, stream: Option<i64>) -> Result<Value, i64> {
        let question = InputRequest { method: method.to_owned(), params: None };
        let origin = stream.map(|id| InboundStreamOrigin::OutboundRequest(RequestId::Number(id)));
        let answer = answer(heard, question, origin.as_ref(), &CancellationToken::new()).await;
        answer.map_err(|error| error.code)
    }

    #[tokio::test]
    async fn a_question_goes_to_the_only_caller_there_is() {
        let heard = heard();
        assert_eq!(asked(&heard, "roots/list", None).await, Ok(json!({ "roots": [] })));
        let (ada, bob) = (person(Some("ada")), person(Some("bob")));
        call(&heard, 1, Some(&ada));
        call(&heard, 2, Some(&ada));
        assert_eq!(asked(&heard, "roots/list", None).await, Ok(json!("ada")));
        call(&heard, 3, Some(&bob));
        assert_eq!(asked(&heard, "roots/list", None).await, Err(-32600));
        assert_eq!(asked(&heard, "roots/list", Some(3)).await, Ok(json!("bob")));
        assert_eq!(asked(&heard, "roots/list", Some(2)).await, Ok(json!("ada")));
        assert_eq!(asked(&heard, "sampling/createMessage", Some(9)).await, Err(-32601));
        assert_eq!(asked(&heard, "odd/question", Some(3)).await, Err(-32601));
        heard.forget(&RequestId::Number(3));
        assert_eq!(asked(&heard, "roots/list", None).await, Ok(json!("ada")));
        call(&heard, 4, None);
        assert_eq!(asked(&heard, "roots/list", None).await, Err(-32600));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_be_at_work_on_what_was_cancelled() {
        let heard = heard();
        let (ada, bob) = (person(Some("ada")), person(Some("bob")));
        call(&heard, 1, Some(&ada));
        call(&heard, 2, Some(&bob));
        heard.abandon(&RequestId::Number(1), None);
        assert_eq!(asked(&heard, "roots/list", None).await, Err(-32600));
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(asked(&heard, "roots/list", None).await, Ok(json!("bob")));
    }

    #[tokio::test]
    async fn the_calls_of_one_client_are_of_one_caller() {
        let (heard, ada) = (heard(), ClientId::unique());
        for id in 1..8 {
            // Of those that are over, nobody hears any more.
            call(&heard, id, Some(&way(ada, Err(())))).end();
        }
        for (id, newest) in [(8, "eight"), (9, "nine"), (10, "ten")] {
            call(&heard, id, Some(&way(ada, Ok(newest))));
            assert_eq!(asked(&heard, "roots/list", None).await, Ok(json!(newest)));
        }
        call(&heard, 11, Some(&way(ClientId::unique(), Ok("bob"))));
        assert_eq!(asked(&heard, "roots/list", None).await, Err(-32600));
    }

    #[tokio::test(start_paused = true)]
    async fn the_turn_of_what_was_cancelled_ends_with_its_answer_or_in_time() {
        let heard = heard();
        let (ada, bob) = (person(Some("ada")), person(Some("bob")));
        let bobs = Caller::of(Some(&bob));
        heard.turns.take_in_turn();
        for answered in [true, false] {
            let turn = heard.turn(Caller::of(Some(&ada))).await;
            call(&heard, 1, Some(&ada));
            heard.abandon(&RequestId::Number(1), turn);
            let (mut waiting, started) = (Box::pin(heard.turn(bobs)), Instant::now());
            assert!((&mut waiting).now_or_never().is_none());
            // The caller itself is not held up, and is the one that is asked.
            assert!(heard.turn(Caller::of(Some(&ada))).now_or_never().is_some());
            assert_eq!(asked(&heard, "roots/list", None).await, Ok(json!("ada")));
            if answered {
                heard.forget(&RequestId::Number(1));
            }
            assert!(waiting.await.is_some());
            assert_eq!(started.elapsed().as_secs(), if answered { 0 } else { 10 });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_long_for_a_person_at_another_client() {
        let heard = heard();
        let (nobody, bob) = (person(None), person(Some("bob")));
        heard.turns.take_in_turn();
        let turn = heard.turn(Caller::of(Some(&nobody))).await;
        call(&heard, 1, Some(&nobody));
        let started = Instant::now();
        tokio::select! {
            _ = asked(&heard, "roots/list", None) => panic!("nobody answers"),
            turn = heard.turn(Caller::of(Some(&bob))) => assert!(turn.is_none()),
        }
        assert_eq!(started.elapsed().as_secs(), 30);
        // A call that merely takes its time is waited for.
        let ends = async {
            tokio::time::sleep(Duration::from_mins(2)).await;
            drop(turn);
        };
        let (admitted, ()) = tokio::join!(heard.turn(Caller::of(Some(&bob))), ends);
        assert!(admitted.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_waited_for_for_ever() {
        let heard = heard();
        let nobody = person(None);
        let ticket = call(&heard, 1, Some(&nobody));
        let started = Instant::now();
        let cancelled = Ok(json!({ "action": "cancel" }));
        assert_eq!(asked(&heard, "elicitation/create", None).await, cancelled);
        assert_eq!(asked(&heard, "sampling/createMessage", None).await, Err(-32603));
        assert_eq!(started.elapsed(), 2 * PERSON_PATIENCE);
        // And not at all where the call is over.
        ticket.end();
        assert_eq!(asked(&heard, "elicitation/create", None).await, cancelled);
        assert_eq!(started.elapsed(), 2 * PERSON_PATIENCE);
    }
}
