//! Callers log in at a server through any node of a fleet.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_testkit::{
    AuthorizationOptions, AuthorizationServer, Fixture, PERSON, Postgres, RunningHttp, Visited,
    send_form, until, visit, visit_with, within,
};

use crate::{
    fixtures::tool,
    http::HttpGateway,
    support::{Workplace, text},
};

/// Where browsers reach the load balancer.
pub(super) const PUBLIC: &str = "http://tools.example";
pub(super) const KEY: &str = "a key that all nodes have, 0123456789";

/// Two nodes in front of a server that says whose login it was called with.
struct Team {
    _postgres: Postgres,
    _folder: tempfile::TempDir,
    authorization: AuthorizationServer,
    _server: RunningHttp,
    nodes: Vec<(Workplace, HttpGateway)>,
    http: reqwest::Client,
    ada: String,
    bob: String,
}

/// A server that says whose login it was called with.
pub(super) fn fixture() -> Fixture {
    let said = json!({ "content": [{ "type": "text", "text": format!("account {PERSON}") }] });
    Fixture::new("guarded")
        .with_tool(tool("who", "Says whose login it is.", &json!({}), &[]))
        .with_answer("who", said)
}

/// A page of a gateway, at this node.
fn page_at(gateway: &str, url: &str) -> String {
    let path = url.strip_prefix(PUBLIC).unwrap_or_else(|| panic!("{url}"));
    format!("{}{path}", gateway.trim_end_matches("/mcp"))
}

/// The link in the error of a call.
pub(super) fn link_in(text: &str) -> Option<&str> {
    text.split_whitespace().find(|word| word.contains("/login/"))
}

/// Somebody opens a link and logs in; the requests of the browser reach two nodes in turn.
pub(super) async fn open_link(
    [first, other]: [&str; 2],
    link: &str,
    token: &str,
    person: &str,
) -> Result<Visited, String> {
    let lost = |error: toolgate_testkit::TestkitError| error.to_string();
    let page = visit(&page_at(first, link)).await.map_err(lost)?;
    if page.status != 200 {
        return Err(page.body);
    }
    let shown = send_form(&page_at(other, link), &[], &[("token", token)]).await.map_err(lost)?;
    let (303, Some(cookie), Some(location)) = (shown.status, shown.cookie, shown.location) else {
        return Err(shown.body);
    };
    let agreed = visit(&format!("{location}&person={person}")).await.map_err(lost)?;
    let back = agreed.location.ok_or(agreed.body)?;
    visit_with(&page_at(first, &back), &[("cookie", &cookie)]).await.map_err(lost)
}

impl Team {
    async fn start(options: AuthorizationOptions) -> Option<Self> {
        let postgres = tokio::task::spawn_blocking(Postgres::start).await.unwrap().unwrap()?;
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            format!("${{file:{}}}", path.display())
        };
        let database = write("database", &postgres.database().unwrap());
        let secret = write("secret", "0123456789abcdef0123456789abcdef");
        let authorization = AuthorizationServer::start(options).await.unwrap();
        let address = ([127, 0, 0, 1], 0).into();
        let server = fixture().serve_http_for(address, &authorization).await.unwrap();
        let config = json!({
            "mcpServers": { "crm": { "url": server.url(), "auth": "perCaller" } },
            "toolSearch": { "enabled": false },
            "gateway": { "requireToken": true, "publicUrl": PUBLIC },
            "fleet": {
                "database": database, "secret": secret,
                "advertise": "https://127.0.0.1:0", "leaseSeconds": 1,
            },
        });
        let place = || Workplace::new(&config).with_variable("TOOLGATE_VAULT_KEY", KEY);
        let first = place();
        let made = first.run(&["fleet", "migrate"]).await;
        assert_eq!(made.code, Some(0), "{made:?}");
        let mut tokens = Vec::new();
        for name in ["ada", "bob"] {
            let made = first.run(&["token", "create", "--name", name]).await;
            tokens.push(made.stdout.trim().to_owned());
        }
        let (bob, ada) = (tokens.pop().unwrap(), tokens.pop().unwrap());
        let mut nodes = Vec::new();
        for place in [first, place()] {
            let gateway = place.serve_http(&[]).await;
            nodes.push((place, gateway));
        }
        let http = toolgate_http::client_builder().no_proxy().build().unwrap();
        Some(Self {
            _postgres: postgres,
            _folder: folder,
            authorization,
            _server: server,
            nodes,
            http,
            ada,
            bob,
        })
    }

    /// A page of the gateway, at one of the nodes.
    fn at(&self, node: usize, url: &str) -> String {
        page_at(self.nodes[node].1.url(), url)
    }

    async fn call(&self, node: usize, token: &str, more: Value) -> Value {
        let mut params = json!({ "name": "crm_who", "arguments": {} });
        let opens = !more.is_null();
        if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
            params.extend(more.clone());
        }
        let capabilities = if opens { json!({ "elicitation": { "url": {} } }) } else { json!({}) };
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let request = self
            .http
            .post(self.nodes[node].1.url())
            .bearer_auth(token)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "crm_who")
            .body(body.to_string());
        let sending = async { request.send().await.unwrap().text().await.unwrap() };
        let body = within("the answer", sending).await;
        let last = body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        let answer: Value =
            serde_json::from_str(last.unwrap_or(&body)).unwrap_or_else(|_| panic!("{body}"));
        answer["result"].clone()
    }

    async fn account(&self, node: usize, token: &str) -> String {
        text(&self.call(node, token, Value::Null).await).to_owned()
    }

    /// The link in the error of a call.
    async fn link(&self, node: usize, token: &str) -> String {
        let text = self.account(node, token).await;
        link_in(&text).unwrap_or_else(|| panic!("{text}")).to_owned()
    }

    /// Somebody logs in; each request of the browser reaches another node.
    async fn open(&self, first: usize, link: &str, token: &str, person: &str) -> Visited {
        let gateways = [first, 1 - first].map(|node| self.nodes[node].1.url());
        open_link(gateways, link, token, person).await.unwrap()
    }

    async fn log_in(&self, first: usize, token: &str, person: &str) {
        let link = self.link(1 - first, token).await;
        let page = self.open(first, &link, token, person).await;
        assert_eq!(page.status, 200, "{}", page.body);
    }
}

#[tokio::test]
async fn a_login_is_begun_opened_and_ended_at_different_nodes() {
    let Some(team) = Team::start(AuthorizationOptions::default()).await else { return };
    let asked = team.call(0, &team.ada, json!({})).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let link = request["params"]["url"].as_str().unwrap().to_owned();
    assert_eq!(team.link(1, &team.ada).await, link, "a caller has one link at all nodes");
    // The client answers, and the call waits at the first node until the second has ended the login.
    let accepted = json!({
        "requestState": asked["requestState"],
        "inputResponses": { key: { "action": "accept" } },
    });
    let ending = async {
        let page = team.open(1, &link, &team.ada, "Ada").await;
        assert_eq!(page.status, 200, "{}", page.body);
        assert!(page.body.contains("You are logged in at crm."), "{}", page.body);
    };
    let (answer, ()) = tokio::join!(team.call(0, &team.ada, accepted), ending);
    assert_eq!(text(&answer), "account Ada", "{answer}");
    for node in [0, 1] {
        assert_eq!(team.account(node, &team.ada).await, "account Ada");
        assert!(team.account(node, &team.bob).await.contains("needs a login of your own"));
        assert_eq!(visit(&team.at(node, &link)).await.unwrap().status, 404, "good once");
    }
    let audit = team.nodes[0].0.run(&["audit", "--json"]).await.stdout;
    assert_eq!(audit.matches("logged in").count(), 1, "{audit}");
}

#[tokio::test]
async fn no_login_of_a_fleet_serves_another_caller() {
    // Each token is good for a moment, so that each call may have to renew one.
    let options = AuthorizationOptions { lifetime: 31, ..AuthorizationOptions::default() };
    let Some(team) = Team::start(options).await else { return };
    let team = Arc::new(team);
    let link = team.link(0, &team.ada).await;
    for node in [0, 1] {
        let stranger =
            send_form(&team.at(node, &link), &[], &[("token", &team.bob)]).await.unwrap();
        assert_eq!((stranger.status, stranger.cookie), (403, None), "Bob opened the link of Ada");
    }
    // Ada opens the link, and Bob gets the page of the authorization server.
    let shown = send_form(&team.at(0, &link), &[], &[("token", &team.ada)]).await.unwrap();
    let page = format!("{}&person=Bob", shown.location.unwrap());
    let back = visit(&page).await.unwrap().location.unwrap();
    assert_eq!(visit(&team.at(1, &back)).await.unwrap().status, 403);
    team.log_in(0, &team.ada, "Ada").await;
    team.log_in(1, &team.bob, "Bob").await;
    let mut callers = Vec::new();
    for number in 0..8 {
        let team = Arc::clone(&team);
        callers.push(tokio::spawn(async move {
            let (token, person) =
                if number % 2 == 0 { (&team.ada, "Ada") } else { (&team.bob, "Bob") };
            for round in 0..10 {
                // Twice for each person: a request may have two tokens refused, also new ones.
                if number == round && round < 4 {
                    team.authorization.expire_access_tokens_of(person);
                }
                let account = team.account((number / 2 + round) % 2, token).await;
                assert_eq!(account, format!("account {person}"), "call {round} of {number}");
            }
        }));
    }
    for caller in callers {
        caller.await.unwrap();
    }
    let record = team.authorization.record();
    // A refresh token that is used twice ends a login: one node renews for all.
    assert!(record.renewals > 0 && record.reuses == 0, "{record:?}");
}

#[tokio::test]
async fn a_revoked_login_is_used_at_no_node() {
    let options = AuthorizationOptions { revokes: false, ..AuthorizationOptions::default() };
    let Some(team) = Team::start(options).await else { return };
    team.log_in(0, &team.ada, "Ada").await;
    team.log_in(0, &team.bob, "Bob").await;
    for node in [0, 1] {
        assert_eq!(team.account(node, &team.ada).await, "account Ada");
    }
    let listed = team.nodes[1].0.run(&["logins", "--json"]).await.json();
    let ada = listed[0]["caller"].as_str().unwrap();
    assert!(ada.starts_with("token ada ") && listed.as_array().unwrap().len() == 2, "{listed}");
    let revoked = team.nodes[1].0.run(&["logins", "revoke", "--caller", ada]).await;
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    for node in [0, 1] {
        // The token is valid still, and the nodes have it in memory.
        until("the node notices", async || {
            team.account(node, &team.ada).await.contains("needs a login").then_some(())
        })
        .await;
        assert_eq!(team.account(node, &team.bob).await, "account Bob");
    }
}
