//! What a person at the page relies on: that it is up to date, that it does what it says, and that nothing typed is lost.

use reqwest::{StatusCode, header};
use serde_json::json;
use toolgate_testkit::{Builtin, within};

use super::{
    OpenPage,
    browser::Browser,
    client, ended, knowing_tasks, question, records,
    safety::SCREENS,
    screens::{hostile, long_run},
    setup::put,
    started, waiting_call, workplace,
};
use crate::{
    fixtures::tool,
    support::{Workplace, entry, until},
    typist::approve,
};

/// htmx starts when its own script has run: what comes in another file may be late.
#[tokio::test]
async fn one_script_has_htmx_and_its_extensions() {
    let page = OpenPage::start(&workplace()).await;
    let html = page.get("/ui").await;
    assert_eq!(html.matches("<script").count(), 1, "{html}");
    let (_, rest) = html.split_once("<script src=\"").unwrap();
    let script = page.get(rest.split('"').next().unwrap()).await;
    let place = |text: &str| script.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(place("var htmx=") < place("registerExtension(\"hx-csp\""));
    assert!(place("var htmx=") < place("registerExtension(\"sse\""));
}

#[tokio::test]
async fn a_restart_ends_the_process_and_starts_another() {
    let place = Workplace::new(&json!({
        "mcpServers": { "records": entry(&records().with_builtins([Builtin::Counter])) },
        "policy": { "default": "allow" },
    }));
    let page = OpenPage::start(&place).await;
    let count = async || {
        let called = page.post("/ui/tools/records_counter", &[]).await.text().await.unwrap();
        let (_, rest) = called.split_once("id=\"result\"").unwrap_or_else(|| panic!("{called}"));
        let (_, rest) = rest.split_once("<pre tabindex=\"0\">").unwrap();
        rest.split('<').next().unwrap().to_owned()
    };
    let first = count().await;
    assert_ne!(count().await, first, "the process counts");
    page.post("/ui/servers/records", &[("action", "restart")]).await;
    let shown = page.get("/ui/servers/records").await;
    assert!(shown.contains("records was restarted."), "{shown}");
    assert!(shown.contains("<dt>Restarts</dt><dd>1</dd>"), "{shown}");
    assert_eq!(count().await, first, "another process counts from the beginning");
    let log = place.run(&["logs", "records"]).await.stdout;
    assert!(log.contains("stopped: a person restarts it now"), "{log}");
    assert!(!log.contains("idle"), "{log}");
}

#[tokio::test]
async fn pages_and_files_are_compressed_and_streams_are_not() {
    let page = OpenPage::start(&workplace()).await;
    let ask = async |path: &str, encoding: &str| {
        let request = page.http.get(format!("{}{path}", page.origin));
        page.ask(request.header(header::ACCEPT_ENCODING, encoding)).await
    };
    let html = page.get("/ui/servers/records").await;
    let (_, rest) = html.split_once("<script src=\"").unwrap();
    let script = rest.split('"').next().unwrap();
    for path in ["/ui/servers/records", script, "/ui/assets/page.css"] {
        let plain = ask(path, "identity").await;
        assert!(plain.headers().get(header::CONTENT_ENCODING).is_none(), "{path}");
        let plain = plain.bytes().await.unwrap();
        let packed = ask(path, "br, gzip;q=0.8").await;
        assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip", "{path}");
        let packed = packed.bytes().await.unwrap();
        let (packed, plain) = (packed.len(), plain.len());
        assert!(packed * 3 < plain * 2, "{path}: {packed} of {plain}");
    }
    let refused = ask("/ui", "gzip;q=0").await;
    assert!(refused.headers().get(header::CONTENT_ENCODING).is_none());
    let stream = ask("/ui/overview/live", "gzip").await;
    assert_eq!(stream.headers()[header::CONTENT_TYPE], "text/event-stream");
    assert!(stream.headers().get(header::CONTENT_ENCODING).is_none());
    // The size of a compressed page says nothing about the token, which is another text on each page.
    let (first, second) = (page.form_token().await, page.form_token().await);
    assert_ne!(first, second);
    let posted = page.post("/ui/servers/records", &[("action", "connect")]).await;
    assert_eq!(posted.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_stream_sends_only_what_the_page_does_not_have() {
    let place = workplace();
    let mut agent = place.serve(&["--mode", "direct"]);
    waiting_call(&mut agent, "4711").await;
    let page = OpenPage::start(&place).await;
    let html = page.get("/ui/approvals").await;
    let (_, rest) = html.split_once("id=\"questions\" hx-sse:connect=\"").unwrap();
    let stream = rest.split('"').next().unwrap().replace("&amp;", "&");
    let mut news = page.ask(page.http.get(format!("{}{stream}", page.origin))).await;
    let quiet = tokio::time::timeout(std::time::Duration::from_secs(2), news.chunk()).await;
    assert!(quiet.is_err(), "nothing has changed: {quiet:?}");
    waiting_call(&mut agent, "4712").await;
    let news = within("the second question", news.chunk()).await.unwrap().unwrap();
    let news = String::from_utf8_lossy(&news).into_owned();
    assert!(news.contains("2 calls waiting") || news.contains("4712"), "{news}");
}

#[tokio::test]
async fn edits_of_the_configuration_reach_the_page() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    assert!(!page.get("/ui/servers").await.contains("/ui/servers/notes"));
    let notes = toolgate_testkit::Fixture::new("notes");
    let notes = notes.with_tools([tool("read", "Read a note.", &json!({}), &[])]);
    let config = json!({
        "mcpServers": { "records": entry(&records()), "notes": entry(&notes) },
        "policy": { "default": "allow", "rules": [
            { "tool": "records_list", "verdict": "deny", "reason": "lists are secret" },
        ] },
    });
    place.rewrite(&config.to_string());
    until("the new server", async || {
        Some(page.get("/ui/servers").await).filter(|html| html.contains("/ui/servers/notes"))
    })
    .await;
    until("the new rule", async || {
        Some(page.get("/ui/policy").await).filter(|html| html.contains("lists are secret"))
    })
    .await;
}

#[tokio::test]
async fn the_form_of_a_call_keeps_what_was_typed() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    page.knows("records_delete").await;
    let fields = [("argument.id", "4711\"<b>"), ("raw", "{ \"more\": ")];
    let wrong = page.post("/ui/tools/records_delete", &fields).await.text().await.unwrap();
    assert!(wrong.contains("are not JSON"), "{wrong}");
    assert!(wrong.contains("value=\"4711&quot;&lt;b&gt;\""), "{wrong}");
    assert!(wrong.contains("{ &quot;more&quot;: </textarea>"), "{wrong}");
    let waits = page.post("/ui/tools/records_delete", &[("argument.id", "4711")]).await;
    let waits = waits.text().await.unwrap();
    let reference = question(&place).await;
    assert!(waits.contains(&format!("href=\"/ui/approvals/{reference}\"")), "{waits}");
    assert!(waits.contains("value=\"4711\""), "{waits}");
}

#[tokio::test]
async fn a_run_shows_how_long_it_waited_for_a_person() {
    let place = workplace();
    let mut agent = place.serve(&["--mode", "direct"]);
    let run = json!({ "name": "run_code", "arguments": { "code": "return await records_delete({ id: \"1\" });" } });
    let created = agent.request("tools/call", knowing_tasks(run)).await.unwrap();
    let page = OpenPage::start(&place).await;
    let reference = question(&place).await;
    let runs = page.get("/ui/runs").await;
    let (_, rest) = runs.split_once("href=\"/ui/runs/").unwrap();
    let path = format!("/ui/runs/{}", rest.split('"').next().unwrap());
    // While its client waits, the run goes on.
    let waiting = page.get(&path).await;
    assert!(waiting.contains("A call waits for a person"), "{waiting}");
    assert!(!waiting.contains(": waited for a person,"), "{waiting}");
    assert!(waiting.contains("<h1>Run run_"), "{waiting}");
    // It is not resumed before somebody has decided.
    page.post(&path, &[("action", "resume")]).await;
    let said = page.get(&path).await;
    assert!(said.contains("still waits for a person"), "{said}");
    approve(&place, &reference, &[]).await;
    ended(&mut agent, &created["result"]["taskId"]).await;
    let done = page.get(&path).await;
    assert!(done.contains(": waited for a person,"), "{done}");
    assert!(done.contains("1 call in "), "{done}");
}

/// A call that waits has neither gone well nor failed.
#[tokio::test]
async fn a_call_that_waits_is_no_failure() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    page.knows("records_list").await;
    page.post("/ui/tools/records_list", &[]).await;
    page.post("/ui/tools/records_delete", &[("argument.id", "4711")]).await;
    question(&place).await;
    let status = place.run(&["status", "--calls", "--json"]).await.json();
    assert_eq!(status["servers"]["records"]["calls"], 1, "{status}");
    assert_eq!(status["servers"]["records"]["failed"], 0, "{status}");
    let servers = page.get("/ui/servers").await;
    assert!(!servers.contains(" failed") && !servers.contains(": waiting"), "{servers}");
    assert!(page.get("/ui").await.contains("1 went well, 0 refused or failed"));
}

#[tokio::test]
async fn a_tool_with_long_words_fits_a_phone() {
    let long = "A".repeat(200_000);
    let choices = json!([long, "b"]);
    let properties = json!({
        "text": { "type": "string", "description": long },
        "choice": { "type": "string", "enum": choices, "description": long },
    });
    let records = records().with_tools([tool("long", &long, &properties, &["choice"])]);
    let place = Workplace::new(&json!({ "mcpServers": { "records": entry(&records) } }));
    let Some(mut browser) = Browser::open(&place).await else { return };
    for screen in ["/ui/tools/records_long", "/ui/servers/records", "/ui/tools?query=long"] {
        assert_eq!(browser.does("check", json!(screen)).await, json!([]), "{screen}");
    }
}

/// The rules of a text box are in no file.
#[tokio::test]
async fn a_tried_rule_has_no_place_in_the_file() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    page.knows("records_list").await;
    page.post("/ui/tools/records_list", &[]).await;
    let policy =
        json!({ "default": "allow", "rules": [{ "tool": "records_list", "verdict": "deny" }] });
    let tried = page.post("/ui/policy/what-if", &[("policy", &policy.to_string())]).await;
    let tried = tried.text().await.unwrap();
    assert!(tried.contains("`policy.rules[0]`"), "{tried}");
    assert!(!tried.contains("`policy.rules[0]` ("), "{tried}");
}

/// `toolgate config check` lets it pass too.
#[tokio::test]
async fn a_policy_with_a_warning_is_tried_and_saved() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    page.knows("records_list").await;
    page.post("/ui/tools/records_list", &[]).await;
    let rule = json!({
        "tool": "records_list", "verdict": "deny", "reason": "tried",
        "when": { "arguments": { "command": { "prefix": "git status" } } },
    });
    let policy = json!({ "default": "allow", "rules": [rule] }).to_string();
    let tried = page.post("/ui/policy/what-if", &[("policy", &policy)]).await;
    let tried = tried.text().await.unwrap();
    assert!(tried.contains("Warning: ") && tried.contains("a second command in it"), "{tried}");
    assert!(tried.contains("Decisions that differ"), "{tried}");
    let file = place.path().join("tried.json");
    std::fs::write(&file, &policy).unwrap();
    let command = place.run(&["policy", "what-if", file.to_str().unwrap()]).await;
    assert_eq!(command.code, Some(0), "{}", command.shown());
    assert!(command.stderr.contains("warning: `policy.rules[0].when"), "{}", command.shown());
    let (_, rest) = tried.split_once("name=\"before\" value=\"").unwrap();
    let before = rest.split('"').next().unwrap();
    let fields = [("policy", policy.as_str()), ("before", before), ("action", "save")];
    page.post("/ui/policy/what-if", &fields).await;
    assert!(page.get("/ui/policy").await.contains("tried"));
    let checked = place.run(&["config", "check"]).await;
    assert_eq!(checked.code, Some(0), "{}", checked.shown());
    // What is wrong is refused, as before.
    let wrong = [("policy", "{ \"rules\": [{ \"verdict\": \"perhaps\" }] }")];
    let wrong = page.post("/ui/policy/what-if", &wrong).await.text().await.unwrap();
    assert!(wrong.contains("is not understood") && !wrong.contains("Decisions that"), "{wrong}");
}

#[tokio::test]
async fn tools_of_a_new_server_appear_without_a_reload() {
    let place = Workplace::new(&json!({
        "mcpServers": { "records": entry(&records().with_builtins([Builtin::ChangeTools])) },
        "policy": { "default": "allow" },
    }));
    let Some(mut browser) = Browser::open(&place).await else { return };
    browser.does("go", json!("/ui/servers/records")).await;
    browser.does("see", json!("#server-tools a[href$=records_list]")).await;
    // The list comes once the stream says that it has changed.
    let notes = toolgate_testkit::Fixture::new("records");
    let notes = notes.with_tools([tool("fresh", "A new tool.", &json!({}), &[])]);
    place.rewrite(&json!({ "mcpServers": { "records": entry(&notes) } }).to_string());
    browser.does("see", json!("#server-tools a[href$=records_fresh]")).await;
    assert_eq!(browser.complaints().await, json!([]));
}

#[tokio::test]
async fn the_number_of_questions_is_live_on_every_screen() {
    let place = workplace();
    let Some(mut browser) = Browser::open(&place).await else { return };
    let mut agent = place.serve(&["--mode", "direct"]);
    // One without a live part, and one that has a stream of its own.
    for (screen, id, count) in [("/ui/policy", "4711", '1'), ("/ui/servers", "4712", '2')] {
        browser.does("go", json!(screen)).await;
        waiting_call(&mut agent, id).await;
        until("the number", async || {
            let seen = browser.does("see", json!("nav .count:not([hidden])")).await;
            Some(()).filter(|()| seen.as_str().unwrap().starts_with(count))
        })
        .await;
    }
    assert_eq!(browser.complaints().await, json!([]));
}

/// A browser has six connections to a place, and each stream holds one.
#[tokio::test]
async fn a_tab_has_one_stream() {
    let page = OpenPage::start(&workplace()).await;
    for screen in SCREENS {
        let html = page.get(screen).await;
        assert_eq!(html.matches("hx-sse:connect=\"").count(), 1, "{screen}: {html}");
    }
}

#[tokio::test]
async fn the_page_says_that_toolgate_is_gone_and_keeps_the_script() {
    let place = workplace();
    let Some(mut browser) = Browser::open(&place).await else { return };
    browser.does("go", json!("/ui/playground")).await;
    browser.does("type", json!(["#code", "const unsaved = 4711;"])).await;
    browser.does("go", json!("/ui/playground")).await;
    let script = browser.does("value", json!("#code")).await;
    assert!(script.as_str().unwrap().ends_with("const unsaved = 4711;"), "{script}");
    browser.lose();
    let said = browser.does("see", json!("#connection:not(:empty)")).await;
    assert!(said.as_str().unwrap().contains("The connection to toolgate is lost"), "{said}");
    browser.restart(&place);
    until("the notice", async || {
        let said = browser.does("see", json!("#connection:not(:empty)")).await;
        Some(()).filter(|()| said.as_str().unwrap().contains("toolgate was restarted"))
    })
    .await;
    let script = browser.does("value", json!("#code")).await;
    assert!(script.as_str().unwrap().ends_with("const unsaved = 4711;"), "{script}");
}

#[tokio::test]
async fn times_of_the_audit_log_that_are_none_are_refused() {
    let page = OpenPage::start(&workplace()).await;
    page.knows("records_list").await;
    page.post("/ui/tools/records_list", &[]).await;
    let ask = async |path: &str| {
        let response = page.ask(page.http.get(format!("{}{path}", page.origin))).await;
        (response.status(), response.text().await.unwrap())
    };
    let (_, all) = ask("/ui/audit?since=2020-01-01+20%3A50").await;
    assert!(all.contains("records_list"), "{all}");
    let (_, none) = ask("/ui/audit?until=2020-01-01+20%3A50").await;
    assert!(none.contains("No record fits"), "{none}");
    for path in ["/ui/audit", "/ui/audit/export"] {
        let (status, said) = ask(&format!("{path}?since=garbage")).await;
        assert!(said.contains("`garbage` is no time") && !said.contains("records_list"), "{said}");
        assert_eq!(status == StatusCode::OK, path == "/ui/audit", "{path}");
    }
}

#[tokio::test]
async fn new_records_of_the_audit_log_appear() {
    let place = workplace();
    let Some(mut browser) = Browser::open(&place).await else { return };
    browser.does("go", json!("/ui/audit")).await;
    // Another process makes a call.
    place.run(&["call", "records_list"]).await;
    let row = browser.does("see", json!("#records tbody tr")).await;
    assert!(row.as_str().unwrap().contains("records_list"), "{row}");
    assert_eq!(browser.complaints().await, json!([]));
}

#[tokio::test]
async fn what_is_not_there_and_what_is_no_call_is_refused() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    let none = page.ask(page.http.get(format!("{}/ui/tools/NOPE", page.origin))).await;
    assert_eq!(none.status(), StatusCode::NOT_FOUND);
    let explained = page.get("/ui/policy?tool=records_delete&arguments=%5B1%5D").await;
    assert!(explained.contains("The arguments are JSON, but no object"), "{explained}");
    let checked = place.run(&["policy", "check", "records_delete", "[1]"]).await;
    assert_ne!(checked.code, Some(0), "{}", checked.shown());
    assert!(
        checked.stderr.contains("the arguments are JSON, but no object"),
        "{}",
        checked.shown()
    );
}

#[tokio::test]
async fn the_policy_is_that_of_the_command() {
    let mut config = json!({ "mcpServers": { "records": entry(&records()) } });
    config["policy"] = json!({ "default": "ask", "labels": [
        { "tool": "records_list", "labels": ["private"] },
    ] });
    let place = Workplace::new(&config);
    let page = OpenPage::start(&place).await;
    let shown = page.get("/ui/policy").await;
    let command = place.run(&["policy"]).await.stdout;
    for key in ["default", "claims", "flow", "new tools", "findings"] {
        let line = command.lines().find_map(|line| line.strip_prefix(&format!("{key}: ")));
        let value = line.unwrap_or_else(|| panic!("{key}: {command}"));
        let row = format!("<dt>{key}</dt><dd><bdi>{value}</bdi></dd>");
        assert!(shown.contains(&row), "{row}: {shown}");
    }
    let label = command.lines().find_map(|line| line.strip_prefix("label ")).unwrap();
    let (target, labels) = label.split_once(": ").unwrap();
    let target = target.replace('"', "&quot;");
    let row = format!("<bdi>{target}</bdi></th><td data-label=\"Labels\">{labels}</td>");
    assert!(shown.contains(&row), "{shown}");
}

/// Long words do not push columns off the screen, and rows stand below each other on a phone.
#[tokio::test]
async fn tables_fit_their_screens() {
    let place = hostile();
    let mut agent = place.connect(&[]).await;
    long_run(&mut agent).await;
    put(&place, ".cursor/mcp.json", "other", &json!({ "command": "never" }));
    place.run(&["token", "create", "--name", &"x".repeat(60)]).await;
    let Some(mut browser) = Browser::open(&place).await else { return };
    for (width, screen) in [
        (1_280, "/ui/servers/records"),
        (1_280, "/ui/tools"),
        (1_280, "/ui/servers"),
        (1_180, "/ui/tools?query=list+records"),
        (360, "/ui"),
        (360, "/ui/servers"),
        (360, "/ui/servers/records"),
        (360, "/ui/audit"),
        (360, "/ui/runs"),
        (360, "/ui/runs/first"),
        (360, "/ui/tools"),
        (360, "/ui/tools?query=list+records"),
        (360, "/ui/access"),
        (360, "/ui/policy"),
    ] {
        let wide = browser.does("sideways", json!([width, screen])).await;
        assert_eq!(wide, json!([]), "{width}: {screen}");
    }
}

#[tokio::test]
async fn a_look_at_the_link_does_not_use_it_up() {
    let (_typist, link) = started(&workplace()).await;
    let looked = within("the page", client().head(&link).send()).await.unwrap();
    assert_eq!(looked.status(), StatusCode::OK);
    assert!(looked.headers().get(header::SET_COOKIE).is_none());
    let opened = within("the page", client().get(&link).send()).await.unwrap();
    assert_eq!(opened.status(), StatusCode::SEE_OTHER);
}
