//! What all tests need: a recording observer, and fixtures behind either transport.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_catalog::ServerName;
pub(crate) use toolgate_testkit::within;
use toolgate_testkit::{Fixture, HttpAnswers, HttpOptions, RunningHttp, deadline};
use toolgate_upstream::{
    CallError, CallOptions, ConnectFailure, Endpoint, Handshake, HttpEndpoint, Listing,
    OutputSource, ServerLimits, ServerObserver, ServerSpec, ServerState, StateKind, StdioEndpoint,
    Upstream,
};

/// Polls `condition`, for processes and files.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    toolgate_testkit::until(what, async || condition().then_some(())).await;
}

/// An upstream, and the events that its observer got.
pub(crate) struct Gate {
    pub(crate) upstream: Upstream,
    pub(crate) told: Arc<Recorder>,
}

/// The events that an observer got.
#[derive(Default)]
pub(crate) struct Recorder(watch::Sender<Record>);

#[derive(Default)]
pub(crate) struct Record {
    pub(crate) listings: Vec<(ServerName, Handshake, Listing)>,
    pub(crate) state_changes: Vec<(ServerName, Instant)>,
    pub(crate) output: Vec<(ServerName, OutputSource, String)>,
    pub(crate) notifications: Vec<(String, Option<Value>)>,
    pub(crate) asking: Vec<ServerName>,
}

impl ServerObserver for Recorder {
    fn listed(&self, server: &ServerName, handshake: &Handshake, listing: Listing) {
        let entry = (server.clone(), handshake.clone(), listing);
        self.0.send_modify(|record| record.listings.push(entry));
    }

    fn state_changed(&self, server: &ServerName) {
        let entry = (server.clone(), Instant::now());
        self.0.send_modify(|record| record.state_changes.push(entry));
    }

    fn asks(&self, server: &ServerName) {
        self.0.send_modify(|record| record.asking.push(server.clone()));
    }

    fn output(&self, server: &ServerName, source: OutputSource, line: &str) {
        let entry = (server.clone(), source, line.to_owned());
        self.0.send_modify(|record| record.output.push(entry));
    }

    fn notified(&self, _server: &ServerName, method: &str, params: Option<&Value>) {
        let entry = (method.to_owned(), params.cloned());
        self.0.send_modify(|record| record.notifications.push(entry));
    }
}

impl Recorder {
    /// How often a server listed its tools.
    pub(crate) fn listings_of(&self, server: &str) -> usize {
        let record = self.0.borrow();
        record.listings.iter().filter(|(name, ..)| name.as_str() == server).count()
    }

    /// The names of the tools in a server's last list.
    pub(crate) fn tools_of(&self, server: &str) -> Vec<String> {
        self.last_listing(server).definitions.iter().map(|tool| tool.name().to_string()).collect()
    }

    pub(crate) fn last_listing(&self, server: &str) -> Listing {
        let record = self.0.borrow();
        let last = record.listings.iter().rfind(|(name, ..)| name.as_str() == server);
        last.map(|(.., listing)| listing.clone()).unwrap_or_default()
    }

    /// The servers that began to ask.
    pub(crate) fn asking(&self) -> Vec<ServerName> {
        self.0.borrow().asking.clone()
    }

    /// All notifications that are about no call.
    pub(crate) fn notifications(&self) -> Vec<(String, Option<Value>)> {
        self.0.borrow().notifications.clone()
    }

    /// All lines from one source.
    pub(crate) fn output(&self, source: OutputSource) -> Vec<String> {
        let record = self.0.borrow();
        let lines = record.output.iter().filter(|(_, from, _)| *from == source);
        lines.map(|(.., line)| line.clone()).collect()
    }
}

impl Gate {
    pub(crate) fn start(specs: Vec<ServerSpec>) -> Self {
        let told = Arc::new(Recorder::default());
        let observer: Arc<dyn ServerObserver> = Arc::clone(&told) as Arc<dyn ServerObserver>;
        Self { upstream: Upstream::start(specs, &observer), told }
    }

    /// Starts one server and waits until it is ready.
    pub(crate) async fn ready(spec: ServerSpec) -> Self {
        let name = spec.name.clone();
        let gate = Self::start(vec![spec]);
        gate.settled_ready(name.as_str()).await;
        gate
    }

    /// Starts one server that cannot be connected to.
    pub(crate) async fn failure(spec: ServerSpec) -> (Self, ConnectFailure) {
        let name = spec.name.clone();
        let gate = Self::start(vec![spec]);
        within("the end of the attempt", gate.upstream.settled(name.as_str())).await;
        let state = gate.state(name.as_str());
        assert_eq!(state.kind, StateKind::Failed, "{state:?}");
        (gate, state.failure.unwrap())
    }

    pub(crate) async fn settled_ready(&self, server: &str) {
        within("the end of the attempt", self.upstream.settled(server)).await;
        let state = self.state(server);
        assert_eq!(state.kind, StateKind::Ready, "{state:?}");
    }

    pub(crate) fn state(&self, server: &str) -> ServerState {
        self.upstream.state(server).unwrap()
    }

    /// Waits until the record and the states fulfil `condition`.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let mut told = self.told.0.subscribe();
        let waiting = async {
            while !condition(self) {
                told.changed().await.unwrap();
            }
        };
        let met = tokio::time::timeout(deadline(), waiting).await.is_ok();
        assert!(met, "{what} did not happen: {:?}", self.told.output(OutputSource::Toolgate));
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, CallError> {
        self.call_with(tool, arguments, CallOptions::default()).await
    }

    /// Calls the server that all single-server tests have.
    pub(crate) async fn call_with(
        &self,
        tool: &str,
        arguments: Value,
        options: CallOptions,
    ) -> Result<Value, CallError> {
        let arguments = arguments.as_object().cloned();
        within(tool, self.upstream.call(&NAME.into(), tool, arguments, options)).await
    }

    /// The structured content of a call that must succeed.
    pub(crate) async fn structured(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.unwrap()["structuredContent"].take()
    }

    /// When attempts to connect began, in order: each begins with a change of state that is
    /// followed by the one that ends it.
    pub(crate) fn state_changes(&self) -> Vec<Instant> {
        self.told.0.borrow().state_changes.iter().map(|(_, at)| *at).collect()
    }
}

/// The name of the only server of most tests.
pub(crate) const NAME: &str = "fixture";

/// A server that is run as a child.
pub(crate) fn stdio(fixture: &Fixture) -> ServerSpec {
    let entry = fixture.entry().unwrap();
    command(&entry.command, &entry.args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Any command as a server.
pub(crate) fn command(command: &str, args: &[&str]) -> ServerSpec {
    let endpoint = Endpoint::Stdio(StdioEndpoint {
        command: command.to_owned(),
        args: args.iter().map(ToString::to_string).collect(),
        env: BTreeMap::new(),
        cwd: None,
    });
    ServerSpec::new(NAME, endpoint)
}

/// A fixture whose process writes its id to `log` when it starts; `prelude` is run by a shell
/// before.
pub(crate) fn logged(fixture: &Fixture, log: &Path, prelude: &str) -> ServerSpec {
    let entry = fixture.entry().unwrap();
    let script = format!("echo $$ >> '{}'; {prelude}\nexec \"$0\" \"$@\"", log.display());
    let mut args = vec!["-c", &script, &entry.command];
    args.extend(entry.args.iter().map(String::as_str));
    command("/bin/sh", &args)
}

/// The lines of a file that may not exist yet.
pub(crate) fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A URL as a server.
pub(crate) fn url(url: &str) -> ServerSpec {
    ServerSpec { endpoint: Endpoint::Http(HttpEndpoint::new(url)), ..command("", &[]) }
}

/// How a fixture is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Stdio,
    HttpJson,
    HttpSse,
}

impl Over {
    pub(crate) const ALL: [Self; 3] = [Self::Stdio, Self::HttpJson, Self::HttpSse];
    pub(crate) const HTTP: [Self; 2] = [Self::HttpJson, Self::HttpSse];
}

/// Serves a fixture in the given way. What is returned beside the entry keeps it alive.
pub(crate) async fn serve(fixture: Fixture, over: Over) -> (ServerSpec, Option<RunningHttp>) {
    let answers = match over {
        Over::Stdio => return (stdio(&fixture), None),
        Over::HttpJson => HttpAnswers::Json,
        Over::HttpSse => HttpAnswers::Sse,
    };
    let http = HttpOptions { answers, ..fixture.http.clone() };
    let running = fixture.with_http(http).serve_http(([127, 0, 0, 1], 0).into()).await.unwrap();
    (url(running.url()), Some(running))
}

/// A definition of a tool that answers like `echo`.
pub(crate) fn definition(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

/// Short limits for what should not be waited for.
pub(crate) fn with_limits(spec: ServerSpec, change: impl FnOnce(&mut ServerLimits)) -> ServerSpec {
    let mut limits = ServerLimits::default();
    change(&mut limits);
    ServerSpec { limits, ..spec }
}

/// A text with the limit in it replaced, because [`millis`] stretches it.
pub(crate) fn without_limit(text: &impl ToString, limit: Duration) -> String {
    let limit = format!("within {} s", limit.as_secs_f64());
    text.to_string().replace(&limit, "within LIMIT")
}

/// A limit of a test, which `TOOLGATE_TEST_TIME_FACTOR` stretches.
pub(crate) fn millis(milliseconds: u64) -> Duration {
    toolgate_testkit::scaled(Duration::from_millis(milliseconds))
}
