//! Subscriptions, and the notifications that they lead to.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use toolgate_broker::{
    ApprovalPrompt, ApprovalRequest, CallContext, Caller, PersonAnswer, SessionContext,
};
use toolgate_policy::{Mode, PolicySettings, Rule, RuleOrigin, RuleTarget, Verdict};

use super::*;

#[tokio::test]
async fn the_server_gets_the_first_subscription_and_the_last_unsubscription() {
    let host = host(vec![setup("one", &notes("one")), setup("two", &notes("two"))]).await;
    let (left, right, other) = (host.session(), host.session(), host.session());
    let uri = "toolgate://one/file:///notes";
    for session in [&left, &right] {
        ask(session, "resources/subscribe", json!({ "uri": uri })).await;
    }
    ask(&other, "resources/subscribe", json!({ "uri": "toolgate://two/file:///notes" })).await;
    assert_eq!(heard(&host, "one", "resources/subscribe").await, ["file:///notes"]);

    let (mut to_left, mut to_right, mut to_other) =
        (left.notifications(), right.notifications(), other.notifications());
    let updated = json!({ "uri": "file:///notes", "odd": 1 }).to_string();
    announce(&other, "one_greet", "notifications/resources/updated", &updated).await;
    announce(&other, "one_greet", "notifications/prompts/list_changed", "{}").await;
    for notifications in [&mut to_left, &mut to_right] {
        let told = next(notifications).await;
        assert_eq!(told.method, "notifications/resources/updated");
        assert_eq!(told.params, Some(json!({ "uri": uri, "odd": 1 })));
    }
    let told = next(&mut to_other).await;
    assert_eq!(told.method, "notifications/prompts/list_changed", "the update was not for it");

    ask(&left, "resources/unsubscribe", json!({ "uri": uri })).await;
    assert!(heard(&host, "one", "resources/unsubscribe").await.is_empty());
    drop(right);
    assert_eq!(to_right.next().await, None, "news end with their session");
    let unsubscribed = async {
        while heard(&host, "one", "resources/unsubscribe").await != ["file:///notes"] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, unsubscribed).await.expect("the last one ended");
    host.shutdown().await;
}

#[tokio::test]
async fn servers_of_both_eras_send_updates() {
    let modern = notes("new").with_era(toolgate_testkit::FixtureEra::Modern);
    let host = host(vec![setup("new", &modern), setup("old", &notes("old"))]).await;
    let session = host.session();
    let mut notifications = session.notifications();
    for server in ["new", "old"] {
        let uri = format!("toolgate://{server}/file:///notes");
        ask(&session, "resources/subscribe", json!({ "uri": uri })).await;
        let updated = json!({ "uri": "file:///notes" }).to_string();
        // A stream opens in its own time, and nobody says when.
        let told = async {
            loop {
                let method = "notifications/resources/updated";
                announce(&session, &format!("{server}_greet"), method, &updated).await;
                let soon = tokio::time::timeout(Duration::from_millis(50), notifications.next());
                if let Ok(told) = soon.await {
                    break told.unwrap();
                }
            }
        };
        let told = tokio::time::timeout(TIMEOUT, told).await.expect("no news");
        assert_eq!(told.params.unwrap()["uri"], uri);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn toolgate_subscribes_again_after_a_restart() {
    let fixture = notes("one").with_builtins([Builtin::Crash]);
    let host = host(vec![setup("one", &fixture)]).await;
    let session = host.session();
    ask(&session, "resources/subscribe", json!({ "uri": "file:///notes" })).await;
    let _ = session.call("one_crash", Map::new(), CallOptions::default()).await;
    let subscribed = async {
        while heard(&host, "one", "resources/subscribe").await != ["file:///notes"] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, subscribed).await.expect("it is told anew");
    host.shutdown().await;
}

/// Allows the first request, and denies all others.
#[derive(Debug, Default)]
struct AllowsOnce(AtomicUsize);

impl ApprovalPrompt for AllowsOnce {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<PersonAnswer>> {
        assert_eq!(&*request.tool.tool, "resources/subscribe");
        let answer = match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => PersonAnswer::ONCE,
            _ => PersonAnswer::Deny,
        };
        Box::pin(std::future::ready(Some(answer)))
    }
}

#[tokio::test]
async fn a_subscription_is_judged_again_after_a_restart() {
    let servers = vec![setup("one", &notes("one").with_builtins([Builtin::Crash]))];
    let target = RuleTarget::read(Some("one"), Some("resources/subscribe")).unwrap();
    let origin = RuleOrigin::Configured { path: "policy.rules[0]".into(), position: None };
    let rules = vec![Rule::new(target, Verdict::Ask, origin)];
    let policy = PolicySettings { rules, ..PolicySettings::of_mode(Mode::Allow) };
    let settings = HostSettings { usage_memory: false, policy, ..HostSettings::new(servers) };
    let host = ToolHost::start(settings);
    host.all_known().await;
    let person = Arc::new(AllowsOnce::default());
    let context = SessionContext::new(Caller::model("local"));
    let session = host.session_of(context.with_prompt(Arc::clone(&person) as _));
    ask(&session, "resources/subscribe", json!({ "uri": "file:///notes" })).await;
    assert_eq!(heard(&host, "one", "resources/subscribe").await, ["file:///notes"]);

    let _ = session.call("one_crash", Map::new(), CallOptions::default()).await;
    let refused = async {
        while person.0.load(Ordering::Relaxed) < 2 {
            // A request, so that the server is connected again.
            let _ = heard(&host, "one", "resources/subscribe").await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, refused).await.expect("nobody was asked again");
    assert!(heard(&host, "one", "resources/subscribe").await.is_empty(), "it was refused");
    host.shutdown().await;
}

#[tokio::test]
async fn repeated_changes_are_announced_once() {
    let host = host(vec![setup("one", &notes("one")), setup("two", &notes("two"))]).await;
    let session = host.session();
    let mut notifications = session.notifications();
    for _ in 0..50 {
        host.inner.resources.notified(&"one".into(), "notifications/resources/list_changed", None);
    }
    host.inner.resources.notified(&"two".into(), "notifications/prompts/list_changed", None);
    assert_eq!(next(&mut notifications).await.method, "notifications/resources/list_changed");
    assert_eq!(next(&mut notifications).await.method, "notifications/prompts/list_changed");
    ask(&session, "resources/list", json!({})).await;
    host.inner.resources.notified(&"one".into(), "notifications/resources/list_changed", None);
    assert_eq!(next(&mut notifications).await.method, "notifications/resources/list_changed");
    host.shutdown().await;
}

async fn announce(session: &ToolSession, prompt: &str, method: &str, params: &str) {
    let arguments = json!({ "announce": method, "params": params });
    ask(session, "prompts/get", json!({ "name": prompt, "arguments": arguments })).await;
}

pub(super) async fn next(notifications: &mut NotificationStream) -> ServerNotification {
    tokio::time::timeout(TIMEOUT, notifications.next()).await.expect("no news").expect("the end")
}

/// What a fixture was told, by method.
async fn heard(host: &ToolHost, server: &str, method: &str) -> Vec<Value> {
    let (server, options) = (server.into(), CallOptions::default());
    let context = CallContext::direct(host.session().context());
    let asked = host.broker().request(&server, "fixture/heard", json!({}), &context, options);
    let told = asked.await.unwrap_or_else(|error| panic!("{error}"));
    let of_method = told["heard"].as_array().unwrap().iter().filter(|one| one["method"] == method);
    of_method.map(|one| one["params"]["uri"].clone()).collect()
}
