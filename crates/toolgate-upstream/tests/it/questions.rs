//! Input requests of servers, and the clients that get them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use toolgate_mcp::{ErrorObject, JsonObject};
use toolgate_testkit::{Builtin, Fixture, FixtureEra};
use toolgate_upstream::{CallError, CallOptions, ClientId, InputHandler, InputRequest};

use crate::support::{Gate, Over, millis, serve, until, with_limits, within};

/// A client that answers input requests.
#[derive(Debug)]
pub(crate) struct Person {
    name: &'static str,
    session: ClientId,
    capabilities: JsonObject,
    asked: watch::Sender<Vec<InputRequest>>,
    /// Waited for before each answer.
    gate: Option<Arc<Notify>>,
    /// How many answers are being waited for.
    thinking: Arc<Mutex<usize>>,
    /// Whether it is asked by the results of its calls.
    is_modern: bool,
    is_gone: AtomicBool,
}

/// Counts the open input requests.
struct Thinking(Arc<Mutex<usize>>);

impl Drop for Thinking {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
    }
}

impl Person {
    pub(crate) fn new(name: &'static str) -> Self {
        let capabilities = json!({
            "elicitation": { "form": {}, "url": {} },
            "sampling": {},
            "roots": {},
            "experimental": { "not": "for servers" },
        });
        Self {
            name,
            session: ClientId::unique(),
            capabilities: capabilities.as_object().unwrap().clone(),
            asked: watch::Sender::default(),
            gate: None,
            thinking: Arc::default(),
            is_modern: false,
            is_gone: AtomicBool::new(false),
        }
    }

    /// A call of a modern client.
    pub(crate) fn of_modern(mut self, client: &ClientId) -> Self {
        self.session = client.clone();
        self.is_modern = true;
        self
    }

    pub(crate) fn who_can(mut self, capabilities: &Value) -> Self {
        self.capabilities.clone_from(capabilities.as_object().unwrap());
        self
    }

    pub(crate) fn behind(mut self, gate: &Arc<Notify>) -> Self {
        self.gate = Some(Arc::clone(gate));
        self
    }

    pub(crate) fn asked(&self) -> Vec<InputRequest> {
        self.asked.borrow().clone()
    }

    pub(crate) async fn until_asked(&self, times: usize) {
        let mut asked = self.asked.subscribe();
        within("the question", asked.wait_for(|asked| asked.len() >= times)).await.unwrap();
    }
}

impl InputHandler for Person {
    fn capabilities(&self) -> &JsonObject {
        &self.capabilities
    }

    fn answer(&self, question: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        Box::pin(async move {
            *self.thinking.lock() += 1;
            let _thinking = Thinking(Arc::clone(&self.thinking));
            let answer = said(self.name, &question);
            self.asked.send_modify(|asked| asked.push(question));
            if let Some(gate) = &self.gate {
                gate.notified().await;
            }
            Ok(answer)
        })
    }

    fn client(&self) -> Option<ClientId> {
        Some(self.session.clone())
    }

    fn is_asked_by_results(&self) -> bool {
        self.is_modern
    }

    fn is_there(&self) -> bool {
        !self.is_gone.load(Ordering::Relaxed)
    }
}

/// What a person says, with a field that no SDK knows.
fn said(name: &str, question: &InputRequest) -> Value {
    match question.method.as_str() {
        "elicitation/create" => {
            json!({ "action": "accept", "content": { "name": name }, "odd": 1 })
        }
        "sampling/createMessage" => {
            let content = json!({ "type": "text", "text": name, "odd": [1.5] });
            json!({ "role": "assistant", "content": content, "model": "m", "odd": null })
        }
        _ => json!({ "roots": [{ "uri": format!("file:///{name}"), "odd": 2 }] }),
    }
}

pub(crate) fn asking() -> Fixture {
    Fixture::new("curious").with_builtins([
        Builtin::AskForm,
        Builtin::AskUrl,
        Builtin::AskModel,
        Builtin::AskAll,
        Builtin::AskRoots,
        Builtin::Sleep,
        Builtin::Client,
        Builtin::LastCancelled,
    ])
}

pub(crate) fn by(person: &Arc<Person>) -> CallOptions {
    let input_handler: Arc<dyn InputHandler> = Arc::clone(person) as Arc<dyn InputHandler>;
    CallOptions { input_handler: Some(input_handler), ..CallOptions::default() }
}

/// The answers that a tool got, round by round.
pub(crate) async fn answers(
    gate: &Gate,
    tool: &str,
    arguments: Value,
    options: CallOptions,
) -> Value {
    let mut result = gate.call_with(tool, arguments, options).await.unwrap();
    result["structuredContent"]["answers"].take()
}

#[tokio::test]
async fn every_kind_of_question_in_both_eras_over_every_transport() {
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let (spec, _running) = serve(asking().with_era(era), over).await;
            let gate = Gate::ready(spec).await;
            for (tool, keys) in [
                ("ask_form", &["form"][..]),
                ("ask_url", &["url"]),
                ("ask_model", &["model"]),
                ("ask_all", &["form", "model", "roots"]),
            ] {
                let ada = Arc::new(Person::new("ada"));
                let with = json!({ "odd": { "deep": [1.5, null] }, "_meta": { "x": 1 } });
                let arguments = json!({ "rounds": 2, "with": with });
                let got = answers(&gate, tool, arguments, by(&ada)).await;
                let method = |key: &str| match key {
                    "model" => "sampling/createMessage",
                    "roots" => "roots/list",
                    _ => "elicitation/create",
                };
                let round: Value = keys
                    .iter()
                    .map(|key| {
                        let question =
                            InputRequest { method: method(key).to_owned(), params: None };
                        ((*key).to_owned(), said("ada", &question))
                    })
                    .collect::<serde_json::Map<_, _>>()
                    .into();
                assert_eq!(got, json!([round, round]), "{tool} {era:?} {over:?}");
                let asked = ada.asked();
                assert_eq!(asked.len(), 2 * keys.len());
                for question in asked {
                    let params = question.params.unwrap();
                    assert_eq!(params["odd"], with["odd"]);
                    assert_eq!(params["_meta"], with["_meta"]);
                }
            }
        }
    }
}

#[tokio::test]
async fn servers_get_the_input_capabilities() {
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let (spec, _running) = serve(asking().with_era(era), over).await;
            let gate = Gate::ready(spec).await;
            let ada = Arc::new(Person::new("ada").who_can(&json!({ "roots": {}, "tasks": {} })));
            for (options, modern) in
                [(by(&ada), json!({ "roots": {} })), (CallOptions::default(), json!({}))]
            {
                let client = gate.call_with("client", json!({}), options).await.unwrap();
                let client = &client["structuredContent"];
                let (declared, expected) = match era {
                    FixtureEra::Modern => {
                        (&client["io.modelcontextprotocol/clientCapabilities"], modern)
                    }
                    _ => (
                        &client["capabilities"],
                        json!({
                            "elicitation": { "form": {}, "url": {} },
                            "roots": { "listChanged": true },
                            "sampling": { "tools": {} },
                        }),
                    ),
                };
                let mut declared = declared.clone();
                // These are no capabilities for input.
                declared.as_object_mut().unwrap().remove("extensions");
                assert_eq!(declared, expected, "{era:?} {over:?}");
            }
        }
    }
}

#[tokio::test]
async fn clients_get_only_input_requests_that_they_support() {
    for over in Over::ALL {
        let (spec, _running) = serve(asking(), over).await;
        let gate = Gate::ready(spec).await;
        let ada = Arc::new(Person::new("ada").who_can(&json!({ "elicitation": { "form": {} } })));
        for options in [by(&ada), CallOptions::default()] {
            let got = answers(&gate, "ask_url", json!({}), options.clone()).await;
            assert_eq!(got, json!([{ "url": { "action": "cancel" } }]), "{over:?}");
            let got = answers(&gate, "ask_model", json!({}), options.clone()).await;
            assert_eq!(got[0]["model"]["error"]["code"], -32601, "{over:?}");
            let roots = gate.call_with("ask_roots", json!({}), options).await.unwrap();
            assert_eq!(roots["structuredContent"], json!({ "result": { "roots": [] } }));
        }
        assert_eq!(ada.asked(), []);
    }
}

#[tokio::test]
async fn an_unanswered_modern_input_request_is_in_the_error() {
    let (spec, _running) = serve(asking().with_era(FixtureEra::Modern), Over::HttpJson).await;
    let gate = Gate::ready(spec).await;
    let error = gate.call("ask_form", json!({})).await.unwrap_err();
    insta::assert_snapshot!(error, @r#"server `fixture` requires a form to be filled in ("Who are you? (1)") before it answers `ask_form`, and this client cannot be asked"#);
    let ada = Arc::new(Person::new("ada").who_can(&json!({ "elicitation": {} })));
    let error = gate.call_with("ask_all", json!({}), by(&ada)).await.unwrap_err();
    insta::assert_snapshot!(error, @"server `fixture` requires an answer of the client's model before it answers `ask_all`, and this client cannot be asked");
    assert_eq!(ada.asked(), []);
}

#[tokio::test]
async fn over_http_an_input_request_belongs_to_its_stream() {
    let (spec, _running) = serve(asking(), Over::HttpSse).await;
    let gate = Gate::ready(spec).await;
    let held = Arc::new(Notify::new());
    let ada = Arc::new(Person::new("ada").behind(&held));
    let bob = Arc::new(Person::new("bob"));
    let of_bob = async {
        ada.until_asked(1).await;
        let said = answers(&gate, "ask_form", json!({ "rounds": 3 }), by(&bob)).await;
        held.notify_one();
        said
    };
    let (ada_said, bob_said) =
        tokio::join!(answers(&gate, "ask_form", json!({}), by(&ada)), of_bob);
    assert_eq!(ada_said[0]["form"]["content"]["name"], "ada");
    assert_eq!(bob_said[2]["form"]["content"]["name"], "bob");
}

#[tokio::test]
async fn overlapping_calls_of_a_modern_client_are_asked_each_for_itself() {
    let (spec, _running) = serve(asking(), Over::Stdio).await;
    let gate = Gate::ready(spec).await;
    let (client, held) = (ClientId::unique(), Arc::new(Notify::new()));
    // Before the server is known to ask, and after.
    for _ in 0..2 {
        let one = Arc::new(Person::new("one").of_modern(&client).behind(&held));
        let two = Arc::new(Person::new("two").of_modern(&client));
        let second = async {
            one.until_asked(1).await;
            let said = answers(&gate, "ask_form", json!({}), by(&two)).await;
            held.notify_one();
            said
        };
        let (of_one, of_two) =
            tokio::join!(answers(&gate, "ask_form", json!({}), by(&one)), second);
        assert_eq!(of_one[0]["form"]["content"]["name"], "one");
        assert_eq!(of_two[0]["form"]["content"]["name"], "two");
    }
}

#[tokio::test]
async fn a_question_to_a_client_that_is_gone_makes_room() {
    let (spec, _running) = serve(asking(), Over::Stdio).await;
    let gate = Arc::new(Gate::ready(spec).await);
    let held = Arc::new(Notify::new());
    let mut waiting = Vec::new();
    // As many as there are instances for clients that can be asked.
    for _ in 0..16 {
        let person = Arc::new(Person::new("slow").behind(&held));
        let (gate, options) = (Arc::clone(&gate), by(&person));
        let call =
            tokio::spawn(async move { answers(&gate, "ask_form", json!({}), options).await });
        person.until_asked(1).await;
        waiting.push((person, call));
    }
    let silent = Arc::new(Person::new("silent").who_can(&json!({})));
    gate.call_with("sleep", json!({ "ms": 1 }), by(&silent)).await.unwrap();
    // The first instance is not one that another client gets.
    let (gone, call) = waiting.pop().unwrap();
    gone.is_gone.store(true, Ordering::Relaxed);
    let ada = Arc::new(Person::new("ada"));
    let said = answers(&gate, "ask_form", json!({}), by(&ada)).await;
    assert_eq!(said[0]["form"]["content"]["name"], "ada");
    assert_eq!(call.await.unwrap()[0]["form"], json!({ "action": "cancel" }));
    assert!(waiting.iter().all(|(_, call)| !call.is_finished()));
}

#[tokio::test]
async fn a_person_has_more_time_than_a_server() {
    for era in [FixtureEra::Legacy, FixtureEra::Modern] {
        let (spec, _running) = serve(asking().with_era(era), Over::Stdio).await;
        let spec = with_limits(spec, |limits| {
            limits.idle = millis(400);
            limits.total = millis(900);
        });
        let gate = Gate::ready(spec).await;
        let held = Arc::new(Notify::new());
        let ada = Arc::new(Person::new("ada").behind(&held));
        let thinking = async {
            ada.until_asked(1).await;
            tokio::time::sleep(millis(1500)).await;
            held.notify_one();
        };
        let (said, ()) = tokio::join!(answers(&gate, "ask_form", json!({}), by(&ada)), thinking);
        assert_eq!(said[0]["form"]["content"]["name"], "ada", "{era:?}");
    }
}

#[tokio::test]
async fn a_cancellation_withdraws_the_input_request() {
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let (spec, _running) = serve(asking().with_era(era), over).await;
            let gate = Gate::ready(spec).await;
            let ada = Arc::new(Person::new("ada").behind(&Arc::default()));
            let options = by(&ada);
            let cancel = options.cancel.clone();
            let (outcome, ()) =
                tokio::join!(gate.call_with("ask_form", json!({}), options), async {
                    ada.until_asked(1).await;
                    cancel.cancel();
                });
            assert!(matches!(outcome, Err(CallError::Cancelled)), "{era:?} {over:?}: {outcome:?}");
            until("the end of the question", || *ada.thinking.lock() == 0).await;
        }
    }
}

#[tokio::test]
async fn endless_input_requests_end_the_call() {
    for era in [FixtureEra::Legacy, FixtureEra::Modern] {
        let (spec, _running) = serve(asking().with_era(era), Over::Stdio).await;
        let gate = Gate::ready(spec).await;
        let ada = Arc::new(Person::new("ada"));
        let outcome = gate.call_with("ask_form", json!({ "rounds": 100 }), by(&ada)).await;
        if era == FixtureEra::Modern {
            insta::assert_snapshot!(outcome.unwrap_err(), @"the call of `ask_form` on server `fixture` failed: it asks for input, but the server asks without end");
            assert_eq!(ada.asked().len(), 16);
        } else {
            let last = &outcome.unwrap()["structuredContent"]["answers"][99]["form"];
            insta::assert_snapshot!(last["error"]["message"].as_str().unwrap(), @"one call may not bring so many requests; no more are answered");
            assert_eq!(ada.asked().len(), 64);
        }
        // The next call starts anew.
        let said = answers(&gate, "ask_form", json!({}), by(&ada)).await;
        assert_eq!(said[0]["form"]["action"], "accept");
    }
}
