//! Servers that are not configured are used with a person's consent, and not without.

use serde_json::json;
use toolgate_broker::{Caller, SessionContext};
use toolgate_store::{Choices, Consent, SwitchedBy};

use crate::support::{NAME, Person, Place, call, enable};

fn yes() -> serde_json::Value {
    json!({ "action": "accept", "content": { "decision": "allow" } })
}

#[tokio::test]
async fn a_person_sees_everything_and_consents_once() {
    let place = Place::new().await;
    let (host, person) = (place.host(), Person::who_says(yes()));
    let session = host.session();
    let query = json!({ "query": "add numbers" });
    let (found, _) = call(&session, None, "search_available_servers", query).await;
    insta::assert_snapshot!(found, @r#"
    For "add numbers":
    - io.github.acme/sums (not configured: a person is asked): Adds numbers up
    To connect a server: enable_server.
    "#);
    let (text, failed) = enable(&session, Some(&person)).await;
    assert!(!failed, "{text}");
    insta::assert_snapshot!(text, @"Server io.github.acme/sums is connected: 1 tool (sums_add). search_tools finds them.");
    insta::assert_snapshot!(place.plain(&person.asked()[0]), @"
    An agent wants to use a server that is not in your configuration.

    Server io.github.acme/sums 1.0.0 of http://REGISTRY
    It says of itself: Adds numbers up
    It contacts: http://SERVER

    Allow this, and nothing else?
    ");
    let sum = call(&session, None, "sums_add", json!({ "a": 2, "b": 3 })).await;
    assert!(!sum.1 && sum.0.contains('5'), "{sum:?}");
    enable(&session, Some(&person)).await;
    assert_eq!(person.asked().len(), 1, "nothing has changed");
    host.shutdown().await;

    // A later start uses it without asking, and without the registry.
    place.registry.replace(Vec::new());
    let later = place.host();
    let sum = call(&later.session(), None, "sums_add", json!({ "a": 2, "b": 3 })).await;
    assert!(!sum.1 && sum.0.contains('5'), "{sum:?}");
    later.shutdown().await;
}

#[tokio::test]
async fn only_an_explicit_allow_is_a_consent() {
    for answer in [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": { "decision": "deny" } }),
        json!({ "action": "accept", "content": { "decision": true } }),
        json!({ "action": "accept", "content": { "allow": "allow" } }),
        json!({ "content": { "decision": "allow" } }),
        json!("allow"),
    ] {
        let place = Place::new().await;
        let (host, person) = (place.host(), Person::who_says(answer.clone()));
        let (text, failed) = enable(&host.session(), Some(&person)).await;
        assert!(failed, "{answer}: {text}");
        assert_eq!(
            text,
            "The person who was asked did not allow server io.github.acme/sums. Do without it."
        );
        assert_eq!(place.choices().read().unwrap(), Choices::default());
        assert!(host.catalog().read().is_empty());
        host.shutdown().await;
    }
}

#[tokio::test]
async fn if_the_client_cannot_ask_the_server_waits_for_the_shell() {
    let place = Place::new().await;
    let host = place.host();
    let session = host.session();
    let nobody = [
        None,
        Some(Person::with(&json!({}), yes())),
        Some(Person::with(&json!({ "elicitation": { "url": {} } }), yes())),
    ];
    for person in &nobody {
        let (text, failed) = enable(&session, person.as_ref()).await;
        assert!(!failed && text.contains("toolgate approve"), "{text}");
        assert!(person.as_ref().is_none_or(|person| person.asked().is_empty()));
    }
    let requests = place.choices().read().unwrap().requests;
    let (id, request) = requests.first_key_value().unwrap();
    assert_eq!(requests.len(), 1, "it is one wish");
    insta::assert_snapshot!(place.plain(&request.shown), @"
    Server io.github.acme/sums 1.0.0 of http://REGISTRY
    It says of itself: Adds numbers up
    It contacts: http://SERVER
    ");
    let (text, _) = enable(&session, None).await;
    let question = toolgate_store::QuestionReference::of(id);
    assert!(text.contains(&format!("question {question}: `toolgate approve`")), "{text}");
    assert!(!text.contains(id), "the id that approves is not for models: {text}");

    // As the command does it, in another process.
    let consent = Consent::now(request.fingerprint.clone(), request.plan.clone());
    place.choices().change(|choices| choices.consent(NAME.to_owned(), consent)).unwrap();
    let (text, failed) = enable(&session, None).await;
    assert!(!failed && text.contains("is connected"), "{text}");
    assert!(place.choices().read().unwrap().requests.is_empty());

    // And takes it back.
    place.choices().change(|choices| choices.consents.clear()).unwrap();
    let fresh = host.session();
    fresh.list_tools().await;
    assert!(host.catalog().read().is_empty(), "a conversation that starts now knows of it");
    host.shutdown().await;
}

#[tokio::test]
async fn remote_callers_neither_consent_nor_disable_servers() {
    let place = Place::new().await;
    let (host, person) = (place.host(), Person::who_says(yes()));
    let elsewhere = Caller::model("token ci 0a1b").remote();
    let (theirs, ours) = (host.session_of(SessionContext::new(elsewhere)), host.session());
    let (text, failed) = enable(&theirs, Some(&person)).await;
    assert!(!failed && text.contains("toolgate approve"), "{text}");
    assert_eq!(person.asked(), Vec::<String>::new());
    assert!(host.catalog().read().is_empty());

    enable(&ours, Some(&person)).await;
    let (text, failed) = enable(&theirs, None).await;
    assert!(!failed && text.contains("is connected"), "what was agreed to is for all: {text}");
    let (text, failed) = call(&theirs, None, "disable_server", json!({ "name": NAME })).await;
    assert!(failed, "{text}");
    insta::assert_snapshot!(text, @"Server io.github.acme/sums is not disabled: others use it too. A person does that where toolgate runs: `toolgate disable io.github.acme/sums`. To do without it, do not call its tools.");
    let sum = call(&ours, None, "sums_add", json!({ "a": 2, "b": 3 })).await;
    assert!(!sum.1, "{sum:?}");

    call(&ours, None, "disable_server", json!({ "name": NAME })).await;
    let (text, failed) = enable(&theirs, None).await;
    assert!(failed && text.contains("toolgate enable"), "{text}");
    let (text, failed) = enable(&ours, None).await;
    assert!(!failed, "{text}");
    host.shutdown().await;
}

#[tokio::test]
async fn changes_in_a_shell_apply_in_open_sessions() {
    let place = Place::new().await;
    let (host, person) = (place.host(), Person::who_says(yes()));
    let session = host.session();
    enable(&session, Some(&person)).await;
    let add = async || call(&session, None, "sums_add", json!({ "a": 2, "b": 3 })).await;
    assert!(!add().await.1);
    // As the commands do it, in another process.
    let off = |choices: &mut Choices| {
        choices.disabled.insert(NAME.to_owned(), SwitchedBy::Person);
    };
    place.choices().change(off).unwrap();
    let (text, failed) = add().await;
    assert!(failed && text.contains("toolgate enable"), "{text}");
    place.choices().change(|choices| choices.disabled.clear()).unwrap();
    let (text, failed) = add().await;
    assert!(!failed, "{text}");
    place.choices().change(|choices| choices.consents.clear()).unwrap();
    session.list_tools().await;
    assert!(host.catalog().read().is_empty(), "nothing of it is in use any more");
    host.shutdown().await;
}

#[tokio::test]
async fn a_changed_entry_asks_again() {
    let place = Place::new().await;
    let (host, person) = (place.host(), Person::who_says(yes()));
    let session = host.session();
    enable(&session, Some(&person)).await;
    place.list("1.0.1", "");
    enable(&session, Some(&person)).await;
    assert_eq!(person.asked().len(), 2, "another version");
    place.list("1.0.1", "?evil=1");
    let cautious = Person::who_says(json!({ "action": "decline" }));
    let (text, failed) = enable(&session, Some(&cautious)).await;
    assert!(failed, "{text}");
    assert!(cautious.asked()[0].contains("?evil=1"), "{:?}", cautious.asked());
    let sum = call(&session, None, "sums_add", json!({ "a": 2, "b": 3 })).await;
    assert!(!sum.1, "what was agreed to still works: {sum:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_changed_consent_file_is_no_consent() {
    let place = Place::new().await;
    let (host, person) = (place.host(), Person::who_says(yes()));
    enable(&host.session(), Some(&person)).await;
    host.shutdown().await;
    let tamper = |choices: &mut Choices| {
        let consent = choices.consents.get_mut(NAME).unwrap();
        consent.plan["target"] = json!({ "kind": "run", "command": "sh", "args": ["-c", "exit"], "env": {}, "variables": [] });
    };
    place.choices().change(tamper).unwrap();
    let later = place.host();
    later.session().list_tools().await;
    assert!(later.servers().state(NAME).is_none());
    later.shutdown().await;
}

#[tokio::test]
async fn missing_values_are_not_requested_from_the_model() {
    let place = Place::new().await;
    place.registry.replace(vec![json!({
        "name": NAME, "version": "1.0.0",
        "packages": [{ "registryType": "npm", "identifier": "sums", "version": "1.0.0",
            "environmentVariables": [{ "name": "SUMS_KEY", "isRequired": true, "isSecret": true }] }],
    })]);
    let (host, person) = (place.host(), Person::who_says(yes()));
    let (text, failed) = enable(&host.session(), Some(&person)).await;
    assert!(failed);
    insta::assert_snapshot!(text, @"Server io.github.acme/sums cannot be enabled: it needs the environment variable SUMS_KEY: a person sets it where toolgate is started, or adds the server to `mcpServers` with its `env`; a value is nothing to ask for here.");
    assert!(person.asked().is_empty());
    let missing = json!({ "name": "io.github.acme/sum" });
    let (text, _) = call(&host.session(), None, "enable_server", missing).await;
    insta::assert_snapshot!(text, @"There is no server `io.github.acme/sum`. Nearest: io.github.acme/sums.");
    host.shutdown().await;
}
