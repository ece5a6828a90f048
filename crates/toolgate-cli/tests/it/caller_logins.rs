//! Servers at which each caller has their own login.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_testkit::{
    AuthorizationOptions, AuthorizationServer, Builtin, Fixture, PERSON, RunningHttp, Visited,
    send_form, visit, visit_with, within,
};

use crate::{
    http::HttpGateway,
    support::{Workplace, text, until},
    web::OpenPage,
};

/// A gateway with two callers, in front of a server that says whose login it was called with.
struct Team {
    workplace: Workplace,
    authorization: AuthorizationServer,
    _server: RunningHttp,
    gateway: HttpGateway,
    client: reqwest::Client,
    ada: String,
    bob: String,
}

/// What a client can do.
#[derive(Clone, Copy, PartialEq)]
enum Links {
    Opens,
    OpensNone,
}

fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}

fn fixture() -> Fixture {
    let said = json!({ "content": [{ "type": "text", "text": format!("account {PERSON}") }] });
    let read =
        json!({ "contents": [{ "uri": "data://own", "text": format!("data of {PERSON}") }] });
    Fixture::new("guarded")
        .with_builtins([Builtin::Echo])
        .with_tool(tool("who", "Says whose login it is."))
        .with_tool(tool("personal", &format!("Is for {PERSON} alone.")))
        .with_answer("who", said.clone())
        .with_answer("personal", said)
        .with_capability("resources", json!({}))
        .with_resources([json!({ "uri": "data://own", "name": format!("data of {PERSON}") })])
        .with_method("resources/read", read)
}

impl Team {
    async fn start(options: AuthorizationOptions) -> Self {
        Self::with(fixture(), options).await
    }

    async fn with(fixture: Fixture, options: AuthorizationOptions) -> Self {
        let authorization = AuthorizationServer::start(options).await.unwrap();
        let address = ([127, 0, 0, 1], 0).into();
        let server = fixture.serve_http_for(address, &authorization).await.unwrap();
        let workplace = Workplace::new(&json!({
            "mcpServers": { "crm": { "url": server.url(), "auth": "perCaller" } },
            "toolSearch": { "enabled": false },
            "gateway": { "requireToken": true },
        }));
        let mut tokens = Vec::new();
        for name in ["ada", "bob"] {
            let made = workplace.run(&["token", "create", "--name", name]).await;
            tokens.push(made.stdout.trim().to_owned());
        }
        let gateway = workplace.serve_http(&[]).await;
        let client = toolgate_http::client_builder().no_proxy().build().unwrap();
        let (bob, ada) = (tokens.pop().unwrap(), tokens.pop().unwrap());
        Self { workplace, authorization, _server: server, gateway, client, ada, bob }
    }

    /// A request of the modern era.
    async fn request(&self, token: &str, links: Links, method: &str, mut params: Value) -> Value {
        let elicitation = match links {
            Links::Opens => json!({ "elicitation": { "url": {} } }),
            Links::OpensNone => json!({}),
        };
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": elicitation,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        });
        let name =
            params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = self
            .client
            .post(self.gateway.url())
            .bearer_auth(token)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", name)
            .body(body.to_string());
        let sending = async { request.send().await.unwrap().text().await.unwrap() };
        let body = within("the answer", sending).await;
        let last = body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        serde_json::from_str(last.unwrap_or(&body)).unwrap_or_else(|_| panic!("{body}"))
    }

    async fn call(&self, token: &str, links: Links, tool: &str) -> Value {
        let params = json!({ "name": tool, "arguments": {} });
        self.request(token, links, "tools/call", params).await["result"].clone()
    }

    async fn listed(&self, token: &str) -> Vec<String> {
        let answer = self.request(token, Links::OpensNone, "tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        let own = tools.iter().filter_map(|tool| tool["name"].as_str());
        own.filter(|name| name.starts_with("crm_")).map(str::to_owned).collect()
    }

    /// The link in the error of a call.
    async fn link(&self, token: &str) -> String {
        let refused = self.call(token, Links::OpensNone, "crm_who").await;
        let text = text(&refused).to_owned();
        let link = text.split_whitespace().find(|word| word.contains("/login/"));
        link.unwrap_or_else(|| panic!("{text}")).to_owned()
    }

    /// Somebody opens a link, shows a token, and logs in as a person. Returns the last page.
    async fn open(&self, link: &str, token: &str, person: &str) -> Visited {
        let shown = send_form(link, &[], &[("token", token)]).await.unwrap();
        assert_eq!(shown.status, 303, "{}", shown.body);
        let cookie = shown.cookie.unwrap();
        let page = format!("{}&person={person}", shown.location.unwrap());
        let back = visit(&page).await.unwrap().location.unwrap();
        visit_with(&back, &[("cookie", &cookie)]).await.unwrap()
    }

    async fn log_in(&self, token: &str, person: &str) {
        let link = self.link(token).await;
        let page = self.open(&link, token, person).await;
        assert_eq!(page.status, 200, "{}", page.body);
        assert!(page.body.contains("You are logged in at crm."), "{}", page.body);
    }

    async fn account(&self, token: &str) -> String {
        let result = self.call(token, Links::OpensNone, "crm_who").await;
        text(&result).to_owned()
    }
}

#[tokio::test]
async fn the_first_call_of_a_caller_asks_for_a_login_and_goes_on_after_it() {
    let team = Team::start(AuthorizationOptions::default()).await;
    assert!(team.listed(&team.ada).await.is_empty(), "nobody has logged in");
    let asked = team.call(&team.ada, Links::Opens, "crm_who").await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["mode"], "url");
    let message = request["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("Log in at server \"crm\""), "{message}");
    let link = request["params"]["url"].as_str().unwrap();
    let page = visit(link).await.unwrap();
    assert_eq!(page.status, 200);
    assert!(page.body.contains("token ada") && !page.body.contains("code_challenge"), "{page:?}");
    assert_eq!(team.open(link, &team.ada, "Ada").await.status, 200);
    let again = json!({
        "name": "crm_who", "arguments": {}, "requestState": asked["requestState"],
        "inputResponses": { key: { "action": "accept" } },
    });
    let answer = team.request(&team.ada, Links::Opens, "tools/call", again).await;
    assert_eq!(text(&answer["result"]), "account Ada", "{answer}");
    assert_eq!(team.account(&team.ada).await, "account Ada", "the login is stored");
    let used = visit(link).await.unwrap();
    assert_eq!(used.status, 404, "a link is good once");
    // Another caller has no part in it.
    assert!(team.account(&team.bob).await.contains("needs a login of your own"));
    let audit = team.workplace.run(&["audit", "--json"]).await.stdout;
    assert!(audit.contains("logged in") && !audit.contains("-secret-"), "{audit}");
}

#[tokio::test]
async fn a_second_call_gets_the_same_link_and_no_call_is_made_for_a_client_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls");
    let calls = || std::fs::read_to_string(&log).unwrap_or_default().lines().count();
    let options = AuthorizationOptions::default();
    let team = Team::with(fixture().with_call_log(log.clone()), options).await;
    let (first, second) = (
        team.call(&team.ada, Links::Opens, "crm_who").await,
        team.call(&team.ada, Links::Opens, "crm_who").await,
    );
    let request = |asked: &Value| {
        let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        (key.clone(), request["params"]["url"].as_str().unwrap().to_owned())
    };
    assert_eq!(second["resultType"], "input_required", "it does not wait for the first: {second}");
    let ((_, link), (key, same)) = (request(&first), request(&second));
    assert_eq!(link, same);
    assert_eq!(team.open(&link, &team.ada, "Ada").await.status, 200);
    // The client of the first call never comes back. That of the second does.
    let again = json!({
        "name": "crm_who", "arguments": {}, "requestState": second["requestState"],
        "inputResponses": { key: { "action": "accept" } },
    });
    let answer = team.request(&team.ada, Links::Opens, "tools/call", again).await;
    assert_eq!(text(&answer["result"]), "account Ada", "{answer}");
    assert_eq!(team.account(&team.ada).await, "account Ada");
    assert_eq!(calls(), 2, "the call that nobody waits for is not among them");
}

/// A message of the legacy era.
async fn send_legacy(team: &Team, session: Option<&str>, body: Value) -> reqwest::Response {
    let mut request = team
        .client
        .post(team.gateway.url())
        .bearer_auth(&team.ada)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    within("the response", request.json(&body).send()).await.unwrap()
}

/// Begins a call in a session of its own. Returns the session, the stream of the call, and what it asks for.
async fn begin_legacy_call(team: &Team) -> (String, reqwest::Response, Value) {
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": { "elicitation": { "url": {} } },
        "clientInfo": { "name": "test", "version": "1" },
    } });
    let answer = send_legacy(team, None, hello).await;
    let session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    send_legacy(team, Some(&session), initialized).await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "crm_who", "arguments": {},
    } });
    let mut stream = send_legacy(team, Some(&session), call).await;
    let asked = next_message(&mut stream).await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    (session, stream, asked)
}

/// The next message of a stream.
async fn next_message(stream: &mut reqwest::Response) -> Value {
    let mut text = String::new();
    loop {
        let mut data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        if let Some(message) = data.find_map(|it| serde_json::from_str(it).ok()) {
            return message;
        }
        let chunk = within("the next message", stream.chunk()).await.unwrap();
        text.push_str(&String::from_utf8_lossy(&chunk.unwrap_or_else(|| panic!("{text}"))));
    }
}

#[tokio::test]
async fn no_call_is_made_for_a_legacy_client_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls");
    let options = AuthorizationOptions::default();
    let team = Team::with(fixture().with_call_log(log.clone()), options).await;
    let accept = async |session: &str, asked: &Value| {
        let accepted =
            json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept" } });
        assert_eq!(send_legacy(&team, Some(session), accepted).await.status(), 202);
    };
    // Both agree to log in. One of them leaves before the person has.
    let (gone, stream, asked) = begin_legacy_call(&team).await;
    accept(&gone, &asked).await;
    drop(stream);
    let (stays, mut stream, asked) = begin_legacy_call(&team).await;
    accept(&stays, &asked).await;
    let link = asked["params"]["url"].as_str().unwrap();
    assert_eq!(team.open(link, &team.ada, "Ada").await.status, 200);
    let answer = loop {
        let message = next_message(&mut stream).await;
        if message["id"] == 1 {
            break message;
        }
    };
    assert_eq!(text(&answer["result"]), "account Ada", "{answer}");
    // A later call comes after whatever the first one could have sent.
    assert_eq!(team.account(&team.ada).await, "account Ada");
    let calls = std::fs::read_to_string(&log).unwrap();
    assert_eq!(calls.lines().count(), 2, "nothing was called for the client that left: {calls}");
}

#[tokio::test]
async fn only_the_caller_can_end_a_login() {
    let team = Team::start(AuthorizationOptions::default()).await;
    let link = team.link(&team.ada).await;
    assert_eq!(team.link(&team.ada).await, link, "a call that is repeated begins no second login");
    let attempt = |token: &str| {
        let (link, token) = (link.clone(), token.to_owned());
        async move { send_form(&link, &[], &[("token", &token)]).await.unwrap() }
    };
    for (wrong, status) in [(team.bob.as_str(), 403), ("tgt_guessed", 401), ("", 401)] {
        let page = attempt(wrong).await;
        assert_eq!((page.status, &page.location, &page.cookie), (status, &None, &None));
    }
    let foreign = [("origin", "https://evil.example")];
    let page = send_form(&link, &foreign, &[("token", &team.ada)]).await.unwrap();
    assert_eq!(page.status, 403, "a page of somebody else sent the form: {page:?}");
    let local = [("origin", "http://localhost:1")];
    let page = send_form(&link, &local, &[("token", &team.ada)]).await.unwrap();
    assert_eq!((page.status, page.location), (403, None));
    let cross = [("sec-fetch-site", "cross-site")];
    let page = send_form(&link, &cross, &[("token", &team.ada)]).await.unwrap();
    assert_eq!((page.status, page.location), (403, None));
    // Ada opens the link, and sends the page of the authorization server to Bob.
    let shown = attempt(&team.ada).await;
    let (page, cookie) = (shown.location.unwrap(), shown.cookie.unwrap());
    let back = visit(&format!("{page}&person=Bob")).await.unwrap().location.unwrap();
    for headers in [&[][..], &[("cookie", "toolgate_login=x")], &[("cookie", &cookie[..20])]] {
        let ended = visit_with(&back, headers).await.unwrap();
        assert_eq!(ended.status, 403, "{ended:?}");
    }
    assert!(team.account(&team.ada).await.contains("needs a login"), "Bob's account is not Ada's");
    // A redirect that belongs to no login.
    let forged =
        format!("{}/login/callback?code=x&state=y", team.gateway.url().trim_end_matches("/mcp"));
    assert_eq!(visit_with(&forged, &[("cookie", &cookie)]).await.unwrap().status, 404);
    // Her own browser ends it.
    let back = visit(&format!("{page}&person=Ada")).await.unwrap().location.unwrap();
    assert_eq!(visit_with(&back, &[("cookie", &cookie)]).await.unwrap().status, 200);
    assert_eq!(team.account(&team.ada).await, "account Ada");
}

#[tokio::test]
async fn no_login_and_no_list_serves_another_caller() {
    // Each token is good for a moment, so that each call may have to renew one.
    let options = AuthorizationOptions { lifetime: 31, ..AuthorizationOptions::default() };
    let team = Arc::new(Team::start(options).await);
    team.log_in(&team.ada, "Ada").await;
    assert_eq!(team.listed(&team.ada).await, ["crm_echo", "crm_who", "crm_personal"]);
    assert!(team.listed(&team.bob).await.is_empty(), "what one caller listed is theirs");
    team.log_in(&team.bob, "Bob").await;
    assert_eq!(team.account(&team.bob).await, "account Bob");
    // The server defines this tool in another way for Bob. The catalog has Ada's definition.
    assert_eq!(team.listed(&team.bob).await, ["crm_echo", "crm_who"]);
    let refused = team.request(
        &team.bob,
        Links::OpensNone,
        "tools/call",
        json!({ "name": "crm_personal", "arguments": {} }),
    );
    let refused = refused.await.to_string();
    assert!(refused.contains("no tool") && !refused.contains("Ada"), "{refused}");
    let mut callers = Vec::new();
    for number in 0..8 {
        let team = Arc::clone(&team);
        callers.push(tokio::spawn(async move {
            let (token, person) =
                if number % 2 == 0 { (&team.ada, "Ada") } else { (&team.bob, "Bob") };
            for round in 0..12 {
                // Twice for each person: a request may have two tokens refused, also new ones.
                if number == round && round < 4 {
                    team.authorization.expire_access_tokens_of(person);
                }
                let account = team.account(token).await;
                assert_eq!(account, format!("account {person}"), "call {round} of {number}");
                let uri = json!({ "uri": "toolgate://crm/data://own" });
                let read = team.request(token, Links::OpensNone, "resources/read", uri).await;
                let read = read.to_string();
                assert!(read.contains(&format!("data of {person}")), "{read}");
                let listed = team.request(token, Links::OpensNone, "resources/list", json!({}));
                let listed = listed.await.to_string();
                let other = if person == "Ada" { "Bob" } else { "Ada" };
                assert!(!listed.contains(&format!("data of {other}")), "{listed}");
            }
        }));
    }
    for caller in callers {
        caller.await.unwrap();
    }
    let record = team.authorization.record();
    assert!(record.renewals > 0 && record.reuses == 0, "{record:?}");
    for token in team.authorization.access_tokens() {
        assert!(team.authorization.person_of(&token).is_some());
    }
}

#[tokio::test]
async fn a_new_gateway_knows_the_logins_and_nobody_elses_lists() {
    let mut team = Team::start(AuthorizationOptions::default()).await;
    team.log_in(&team.ada, "Ada").await;
    team.account(&team.ada).await;
    team.gateway = team.workplace.serve_http(&[]).await;
    assert!(team.listed(&team.bob).await.is_empty());
    assert_eq!(team.listed(&team.ada).await, ["crm_echo", "crm_who", "crm_personal"]);
    assert!(team.account(&team.bob).await.contains("needs a login of your own"));
    assert_eq!(team.account(&team.ada).await, "account Ada");
}

#[tokio::test]
async fn logins_are_listed_and_revoked_and_a_running_gateway_notices() {
    let options = AuthorizationOptions { revokes: false, ..AuthorizationOptions::default() };
    let team = Team::start(options).await;
    team.log_in(&team.ada, "Ada").await;
    team.log_in(&team.bob, "Bob").await;
    assert_eq!(team.account(&team.ada).await, "account Ada");
    let listed = team.workplace.run(&["logins", "--json"]).await;
    assert!(!listed.shown().contains("-secret-"), "{listed:?}");
    let listed = listed.json();
    let callers: Vec<&str> =
        listed.as_array().unwrap().iter().map(|login| login["caller"].as_str().unwrap()).collect();
    assert!(
        callers[0].starts_with("token ada ") && callers[1].starts_with("token bob "),
        "{listed}"
    );
    let shown = team.workplace.run(&["logins"]).await;
    assert!(shown.stdout.contains("token ada") && shown.stdout.contains("crm"), "{shown:?}");
    let status = team.workplace.run(&["status", "--json"]).await.json();
    assert_eq!(status["logins"].as_array().unwrap().len(), 2, "{status}");
    let revoked = team.workplace.run(&["logins", "revoke", "--caller", callers[0]]).await;
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    assert!(revoked.stdout.contains("the login is deleted here"), "{revoked:?}");
    // The token is valid still, and the gateway has it in memory.
    let asks = toolgate_testkit::until("the gateway notices", async || {
        let account = team.account(&team.ada).await;
        account.contains("needs a login").then_some(account)
    });
    asks.await;
    assert_eq!(team.account(&team.bob).await, "account Bob");
    let nobody = team.workplace.run(&["logins", "revoke", "--caller", "token eve"]).await;
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
    let audit = team.workplace.run(&["audit", "--json"]).await.stdout;
    assert!(audit.contains("logged out"), "{audit}");
}

#[tokio::test]
async fn callers_see_and_end_their_own_logins_with_their_token() {
    let team = Team::start(AuthorizationOptions::default()).await;
    team.log_in(&team.ada, "Ada").await;
    team.log_in(&team.bob, "Bob").await;
    let page = format!("{}/login", team.gateway.url().trim_end_matches("/mcp"));
    let asked = visit(&page).await.unwrap();
    assert!(asked.status == 200 && !asked.body.contains("crm"), "{asked:?}");
    let send = async |fields: &[(&str, &str)]| send_form(&page, &[], fields).await.unwrap();
    let stranger = send(&[("token", "tgt_guessed"), ("server", "crm")]).await;
    assert!(stranger.status == 401 && !stranger.body.contains("crm"), "{stranger:?}");
    let foreign = [("origin", "https://evil.example")];
    let foreign = send_form(&page, &foreign, &[("token", &team.ada), ("server", "crm")]).await;
    assert_eq!(foreign.unwrap().status, 403);
    let shown = send(&[("token", &team.ada)]).await;
    assert!(shown.body.contains("token ada") && shown.body.contains("Log out at crm"), "{shown:?}");
    assert!(!shown.body.contains(&team.ada) && !shown.body.contains("bob"), "{shown:?}");
    let ended = send(&[("token", &team.ada), ("server", "crm")]).await;
    assert!(ended.body.contains("logged out") && !ended.body.contains("Log out at"), "{ended:?}");
    toolgate_testkit::until("the gateway notices", async || {
        team.account(&team.ada).await.contains("needs a login").then_some(())
    })
    .await;
    assert_eq!(team.account(&team.bob).await, "account Bob");
    let none = send(&[("token", &team.ada), ("server", "crm")]).await;
    assert!(none.body.contains("there is no such login"), "{none:?}");
}

/// A person at the page logs in as a caller. Without a login the server is idle, and needs nobody.
#[tokio::test]
async fn a_server_with_logins_of_callers_is_no_failure_on_the_page() {
    let authorization = AuthorizationServer::start(AuthorizationOptions::default()).await.unwrap();
    let address = ([127, 0, 0, 1], 0).into();
    let server = fixture().serve_http_for(address, &authorization).await.unwrap();
    let place = Workplace::new(&json!({
        "mcpServers": { "crm": { "url": server.url(), "auth": "perCaller" } },
    }));
    let status = place.run(&["status", "--json"]).await.json();
    assert_eq!(status["servers"][0]["state"], "idle", "{status}");
    let page = OpenPage::start(&place).await;
    until("the first attempt", async || {
        let shown = page.get("/ui/servers").await;
        shown.contains("each caller logs in with their first call").then_some(())
    })
    .await;
    assert!(!page.get("/ui").await.contains("Servers that need attention"));
    let login = page.post("/ui/servers/crm", &[("action", "login")]).await.text().await.unwrap();
    let (_, rest) = login.split_once("class=\"button\" href=\"").unwrap();
    let link = rest.split('"').next().unwrap().replace("&amp;", "&");
    let back = visit(&format!("{link}&person=Ada")).await.unwrap().location.unwrap();
    assert_eq!(visit(&back).await.unwrap().status, 200);
    until("the login", async || page.get("/ui").await.contains("<dd>1 of 1</dd>").then_some(()))
        .await;
    assert!(page.get("/ui/servers").await.contains("<span class=\"state good\">ready</span>"));
    let called = page.post("/ui/tools/crm_who", &[]).await.text().await.unwrap();
    assert!(called.contains("account Ada"), "{called}");
}

#[tokio::test]
async fn the_logins_of_a_revoked_token_are_revoked() {
    let team = Team::start(AuthorizationOptions::default()).await;
    team.log_in(&team.ada, "Ada").await;
    team.log_in(&team.bob, "Bob").await;
    let revoked = team.workplace.run(&["token", "revoke", "ada"]).await;
    assert!(revoked.stdout.contains("at `crm`: logged out"), "{revoked:?}");
    let left = team.workplace.run(&["logins", "--json"]).await.json();
    let callers: Vec<&str> =
        left.as_array().unwrap().iter().map(|it| it["caller"].as_str().unwrap()).collect();
    assert!(callers.len() == 1 && callers[0].starts_with("token bob "), "{left}");
}

#[tokio::test]
async fn the_page_revokes_the_logins_of_a_token_too() {
    let team = Team::start(AuthorizationOptions::default()).await;
    team.log_in(&team.ada, "Ada").await;
    team.log_in(&team.bob, "Bob").await;
    let page = OpenPage::start(&team.workplace).await;
    page.post("/ui/access", &[("action", "revoke-token"), ("what", "ada")]).await;
    let said = page.get("/ui/access").await;
    assert!(said.contains("Token ada is revoked") && said.contains("logged out"), "{said}");
    let left = team.workplace.run(&["logins", "--json"]).await.json();
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
    assert!(left[0]["caller"].as_str().unwrap().starts_with("token bob "), "{left}");
    let log = team.workplace.run(&["audit", "--json"]).await.stdout;
    let by_page = |what: &str| {
        let mut lines = log.lines().filter(|line| line.contains(what));
        lines.any(|line| line.contains("\"caller\":\"page"))
    };
    assert!(by_page("token ada revoked") && by_page("logged out: token ada "), "{log}");
    page.post("/ui/access", &[("action", "revoke-token"), ("what", "ada")]).await;
    assert!(page.get("/ui/access").await.contains("Nothing was changed"));
}

#[tokio::test]
async fn a_client_over_stdio_logs_in_by_a_port_of_this_machine() {
    let authorization = AuthorizationServer::start(AuthorizationOptions::default()).await.unwrap();
    let address = ([127, 0, 0, 1], 0).into();
    let server = fixture().serve_http_for(address, &authorization).await.unwrap();
    let workplace = Workplace::new(&json!({
        "mcpServers": { "crm": { "url": server.url(), "auth": "perCaller" } },
        "toolSearch": { "enabled": false },
    }));
    let mut client = workplace.serve(&[]);
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "elicitation": { "url": {} } },
        "clientInfo": { "name": "test", "version": "1" },
    });
    client.request("initialize", hello).await.unwrap();
    client.notify("notifications/initialized", json!({})).await.unwrap();
    let call = json!({ "name": "crm_who", "arguments": {} });
    let id = client.begin("tools/call", call).await.unwrap();
    let asked = loop {
        let line: Value = serde_json::from_str(&client.line().await.unwrap()).unwrap();
        if line["method"] == "elicitation/create" {
            break line;
        }
    };
    assert_eq!(asked["params"]["mode"], "url");
    let page = format!("{}&person=Ada", asked["params"]["url"].as_str().unwrap());
    let back = visit(&page).await.unwrap().location.unwrap();
    assert!(back.starts_with("http://127.0.0.1:"), "{back}");
    let accepted = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept" } });
    client.send_line(&accepted.to_string()).await.unwrap();
    assert_eq!(visit(&back).await.unwrap().status, 200);
    let answer = client.answer(id).await.unwrap();
    assert_eq!(text(&answer["result"]), "account Ada", "{answer}");
    // It is the login of the user of this machine, whichever client they use.
    let shell = workplace.run(&["call", "crm_who"]).await;
    assert!(shell.stdout.contains("account Ada"), "{shell:?}");
    let out = workplace.run(&["logout", "crm"]).await;
    assert!(out.stdout.contains("logged out"), "{out:?}");
}
