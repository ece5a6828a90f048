//! The life of a raw connection, from its handshake to its end.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{Era as KnownEra, ErrorObject, client::TransportFailure};
use toolgate_testkit::{Builtin, Faults, Fixture, FixtureEra, StartupExit};
use toolgate_upstream::{
    ConnectionClient, ConnectionHandler, InputRequest, RawConnection, RawRequest, RelatedRequest,
    RequestError, ServerSpec,
};

use crate::support::{
    Over, command, lines, logged, millis, serve, stdio, until, url, with_limits, within,
    without_limit,
};

/// What a notification is about, its method and its parameters.
type NotificationRecord = (Option<Value>, (String, Option<Value>));

/// What the server sent.
#[derive(Debug)]
pub(crate) struct ReceivedMessages {
    notifications: Mutex<mpsc::UnboundedReceiver<NotificationRecord>>,
    questions: Mutex<mpsc::UnboundedReceiver<(Option<Value>, InputRequest)>>,
    /// How many input requests are not answered yet.
    unanswered: watch::Receiver<usize>,
}

impl ReceivedMessages {
    pub(crate) async fn next_notification(&self) -> NotificationRecord {
        within("a notification", self.notifications.lock().await.recv()).await.unwrap()
    }

    pub(crate) async fn next_question(&self) -> (Option<Value>, InputRequest) {
        within("a question", self.questions.lock().await.recv()).await.unwrap()
    }

    async fn until_unanswered(&self, number: usize) {
        let mut unanswered = self.unanswered.clone();
        within("a question", unanswered.wait_for(|now| *now == number)).await.unwrap();
    }
}

struct Sink {
    notifications: mpsc::UnboundedSender<NotificationRecord>,
    questions: mpsc::UnboundedSender<(Option<Value>, InputRequest)>,
    /// `None` never comes.
    answer: Option<Result<Value, ErrorObject>>,
    unanswered: Arc<watch::Sender<usize>>,
}

struct UnansweredGuard(Arc<watch::Sender<usize>>);

impl Drop for UnansweredGuard {
    fn drop(&mut self) {
        self.0.send_modify(|unanswered| *unanswered -= 1);
    }
}

impl ConnectionHandler for Sink {
    fn notification(&self, about: Option<&Value>, method: &str, params: Option<Value>) {
        let _ = self.notifications.send((about.cloned(), (method.to_owned(), params)));
    }

    fn input_request(
        &self,
        about: Option<RelatedRequest>,
        question: InputRequest,
    ) -> BoxFuture<'static, Result<Value, ErrorObject>> {
        let _ = self.questions.send((about.map(|about| about.key), question));
        let answer = self.answer.clone();
        self.unanswered.send_modify(|unanswered| *unanswered += 1);
        let unanswered = UnansweredGuard(Arc::clone(&self.unanswered));
        Box::pin(async move {
            let _thinking = unanswered;
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
}

/// Sends requests for tests.
pub(crate) trait Call {
    /// A request whose key is `"key"`.
    fn ask(
        &self,
        method: &str,
        params: Value,
    ) -> impl Future<Output = Result<Value, RequestError>> + Send;
}

impl Call for RawConnection {
    async fn ask(&self, method: &str, params: Value) -> Result<Value, RequestError> {
        within(method, self.request(request(json!("key"), method, params))).await
    }
}

fn request(key: Value, method: &str, params: Value) -> RawRequest {
    let cancel = CancellationToken::new();
    RawRequest { key, method: method.to_owned(), params: Some(params), cancel, hold: None }
}

fn call(tool: &str, arguments: &Value) -> RawRequest {
    request(json!("key"), "tools/call", json!({ "name": tool, "arguments": arguments }))
}

fn client() -> ConnectionClient {
    let capabilities = json!({ "roots": { "odd": 1 }, "odd": {} }).as_object().unwrap().clone();
    ConnectionClient {
        info: json!({ "name": "ada", "version": "1", "odd": [1] }),
        legacy_version: None,
        legacy_capabilities: capabilities.clone(),
        modern_capabilities: capabilities,
    }
}

/// Opens a connection, which may fail.
pub(crate) async fn try_open(
    spec: &ServerSpec,
    answer: Option<Result<Value, ErrorObject>>,
) -> Result<(RawConnection, ReceivedMessages), toolgate_upstream::ConnectFailure> {
    let (notifications, told) = mpsc::unbounded_channel();
    let (questions, asked) = mpsc::unbounded_channel();
    let (unanswered, thought) = watch::channel(0);
    let sink = Sink { notifications, questions, answer, unanswered: Arc::new(unanswered) };
    let connection =
        within("the connection", spec.open_connection(&client(), Arc::new(sink))).await?;
    let (notifications, questions) = (Mutex::new(told), Mutex::new(asked));
    Ok((connection, ReceivedMessages { notifications, questions, unanswered: thought }))
}

/// A connection that answers every input request in the same way.
pub(crate) async fn answering(
    spec: &ServerSpec,
    answer: Result<Value, ErrorObject>,
) -> (RawConnection, ReceivedMessages) {
    try_open(spec, Some(answer)).await.unwrap()
}

/// A connection whose input requests are never answered.
pub(crate) async fn open(spec: &ServerSpec) -> (RawConnection, ReceivedMessages) {
    try_open(spec, None).await.unwrap()
}

fn tools() -> Fixture {
    Fixture::new("tools").with_builtins([
        Builtin::Echo,
        Builtin::Progress,
        Builtin::Sleep,
        Builtin::LastCancelled,
        Builtin::Client,
        Builtin::ChangeTools,
        Builtin::Big,
        Builtin::Crash,
        Builtin::AskForm,
    ])
}

#[tokio::test]
async fn the_handshake_is_returned_as_sent_in_both_eras() {
    for over in Over::ALL {
        for (offered, remembered, expected) in [
            (FixtureEra::Legacy, None, KnownEra::Legacy),
            (FixtureEra::Modern, None, KnownEra::Modern),
            (FixtureEra::Both, None, KnownEra::Modern),
            (FixtureEra::Both, Some(KnownEra::Legacy), KnownEra::Legacy),
            (FixtureEra::Modern, Some(KnownEra::Legacy), KnownEra::Modern),
            (FixtureEra::Legacy, Some(KnownEra::Modern), KnownEra::Legacy),
        ] {
            let odd = json!({ "listChanged": "odd", "x": [1] });
            let fixture = tools().with_era(offered).with_capability("odd", odd.clone());
            let (spec, _running) = serve(fixture, over).await;
            let spec = ServerSpec { remembered_era: remembered, ..spec };
            let (connection, _heard) = open(&spec).await;
            assert_eq!(connection.era(), expected, "{offered:?} {remembered:?} {over:?}");
            assert_eq!(connection.handshake()["capabilities"]["odd"], odd);
            let result = connection.request(call("client", &json!({}))).await.unwrap();
            let said = &result["structuredContent"];
            let (info, capabilities) = match expected {
                KnownEra::Legacy => (&said["clientInfo"], &said["capabilities"]),
                KnownEra::Modern => (
                    &said["io.modelcontextprotocol/clientInfo"],
                    &said["io.modelcontextprotocol/clientCapabilities"],
                ),
            };
            assert_eq!(*info, client().info);
            assert_eq!(*capabilities, Value::Object(client().modern_capabilities));
        }
    }
}

#[tokio::test]
async fn servers_that_fail_on_discovery_get_initialize() {
    for era in [FixtureEra::SilentOnProbe, FixtureEra::SilentThenDies, FixtureEra::DiesOfProbe] {
        let spec = with_limits(stdio(&tools().with_era(era)), |limits| limits.probe = millis(200));
        let (connection, _heard) = open(&spec).await;
        assert_eq!(connection.era(), KnownEra::Legacy, "{era:?}");
    }
}

#[tokio::test]
async fn a_client_gets_its_own_progress_token_back() {
    for over in [Over::Stdio, Over::HttpSse] {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let (spec, _running) = serve(tools().with_era(era), over).await;
            let (connection, heard) = open(&spec).await;
            let asking = ["a", "b"].map(|key| {
                let params = json!({
                    "name": "progress",
                    "arguments": { "steps": 2 },
                    "_meta": { "progressToken": format!("token of {key}") },
                });
                connection.request(request(json!({ "key": key }), "tools/call", params))
            });
            futures::future::try_join_all(asking).await.unwrap();
            let mut told = Vec::new();
            for _ in 0..4 {
                let (about, (method, params)) = heard.next_notification().await;
                let key = about.unwrap()["key"].as_str().unwrap().to_owned();
                let params = params.unwrap();
                assert_eq!(method, "notifications/progress");
                assert_eq!(params["progressToken"], format!("token of {key}"));
                told.push((key, params["progress"].as_i64().unwrap()));
            }
            told.sort();
            let expected = [("a", 1), ("a", 2), ("b", 1), ("b", 2)];
            assert_eq!(
                told,
                expected.map(|(key, step)| (key.to_owned(), step)),
                "{era:?} {over:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_cancellation_reaches_the_server() {
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let folder = tempfile::tempdir().unwrap();
            let log = folder.path().join("calls");
            let (spec, _running) = serve(tools().with_era(era).with_call_log(&log), over).await;
            let (connection, _heard) = open(&spec).await;
            let sleeping = call("sleep", &json!({ "ms": 60_000 }));
            let cancel = sleeping.cancel.clone();
            let (outcome, ()) = tokio::join!(connection.request(sleeping), async {
                until("the call", || lines(&log).len() == 1).await;
                cancel.cancel();
            });
            assert_eq!(outcome, Err(RequestError::Cancelled), "{era:?} {over:?}");
            within("the cancellation", async {
                loop {
                    let result =
                        connection.request(call("last_cancelled", &json!({}))).await.unwrap();
                    if !result["structuredContent"]["lastCancelled"].is_null() {
                        break;
                    }
                }
            })
            .await;
        }
    }
}

#[tokio::test]
async fn subscriptions_live_until_they_are_cancelled() {
    for over in Over::ALL {
        let (spec, _running) = serve(tools().with_era(FixtureEra::Modern), over).await;
        let spec = with_limits(spec, |limits| limits.total = millis(5000));
        let (connection, heard) = open(&spec).await;
        let wanted = json!({ "notifications": { "toolsListChanged": true, "odd": 1 } });
        let listening = request(json!(["listen"]), "subscriptions/listen", wanted);
        let cancel = listening.cancel.clone();
        let changing = async {
            let (about, (method, _)) = heard.next_notification().await;
            assert_eq!(method, "notifications/subscriptions/acknowledged", "{over:?}");
            assert_eq!(about, Some(json!(["listen"])), "{over:?}");
            connection.request(call("change_tools", &json!({ "add": "late" }))).await.unwrap();
            let (about, (method, params)) = heard.next_notification().await;
            assert_eq!(method, "notifications/tools/list_changed", "{over:?}");
            assert_eq!(about, Some(json!(["listen"])), "{over:?}");
            assert!(params.unwrap()["_meta"]["io.modelcontextprotocol/subscriptionId"].is_i64());
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(connection.request(listening), changing);
        assert_eq!(outcome, Err(RequestError::Cancelled), "{over:?}");
    }
}

#[tokio::test]
async fn a_process_ends_with_its_connection() {
    for by_hand in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("starts");
        let (connection, _heard) = open(&logged(&tools(), &log, "")).await;
        let process = format!("/proc/{}", lines(&log)[0]);
        assert!(std::path::Path::new(&process).exists());
        if by_hand {
            within("the end", connection.close()).await;
            within("the end", connection.closed()).await;
            let outcome = connection.request(call("echo", &json!({}))).await;
            assert!(matches!(outcome, Err(RequestError::Transport { .. })), "{outcome:?}");
        } else {
            drop(connection);
        }
        until("the end of the process", || !std::path::Path::new(&process).exists()).await;
    }
}

#[tokio::test]
async fn a_crash_ends_requests_input_requests_and_the_connection() {
    let (connection, heard) = open(&stdio(&tools())).await;
    let asking = connection.request(call("ask_form", &json!({})));
    let crashing = async {
        heard.until_unanswered(1).await;
        connection.request(call("crash", &json!({}))).await
    };
    let (asked, crashed) =
        Box::pin(within("the end", async { tokio::join!(asking, crashing) })).await;
    let (cause, message) =
        (TransportFailure::Closed, "the connection to the server ended".to_owned());
    let ended = RequestError::Transport { cause, message };
    assert_eq!((asked, crashed), (Err(ended.clone()), Err(ended)));
    within("the end", connection.closed()).await;
    heard.until_unanswered(0).await;
}

#[tokio::test]
async fn time_and_size_are_limited() {
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let (spec, _running) = serve(tools().with_era(era), over).await;
            let spec = with_limits(spec, |limits| {
                limits.total = millis(2000);
                (limits.max_message_bytes, limits.max_kept_bytes) = (100_000, 0);
            });
            let (connection, _heard) = open(&spec).await;
            let error =
                connection.request(call("big", &json!({ "bytes": 1_000_000 }))).await.unwrap_err();
            let said = error.to_string();
            assert!(said.contains("100000 bytes") && said.contains("cannot be used"), "{said}");
            let outcome = connection.request(call("sleep", &json!({ "ms": 60_000 }))).await;
            assert_eq!(outcome, Err(RequestError::TimedOut(millis(2000))), "{era:?} {over:?}");
            connection.request(call("echo", &json!({}))).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_person_has_more_time_than_a_server() {
    let spec = with_limits(stdio(&tools()), |limits| limits.total = millis(700));
    let (connection, heard) = open(&spec).await;
    let asking = call("ask_form", &json!({}));
    let cancel = asking.cancel.clone();
    let unanswered = async {
        heard.until_unanswered(1).await;
        tokio::time::sleep(millis(1500)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(connection.request(asking), unanswered);
    assert_eq!(outcome, Err(RequestError::Cancelled));
}

#[tokio::test]
async fn a_forgotten_session_is_opened_again() {
    for over in Over::HTTP {
        let (spec, running) = serve(tools(), over).await;
        let (connection, heard) = answering(&spec, Ok(json!({ "action": "accept" }))).await;
        connection.request(call("echo", &json!({}))).await.unwrap();
        running.as_ref().unwrap().forget_sessions();
        let asking = [1, 2, 3].map(|_| connection.request(call("echo", &json!({}))));
        futures::future::try_join_all(asking).await.unwrap();
        assert_eq!(running.as_ref().unwrap().calls(), 4);
        // What belongs to no request comes over a stream of the new session.
        let result = connection.request(call("ask_form", &json!({}))).await.unwrap();
        assert_eq!(result["structuredContent"]["answers"][0]["form"]["action"], "accept");
        heard.next_question().await;
    }
}

#[tokio::test]
async fn failures_have_a_readable_reason() {
    let exit = StartupExit { code: 3, message: "Error: no key".to_owned() };
    let faults = Faults { exit_at_start: Some(exit), ..Faults::default() };
    for (spec, expected) in [
        (command("no-such-command", &[]), "the command `no-such-command` was not found"),
        (
            stdio(&tools().with_faults(faults)),
            "the process ended before it answered (exit status: 3): Error: no key",
        ),
        (url("http://127.0.0.1:9/mcp"), "nothing answers at http://127.0.0.1:9"),
        (url("no url"), "its `url` is not a URL"),
    ] {
        let failure = try_open(&spec, None).await.map(|_| ()).unwrap_err();
        assert!(failure.reason.starts_with(expected), "{failure:?}");
    }
    let silent = with_limits(command("sleep", &["60"]), |limits| {
        limits.connect = millis(600);
        limits.probe = millis(200);
    });
    let failure = try_open(&silent, None).await.map(|_| ()).unwrap_err();
    let reason = without_limit(&failure.reason, millis(600));
    assert!(reason.starts_with("no answer to the handshake within LIMIT: "), "{reason}");
    assert!(reason.contains("`server/discover` was sent at 0"), "{reason}");
}
