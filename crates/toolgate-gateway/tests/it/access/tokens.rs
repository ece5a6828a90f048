//! Tokens of `toolgate token`.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use toolgate_gateway::CredentialRequirement;

use super::{Guarded, answer};
use crate::support::{Events, call, deadline, initialize, refused, status};

#[tokio::test]
async fn without_a_token_nobody_connects() {
    let guarded = Guarded::start(CredentialRequirement::Required).await;
    let token = guarded.token("laptop");
    let missing = Some("Bearer realm=\"toolgate\"".to_owned());
    assert_eq!(answer(guarded.ask()).await, (401, missing.clone()));
    let get = guarded.endpoint.client.get(guarded.endpoint.url());
    assert_eq!(answer(get.header("accept", "text/event-stream")).await, (401, missing.clone()));
    assert_eq!(answer(guarded.endpoint.client.delete(guarded.endpoint.url())).await.0, 401);
    assert_eq!(answer(guarded.endpoint.post(&initialize("2025-11-25"))).await, (401, missing));
    assert_eq!(status(guarded.ask().bearer_auth(&token)).await, 200);
    let (path, query) = (guarded.endpoint.url(), format!("?access_token={token}"));
    assert_eq!(status(guarded.endpoint.client.get(path + &query)).await, 401, "not in an address");
}

#[tokio::test]
async fn every_wrong_token_gets_the_same_answer() {
    let guarded = Guarded::start(CredentialRequirement::Required).await;
    let good = guarded.token("good");
    let expired = guarded.limited("expired", Some(1_794_780_372), &[]);
    let revoked = guarded.token("revoked");
    assert_eq!(status(guarded.ask().bearer_auth(&revoked)).await, 200);
    guarded.tokens.revoke("revoked").unwrap();
    let longer = format!("{good}A");
    let mut answers = Vec::new();
    for wrong in [&*expired, &*revoked, &good[..46], &*longer, "tgt_", "x", "a.b.c"] {
        let response = guarded.ask().bearer_auth(wrong).send().await.unwrap();
        let mut headers = response.headers().clone();
        headers.remove("date");
        let (status, body) = (response.status(), response.text().await.unwrap());
        assert!(!body.contains(wrong) || wrong == "x", "{body}");
        answers.push((status, headers, body));
    }
    for scheme in ["Basic dGd0Og==", "Bearer", "tgt_x"] {
        let response = guarded.ask().header("authorization", scheme).send().await.unwrap();
        let mut headers = response.headers().clone();
        headers.remove("date");
        answers.push((response.status(), headers, response.text().await.unwrap()));
    }
    let first = &answers[0];
    assert_eq!(first.0, 401);
    assert_eq!(first.1["www-authenticate"], "Bearer error=\"invalid_token\", realm=\"toolgate\"");
    assert!(answers.iter().all(|answer| answer == first), "{answers:?}");
    let twice = guarded.ask().header("authorization", format!("Bearer {good}"));
    assert_eq!(status(twice.bearer_auth(&good)).await, 401, "one of them may be another's");
    assert_eq!(status(guarded.ask().bearer_auth(&good)).await, 200);
}

#[tokio::test]
async fn a_running_gateway_sees_new_and_revoked_tokens() {
    let guarded = Guarded::start(CredentialRequirement::Required).await;
    assert_eq!(status(guarded.ask().bearer_auth("tgt_nothing")).await, 401);
    let first = guarded.token("first");
    assert_eq!(status(guarded.ask().bearer_auth(&first)).await, 200);
    let second = guarded.token("second");
    guarded.tokens.revoke("first").unwrap();
    assert_eq!(status(guarded.ask().bearer_auth(&second)).await, 200);
    assert_eq!(status(guarded.ask().bearer_auth(&first)).await, 401);
    std::fs::write(guarded.folder.path().join("access/tokens.json"), "{").unwrap();
    assert_eq!(status(guarded.ask().bearer_auth(&second)).await, 401, "nobody, when in doubt");
}

#[tokio::test]
async fn a_token_is_valid_only_in_its_namespaces() {
    let guarded = Guarded::start(CredentialRequirement::Required).await;
    let work = guarded.limited("work", None, &["work"]);
    let home = guarded.limited("home", None, &["default"]);
    let at = |path: &str, token: &str| {
        let request = guarded.ask().bearer_auth(token).build().unwrap();
        let mut request = request.try_clone().unwrap();
        request.url_mut().set_path(path);
        guarded.endpoint.client.execute(request)
    };
    assert_eq!(at("/mcp/work", &work).await.unwrap().status(), 200);
    assert_eq!(at("/mcp", &home).await.unwrap().status(), 200);
    for (path, token) in [("/mcp", &work), ("/mcp/work", &home)] {
        let response = at(path, token).await.unwrap();
        assert_eq!(response.status(), 403);
        assert_eq!(super::challenge(&response), None, "another token of its kind is no help");
    }
}

#[tokio::test]
async fn no_caller_continues_what_another_began() {
    let guarded = Guarded::start(CredentialRequirement::Required).await;
    let (ada, bob) = (guarded.token("ada"), guarded.token("bob"));
    let endpoint = &guarded.endpoint;
    let begun = endpoint.post(&initialize("2025-11-25")).bearer_auth(&ada).send().await.unwrap();
    let id = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let in_session = |token: &str, id: &str| {
        endpoint.post(&call(1, "echo")).bearer_auth(token).header("mcp-session-id", id)
    };
    let forged = refused(in_session(&bob, &"A".repeat(43))).await;
    assert_eq!(refused(in_session(&bob, &id)).await, forged, "as if there were none");
    assert_eq!(forged.0, 404);
    let delete = endpoint.client.delete(endpoint.url()).header("mcp-session-id", &id);
    assert_eq!(status(delete.bearer_auth(&bob)).await, 404);
    assert_eq!(status(in_session(&ada, &id)).await, 200);
    // A token of the same name is another token.
    guarded.tokens.revoke("ada").unwrap();
    let anew = guarded.token("ada");
    assert_eq!(status(in_session(&anew, &id)).await, 404);

    let question = async |token: &str, params: Value| -> (String, Value) {
        let request = endpoint.modern("tools/call", params).bearer_auth(token);
        let mut answer: Value = request.send().await.unwrap().json().await.unwrap();
        let state = answer["result"]["requestState"].as_str().unwrap().to_owned();
        let asked = answer["result"]["inputRequests"].as_object_mut().unwrap();
        let (_, asked) = asked.iter_mut().next().unwrap();
        (state, asked["params"]["message"].take())
    };
    let (state, asked) = question(&anew, json!({ "name": "ask" })).await;
    assert_eq!(asked, "first");
    let accepted = json!({ "1": { "action": "accept", "content": {} } });
    let answered = json!({ "name": "ask", "requestState": state, "inputResponses": accepted });
    let calls = || endpoint.probe.calls.load(Ordering::SeqCst);
    let before = calls();
    let stolen = endpoint.modern("tools/call", answered.clone()).bearer_auth(&bob);
    let stolen: Value = stolen.send().await.unwrap().json().await.unwrap();
    assert_eq!(stolen["error"]["code"], -32602, "as if there were none: {stolen}");
    assert_eq!(calls(), before, "nor is it a call of his own");
    assert_eq!(question(&anew, answered).await.1, "second", "hers has waited for her");
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_revoked() {
    let guarded = Guarded::start(CredentialRequirement::Required).await;
    let token = guarded.token("ada");
    let endpoint = &guarded.endpoint;
    let begun = endpoint.post(&initialize("2025-11-25")).bearer_auth(&token).send().await.unwrap();
    let id = begun.headers()["mcp-session-id"].clone();
    let stream = endpoint.client.get(endpoint.url()).header("accept", "text/event-stream");
    let stream = stream.header("mcp-session-id", id).bearer_auth(&token).send().await.unwrap();
    let events = Events::new(stream);
    guarded.tokens.revoke("ada").unwrap();
    tokio::time::timeout(deadline(), events.rest()).await.expect("the stream ends");
}

#[tokio::test]
async fn on_loopback_a_token_is_optional_but_must_be_valid() {
    let guarded = Guarded::start(CredentialRequirement::Optional).await;
    let token = guarded.token("ada");
    assert_eq!(status(guarded.ask()).await, 200);
    assert_eq!(status(guarded.ask().bearer_auth(&token)).await, 200);
    assert_eq!(status(guarded.ask().bearer_auth("tgt_wrong")).await, 401);
    let session = guarded.endpoint.session().await;
    assert_eq!(status(session.post(&call(1, "echo"))).await, 200);
    assert_eq!(status(session.post(&call(2, "echo")).bearer_auth(&token)).await, 404);
}

#[tokio::test]
async fn failures_are_limited_and_valid_tokens_are_not_affected() {
    let guarded = Guarded::start(CredentialRequirement::Required).await;
    let token = guarded.token("ada");
    let mut refused = Vec::new();
    for _ in 0..30 {
        refused.push(status(guarded.ask().bearer_auth("tgt_wrong")).await.as_u16());
    }
    assert_eq!(refused[..20], [401; 20]);
    assert_eq!(refused[29], 429, "{refused:?}");
    let response = guarded.ask().bearer_auth("tgt_wrong").send().await.unwrap();
    assert_eq!(response.headers()["retry-after"], "60");
    assert_eq!(status(guarded.ask().bearer_auth(&token)).await, 200, "who has a token is let in");
    assert_eq!(status(guarded.ask()).await, 401, "nothing was tried");
}

#[tokio::test]
async fn one_caller_cannot_use_all_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = toolgate_store::Store::new(folder.path()).access_tokens();
    let token = |name: &str| {
        let order = toolgate_store::TokenOrder {
            name: Some(name.to_owned()),
            ..toolgate_store::TokenOrder::default()
        };
        tokens.create(&order, 0).unwrap().1.expose().to_owned()
    };
    let (ada, bob) = (token("ada"), token("bob"));
    let access = toolgate_gateway::AccessControl::new(CredentialRequirement::Required)
        .with_tokens(tokens.clone());
    let endpoint = crate::support::Endpoint::with(|settings| {
        settings.access = access;
        settings.limits.sessions_per_caller = 2;
    });
    let endpoint = endpoint.await;
    let begin = |token: &str| endpoint.post(&initialize("2025-11-25")).bearer_auth(token);
    let mut ids = Vec::new();
    for token in [&bob, &ada, &ada, &ada] {
        let response = begin(token).send().await.unwrap();
        assert_eq!(response.status(), 200);
        ids.push((token, response.headers()["mcp-session-id"].to_str().unwrap().to_owned()));
    }
    // The oldest session of the same caller made room.
    for ((token, id), expected) in ids.iter().zip([200, 404, 200, 200]) {
        let echo = endpoint.post(&crate::support::call(1, "echo")).bearer_auth(token);
        assert_eq!(status(echo.header("mcp-session-id", id)).await, expected, "{id}");
    }
}
