//! Tokens in use: sent, renewed, refused.

use futures::future::join_all;
use serde_json::json;
use toolgate_testkit::{AuthorizationFault, AuthorizationOptions, Builtin, Fixture};
use toolgate_upstream::{
    AuthorizationSettings, CallError, LogoutOutcome, OutputSource, StateKind, SubjectToken,
    TokenSource,
};

use super::{Guarded, MemoryLogins};
use crate::support::{Gate, NAME};

#[tokio::test]
async fn login_gives_access_and_logout_ends_it() {
    let guarded = Guarded::start(AuthorizationOptions::default()).await;
    let (gate, failure) = Gate::failure(guarded.spec()).await;
    assert_eq!(failure.action, "run `toolgate login fixture`");
    assert!(failure.reason.ends_with("asks for a login"), "{failure:?}");

    guarded.login().await.unwrap();
    // The gate that runs already finds the login at its next attempt.
    gate.until("the connection", |gate| gate.state(NAME).kind == StateKind::Ready).await;
    assert_eq!(gate.call("echo", json!({ "text": "x" })).await.unwrap()["isError"], json!(null));
    let state = guarded.authorizer().state().await.unwrap().unwrap();
    assert_eq!(state.issuer.as_deref(), Some(guarded.authorization.url()));
    assert!(state.renewable && state.seconds_left.is_some_and(|left| left > 3500), "{state:?}");

    assert_eq!(guarded.authorizer().logout().await.unwrap(), LogoutOutcome::Revoked);
    assert_eq!(guarded.authorization.record().revoked.len(), 2);
    assert_eq!(guarded.authorizer().logout().await.unwrap(), LogoutOutcome::NotLoggedIn);
    let refused = gate.call("echo", json!({ "text": "x" })).await.unwrap_err();
    assert!(matches!(refused, CallError::Unauthorized { .. }), "{refused}");
    gate.until("the end of the connection", |gate| gate.state(NAME).kind != StateKind::Ready).await;
}

#[tokio::test]
async fn a_token_that_expires_during_use_is_renewed_once_and_no_call_is_repeated() {
    let fixture = Fixture::new("guarded").with_builtins([Builtin::Counter]);
    let guarded = Guarded::with(fixture, AuthorizationOptions::default()).await;
    guarded.login().await.unwrap();
    let gate = Gate::ready(guarded.spec()).await;
    for round in 1..=3 {
        guarded.authorization.expire_access_tokens();
        let calls = (0..20).map(|_| gate.call("counter", json!({})));
        for outcome in join_all(calls).await {
            outcome.unwrap();
        }
        let record = guarded.authorization.record();
        assert_eq!((record.renewals, record.reuses), (round, 0));
        // Each took effect once: the refused ones did not reach the server.
        assert_eq!(guarded.server.calls(), 20 * round as u64);
    }
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    // Within the margin from the start: each look at it is a reason to renew.
    let options = AuthorizationOptions { lifetime: 10, ..AuthorizationOptions::default() };
    let guarded = Guarded::start(options).await;
    guarded.login().await.unwrap();
    let gate = Gate::ready(guarded.spec()).await;
    gate.call("echo", json!({ "text": "x" })).await.unwrap();
    let record = guarded.authorization.record();
    assert!(record.renewals > 0 && record.refusals <= 3, "{record:?}");
    assert_eq!(record.reuses, 0);
}

#[tokio::test]
async fn several_processes_use_a_refresh_token_once() {
    let guarded = Guarded::start(AuthorizationOptions::default()).await;
    guarded.login().await.unwrap();
    let first = Gate::ready(guarded.spec()).await;
    let second = Gate::ready(guarded.spec()).await;
    guarded.authorization.expire_access_tokens();
    first.call("echo", json!({ "text": "x" })).await.unwrap();
    second.call("echo", json!({ "text": "x" })).await.unwrap();
    let record = guarded.authorization.record();
    assert_eq!((record.renewals, record.reuses), (1, 0));
}

#[tokio::test]
async fn a_stored_token_that_is_refused_too_is_renewed() {
    let guarded = Guarded::start(AuthorizationOptions::default()).await;
    guarded.login().await.unwrap();
    let first = Gate::ready(guarded.spec()).await;
    let second = Gate::ready(guarded.spec()).await;
    guarded.authorization.expire_access_tokens();
    first.call("echo", json!({ "text": "x" })).await.unwrap();
    // The second one has the first token in memory. The stored one, which the first process renewed, is over too.
    guarded.authorization.expire_access_tokens();
    second.call("echo", json!({ "text": "x" })).await.unwrap();
    let record = guarded.authorization.record();
    assert_eq!((record.renewals, record.reuses), (2, 0));
    // Each took effect once.
    assert_eq!(guarded.server.calls(), 2);
}

#[tokio::test]
async fn an_expired_login_is_reported() {
    let guarded = Guarded::start(AuthorizationOptions::default()).await;
    guarded.login().await.unwrap();
    let gate = Gate::ready(guarded.spec()).await;
    guarded.authorization.forget_everything();
    let refused = gate.call("echo", json!({ "text": "x" })).await.unwrap_err().to_string();
    assert!(refused.contains("no longer accepts the login"), "{refused}");
    assert!(refused.contains("run `toolgate login fixture`"), "{refused}");
    gate.until("the state", |gate| gate.state(NAME).kind == StateKind::Failed).await;
    let failure = gate.state(NAME).failure.unwrap();
    assert_eq!(failure.action, "run `toolgate login fixture`");
    assert_eq!(guarded.server.calls(), 0);
}

#[tokio::test]
async fn a_server_that_refuses_every_token_is_not_retried_endlessly() {
    let fault = Some(AuthorizationFault::AcceptsNothing);
    let guarded = Guarded::start(AuthorizationOptions { fault, ..Default::default() }).await;
    guarded.login().await.unwrap();
    let (gate, failure) = Gate::failure(guarded.spec()).await;
    assert!(failure.reason.contains("no longer accepts the login"), "{failure:?}");
    let calls = (0..20).map(|_| gate.call("echo", json!({ "text": "x" })));
    assert!(join_all(calls).await.iter().all(Result::is_err));
    // One renewed token may have been withdrawn before its first use, and two may not.
    assert_eq!(guarded.authorization.record().renewals, 2);
}

#[tokio::test]
async fn a_failing_authorization_server_is_tried_again() {
    let fault = Some(AuthorizationFault::RenewsNothing);
    let guarded = Guarded::start(AuthorizationOptions { fault, ..Default::default() }).await;
    guarded.login().await.unwrap();
    guarded.authorization.expire_access_tokens();
    let (_gate, failure) = Gate::failure(guarded.spec()).await;
    assert!(failure.reason.ends_with("could not be renewed: HTTP 500"), "{failure:?}");
    // The login is still there.
    assert!(guarded.authorizer().state().await.unwrap().unwrap().renewable);
}

#[tokio::test]
async fn missing_scopes_are_requested_by_the_next_login() {
    let options = AuthorizationOptions {
        scopes: vec!["read".into()],
        step_up: Some(("counter".into(), "write".into())),
        ..AuthorizationOptions::default()
    };
    let guarded = Guarded::start(options).await;
    guarded.login().await.unwrap();
    let gate = Gate::ready(guarded.spec()).await;
    let refused = gate.call("counter", json!({})).await.unwrap_err().to_string();
    assert!(refused.contains("asks for more rights than it was given (write)"), "{refused}");
    assert!(refused.contains("run `toolgate login fixture`"), "{refused}");
    // The server is not concerned.
    gate.call("echo", json!({ "text": "x" })).await.unwrap();
    assert_eq!(gate.state(NAME).kind, StateKind::Ready);
    assert_eq!(guarded.server.calls(), 1);
    let state = guarded.authorizer().state().await.unwrap().unwrap();
    assert_eq!(state.wanted_scopes, ["write"]);

    guarded.login().await.unwrap();
    let asked = guarded.authorization.record().authorizations;
    assert_eq!(asked.last().unwrap()["scope"], "read write");
    gate.call("counter", json!({})).await.unwrap();
    assert_eq!(guarded.authorization.record().renewals, 0);
}

#[tokio::test]
async fn a_changed_url_does_not_get_the_token() {
    let guarded = Guarded::start(AuthorizationOptions::default()).await;
    guarded.login().await.unwrap();
    let elsewhere = guarded.server.url().replace("127.0.0.1", "localhost");
    let (_gate, failure) = Gate::failure(guarded.spec_at(&elsewhere)).await;
    assert!(failure.reason.ends_with("asks for a login"), "{failure:?}");
    assert_eq!(guarded.authorizer_at(&elsewhere).state().await.unwrap(), None);
}

#[tokio::test]
async fn a_configured_header_overrides_a_login() {
    let guarded = Guarded::start(AuthorizationOptions::default()).await;
    guarded.login().await.unwrap();
    let mut spec = guarded.spec();
    let toolgate_upstream::Endpoint::Http(endpoint) = &mut spec.endpoint else { panic!() };
    endpoint.headers.insert("authorization".into(), "Bearer of-the-configuration".into());
    let (_gate, failure) = Gate::failure(spec).await;
    assert!(failure.action.contains("`Authorization` header"), "{failure:?}");
    assert_eq!(guarded.authorization.record().renewals, 0);
}

#[tokio::test]
async fn nothing_secret_is_shown() {
    let echo = json!({ "content": [], "isError": false });
    let fixture = Fixture::new("guarded").with_builtins([Builtin::Echo]).with_answer("echo", echo);
    let guarded = Guarded::with(fixture, AuthorizationOptions::default()).await;
    let credentials = guarded.login().await.unwrap();
    let spec = guarded.spec();
    let redactor = spec.endpoint.redactor();
    let shown = format!("{credentials:?} {spec:?} {:?}", guarded.keeper);
    let gate = Gate::ready(spec).await;
    let tokens = guarded.authorization.access_tokens();
    guarded.authorization.forget_everything();
    let refused = gate.call("echo", json!({})).await.unwrap_err();
    let said = gate.told.output(OutputSource::Toolgate).join("\n");
    let all = format!("{shown} {refused} {refused:?} {said} {:?}", gate.state(NAME));
    assert!(!all.contains("-secret-"), "{all}");
    // What a server would say of them is cleaned too.
    for token in tokens {
        assert_eq!(redactor.clean(&format!("bad {token}!")), "bad [hidden]!");
    }
}

#[tokio::test]
async fn a_machine_needs_no_person() {
    let client = ("machine".to_owned(), "client-secret-of-the-machine".to_owned());
    let mut guarded = Guarded::start(AuthorizationOptions {
        client: Some(client.clone()),
        methods: vec!["client_secret_basic".to_owned()],
        scopes: vec!["read".to_owned()],
        registers: false,
        ..AuthorizationOptions::default()
    })
    .await;
    guarded.settings = AuthorizationSettings {
        client_id: Some(client.0.clone()),
        client_secret: Some(client.1.clone()),
        source: TokenSource::ClientCredentials { private_key: None },
        ..AuthorizationSettings::default()
    };
    let gate = Gate::ready(guarded.spec()).await;
    gate.call("echo", json!({ "text": "x" })).await.unwrap();
    guarded.authorization.expire_access_tokens();
    gate.call("echo", json!({ "text": "x" })).await.unwrap();
    let record = guarded.authorization.record();
    assert_eq!((record.token_requests.len(), record.authorizations.len()), (2, 0), "{record:?}");
    for request in &record.token_requests {
        assert_eq!(request["grant_type"], "client_credentials");
        assert_eq!(
            (request["scope"].as_str(), &request["resource"]),
            ("read", &guarded.server.url().to_owned())
        );
    }
    // A client that is refused is not tried again and again.
    guarded.settings.client_secret = Some("client-secret-of-somebody".to_owned());
    guarded.keeper = MemoryLogins::default();
    let (_gate, failure) = Gate::failure(guarded.spec()).await;
    assert!(failure.action.contains("check `oauth` of the server"), "{failure:?}");
    assert!(!failure.reason.contains("-secret-"), "{failure:?}");
}

#[tokio::test]
async fn a_token_is_exchanged_as_rfc_8693_says() {
    let folder = tempfile::tempdir().unwrap();
    let subject = folder.path().join("subject");
    std::fs::write(&subject, "subject-secret-of-ada\n").unwrap();
    let client = ("gateway".to_owned(), "client-secret-of-the-gateway".to_owned());
    let mut guarded = Guarded::start(AuthorizationOptions {
        client: Some(client.clone()),
        methods: vec!["client_secret_basic".to_owned()],
        scopes: vec!["read".to_owned()],
        registers: false,
        ..AuthorizationOptions::default()
    })
    .await;
    let id_token = "urn:ietf:params:oauth:token-type:id_token";
    guarded.settings = AuthorizationSettings {
        client_id: Some(client.0),
        client_secret: Some(client.1),
        source: TokenSource::Exchange {
            token: SubjectToken::File(subject.clone()),
            kind: id_token.to_owned(),
        },
        ..AuthorizationSettings::default()
    };
    let gate = Gate::ready(guarded.spec()).await;
    gate.call("echo", json!({ "text": "x" })).await.unwrap();
    // The platform has renewed the token since.
    std::fs::write(&subject, "subject-secret-of-ada-2").unwrap();
    guarded.authorization.expire_access_tokens();
    gate.call("echo", json!({ "text": "x" })).await.unwrap();
    let record = guarded.authorization.record();
    assert_eq!((record.token_requests.len(), record.authorizations.len()), (2, 0), "{record:?}");
    let subjects = ["subject-secret-of-ada", "subject-secret-of-ada-2"];
    for (request, subject) in record.token_requests.iter().zip(subjects) {
        let sent = |name: &str| request.get(name).map(String::as_str);
        let exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
        assert_eq!(sent("grant_type"), Some(exchange));
        assert_eq!(sent("subject_token"), Some(subject));
        assert_eq!(sent("subject_token_type"), Some(id_token));
        let access = "urn:ietf:params:oauth:token-type:access_token";
        assert_eq!(sent("requested_token_type"), Some(access));
        assert_eq!(sent("resource"), Some(guarded.server.url()));
        assert_eq!(sent("scope"), Some("read"));
        assert_eq!((sent("actor_token"), sent("refresh_token")), (None, None));
    }
    // The issuer holds a request against the RFC: without a type it is none.
    guarded.settings.source =
        TokenSource::Exchange { token: SubjectToken::File(subject), kind: "id_token".to_owned() };
    guarded.keeper = MemoryLogins::default();
    let (_gate, failure) = Gate::failure(guarded.spec()).await;
    assert!(failure.reason.contains("invalid_request"), "{failure:?}");
    assert!(!failure.reason.contains("-secret-"), "{failure:?}");
}
