//! What a person administers on the page, who may do so from another machine, and what is never shown.

use std::fs;

use reqwest::{StatusCode, header};
use serde_json::{Value, json};
use toolgate_testkit::{Fixture, Issuer, within};

use super::{OpenPage, client, form, records, safety::SCREENS, workplace};
use crate::{
    access::Served,
    fixtures::tool,
    support::{Workplace, call, entry, entry_with, until},
};

const SECRETS: [&str; 3] = ["sk-live-0a1b2c3d4e5f", "hdr-9f8e7d6c5b4a", "arg-1234abcd5678"];

/// A server that says its secrets wherever it can.
fn talkative() -> Workplace {
    let [env, header, argument] = SECRETS;
    let all = format!("{env} {header} {argument}");
    let said = json!({ "content": [{ "type": "text", "text": all }] });
    let server = Fixture::new("records")
        .with_tools([
            tool(
                "list",
                &format!("List with {all}."),
                &json!({ "x": { "type": "string", "description": all } }),
                &[],
            ),
            tool("delete", &all, &json!({}), &[]),
        ])
        .with_answer("list", said.clone())
        .with_answer("delete", said);
    let mut records =
        entry_with(&server, json!({ "env": { "API_KEY": env, "OTHER_TOKEN": argument } }));
    records["inheritEnv"] = json!([]);
    Workplace::new(&json!({
        "mcpServers": {
            "records": records,
            "far": { "url": "http://127.0.0.1:9/mcp", "headers": { "X-Api-Key": header } },
        },
        "policy": { "default": "allow", "findings": "warn", "rules": [{ "tool": "records_delete", "verdict": "ask" }] },
        "audit": { "arguments": true },
    }))
}

#[tokio::test]
async fn no_screen_shows_a_secret() {
    let place = talkative();
    let token = place.run(&["token", "create", "--name", "laptop"]).await.stdout.trim().to_owned();
    let mut agent = place.connect(&[]).await;
    let code = format!(
        "const said = await records_list({{ x: \"{}\" }});\nconsole.log(said);",
        SECRETS[0]
    );
    call(&mut agent, "run_code", json!({ "code": code })).await;
    let page = OpenPage::start(&place).await;
    let mut seen = Vec::new();
    let mut paths: Vec<String> = SCREENS.iter().map(|&screen| screen.to_owned()).collect();
    paths.extend(["/ui/servers/far".into(), "/ui/audit/export".into(), "/ui/servers-add".into()]);
    let runs = page.get("/ui/runs").await;
    let (_, rest) = runs.split_once("href=\"/ui/runs/").unwrap();
    let id = rest.split('"').next().unwrap();
    paths.extend([format!("/ui/runs/{id}"), format!("/ui/playground?run={id}")]);
    page.knows("records_delete").await;
    page.post("/ui/tools/records_delete", &[]).await;
    for path in &paths {
        seen.push((path.clone(), page.get(path).await));
    }
    for (path, fields) in [
        ("/ui/tools/records_list", vec![]),
        ("/ui/playground/complete", vec![("before", "records_"), ("language", "typescript")]),
        (
            "/ui/playground/complete",
            vec![("before", "records_list({ "), ("language", "typescript")],
        ),
        (
            "/ui/playground/findings",
            vec![("code", "await records_lst({})"), ("language", "typescript")],
        ),
        ("/ui/policy/what-if", vec![("policy", "{ \"default\": \"deny\" }")]),
    ] {
        let text = page.post(path, &fields).await.text().await.unwrap();
        assert!(!text.is_empty(), "{path}");
        seen.push((path.to_owned(), text));
    }
    for (path, html) in seen {
        for secret in SECRETS.iter().copied().chain([token.as_str()]) {
            assert!(!html.contains(secret), "{path} shows {secret}: {html}");
        }
    }
}

#[tokio::test]
async fn a_server_of_a_registry_is_found_looked_at_and_added() {
    let server = json!({
        "name": "io.github.acme/<b>sums", "version": "1.0.0", "description": "Adds <script>numbers</script> up",
        "remotes": [{ "type": "streamable-http", "url": "http://127.0.0.1:9/mcp" }],
    });
    let place =
        Workplace::new(&json!({ "mcpServers": {}, "registry": { "sources": ["./listed"] } }));
    let folder = place.config().parent().unwrap().join("listed");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("sums.json"), server.to_string().replace("<b>", "")).unwrap();
    fs::write(folder.join("bold.json"), server.to_string()).unwrap();
    let page = OpenPage::start(&place).await;
    let nothing = page.get("/ui/servers-add?words=weather").await;
    assert!(nothing.contains("No server of the registry has these words"), "{nothing}");
    let all = page.get("/ui/servers-add?words=").await;
    assert!(all.contains("registry=io.github.acme%2Fsums"), "{all}");
    assert!(!all.contains("<script>numbers") && !all.contains("<b>sums"), "{all}");
    let seen = page.get("/ui/servers-add?registry=io.github.acme%2Fsums").await;
    assert!(seen.contains("http://127.0.0.1:9/mcp"), "{seen}");
    let (_, rest) = seen.split_once("name=\"fingerprint\" value=\"").unwrap();
    let fingerprint = rest.split('"').next().unwrap();
    let fields = [("kind", "registry"), ("name", "io.github.acme/sums"), ("fingerprint", "other")];
    let refused = page.post("/ui/servers-add", &fields).await.text().await.unwrap();
    assert!(refused.contains("says something else now"), "{refused}");
    let fields = [fields[0], fields[1], ("fingerprint", fingerprint)];
    page.post("/ui/servers-add", &fields).await;
    let config = fs::read_to_string(place.config()).unwrap();
    assert!(config.contains("http://127.0.0.1:9/mcp"), "{config}");
}

#[tokio::test]
async fn a_server_is_added_restarted_and_removed_from_attention() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    let other =
        entry(&Fixture::new("notes").with_tools([tool("read", "Read a note.", &json!({}), &[])]));
    let words = std::iter::once(&other["command"]).chain(other["args"].as_array().unwrap());
    let words: Vec<&str> = words.map(|word| word.as_str().unwrap()).collect();
    let words = words.join("\r\n");
    let env = "NOTES_TOKEN=hunter2-of-the-notes";
    let fields = [("kind", "program"), ("name", "notes"), ("words", &words), ("env", env)];
    let added = page.post("/ui/servers-add", &fields).await;
    assert_eq!(added.headers()[header::LOCATION], "/ui/servers/notes");
    until("the new server", async || {
        Some(page.get("/ui/servers").await).filter(|html| html.contains("/ui/servers/notes"))
    })
    .await;
    let config = fs::read_to_string(place.config()).unwrap();
    assert!(config.contains("notes") && !config.contains("hunter2"), "{config}");
    let shown = until("its tools", async || {
        let html = page.get("/ui/servers/notes").await;
        html.contains("notes_read").then_some(html)
    })
    .await;
    assert!(!shown.contains("hunter2-of-the-notes"), "{shown}");
    // A second one of the same name is refused, and so is a server that the registry does not have.
    let refused = page.post("/ui/servers-add", &fields).await.text().await.unwrap();
    assert!(refused.contains("has a server `notes` already"), "{refused}");
    let unknown = page.get("/ui/servers-add?registry=io.example/none").await;
    assert!(unknown.contains("names no registry"), "{unknown}");
    page.post("/ui/servers/records", &[("action", "restart")]).await;
    let restarted = page.get("/ui/servers/records").await;
    assert!(restarted.contains("records was restarted."), "{restarted}");
    page.knows("records_list").await;
    let called = page.post("/ui/tools/records_list", &[]).await.text().await.unwrap();
    assert!(called.contains("4711, 4712"), "{called}");
    let status = place.run(&["status", "--calls", "--json"]).await.json();
    assert_eq!(status["servers"]["records"]["calls"], 1, "{status}");
    // What was read of the log is used for some seconds.
    until("the latency", async || {
        Some(page.get("/ui/servers").await).filter(|html| html.contains("95 %"))
    })
    .await;
}

/// Only browsers know the limits of a field.
#[tokio::test]
async fn a_token_with_too_long_a_life_is_refused() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    for days in ["0", "3651", "99999999"] {
        let fields = [("action", "create-token"), ("name", "long"), ("days", days)];
        let said = page.post("/ui/access", &fields).await.text().await.unwrap();
        assert!(said.contains("the number of days is not from 1 to 3,650"), "{days}: {said}");
    }
    let command = place.run(&["token", "create", "--expires", "3651"]).await;
    assert_eq!(command.code, Some(2), "{}", command.shown());
    assert!(command.stderr.contains("3651 is not in 1..=3650"), "{}", command.shown());
    assert_eq!(place.run(&["token", "list", "--json"]).await.json(), json!([]));
}

#[tokio::test]
async fn tokens_and_saved_tokens_are_shown() {
    let place = workplace();
    place.run(&["token", "create", "--name", "laptop"]).await;
    let page = OpenPage::start(&place).await;
    assert!(page.get("/ui/access").await.contains("laptop"));
    page.post("/ui/access", &[("action", "revoke-token"), ("what", "laptop")]).await;
    assert!(page.get("/ui/access").await.contains("Token laptop is revoked"));
    assert_eq!(place.run(&["token", "list", "--json"]).await.json(), json!([]));
    let mut agent = place.connect(&["--mode", "stable"]).await;
    crate::support::list(&mut agent).await;
    let code = "const all = [];\nfor (let i = 0; i < 200; i += 1) all.push(await records_list({}));\nreturn all.length;";
    call(&mut agent, "run_code", json!({ "code": code })).await;
    let saved = until("what was saved", async || {
        let saved = place.run(&["tokens", "--saved", "--json"]).await.json();
        saved.as_array().is_some_and(|hours| !hours.is_empty()).then_some(saved)
    })
    .await;
    let sum = |key: &str| -> u64 {
        saved.as_array().unwrap().iter().map(|hour| hour[key].as_u64().unwrap()).sum()
    };
    assert!(sum("definitions") + sum("results") > 0, "{saved}");
    let overview = page.get("/ui").await;
    assert!(overview.contains("Tokens that sessions did not have to read, by hour"), "{overview}");
}

#[tokio::test]
async fn an_administrator_opens_the_page_of_a_public_gateway_with_a_token() {
    let issuer = Issuer::start().await.unwrap();
    let resource = "https://tools.example.com/mcp";
    let with = |gateway: Value| {
        Workplace::new(
            &json!({ "mcpServers": { "records": entry(&records()) }, "gateway": gateway }),
        )
    };
    let oauth = json!({ "issuer": issuer.url(), "resource": resource });
    let get = |served: &Served, path: &str| {
        let request = client().get(format!("{}{path}", served.origin()));
        request.header(header::HOST, "tools.example.com")
    };
    // Without the scope there is no page.
    let served = Served::start(&with(json!({ "oauth": oauth })), "0.0.0.0:0").await;
    let none = within("the gateway", get(&served, "/ui").send()).await.unwrap();
    assert_eq!(none.status(), StatusCode::NOT_FOUND);
    let mut admin = oauth.clone();
    admin["adminScope"] = json!("toolgate:admin");
    let place = with(json!({ "oauth": admin }));
    let served = Served::start(&place, "0.0.0.0:0").await;
    let refused = within("the gateway", get(&served, "/ui").send()).await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let elsewhere = client().get(format!("{}/ui", served.origin()));
    let elsewhere = within("the gateway", elsewhere.send()).await.unwrap();
    assert_eq!(elsewhere.status(), StatusCode::FORBIDDEN, "another host");
    let open = async |token: &str, origin: &str| {
        let request = client().post(format!("{}/ui/open", served.origin()));
        let request = request
            .header(header::HOST, "tools.example.com")
            .header(header::ORIGIN, origin)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form(&[("token", token)]));
        within("the gateway", request.send()).await.unwrap()
    };
    let own = "https://tools.example.com";
    let signed = |scope: &str| {
        let mut claims = issuer.claims(resource);
        claims["scope"] = json!(scope);
        issuer.sign(&claims).unwrap()
    };
    let ours = place.run(&["token", "create", "--name", "ci"]).await.stdout.trim().to_owned();
    for (what, token, origin) in [
        ("no scope", signed("tools:call"), own),
        ("an access token of a client", ours, own),
        ("no token", "x".to_owned(), own),
        ("another origin", signed("toolgate:admin"), "https://evil.example"),
    ] {
        let refused = open(&token, origin).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{what}");
        assert!(refused.headers().get(header::SET_COOKIE).is_none(), "{what}");
    }
    let opened = open(&signed("tools:call toolgate:admin"), own).await;
    assert_eq!(opened.status(), StatusCode::SEE_OTHER);
    let cookie = opened.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.ends_with("; Path=/ui; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let screen = get(&served, "/ui/servers/records").header(header::COOKIE, cookie);
    let html = within("the page", screen.send()).await.unwrap().text().await.unwrap();
    let (_, rest) = html.split_once("name=\"form_token\" value=\"").unwrap();
    let token = rest.split('"').next().unwrap();
    let disable = client().post(format!("{}/ui/servers/records", served.origin()));
    let disable = disable
        .header(header::HOST, "tools.example.com")
        .header(header::ORIGIN, own)
        .header(header::COOKIE, cookie)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form(&[("form_token", token), ("action", "disable")]));
    assert_eq!(within("the page", disable.send()).await.unwrap().status(), StatusCode::SEE_OTHER);
    let log = place.run(&["audit", "--json"]).await.stdout;
    assert!(log.contains("\"caller\":\"page:ada\""), "{log}");
    // A bearer token is no cookie: what an agent sends decides nothing.
    let bearer = get(&served, "/ui/approvals").bearer_auth(signed("toolgate:admin"));
    assert_eq!(within("the page", bearer.send()).await.unwrap().status(), StatusCode::UNAUTHORIZED);
}
