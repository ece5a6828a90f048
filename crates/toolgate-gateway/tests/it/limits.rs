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
async fn the_oldest_unused_session_makes_room() {
    let endpoint = Endpoint::with(|settings| settings.limits.sessions_per_caller = 8).await;
    let (listening, busy) = (endpoint.session().await, endpoint.session().await);
    let _stream = listening.get().send().await.unwrap();
    let _call = busy.call(1, "wait").await;
    reaches(&endpoint.probe.waiting, 1).await;
    let mut unused = Vec::new();
    for _ in 0..6 {
        unused.push(endpoint.session().await);
    }
    assert_eq!(status(unused[0].post(&call(1, "echo"))).await, 200);
    let newest = endpoint.session().await;
    assert_eq!(refused(unused[1].post(&call(2, "echo"))).await, (404, -32600), "it made room");
    for session in [&unused[0], &unused[2], &newest, &listening, &busy] {
        assert_eq!(status(session.post(&call(2, "echo"))).await, 200);
    }
}

#[tokio::test]
async fn sessions_in_use_do_not_make_room() {
    let endpoint = Endpoint::with(|settings| settings.limits.sessions = 4).await;
    let mut sessions = Vec::new();
    for number in 1..=4 {
        let session = endpoint.session().await;
        let call = session.call(1, "wait").await;
        reaches(&endpoint.probe.waiting, number).await;
        sessions.push((session, call));
    }
    for _ in 0..100 {
        let request = endpoint.post(&initialize("2025-11-25"));
        assert_eq!(refused(request).await, (503, -32600));
    }
    assert_eq!(endpoint.probe.opened.load(Ordering::SeqCst), 4, "nothing is made for the rest");
    let (first, _call) = sessions.remove(0);
    assert_eq!(status(first.delete()).await, 204);
    endpoint.session().await;
}

#[tokio::test]
async fn idle_connections_keep_nobody_out() {
    let endpoint = Endpoint::with(|settings| {
        settings.limits.connections = 8;
        settings.limits.new_connections = 4;
        // Only the others end them.
        settings.limits.new_connection_timeout = Duration::from_hours(1);
        settings.limits.io_timeout = Duration::from_hours(1);
    })
    .await;
    // This one has an accepted request, and stays.
    let session = endpoint.session().await;
    let mut idle = Vec::new();
    for number in 0..16 {
        let mut stream = TcpStream::connect(endpoint.address).await.unwrap();
        // Some have sent a part of a request.
        if number % 2 == 0 {
            stream.write_all(b"POST /mcp HT").await.unwrap();
        }
        idle.push(stream);
    }
    // A new client is served, on a connection of its own.
    let client = toolgate_http::client_builder().no_proxy().timeout(deadline()).build().unwrap();
    let health = client.get(format!("http://{}/health", endpoint.address));
    assert_eq!(status(health).await, 200);
    let end = tokio::time::timeout(deadline(), idle[0].read(&mut [0; 64])).await;
    assert!(matches!(end.expect("it is cut off"), Ok(0) | Err(_)));
    assert_eq!(status(session.post(&call(1, "echo"))).await, 200);
}

#[tokio::test]
async fn a_connection_without_an_accepted_request_ends() {
    let endpoint = Endpoint::with(|settings| {
        settings.limits.new_connection_timeout = Duration::from_millis(100);
    })
    .await;
    let refused = format!("POST /mcp HTTP/1.1\r\nhost: {}\r\n", endpoint.address)
        + "authorization: Bearer wrong\r\ncontent-length: 0\r\n\r\n";
    for sent in ["", "POST /mcp", &refused] {
        let mut stream = TcpStream::connect(endpoint.address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let reading = stream.read_to_string(&mut answer);
        tokio::time::timeout(deadline(), reading).await.expect("it is cut off").unwrap();
        assert_eq!(answer.contains(" 401 "), sent == refused, "{answer}");
    }
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

/// The response to what is sent, which may be cut off.
async fn exchange(endpoint: &Endpoint, sent: &str) -> String {
    let mut stream = TcpStream::connect(endpoint.address).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    let mut answer = [0; 64];
    let read = tokio::time::timeout(deadline(), stream.read(&mut answer)).await;
    let read = read.expect("there is a response").unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[tokio::test]
async fn heads_are_bounded() {
    let endpoint = Endpoint::start().await;
    let host = endpoint.address;
    // A head of exactly this size.
    let head = |bytes: usize| {
        let begin = format!("GET /health HTTP/1.1\r\nhost: {host}\r\nx-fat: ");
        let fat = "a".repeat(bytes - begin.len() - 4);
        format!("{begin}{fat}\r\n\r\n")
    };
    for (bytes, expected) in [(64 * 1024, "200"), (64 * 1024 + 1, "431"), (100_000, "431")] {
        let answer = exchange(&endpoint, &head(bytes)).await;
        assert_eq!(answer.split(' ').nth(1), Some(expected), "{bytes}: {answer}");
    }
    let small = Endpoint::with(|settings| settings.limits.header_bytes = 2000).await;
    let fat = small.post(&initialize("2025-11-25")).header("x-fat", "a".repeat(2000));
    assert_eq!(refused(fat).await, (431, -32600));
    let many = (0..200).fold(endpoint.post(&call(1, "echo")), |request, number| {
        request.header(format!("x-{number}"), "1")
    });
    assert_eq!(status(many).await, 431);
}

#[tokio::test]
async fn bodies_that_cannot_be_read_are_refused_at_once() {
    // Nothing waits for the rest of a body here.
    let endpoint = Endpoint::with(|settings| {
        settings.limits.io_timeout = Duration::from_hours(1);
    })
    .await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n",
        endpoint.address
    );
    for (rest, expected) in [
        ("content-length: 999999999999\r\n\r\n{", "413"),
        ("content-length: 18446744073709551615\r\n\r\n{", "413"),
        ("content-length: 99999999999999999999999999\r\n\r\n{", "413"),
        ("content-length: 99999999999999999999999999x\r\n\r\n{", "400"),
        ("transfer-encoding: chunked\r\n\r\n6400000\r\nabc", "413"),
        ("transfer-encoding: chunked\r\n\r\n1\r\n{\r\nffffffffffffffff\r\nabc", "413"),
        ("transfer-encoding: gzip, chunked\r\n\r\n1\r\n", "501"),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n1\r\n", "501"),
        ("transfer-encoding: chunked\r\ncontent-length: 1\r\n\r\n1\r\n", "400"),
        ("content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n1\r\n", "400"),
        ("transfer-encoding: chunked\r\n\r\nnonsense\r\n", "400"),
        ("transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n{", "413"),
        ("content-encoding: gzip\r\ncontent-length: 100\r\n\r\n\u{1f}", "415"),
    ] {
        let answer = exchange(&endpoint, &format!("{head}{rest}")).await;
        assert_eq!(answer.split(' ').nth(1), Some(expected), "{rest}: {answer}");
    }
}

#[tokio::test]
async fn a_request_names_one_host_and_no_user() {
    let endpoint = Endpoint::start().await;
    let own = endpoint.address;
    for (target, host, expected) in [
        ("/health".to_owned(), own.to_string(), "200"),
        (format!("http://{own}/health"), own.to_string(), "200"),
        ("http://evil.example/health".to_owned(), own.to_string(), "400"),
        ("http://evil.example/health".to_owned(), "evil.example".to_owned(), "403"),
        (format!("http://user@{own}/health"), format!("user@{own}"), "400"),
        ("/health".to_owned(), format!("user@{own}"), "400"),
        ("/health".to_owned(), format!("evil.example:80@{own}"), "400"),
    ] {
        let sent = format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        let answer = exchange(&endpoint, &sent).await;
        assert_eq!(answer.split(' ').nth(1), Some(expected), "{sent}: {answer}");
    }
}
