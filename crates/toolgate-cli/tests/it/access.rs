//! Access over HTTP: tokens, addresses and limits.

use std::{process::Stdio, sync::Arc};

use parking_lot::Mutex;
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    task::JoinHandle,
};
use toolgate_testkit::{Builtin, Fixture, HttpOptions, Issuer};

use crate::{
    fixtures::notes,
    support::{Workplace, entry, program, until},
};

/// A running `toolgate serve --http`.
pub(crate) struct Served {
    child: Child,
    url: String,
    client: reqwest::Client,
    /// Its stderr, after it has ended.
    told: JoinHandle<String>,
}

impl Served {
    /// `http://127.0.0.1:PORT`.
    pub(crate) fn origin(&self) -> String {
        self.url.trim_end_matches("/mcp").replace("0.0.0.0", "127.0.0.1")
    }

    pub(crate) async fn start(workplace: &Workplace, address: &str) -> Self {
        let place = |name: &str| workplace.path().join(name);
        let mut child = Command::new(program())
            .args(["serve", "-vvv", "--http", address, "--config"])
            .arg(workplace.config())
            .env_remove("RUST_LOG")
            .env("HOME", workplace.path())
            .env("TOOLGATE_HOME", place("state"))
            .env("XDG_CONFIG_HOME", place(".config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let port = loop {
            let line = lines.next_line().await.unwrap().expect("it listens");
            if let Some((_, address)) = line.split_once("listens on http://") {
                let port = address.trim_end_matches("/mcp").rsplit(':').next().unwrap();
                break port.to_owned();
            }
        };
        let told = tokio::spawn(async move {
            let mut told = String::new();
            while let Ok(Some(line)) = lines.next_line().await {
                told.push_str(&line);
                told.push('\n');
            }
            told
        });
        let url = format!("http://127.0.0.1:{port}/mcp");
        let client = toolgate_http::client_builder().no_proxy().build().unwrap();
        Self { child, url, client, told }
    }

    fn request(&self, method: &str, params: Value) -> RequestBuilder {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.client
            .post(&self.url)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", name)
            .body(body.to_string())
    }

    async fn list(&self, token: Option<&str>) -> StatusCode {
        let request = self.request("tools/list", json!({}));
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        request.send().await.unwrap().status()
    }

    async fn stop(mut self) -> String {
        self.child.kill().await.unwrap();
        self.told.await.unwrap()
    }
}

fn workplace(gateway: &Value) -> Workplace {
    Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) }, "gateway": gateway }))
}

async fn token(workplace: &Workplace, arguments: &[&str]) -> String {
    let outcome = workplace.run(&[&["token", "create"], arguments].concat()).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let token = outcome.stdout.strip_suffix('\n').unwrap();
    assert!(token.starts_with("tgt_") && token.len() == 47, "the token alone: {outcome:?}");
    assert!(!outcome.stderr.contains(token), "{outcome:?}");
    token.to_owned()
}

#[tokio::test]
async fn tokens_are_made_listed_and_revoked() {
    let workplace = Workplace::new(&json!({
        "mcpServers": { "notes": entry(&notes()) },
        "namespaces": { "work": { "servers": ["notes"] }, "home": { "servers": ["notes"] } },
    }));
    let secret = token(&workplace, &["--name", "laptop", "--opens", "work"]).await;
    token(&workplace, &["--name", "both", "--opens", "default", "--opens", "home"]).await;
    workplace.run(&["token", "revoke", "both"]).await;
    let mut told = Vec::new();
    for arguments in [
        &["token", "create", "--name", "laptop"][..],
        &["token", "create", "--name", "a b"],
        &["token", "create", "--expires", "0"],
        &["token", "create", "--opens", "default", "--opens", "wrk"],
        &["token", "create", "--opens", "elsewhere"],
        &["token", "list"],
        &["token", "revoke", "desktop"],
        &["token", "revoke", "laptop"],
        &["token", "list"],
    ] {
        let outcome = workplace.run(arguments).await;
        assert!(!outcome.shown().contains(&secret[4..]));
        let shown = outcome.shown();
        // The day is today's.
        let shown = match shown.find("  20") {
            Some(place) => format!("{}  DAY{}", &shown[..place], &shown[place + 12..]),
            None => shown,
        };
        told.push(format!("$ toolgate {}\n{shown}", arguments.join(" ")));
    }
    insta::assert_snapshot!(told.join("\n"), @"
    $ toolgate token create --name laptop
    exit code 2
    --- stdout
    --- stderr
    error: there is a token `laptop` already
      hint: choose another name, or revoke that one first

    $ toolgate token create --name a b
    exit code 2
    --- stdout
    --- stderr
    error: `a b` cannot be the name of a token: 1 to 64 letters, digits, `-`, `_` and `.` can be

    $ toolgate token create --expires 0
    exit code 2
    --- stdout
    --- stderr
    error: invalid value '0' for '--expires <DAYS>': 0 is not in 1..=3650

    For more information, try '--help'.

    $ toolgate token create --opens default --opens wrk
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.json has no namespace `wrk`
      hint: did you mean work?

    $ toolgate token create --opens elsewhere
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.json has no namespace `elsewhere`
      hint: there are: work, home

    $ toolgate token list
    exit code 0
    --- stdout
     name    opens  created     expires  last used
     laptop  work   DAY  never    never
    --- stderr

    $ toolgate token revoke desktop
    exit code 2
    --- stdout
    --- stderr
    error: there is no token `desktop`
      hint: `toolgate token list` shows the tokens
      hint: there are: laptop

    $ toolgate token revoke laptop
    exit code 0
    --- stdout
    Token laptop is revoked: clients with it are refused.
    --- stderr

    $ toolgate token list
    exit code 0
    --- stdout
    --- stderr
    there are no tokens; `toolgate token create` makes one
    ");
    let limited = token(&workplace, &["--name", "short", "--expires", "30"]).await;
    let rows = workplace.run(&["token", "list", "--json"]).await.json();
    assert_eq!((&rows[0]["name"], &rows[0]["expired"]), (&json!("short"), &json!(false)));
    for file in ["tokens.json", "lock"] {
        let kept = std::fs::read_to_string(workplace.path().join("state/access").join(file));
        assert!(!kept.unwrap().contains(&limited[4..]), "hashed at rest");
    }
}

#[tokio::test]
async fn other_machines_are_not_served_without_a_token() {
    let workplace = workplace(&json!({}));
    let refused = workplace.run(&["serve", "--http", "0.0.0.0:8080"]).await;
    insta::assert_snapshot!(refused.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: 0.0.0.0:8080 can be reached from other machines, and there is no token that a client could send
      hint: `toolgate token create` makes one; or name an authorisation server in `gateway.oauth`
      hint: or listen on this machine alone: --http 127.0.0.1:8080
    ");
    let strict = self::workplace(&json!({ "requireToken": true }));
    let refused = strict.run(&["serve", "--http", "127.0.0.1:0"]).await;
    insta::assert_snapshot!(refused.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: `gateway.requireToken` is set, and there is no token that a client could send
      hint: `toolgate token create` makes one; or name an authorisation server in `gateway.oauth`
    ");
    // An expired token gives no access.
    let folder = strict.path().join("state/access");
    token(&strict, &["--name", "old", "--expires", "1"]).await;
    let file = std::fs::read_to_string(folder.join("tokens.json")).unwrap();
    let mut file: Value = serde_json::from_str(&file).unwrap();
    file["tokens"][0]["expires"] = json!(1);
    std::fs::write(folder.join("tokens.json"), file.to_string()).unwrap();
    assert_eq!(strict.run(&["serve", "--http", "127.0.0.1:0"]).await.code, Some(2));
}

#[tokio::test]
async fn with_a_token_other_machines_are_served_until_it_is_revoked() {
    let workplace = workplace(&json!({}));
    let laptop = token(&workplace, &["--name", "laptop"]).await;
    let served = Served::start(&workplace, "0.0.0.0:0").await;
    assert_eq!(served.list(None).await, 401);
    assert_eq!(served.list(Some("tgt_wrong")).await, 401);
    assert_eq!(served.list(Some(&laptop)).await, 200);
    let desktop = token(&workplace, &["--name", "desktop"]).await;
    assert_eq!(served.list(Some(&desktop)).await, 200, "without a restart");
    workplace.run(&["token", "revoke", "laptop"]).await;
    assert_eq!(served.list(Some(&laptop)).await, 401, "without a restart");
    until("the use is noted", async || {
        let tokens = workplace.run(&["token", "list", "--json"]).await.json();
        tokens[0]["lastUsedHour"].is_string().then_some(())
    })
    .await;
    let told = served.stop().await;
    for secret in [&laptop, &desktop] {
        assert!(!told.contains(&secret[4..]), "in a log: {told}");
    }
}

#[tokio::test]
async fn loopback_requires_a_token_if_configured() {
    let open = workplace(&json!({ "maxBodyBytes": 2048, "maxHeaderBytes": 8192 }));
    let served = Served::start(&open, "127.0.0.1:0").await;
    assert_eq!(served.list(None).await, 200);
    let large = served.request("tools/list", json!({ "x": "y".repeat(3_000) }));
    assert_eq!(large.send().await.unwrap().status(), 413);
    let fat = served.request("tools/list", json!({})).header("x-fat", "y".repeat(20_000));
    assert_eq!(fat.send().await.unwrap().status(), 431);

    let strict = workplace(&json!({ "requireToken": true }));
    let secret = token(&strict, &[]).await;
    let served = Served::start(&strict, "127.0.0.1:0").await;
    assert_eq!(served.list(None).await, 401);
    assert_eq!(served.list(Some(&secret)).await, 200);
}

#[tokio::test]
async fn tokens_of_the_configured_issuer_are_accepted() {
    let issuer = Issuer::start().await.unwrap();
    let resource = "https://tools.example.com/mcp";
    let oauth =
        json!({ "issuer": issuer.url(), "resource": resource, "requiredScopes": ["tools:call"] });
    let workplace = workplace(&json!({ "oauth": oauth }));
    let served = Served::start(&workplace, "127.0.0.1:0").await;
    let refused = served.request("tools/list", json!({})).send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert_eq!(
        refused.headers()["www-authenticate"],
        "Bearer resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\", \
         scope=\"tools:call\""
    );
    let good = issuer.sign(&issuer.claims(resource)).unwrap();
    assert_eq!(served.list(Some(&good)).await, 200);
    let other = issuer.sign(&issuer.claims("https://other.example/mcp")).unwrap();
    assert_eq!(served.list(Some(&other)).await, 401);
    let ours = token(&workplace, &[]).await;
    assert_eq!(served.list(Some(&ours)).await, 200, "beside tokens of our own");
    let told = served.stop().await;
    assert!(told.contains("it has another audience"), "whoever runs it is told why: {told}");
    for secret in [&good, &other] {
        let signature = secret.rsplit('.').next().unwrap();
        assert!(!told.contains(signature), "in a log: {told}");
    }
}

#[tokio::test]
async fn a_rule_names_its_caller() {
    let issuer = Issuer::start().await.unwrap();
    let resource = "https://tools.example.com/mcp";
    let workplace = Workplace::new(&json!({
        "mcpServers": { "far": entry(&Fixture::new("far").with_builtins([Builtin::Echo])) },
        "toolSearch": { "enabled": false },
        "gateway": { "oauth": { "issuer": issuer.url(), "resource": resource } },
        "policy": { "default": "deny", "rules": [
            { "tool": "far_echo", "caller": { "token": "ci-*" }, "verdict": "allow" },
            { "tool": "far_echo", "caller": { "subject": "ada", "group": ["staff", "admin"] },
              "verdict": "allow" },
            { "tool": "far_echo", "caller": { "scope": "tools:suspended" }, "verdict": "deny" },
        ] },
    }));
    let served = Served::start(&workplace, "127.0.0.1:0").await;
    let signed = |claims: &[(&str, Value)]| {
        let mut all = issuer.claims(resource);
        for (key, value) in claims {
            all[*key] = value.clone();
        }
        issuer.sign(&all).unwrap()
    };
    for (caller, credential, is_allowed) in [
        ("a token", token(&workplace, &["--name", "ci-main"]).await, true),
        ("another token", token(&workplace, &["--name", "laptop"]).await, false),
        ("a subject in a group", signed(&[("groups", json!(["staff"]))]), true),
        ("a subject in no group", signed(&[]), false),
        ("another", signed(&[("groups", json!(["staff"])), ("sub", json!("eve"))]), false),
        (
            "a scope that is denied",
            signed(&[("groups", json!(["staff"])), ("scope", json!("tools:suspended x"))]),
            false,
        ),
    ] {
        let params = json!({ "name": "far_echo", "arguments": { "message": "hello" } });
        let request = served.request("tools/call", params).bearer_auth(&credential);
        let answer = request.send().await.unwrap().text().await.unwrap();
        assert_eq!(answer.contains("hello"), is_allowed, "{caller}: {answer}");
        assert_eq!(answer.contains("there is no tool"), !is_allowed, "{caller}: {answer}");
        let request = served.request("tools/list", json!({})).bearer_auth(&credential);
        let listed = request.send().await.unwrap().text().await.unwrap();
        assert_eq!(listed.contains("far_echo"), is_allowed, "{caller}: {listed}");
    }
}

#[tokio::test]
async fn every_caller_has_its_own_limit() {
    let workplace = Workplace::new(&json!({
        "mcpServers": { "far": entry(&Fixture::new("far").with_builtins([Builtin::Echo])) },
        "toolSearch": { "enabled": false },
        "limits": [
            { "caller": { "token": "ci-*" }, "perDay": 1 },
            { "tool": "far_echo", "perDay": 3, "shared": true },
        ],
    }));
    let served = Served::start(&workplace, "127.0.0.1:0").await;
    let call = async |credential: &str| {
        let params = json!({ "name": "far_echo", "arguments": { "message": "hello" } });
        let request = served.request("tools/call", params).bearer_auth(credential);
        request.send().await.unwrap().text().await.unwrap()
    };
    let [first, second, laptop] = [
        token(&workplace, &["--name", "ci-1"]).await,
        token(&workplace, &["--name", "ci-2"]).await,
        token(&workplace, &["--name", "laptop"]).await,
    ];
    for (credential, told) in [
        (&first, "hello"),
        (&first, "1 call a day of all tools, for the token `ci-*`, and they are used up"),
        (&second, "hello"),
        (&laptop, "hello"),
        (&laptop, "all callers together 3 calls a day of `far_echo`"),
    ] {
        let answer = call(credential).await;
        assert!(answer.contains(told), "{told}: {answer}");
    }
}

#[tokio::test]
async fn servers_do_not_get_the_clients_token() {
    let fixture =
        Fixture::new("far").with_builtins([Builtin::Echo]).with_http(HttpOptions::default());
    let far = fixture.serve_http(([127, 0, 0, 1], 0).into()).await.unwrap();
    let (url, heard) = listen_in(far.url()).await;
    let config = json!({ "mcpServers": { "far": { "url": url, "headers": { "X-Own": "theirs" } } },
        "toolSearch": { "enabled": false } });
    let workplace = Workplace::new(&config);
    let secret = token(&workplace, &[]).await;
    let served = Served::start(&workplace, "127.0.0.1:0").await;
    let params = json!({ "name": "far_echo", "arguments": { "message": "hello" } });
    let answer = served.request("tools/call", params).bearer_auth(&secret).send().await.unwrap();
    let answer = answer.text().await.unwrap();
    assert!(answer.contains("hello"), "{answer}");
    let heard = String::from_utf8_lossy(&heard.lock()).to_lowercase();
    assert!(heard.contains("x-own: theirs"), "what is configured is sent: {heard}");
    assert!(!heard.contains("authorization"), "{heard}");
    assert!(!heard.contains(&secret.to_lowercase()[4..]), "{heard}");
}

/// A proxy that records what passes through it.
async fn listen_in(url: &str) -> (String, Arc<Mutex<Vec<u8>>>) {
    let rest = url.strip_prefix("http://").unwrap();
    let (to, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (to, heard) = (to.to_owned(), Arc::new(Mutex::new(Vec::new())));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/{path}", listener.local_addr().unwrap());
    let kept = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let (to, kept) = (to.clone(), Arc::clone(&kept));
            tokio::spawn(async move {
                let far = TcpStream::connect(to).await.unwrap();
                let (mut near_read, mut near_write) = near.into_split();
                let (mut far_read, mut far_write) = far.into_split();
                tokio::spawn(async move { tokio::io::copy(&mut far_read, &mut near_write).await });
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = near_read.read(&mut buffer).await {
                    kept.lock().extend_from_slice(&buffer[..count]);
                    if far_write.write_all(&buffer[..count]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, heard)
}

#[tokio::test]
async fn an_invalid_address_is_reported_with_a_hint() {
    let workplace = workplace(&json!({}));
    token(&workplace, &["--name", "a"]).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let mut told = Vec::new();
    for given in ["foo", ":8808", &address.to_string(), "203.0.113.1:0"] {
        let outcome = workplace.run(&["serve", "--http", given]).await;
        assert_ne!(outcome.code, Some(0), "{given}");
        told.push(outcome.stderr.replace(&address.to_string(), "127.0.0.1:PORT"));
    }
    insta::assert_snapshot!(told.join("\n"), @"
    error: invalid value 'foo' for '--http <ADDR>': write an IP address and a port, such as 127.0.0.1:8808, or a port of this machine alone

    For more information, try '--help'.

    error: invalid value ':8808' for '--http <ADDR>': write an IP address and a port, such as 127.0.0.1:8808, or a port of this machine alone

    For more information, try '--help'.

    error: 127.0.0.1:PORT is in use by another program
      hint: choose another port; port 0 takes one that is free

    error: 203.0.113.1 is not an address of this machine
      hint: 127.0.0.1 is for this machine alone, 0.0.0.0 for all of its addresses
    ");
}
