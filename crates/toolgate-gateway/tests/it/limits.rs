//! The limits of an endpoint.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use toolgate_testkit::scaled;

use crate::support::{Endpoint, call, deadline, initialize, reaches, refused, status};

#[tokio::test]
async fn sessions_are_counted() {
    let endpoint = Endpoint::with(|settings| settings.limits.sessions = 8).await;
    let mut sessions = Vec::new();
    for _ in 0..8 {
        sessions.push(endpoint.session().await);
    }
    for _ in 0..1000 {
        let request = endpoint.post(&initialize("2025-11-25"));
        assert_eq!(refused(request).await, (503, -32600));
    }
    assert_eq!(endpoint.probe.opened.load(Ordering::SeqCst), 8, "nothing is made for the rest");
    assert_eq!(status(sessions[0].post(&call(1, "echo"))).await, 200, "the others go on");
    assert_eq!(status(sessions.remove(0).delete()).await, 204);
    endpoint.session().await;
}

#[tokio::test]
async fn unused_sessions_end() {
    // Long enough to begin all sessions and to use two of them.
    let idle = scaled(Duration::from_secs(1));
    let endpoint = Endpoint::with(|settings| settings.limits.session_idle = idle).await;
    let (listening, busy) = (endpoint.session().await, endpoint.session().await);
    let _stream = listening.get().send().await.unwrap();
    let _call = busy.call(1, "wait").await;
    reaches(&endpoint.probe.waiting, 1).await;
    let unused = endpoint.session().await;
    let closed = async {
        while endpoint.probe.closed.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(deadline(), closed).await.unwrap();
    assert_eq!(refused(unused.post(&call(1, "echo"))).await, (404, -32600));
    assert_eq!(status(listening.post(&call(1, "echo"))).await, 200);
    assert_eq!(status(busy.post(&call(2, "echo"))).await, 200);
}

#[tokio::test]
async fn open_requests_are_limited() {
    let endpoint = Endpoint::with(|settings| settings.limits.in_flight = 2).await;
    let session = endpoint.session().await;
    let _calls = (session.call(1, "wait").await, session.call(2, "wait").await);
    reaches(&endpoint.probe.waiting, 2).await;
    assert_eq!(refused(session.post(&call(3, "echo"))).await, (429, -32600));
    let other = endpoint.session().await;
    assert_eq!(other.call(3, "echo").await.rest().await.len(), 1, "others are not concerned");

    let modern = || endpoint.modern("tools/call", json!({ "name": "wait" }));
    let asking = [tokio::spawn(modern().send()), tokio::spawn(modern().send())];
    reaches(&endpoint.probe.waiting, 4).await;
    assert_eq!(refused(modern()).await, (429, -32600));
    for asking in asking {
        asking.abort();
    }
    reaches(&endpoint.probe.cancelled, 2).await;
}

#[tokio::test]
async fn an_id_is_used_once_at_a_time() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    let waiting = session.call(1, "wait").await;
    reaches(&endpoint.probe.waiting, 1).await;
    assert_eq!(refused(session.post(&call(1, "echo"))).await, (400, -32600));
    endpoint.probe.release.notify_one();
    assert_eq!(waiting.rest().await[0]["result"]["released"], true);
    assert_eq!(session.call(1, "echo").await.rest().await.len(), 1, "and then again");
}

#[tokio::test]
async fn a_silent_stream_sends_keep_alives() {
    let alive = Duration::from_millis(20);
    let endpoint = Endpoint::with(|settings| settings.limits.keep_alive = alive).await;
    let session = endpoint.session().await;
    let mut stream = session.get().send().await.unwrap();
    for _ in 0..3 {
        assert_eq!(stream.chunk().await.unwrap().unwrap(), ":\n\n");
    }
}

#[tokio::test]
async fn a_slow_request_is_refused() {
    let arrival = Duration::from_millis(100);
    let endpoint = Endpoint::with(|settings| settings.limits.io_timeout = arrival).await;
    let host = endpoint.address;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: 100\r\n\r\n{{"
    );
    for (sent, answered) in [("POST /mcp HT", ""), (head.as_str(), "HTTP/1.1 408")] {
        let mut stream = TcpStream::connect(host).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let reading = stream.read_to_string(&mut answer);
        tokio::time::timeout(deadline(), reading).await.expect("it is cut off").unwrap();
        assert!(answer.starts_with(answered), "{answer}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let endpoint = Endpoint::with(|settings| {
        settings.limits.io_timeout = Duration::from_millis(200);
        settings.limits.connections = 1;
    })
    .await;
    let request = format!("GET /nowhere HTTP/1.1\r\nhost: {}\r\n\r\n", endpoint.address);
    let mut deaf = TcpStream::connect(endpoint.address).await.unwrap();
    // Until neither side takes any more, and then until it is cut off.
    let cut_off = async { while deaf.write_all(request.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(deadline(), cut_off).await.expect("it is cut off");
    assert_eq!(status(endpoint.post(&call(1, "echo"))).await, 400);
}

#[tokio::test]
async fn heads_are_bounded() {
    let endpoint = Endpoint::start().await;
    let fat = endpoint.post(&call(1, "echo")).header("x-fat", "a".repeat(200_000));
    assert_eq!(status(fat).await, 431);
    let many = (0..200).fold(endpoint.post(&call(1, "echo")), |request, number| {
        request.header(format!("x-{number}"), "1")
    });
    assert_eq!(status(many).await, 431);
}
