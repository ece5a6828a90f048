//! Messages about failures.

use std::collections::BTreeMap;

use serde_json::json;
use toolgate_testkit::{AnswerFault, Builtin, Faults, Fixture, HttpOptions, StartupExit};
use toolgate_upstream::{CallError, ConnectFailure, Endpoint, OutputSource, ServerSpec};

use crate::support::{
    Gate, NAME, Over, command, millis, serve, stdio, url, with_limits, without_limit,
};

/// The failure of a server, without what differs from run to run.
async fn failure_of(spec: ServerSpec) -> String {
    let (_gate, failure) = Gate::failure(spec).await;
    shown(&failure)
}

fn shown(failure: &ConnectFailure) -> String {
    let text = format!("{}\n-> {}", failure.reason, failure.action);
    let mut shown = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("127.0.0.1:") {
        shown.push_str(before);
        shown.push_str("127.0.0.1:PORT");
        rest = after.trim_start_matches(|character: char| character.is_ascii_digit());
    }
    shown + rest
}

#[tokio::test]
async fn a_missing_command() {
    insta::assert_snapshot!(failure_of(command("no-such-command", &[])).await, @r"
    the command `no-such-command` was not found
    -> install it, or write its full path as `command`
    ");
}

#[tokio::test]
async fn a_command_that_may_not_be_run() {
    insta::assert_snapshot!(failure_of(command("/etc/passwd", &[])).await, @r"
    the command `/etc/passwd` may not be run
    -> make it executable
    ");
}

#[tokio::test]
async fn a_missing_working_directory() {
    let mut spec = stdio(&Fixture::new("lost"));
    if let Endpoint::Stdio(endpoint) = &mut spec.endpoint {
        endpoint.cwd = Some("/nonexistent/folder".into());
    }
    insta::assert_snapshot!(failure_of(spec).await, @r"
    its working directory /nonexistent/folder does not exist
    -> correct `cwd` of the server
    ");
}

#[tokio::test]
async fn an_exit_at_once() {
    let exit = StartupExit { code: 2, message: "Error: API_KEY is not set\nbye".into() };
    let faults = Faults { exit_at_start: Some(exit), ..Faults::default() };
    let spec = stdio(&Fixture::new("quitter").with_faults(faults));
    insta::assert_snapshot!(failure_of(spec).await, @r"
    the process ended before it answered (exit status: 2): Error: API_KEY is not set
    -> see `toolgate logs fixture`
    ");
    insta::assert_snapshot!(failure_of(command("/bin/true", &[])).await, @r"
    the process ended before it answered (exit status: 0)
    -> see `toolgate logs fixture`
    ");
}

#[tokio::test]
async fn no_answer_to_the_handshake() {
    let faults = Faults::broken_answer("initialize", AnswerFault::Silence);
    let spec = stdio(&Fixture::new("mute").with_faults(faults));
    let spec = with_limits(spec, |limits| limits.connect = millis(1500));
    let failure = without_limit(&failure_of(spec).await, millis(1500));
    let (first, rest) = failure.split_once(": ").unwrap();
    assert_eq!(first, "no answer to the handshake within LIMIT");
    let (_, action) = rest.split_once('\n').unwrap();
    insta::assert_snapshot!(action, @r"
    -> raise `connectTimeoutSeconds` of the server, or see `toolgate logs fixture`
    ");
}

#[tokio::test]
async fn a_handshake_that_is_refused() {
    for over in Over::ALL {
        let mut fixture = Fixture::new("stranger");
        fixture.legacy_versions = vec!["1999-01-01".into()];
        fixture.era = toolgate_testkit::FixtureEra::Modern;
        fixture.faults = Faults::broken_answer("server/discover", AnswerFault::Hollow);
        let (spec, _running) = serve(fixture, over).await;
        let failure = failure_of(spec).await;
        assert!(failure.contains("JSON-RPC error: -320"), "{over:?}: {failure}");
    }
}

#[tokio::test]
async fn a_closed_port() {
    // Bound and released: nobody is there.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    insta::assert_snapshot!(failure_of(url(&format!("http://{address}/mcp"))).await, @r"
    nothing answers at http://127.0.0.1:PORT/mcp: Connection refused (os error 111)
    -> start the server, or correct its `url`
    ");
}

#[tokio::test]
async fn a_wrong_path_and_a_wrong_url() {
    let (spec, _running) = serve(Fixture::new("elsewhere"), Over::HttpJson).await;
    let Endpoint::Http(endpoint) = &spec.endpoint else { panic!("it is a URL") };
    let wrong_path = endpoint.url.replace("/mcp", "/nothing");
    insta::assert_snapshot!(failure_of(url(&wrong_path)).await, @r"
    http://127.0.0.1:PORT/nothing answered HTTP 404
    -> check `url` and `headers` of the server
    ");
    insta::assert_snapshot!(failure_of(url("not a url")).await, @r"
    its `url` is not a URL: relative URL without a base
    -> correct `url` of the server
    ");
}

#[tokio::test]
async fn authorization() {
    let http = HttpOptions { bearer: Some("the-right-token".into()), ..HttpOptions::default() };
    let fixture = Fixture::new("guarded").with_builtins([Builtin::Add]).with_http(http);
    let (spec, _running) = serve(fixture, Over::HttpJson).await;
    insta::assert_snapshot!(failure_of(spec.clone()).await, @r"
    http://127.0.0.1:PORT/mcp asks for authorization (401)
    -> add or correct the `Authorization` header under `headers` of the server
    ");

    let mut wrong = spec.clone();
    set_header(&mut wrong, "authorization", "Bearer the-wrong-token");
    insta::assert_snapshot!(failure_of(wrong).await, @r"
    http://127.0.0.1:PORT/mcp asks for authorization (401)
    -> add or correct the `Authorization` header under `headers` of the server
    ");

    let mut invalid = spec.clone();
    set_header(&mut invalid, "authorization", "Bearer two\nlines");
    insta::assert_snapshot!(failure_of(invalid).await, @r"
    the header `authorization` is not a valid HTTP header
    -> correct it under `headers` of the server
    ");

    let mut right = spec;
    set_header(&mut right, "authorization", "Bearer the-right-token");
    let gate = Gate::ready(right).await;
    assert_eq!(gate.structured("add", json!({ "a": 1, "b": 2 })).await, json!({ "sum": 3 }));
}

fn set_header(spec: &mut ServerSpec, name: &str, value: &str) {
    if let Endpoint::Http(endpoint) = &mut spec.endpoint {
        endpoint.headers = BTreeMap::from([(name.to_owned(), value.to_owned())]);
    }
}

#[tokio::test]
async fn secrets_are_in_no_text() {
    const SECRET: &str = "s3cr3t-t0ken-value";
    let check = |gate: &Gate, more: &str| {
        let state = format!("{:?}", gate.state(NAME));
        let sources = [OutputSource::Stderr, OutputSource::Stdout, OutputSource::Toolgate];
        let lines: Vec<String> =
            sources.into_iter().flat_map(|source| gate.told.output(source)).collect();
        let all = format!("{state}\n{more}\n{lines:?}");
        assert!(!all.contains(SECRET) && !all.contains("s3cr3t"), "{all}");
        assert!(all.contains("[hidden]"), "{all}");
    };
    let with_secret = |mut spec: ServerSpec| {
        if let Endpoint::Stdio(endpoint) = &mut spec.endpoint {
            endpoint.env = BTreeMap::from([("TOKEN".to_owned(), SECRET.to_owned())]);
        }
        spec
    };
    // One that says it on stderr and exits, in a line that is cut in the middle of it.
    let long = "x".repeat(395);
    let script = format!("echo \"{long}$TOKEN\" >&2; echo \"Error: bad token $TOKEN\" >&2; exit 1");
    let (gate, failure) = Gate::failure(with_secret(command("/bin/sh", &["-c", &script]))).await;
    check(&gate, &format!("{failure:?}"));

    // One that says it on stdout.
    let script = "echo \"starting with $TOKEN\"; exec sleep 60";
    let spec = with_limits(with_secret(command("/bin/sh", &["-c", script])), |limits| {
        limits.connect = millis(500);
    });
    let (gate, failure) = Gate::failure(spec).await;
    check(&gate, &format!("{failure:?}"));

    // One that says it in an error.
    let fixture = Fixture::new("leaky").with_builtins([Builtin::RpcError]);
    let gate = Gate::ready(with_secret(stdio(&fixture))).await;
    let arguments = json!({ "message": format!("bad token {SECRET}") });
    let error: CallError = gate.call("rpc_error", arguments).await.unwrap_err();
    check(&gate, &format!("{error} {error:?}"));

    // A URL that holds it, in a request that fails on the way.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut spec = url(&format!("http://{address}/mcp?key={SECRET}"));
    set_header(&mut spec, "x-key", SECRET);
    assert!(!format!("{spec:?}").contains(SECRET));
    let (_gate, failure) = Gate::failure(spec).await;
    assert!(!format!("{failure:?}").contains(SECRET), "{failure:?}");
}
