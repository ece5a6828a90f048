//! The last messages when the gateway stops.

use std::sync::{Arc, atomic::Ordering};

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use toolgate_gateway::{AggregateFactory, PassthroughFactory, ServiceFactory};
use toolgate_testkit::{Builtin, Fixture, FixtureEra};

use crate::{
    clients::{host_of, spec},
    stdio::Client,
    support::{Endpoint, Events, call, deadline, initialize, modern, reaches},
};

fn listen(endpoint: &Endpoint) -> RequestBuilder {
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    endpoint.modern("subscriptions/listen", wanted)
}

#[tokio::test]
async fn open_legacy_calls_get_an_error_and_streams_end_at_the_stop() {
    let mut endpoint = Endpoint::start().await;
    let (open, waiting) = {
        let session = endpoint.session().await;
        let open = Events::new(session.get().send().await.unwrap());
        (open, session.call(1, "wait").await)
    };
    reaches(&endpoint.probe.waiting, 1).await;
    endpoint.stop().await;
    assert_eq!(open.rest().await, [] as [Value; 0]);
    let told = waiting.rest().await;
    assert_eq!((told.len(), &told[0]["id"]), (1, &json!(1)));
    insta::assert_snapshot!(told[0]["error"]["message"].as_str().unwrap(), @"the gateway is stopping: the request was cancelled, and whether it had an effect is not known");
    assert_eq!(endpoint.probe.closed.load(Ordering::SeqCst), 1);
    assert_eq!(*endpoint.probe.cancelled.borrow(), 1);
    assert!(endpoint.post(&initialize("2025-11-25")).send().await.is_err());
}

#[tokio::test]
async fn open_modern_calls_get_an_error_at_the_stop() {
    let mut endpoint = Endpoint::start().await;
    let waiting = tokio::spawn(endpoint.modern("tools/call", json!({ "name": "wait" })).send());
    reaches(&endpoint.probe.waiting, 1).await;
    endpoint.stop().await;
    let response = waiting.await.unwrap().unwrap();
    assert_eq!(response.status(), 503);
    let told: Value = response.json().await.unwrap();
    assert!(told["error"]["message"].as_str().unwrap().contains("stopping"), "{told}");
    assert_eq!(*endpoint.probe.cancelled.borrow(), 1);
}

/// A subscription through `factory` ends with its result.
async fn ends_with_a_result(factory: Arc<dyn ServiceFactory>) {
    let mut endpoint = Endpoint::of(factory, Arc::default(), |_| {}).await;
    let mut events = Events::new(listen(&endpoint).send().await.unwrap());
    let first = events.message().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    endpoint.stop().await;
    let rest = events.rest().await;
    let over = json!({ "resultType": "complete",
                       "_meta": { "io.modelcontextprotocol/subscriptionId": 1 } });
    assert_eq!(rest, [json!({ "jsonrpc": "2.0", "id": 1, "result": over })]);
}

fn fixture(era: FixtureEra) -> Fixture {
    Fixture::new("kit").with_era(era).with_builtins([Builtin::Echo])
}

#[tokio::test]
async fn a_subscription_to_all_servers_ends_with_its_result() {
    let host = host_of([spec("kit", &fixture(FixtureEra::Legacy))]);
    ends_with_a_result(Arc::new(AggregateFactory::new(host.clone()))).await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_subscription_to_one_server_ends_with_its_result() {
    for era in [FixtureEra::Legacy, FixtureEra::Modern] {
        ends_with_a_result(Arc::new(PassthroughFactory::new(spec("kit", &fixture(era))))).await;
    }
}

#[tokio::test]
async fn open_requests_on_stdio_get_a_response_at_the_stop() {
    let host = host_of([spec("kit", &fixture(FixtureEra::Legacy))]);
    let mut client = Client::of(Arc::new(AggregateFactory::new(host.clone())), Arc::default());
    let params = modern(json!({ "notifications": { "toolsListChanged": true } }));
    let listening = json!({ "jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen",
                            "params": params });
    let first = client.ask(&listening).await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    client.stop.cancel();
    let last = client.hear().await;
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!("l"), &json!("complete")));
    tokio::time::timeout(deadline(), client.serving).await.unwrap().unwrap();
    host.shutdown().await;

    let mut client = Client::start();
    client.ask(&initialize("2025-11-25")).await;
    client.say(&call(1, "wait")).await;
    reaches(&client.probe.waiting, 1).await;
    client.stop.cancel();
    let last = client.hear().await;
    assert!(last["error"]["message"].as_str().unwrap().contains("stopping"), "{last}");
    tokio::time::timeout(deadline(), client.serving).await.unwrap().unwrap();
}
