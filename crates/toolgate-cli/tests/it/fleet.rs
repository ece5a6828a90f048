//! Several gateways on one PostgreSQL.

mod bench;
mod faults;
mod logins;
mod policy;
mod single;

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use toolgate_broker::{ApprovalRequest, PersonAnswer, now, write_grant};
use toolgate_fleet::{Fleet, FleetOptions};
use toolgate_store::{ApprovalState, SharedStore as _};
use toolgate_testkit::{Builtin, Fixture, Postgres};

use crate::{
    fixtures::tool,
    http::{HttpClient, HttpGateway},
    support::{Workplace, entry, text, until},
    typist::agree,
};

/// A database, and what all nodes serve.
struct FleetPlace {
    postgres: Postgres,
    url: String,
    folder: tempfile::TempDir,
    policy: Value,
    /// The URL of a server at which each caller has their own login. With it, clients need tokens.
    per_caller: Option<String>,
}

/// A node with its own folder.
struct FleetNode {
    gateway: HttpGateway,
    place: Workplace,
}

/// A client of the legacy era, which sends each request to the node that it is told.
struct LegacyClient {
    http: reqwest::Client,
    session: String,
    token: Option<String>,
    next: AtomicUsize,
}

impl FleetPlace {
    async fn start(policy: Value) -> Option<Self> {
        Self::start_with(policy, None).await
    }

    async fn start_with(policy: Value, per_caller: Option<String>) -> Option<Self> {
        let postgres = tokio::task::spawn_blocking(Postgres::start).await.unwrap().unwrap()?;
        let url = postgres.database().unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("database"), &url).unwrap();
        std::fs::write(folder.path().join("secret"), "0123456789abcdef0123456789abcdef").unwrap();
        let place = Self { postgres, url, folder, policy, per_caller };
        let made = place.workplace().run(&["fleet", "migrate", "--json"]).await;
        assert_eq!(made.json()["before"], 0, "{made:?}");
        Some(place)
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("effects.log")
    }

    /// A machine with the configuration of the fleet.
    fn workplace(&self) -> Workplace {
        self.workplace_with(&[])
    }

    /// A node whose server has one more tool.
    async fn newer_node(&self) -> FleetNode {
        let newer = tool("newer", "Do something new.", &json!({}), &[]);
        let place = self.workplace_with(&[newer]);
        let gateway = place.serve_http(&["--mode", "direct"]).await;
        FleetNode { gateway, place }
    }

    fn workplace_with(&self, more: &[Value]) -> Workplace {
        let id = json!({ "id": { "type": "integer" } });
        let write = ["write", "guarded"].map(|name| tool(name, "Write a line.", &id, &["id"]));
        let written = json!({ "content": [{ "type": "text", "text": "written" }] });
        let fixture = Fixture::new("kit")
            .with_builtins([Builtin::Sleep, Builtin::Echo, Builtin::AskForm])
            .with_tools(write.into_iter().chain(more.iter().cloned()))
            .with_answer("write", written.clone())
            .with_answer("guarded", written)
            .with_call_log(self.log());
        let file = |name: &str| format!("${{file:{}}}", self.folder.path().join(name).display());
        let mut config = json!({
            "mcpServers": { "kit": entry(&fixture) },
            "policy": self.policy,
            "fleet": {
                "database": file("database"),
                "secret": file("secret"),
                "advertise": "https://127.0.0.1:0",
                "leaseSeconds": 1,
            },
        });
        if let Some(url) = &self.per_caller {
            config["mcpServers"]["crm"] = json!({ "url": url, "auth": "perCaller" });
            config["gateway"] = json!({ "requireToken": true, "publicUrl": logins::PUBLIC });
        }
        Workplace::new(&config).with_variable("TOOLGATE_VAULT_KEY", logins::KEY)
    }

    async fn node(&self) -> FleetNode {
        let place = self.workplace();
        let gateway = place.serve_http(&["--mode", "direct"]).await;
        FleetNode { gateway, place }
    }

    /// The stores, as a command sees them.
    async fn fleet(&self) -> std::sync::Arc<Fleet> {
        let options = FleetOptions { database: self.url.clone(), ..FleetOptions::default() };
        tokio::task::spawn_blocking(move || Fleet::open(&options).unwrap()).await.unwrap()
    }
}

impl FleetNode {
    fn client(&self) -> HttpClient {
        self.gateway.client()
    }
}

impl LegacyClient {
    /// Begins a session at a node.
    async fn begin(url: &str) -> Result<Self, String> {
        Self::begin_as(url, None).await
    }

    /// Begins a session of a caller.
    async fn begin_as(url: &str, token: Option<&str>) -> Result<Self, String> {
        // Without a pool: a connection that a node closes at this moment would lose a request.
        let http = toolgate_http::client_builder().no_proxy().pool_max_idle_per_host(0);
        let http = http.build().unwrap();
        let token = token.map(str::to_owned);
        let client = Self { http, session: String::new(), token, next: AtomicUsize::new(1) };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "legacy", "version": "1" },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let answer = client.post(url, &body).await?;
        let session =
            answer.headers().get("mcp-session-id").ok_or_else(|| format!("{answer:?}"))?;
        let session = session.to_str().map_err(|error| error.to_string())?.to_owned();
        let client = Self { session, ..client };
        client
            .post(url, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await?;
        Ok(client)
    }

    async fn post(&self, url: &str, body: &Value) -> Result<reqwest::Response, String> {
        let mut request = self
            .http
            .post(url)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25");
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session);
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        request.json(body).send().await.map_err(|error| why(&error))
    }

    /// Calls a tool at a node; an answer that did not come is an error.
    async fn call(&self, url: &str, tool: &str, arguments: Value) -> Result<Value, String> {
        let mut events = self.begin_call(url, tool, arguments).await?;
        events.answer().await
    }

    async fn begin_call(&self, url: &str, tool: &str, arguments: Value) -> Result<Events, String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let params = json!({ "name": tool, "arguments": arguments });
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        let response = self.post(url, &body).await?;
        Ok(Events { response, text: String::new(), id })
    }
}

/// The events of a response.
struct Events {
    response: reqwest::Response,
    text: String,
    id: usize,
}

impl Events {
    /// The next message.
    async fn next(&mut self) -> Result<Value, String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data: String =
                    event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                let rest = rest.to_owned();
                self.text = rest;
                if let Ok(message) = serde_json::from_str(data.trim()) {
                    return Ok(message);
                }
                continue;
            }
            match self.response.chunk().await.map_err(|error| error.to_string())? {
                Some(chunk) => self.text.push_str(&String::from_utf8_lossy(&chunk)),
                // It was no stream.
                None => {
                    return serde_json::from_str(&self.text)
                        .map_err(|_| format!("cut: {}", self.text));
                }
            }
        }
    }

    async fn answer(&mut self) -> Result<Value, String> {
        loop {
            let mut message = self.next().await?;
            if message["id"] == self.id && message.get("method").is_none() {
                return match message.get("result") {
                    Some(_) => Ok(message["result"].take()),
                    None => Err(message["error"].to_string()),
                };
            }
            if message.get("id").is_none_or(Value::is_null) && message.get("error").is_some() {
                return Err(message["error"].to_string());
            }
        }
    }
}

/// Why a request has no answer, and whether it was sent at all.
fn why(error: &reqwest::Error) -> String {
    let sent = if error.is_connect() { faults::NOT_SENT } else { "sent" };
    format!("{sent}: {error:?}")
}

/// How often each effect has happened.
fn effects(log: &PathBuf) -> std::collections::BTreeMap<u64, usize> {
    let mut effects = std::collections::BTreeMap::new();
    let text = std::fs::read_to_string(log).unwrap_or_default();
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if let Some(id) = line["arguments"]["id"].as_u64() {
            *effects.entry(id).or_default() += 1;
        }
    }
    effects
}

#[tokio::test]
async fn a_session_is_used_at_any_node_and_outlives_its_own() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let (first, second) = (place.node().await, place.node().await);
    let (one, other) = (first.gateway.url().to_owned(), second.gateway.url().to_owned());
    let client = LegacyClient::begin(&one).await.unwrap();
    let echo = json!({ "message": "hello" });
    for url in [&one, &other, &one, &other] {
        let answer = client.call(url, "kit_echo", echo.clone()).await.unwrap();
        assert_eq!(answer["structuredContent"]["message"], "hello", "{answer}");
    }

    // A question to the client of the first node is answered at the second.
    let ask = client.begin_call(&other, "kit_ask_form", json!({})).await;
    let mut asking = ask.unwrap();
    let question = asking.next().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let result = json!({ "action": "accept", "content": {} });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    assert_eq!(client.post(&other, &answer).await.unwrap().status(), 202);
    let answered = asking.answer().await.unwrap();
    assert_eq!(
        answered["structuredContent"]["answers"][0]["form"]["action"], "accept",
        "{answered}"
    );

    // Another caller does not get the session, wherever it asks.
    let stranger =
        LegacyClient { session: "x".repeat(43), ..LegacyClient::begin(&one).await.unwrap() };
    assert!(stranger.call(&other, "kit_echo", echo.clone()).await.is_err());

    first.gateway.stop_by_kill().await;
    // Nobody has to wait for the lease of the first node: its port is closed.
    let answer = client.call(&other, "kit_echo", echo.clone()).await.unwrap();
    assert_eq!(answer["structuredContent"]["message"], "hello");
    let alone = async || {
        let status = second.place.run(&["fleet", "status", "--json"]).await.json();
        (status["nodes"].as_array().unwrap().len() == 1).then_some(status)
    };
    let status = until("the end of the lease of the first node", alone).await;
    assert_eq!(status["sessions"], 2, "{status}");
}

#[tokio::test]
async fn a_request_that_waits_is_continued_at_any_node() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let (first, second) = (place.node().await, place.node().await);
    let capabilities = json!({ "elicitation": {} });
    let [one, other] =
        [&first, &second].map(|node| node.client().with_capabilities(capabilities.clone()));
    let waiting = one.call("kit_ask_form", json!({})).await;
    assert_eq!(waiting["resultType"], "input_required", "{waiting}");
    let requests = waiting["inputRequests"].as_object().unwrap();
    let answer = json!({ "action": "accept", "content": {} });
    let responses: serde_json::Map<String, Value> =
        requests.keys().map(|key| (key.clone(), answer.clone())).collect();
    let params = json!({
        "name": "kit_ask_form", "arguments": {},
        "requestState": waiting["requestState"], "inputResponses": responses,
    });
    let done = other.request("tools/call", params.clone()).await;
    assert_eq!(done["structuredContent"]["answers"][0]["form"]["action"], "accept", "{done}");
    let used = other.refused("tools/call", params).await;
    assert!(used["message"].as_str().unwrap().contains("`requestState` is unknown"), "{used}");
}

#[tokio::test]
async fn a_run_of_a_killed_node_is_resumed_by_another() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let (first, second) = (place.node().await, place.node().await);
    let code = "await kit_write({ id: 1 }); try { await kit_sleep({ ms: 600000 }); } catch (e) { console.log(e.message); } \
                await kit_write({ id: 2 }); return 'end';";
    let client = first.client();
    let running = tokio::spawn(async move {
        let params = json!({ "name": "run_code", "arguments": { "code": code } });
        let _ = client.try_post("tools/call", params).await;
    });
    let log = place.log();
    let slept = || std::fs::read_to_string(&log).unwrap_or_default().contains("600000");
    until("the second call", async || slept().then_some(())).await;
    let fleet = place.fleet().await;
    let runs = tokio::task::spawn_blocking({
        let fleet = std::sync::Arc::clone(&fleet);
        move || fleet.journal().unwrap().runs(10).unwrap()
    });
    let id = runs.await.unwrap().pop().unwrap().id;
    let resume = json!({ "name": "resume_run", "arguments": { "run_id": id } });
    let early = second.client().request("tools/call", resume.clone()).await;
    assert_eq!(early["isError"], true, "it runs at the first node: {early}");
    first.gateway.stop_by_kill().await;
    running.await.unwrap();
    let again = async || {
        let result = second.client().request("tools/call", resume.clone()).await;
        (result["isError"] != true).then_some(result)
    };
    let resumed = until("the lease of the first node ends", again).await;
    let report = text(&resumed);
    assert!(report.contains("end") && report.contains("unknown"), "{report}");
    let effects = effects(&log);
    assert_eq!((effects.get(&1), effects.get(&2)), (Some(&1), Some(&1)), "each once");
    let shown = second.place.run(&["runs", "show", &id, "--json"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
}

#[tokio::test]
async fn an_approval_that_is_given_elsewhere_counts_once_for_all_nodes() {
    let policy = json!({ "rules": [{ "tool": "kit_write", "verdict": "ask" }] });
    let Some(place) = FleetPlace::start(policy).await else { return };
    let (first, second) = (place.node().await, place.node().await);
    let call = json!({ "name": "kit_write", "arguments": { "id": 7 } });
    let waiting = first.client().request("tools/call", call.clone()).await;
    assert_eq!(waiting["isError"], true, "{waiting}");
    let fleet = place.fleet().await;
    tokio::task::spawn_blocking(move || {
        let journal = fleet.journal().unwrap();
        let open = journal.open_approvals().unwrap().pop().unwrap();
        let request: ApprovalRequest = serde_json::from_str(&open.question).unwrap();
        let grant = request.grant(&PersonAnswer::ONCE, "test", now(), None).unwrap();
        assert!(journal.answer(&open.id, ApprovalState::Approved, "{}", None).unwrap());
        write_grant(&*journal, &grant).unwrap();
    })
    .await
    .unwrap();
    let again = async || {
        let result = first.client().request("tools/call", call.clone()).await;
        (result["isError"] != true).then_some(result)
    };
    until("the grant reaches the first node", again).await;
    let used = second.client().request("tools/call", call).await;
    assert_eq!(used["isError"], true, "a grant for one call is used up: {used}");
    assert_eq!(effects(&place.log()).get(&7), Some(&1));
    let verified = second.place.run(&["audit", "--verify"]).await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[tokio::test]
async fn tokens_and_switches_reach_all_nodes() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let (first, second) = (place.node().await, place.node().await);
    let created = first.place.run(&["token", "create", "--name", "ci"]).await;
    let mut client = second.client();
    client.send_header("authorization", &format!("Bearer {}", created.stdout.trim()));
    until("the token", async || {
        client.try_post("tools/list", json!({})).await.ok().filter(|it| it.status() == 200)
    })
    .await;
    assert_eq!(first.place.run(&["token", "revoke", "ci"]).await.code, Some(0));
    until("the revocation", async || {
        client.try_post("tools/list", json!({})).await.ok().filter(|it| it.status() == 401)
    })
    .await;

    let disabled = first.place.run(&["disable", "kit"]).await;
    assert_eq!(disabled.code, Some(0), "{disabled:?}");
    let echo = json!({ "name": "kit_echo", "arguments": { "message": "x" } });
    let refused = async || {
        let answer = second.client().answer("tools/call", echo.clone()).await;
        (answer["result"]["isError"] == true || answer.get("error").is_some()).then_some(())
    };
    until("the switch", refused).await;
}

/// A balancer sends requests of a session to any node, also while the database is away. They reach the node that has it.
#[tokio::test]
async fn a_session_is_reached_through_another_node_while_the_database_is_away() {
    let Some(mut place) = FleetPlace::start(json!("off")).await else { return };
    let (first, second) = (place.node().await, place.node().await);
    let client = LegacyClient::begin(first.gateway.url()).await.unwrap();
    let (other, echo) = (second.gateway.url(), json!({ "message": "hello" }));
    client.call(other, "kit_echo", echo.clone()).await.unwrap();
    place.postgres.kill();
    let answer = client.call(other, "kit_echo", echo.clone()).await.unwrap();
    assert_eq!(answer["structuredContent"]["message"], "hello", "{answer}");
    let stranger = LegacyClient { session: "x".repeat(43), ..client };
    assert!(stranger.call(other, "kit_echo", echo).await.is_err());
}

#[tokio::test]
async fn without_the_database_calls_that_need_a_record_are_refused_and_come_back() {
    let Some(mut place) = FleetPlace::start(json!("off")).await else { return };
    let node = place.node().await;
    let client = node.client();
    let script = json!({ "name": "run_code", "arguments": { "code": "return (await kit_write({ id: 1 }));" } });
    let done = client.request("tools/call", script.clone()).await;
    assert_ne!(done["isError"], true, "{done}");
    place.postgres.kill();
    assert!(!client.list().await.is_empty(), "what was read before is still there");
    let script = json!({ "name": "run_code", "arguments": { "code": "return (await kit_write({ id: 2 }));" } });
    let refused = client.request("tools/call", script.clone()).await;
    assert!(text(&refused).contains("the shared database cannot be used"), "{refused}");
    assert!(!text(&refused).contains("unknown"), "nothing was sent: {refused}");
    // A script that has nothing to record is not begun either.
    let idle = json!({ "name": "run_code", "arguments": { "code": "return 1;" } });
    let idle = client.request("tools/call", idle).await;
    assert!(text(&idle).contains("the shared database cannot be used"), "{idle}");
    // Other calls go on; their records wait.
    let echo = json!({ "name": "kit_echo", "arguments": { "message": "while away" } });
    assert_ne!(client.request("tools/call", echo).await["isError"], true);
    let command = node.place.run(&["runs"]).await;
    assert!(
        command.code != Some(0) && command.stderr.contains("the shared database cannot be used"),
        "{command:?}"
    );
    assert_eq!(effects(&place.log()).get(&2), None, "nothing was called");
    place.postgres.resume().unwrap();
    let again = async || {
        let result = client.request("tools/call", script.clone()).await;
        (result["isError"] != true).then_some(result)
    };
    until("the database is back", again).await;
    assert_eq!(effects(&place.log()).get(&2), Some(&1));
    let recorded = async || {
        let audit = node.place.run(&["audit", "--json", "-n", "100"]).await.stdout;
        audit.contains("kit_echo").then_some(())
    };
    until("the records that waited", recorded).await;
    let verified = node.place.run(&["audit", "--verify"]).await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

/// The tools of a node that a client is shown.
async fn lists(node: &FleetNode, name: &str) -> bool {
    node.client().list().await.iter().any(|tool| tool["name"] == name)
}

#[tokio::test]
async fn what_is_approved_at_one_node_is_approved_at_all() {
    let Some(place) = FleetPlace::start(json!({ "newTools": "hold" })).await else { return };
    let first = place.node().await;
    until("the first definitions", async || lists(&first, "kit_echo").await.then_some(())).await;
    let fleet = place.fleet().await;
    let pinned = || {
        let fleet = std::sync::Arc::clone(&fleet);
        tokio::task::spawn_blocking(move || fleet.pins().read().unwrap())
    };
    until("the pins", async || pinned().await.unwrap()).await;
    assert!(!first.place.path().join("toolgate.lock").exists(), "they are in the database");
    // The server has a new tool at two other nodes, whose folders have no pins.
    let (second, third) = (place.newer_node().await, place.newer_node().await);
    for node in [&second, &third] {
        until("the definitions", async || lists(node, "kit_echo").await.then_some(())).await;
        assert!(!lists(node, "kit_newer").await, "nobody has approved it");
        // A client may know it from another node, whose server is the new one too.
        let call = json!({ "name": "kit_newer", "arguments": {} });
        let refused = node.client().refused("tools/call", call).await;
        let why = refused["message"].as_str().unwrap_or_default();
        assert!(why.contains("its definition is new, so it is held back"), "{refused}");
    }
    let approved = agree(&second.place, &["definitions", "approve", "kit_newer"]).await;
    assert_eq!(approved.code, Some(0), "{approved:?}");
    for node in [&second, &third] {
        until("the approval", async || lists(node, "kit_newer").await.then_some(())).await;
    }
}

#[tokio::test]
async fn a_node_listens_where_it_advertises_and_joins_with_the_secret_of_the_others() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let node = place.node().await;
    let status = node.place.run(&["fleet", "status", "--json"]).await.json();
    let url = url::Url::parse(status["nodes"][0]["url"].as_str().unwrap()).unwrap();
    let port = url.port().unwrap();
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok());
    let elsewhere = tokio::net::TcpStream::connect(("127.0.0.2", port)).await;
    assert!(elsewhere.is_err(), "only there");
    std::fs::write(place.folder.path().join("secret"), "f".repeat(32)).unwrap();
    let stranger = place.workplace().run(&["serve", "--http", "127.0.0.1:0"]).await;
    assert_eq!(stranger.code, Some(1), "{stranger:?}");
    assert!(stranger.stderr.contains("`fleet.secret` of this node is not that of"), "{stranger:?}");
}

/// A gateway that keeps its records for itself is no node.
#[tokio::test]
async fn a_mistake_in_fleet_starts_nothing_and_is_named() {
    for (more, named) in [
        (json!({ "leaseSeconds": 0 }), "`fleet.leaseSeconds` must be a number from 1 to 3,600"),
        (json!({ "leaseSecond": 5 }), "`fleet.leaseSecond` is not a known key"),
        (json!({ "database": null }), "`fleet` has no `database`"),
    ] {
        let mut fleet = json!({ "database": "${DATABASE}" });
        fleet.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let place = Workplace::new(&json!({ "mcpServers": {}, "fleet": fleet }))
            .with_variable("DATABASE", "postgresql://u:p@127.0.0.1:1/d");
        for command in
            [&["serve", "--http", "127.0.0.1:0"][..], &["token", "list"], &["fleet", "status"]]
        {
            let refused = place.run(command).await;
            assert_eq!(refused.code, Some(2), "{command:?}: {refused:?}");
            assert!(refused.stderr.contains(named), "{command:?}: {refused:?}");
        }
        let checked = place.run(&["config", "check"]).await;
        assert!(checked.code != Some(0) && checked.shown().contains(named), "{checked:?}");
    }
}

#[tokio::test]
async fn a_secret_is_not_written_into_the_configuration() {
    let place = Workplace::new(
        &json!({ "mcpServers": {}, "fleet": { "database": "postgresql://u:hunter2@h/d" } }),
    );
    let shown = place.run(&["fleet", "status"]).await;
    assert!(shown.code != Some(0), "{shown:?}");
    let checked = place.run(&["config", "check"]).await;
    let all = format!("{shown:?}{checked:?}");
    assert!(all.contains("must not be written here") && !all.contains("hunter2"), "{all}");
}
