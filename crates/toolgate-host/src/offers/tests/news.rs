//! What servers tell, and who hears it.

use super::*;

#[tokio::test]
async fn a_server_hears_of_the_first_subscription_and_the_end_of_the_last() {
    let host = host(vec![setup("one", &notes("one")), setup("two", &notes("two"))]).await;
    let (left, right, other) = (host.session(), host.session(), host.session());
    let uri = "toolgate://one/file:///notes";
    for session in [&left, &right] {
        ask(session, "resources/subscribe", json!({ "uri": uri })).await;
    }
    ask(&other, "resources/subscribe", json!({ "uri": "toolgate://two/file:///notes" })).await;
    assert_eq!(heard(&host, "one", "resources/subscribe").await, ["file:///notes"]);

    let (mut to_left, mut to_right, mut to_other) = (left.news(), right.news(), other.news());
    let updated = json!({ "uri": "file:///notes", "odd": 1 }).to_string();
    announce(&other, "one_greet", "notifications/resources/updated", &updated).await;
    announce(&other, "one_greet", "notifications/prompts/list_changed", "{}").await;
    for news in [&mut to_left, &mut to_right] {
        let told = next(news).await;
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
    tokio::time::timeout(PATIENCE, unsubscribed).await.expect("the last one ended");
    host.shutdown().await;
}

#[tokio::test]
async fn servers_of_either_era_tell_of_what_was_subscribed_to() {
    let modern = notes("new").with_era(toolgate_testkit::FixtureEra::Modern);
    let host = host(vec![setup("new", &modern), setup("old", &notes("old"))]).await;
    let session = host.session();
    let mut news = session.news();
    for server in ["new", "old"] {
        let uri = format!("toolgate://{server}/file:///notes");
        ask(&session, "resources/subscribe", json!({ "uri": uri })).await;
        let updated = json!({ "uri": "file:///notes" }).to_string();
        // A stream opens in its own time, and nobody says when.
        let told = async {
            loop {
                let method = "notifications/resources/updated";
                announce(&session, &format!("{server}_greet"), method, &updated).await;
                let soon = tokio::time::timeout(Duration::from_millis(50), news.next());
                if let Ok(told) = soon.await {
                    break told.unwrap();
                }
            }
        };
        let told = tokio::time::timeout(PATIENCE, told).await.expect("no news");
        assert_eq!(told.params.unwrap()["uri"], uri);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_comes_back_is_subscribed_to_again() {
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
    tokio::time::timeout(PATIENCE, subscribed).await.expect("it is told anew");
    host.shutdown().await;
}

#[tokio::test]
async fn a_change_that_is_said_often_is_told_once() {
    let host = host(vec![setup("one", &notes("one")), setup("two", &notes("two"))]).await;
    let session = host.session();
    let mut news = session.news();
    for _ in 0..50 {
        host.offers().notified(&"one".into(), "notifications/resources/list_changed", None);
    }
    host.offers().notified(&"two".into(), "notifications/prompts/list_changed", None);
    assert_eq!(next(&mut news).await.method, "notifications/resources/list_changed");
    assert_eq!(next(&mut news).await.method, "notifications/prompts/list_changed");
    ask(&session, "resources/list", json!({})).await;
    host.offers().notified(&"one".into(), "notifications/resources/list_changed", None);
    assert_eq!(next(&mut news).await.method, "notifications/resources/list_changed");
    host.shutdown().await;
}

async fn announce(session: &Session, prompt: &str, method: &str, params: &str) {
    let arguments = json!({ "announce": method, "params": params });
    ask(session, "prompts/get", json!({ "name": prompt, "arguments": arguments })).await;
}

pub(super) async fn next(news: &mut News) -> Notification {
    tokio::time::timeout(PATIENCE, news.next()).await.expect("no news").expect("the end")
}

/// What a fixture was told, by method.
async fn heard(host: &Host, server: &str, method: &str) -> Vec<Value> {
    let (server, options) = (server.into(), CallOptions::default());
    let asked = host.upstream().request(&server, "fixture/heard", None, options);
    let told = asked.await.unwrap();
    let of_method = told["heard"].as_array().unwrap().iter().filter(|one| one["method"] == method);
    of_method.map(|one| one["params"]["uri"].clone()).collect()
}
