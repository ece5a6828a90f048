//! What the screens show, as a browser without scripts gets it.

use serde_json::json;
use toolgate_testkit::{Builtin, Fixture};

use super::{OpenPage, question, safety::SCREENS, waiting_call, workplace};
use crate::{
    fixtures::tool,
    support::{Gateway, Workplace, call, entry, until},
};

const EVIL: &str =
    "<script>window.owned=1</script><img src=x onerror=window.owned=1>\u{202e}\u{1b}";

/// The content of a screen, an element a line, without what differs from start to start.
fn content(html: &str) -> String {
    let (_, main) = html.split_once("<main").unwrap();
    let main = main.split("</main>").next().unwrap();
    let lines = main.replace("><", ">\n<");
    let hide = |line: &str, name: &str| -> String {
        let Some((before, rest)) = line.split_once(&format!("{name}=\"")) else {
            return line.to_owned();
        };
        let after = rest.split_once('"').map_or("", |(_, after)| after);
        format!("{before}{name}=\"…\"{after}")
    };
    let lines = lines.lines().map(|line| {
        let line = if line.contains("form_token") { hide(line, "value") } else { line.to_owned() };
        ["hx-nonce", "datetime", "title"].iter().fold(line, |line, name| hide(&line, name))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_question_is_shown_as_in_a_terminal() {
    let place = workplace();
    let mut agent = place.serve(&["--mode", "direct"]);
    waiting_call(&mut agent, "<b>4711</b>\u{202e}").await;
    let page = OpenPage::start(&place).await;
    let shown = content(&page.get("/ui/approvals").await);
    let reference = question(&place).await;
    let terminal = place.run(&["approve", &reference, "--show"]).await.stdout;
    let escaped = terminal.trim_end().replace('<', "&lt;").replace('>', "&gt;");
    let escaped = escaped.replace('"', "&quot;");
    assert!(shown.contains(&escaped), "{escaped}\n---\n{shown}");
    let shown = shown.replace(&reference, "q_1");
    let (_, question) = shown.split_once("<pre").unwrap();
    let (_, answers) = question.split_once("</pre>").unwrap();
    insta::assert_snapshot!(answers.split("<details>").next().unwrap().trim());
}

#[tokio::test]
async fn a_run_is_shown_with_its_calls() {
    let place = workplace();
    let mut agent = place.connect(&[]).await;
    let code = "const all = await Promise.all([records_list({}), records_list({})]);\nconsole.log(all.length);";
    call(&mut agent, "run_code", json!({ "code": code })).await;
    let page = OpenPage::start(&place).await;
    let list = page.get("/ui/runs").await;
    let (_, rest) = list.split_once("href=\"/ui/runs/").unwrap();
    let id = rest.split('"').next().unwrap();
    let run = page.get(&format!("/ui/runs/{id}")).await;
    assert!(run.contains("aria-label=\"2 calls in"), "{run}");
    assert_eq!(run.matches("class=\"bar\"").count(), 2, "{run}");
    assert!(run.contains("4711, 4712") && run.contains("Promise.all"), "{run}");
    let overview = page.get("/ui").await;
    assert!(overview.contains(id) && overview.contains("<svg"), "{overview}");
    let audit = page.get("/ui/audit?tool=records_list&verify=yes").await;
    assert!(audit.contains("The chain is whole"), "{audit}");
    assert_eq!(audit.matches("<th scope=\"row\">").count(), 2, "{audit}");
    let export = page.get("/ui/audit/export?tool=records_list").await;
    assert_eq!(export.lines().count(), 2, "{export}");
}

/// The screen has the beginning of a long result, and the whole is one press away.
#[tokio::test]
async fn long_results_of_a_run_are_cut() {
    let items: Vec<String> = (0..5_000).map(|number| format!("item {number}")).collect();
    let long = json!({ "content": [{ "type": "text", "text": items.join(", ") + "<b>the end" }] });
    let server = Fixture::new("records")
        .with_builtins([Builtin::Echo])
        .with_tools([tool("list", "List.", &json!({}), &[])])
        .with_answer("list", long);
    let place = Workplace::new(&json!({ "mcpServers": { "records": entry(&server) } }));
    let mut agent = place.connect(&[]).await;
    let code = "const all = await records_list({});\nawait records_echo({ message: String(all).repeat(6) });";
    let ended = call(&mut agent, "run_code", json!({ "code": code })).await;
    assert_ne!(ended["isError"], true, "{ended}");
    let page = OpenPage::start(&place).await;
    let list = page.get("/ui/runs").await;
    let (_, rest) = list.split_once("href=\"/ui/runs/").unwrap();
    let id = rest.split('"').next().unwrap();
    let run = page.get(&format!("/ui/runs/{id}")).await;
    assert!(run.len() < 50_000 && !run.contains("the end"), "{run}");
    for part in ["arguments", "result"] {
        let path = format!("/ui/runs/{id}/calls/1/{part}");
        assert!(run.contains(&format!("href=\"{path}\"")), "{part}: {run}");
        let response = page.ask(page.http.get(format!("{}{path}", page.origin))).await;
        assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
        let whole = response.text().await.unwrap();
        assert!(whole.len() > 300_000 && whole.contains("<b>the end"), "{}", whole.len());
    }
    // Long results are compared in the background, and a later page has what was found.
    until("the graph", async || {
        let run = page.get(&format!("/ui/runs/{id}")).await;
        run.contains("aria-label=\"Data\"").then_some(())
    })
    .await;
    for path in ["calls/9/result", "calls/1/code"] {
        let missing = page.http.get(format!("{}/ui/runs/{id}/{path}", page.origin));
        assert_eq!(page.ask(missing).await.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn a_server_is_disabled_and_enabled_on_the_page() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    page.post("/ui/servers/records", &[("action", "disable")]).await;
    let shown = page.get("/ui/servers/records").await;
    assert!(shown.contains("records is disabled.") && shown.contains("Enable"), "{shown}");
    let status = place.run(&["status", "--json"]).await.json();
    assert_eq!(status["servers"][0]["state"], "disabled", "{status}");
    let listed = place.run(&["list", "--json"]).await.json();
    assert_eq!(listed["servers"][0]["state"], "disabled", "{listed}");
    page.post("/ui/servers/records", &[("action", "enable")]).await;
    let status = place.run(&["status", "--json"]).await.json();
    assert_eq!(status["servers"][0]["state"], "ready", "{status}");
}

#[tokio::test]
async fn a_tool_is_found_and_called_on_the_page() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    let found = page.get("/ui/tools?query=delete+a+record").await;
    assert!(found.contains("href=\"/ui/tools/records_delete\""), "{found}");
    let detail = page.get("/ui/tools/records_delete").await;
    assert!(detail.contains("name=\"argument.id\"") && detail.contains("(required)"), "{detail}");
    page.knows("records_list").await;
    let called = page.post("/ui/tools/records_list", &[]).await.text().await.unwrap();
    assert!(called.contains("4711, 4712"), "{called}");
    // The policy asks about this one, also on the page.
    let asked = page.post("/ui/tools/records_delete", &[("argument.id", "4711")]).await;
    let asked = asked.text().await.unwrap();
    assert!(asked.contains("it waits for a person"), "{asked}");
    question(&place).await;
    let explained =
        page.get("/ui/policy?tool=records_delete&arguments=%7B%22id%22%3A%221%22%7D").await;
    assert!(explained.contains("it cannot be undone"), "{explained}");
}

/// A server whose every text would be a script, turn the text around, or fill the page.
pub(super) fn hostile() -> Workplace {
    let evil = format!("{EVIL}{}", "A".repeat(10_000));
    let said = json!({ "content": [{ "type": "text", "text": evil }] });
    let properties = json!({ "<b>x</b>": { "type": "string", "description": evil } });
    let server = Fixture::new("<script>window.owned=1</script>")
        .with_builtins([Builtin::Echo])
        .with_tools([tool("list", &evil, &properties, &[]), tool("delete", &evil, &json!({}), &[])])
        .with_instructions(&evil)
        .with_answer("list", said.clone())
        .with_answer("delete", said);
    Workplace::new(&json!({
        "mcpServers": { "records": entry(&server) },
        "policy": { "default": "allow", "findings": "warn", "rules": [{ "tool": "records_delete", "verdict": "ask" }] },
    }))
}

/// Lets a script get a line of 1 MB from the server.
pub(super) async fn long_run(agent: &mut Gateway) {
    let long = format!("{}.repeat(8000)", json!(format!("{EVIL}{}", "A".repeat(40))));
    let code = format!(
        "const all = {{ message: {long} }};\nconst said = await records_echo(all);\nconsole.log(said);"
    );
    let ended = call(agent, "run_code", json!({ "code": code })).await;
    assert_ne!(ended["isError"], true, "{ended:.3000}");
}

#[tokio::test]
async fn text_of_a_hostile_server_stays_text() {
    let place = hostile();
    long_run(&mut place.connect(&[]).await).await;
    let page = OpenPage::start(&place).await;
    page.knows("records_list").await;
    let called = page.post("/ui/tools/records_list", &[]).await.text().await.unwrap();
    page.post("/ui/tools/records_delete", &[]).await;
    let mut all = vec![called];
    for screen in SCREENS {
        all.push(page.get(screen).await);
    }
    let runs = page.get("/ui/runs").await;
    let (_, rest) = runs.split_once("href=\"/ui/runs/").unwrap();
    all.push(page.get(&format!("/ui/runs/{}", rest.split('"').next().unwrap())).await);
    for html in all {
        assert!(!html.contains("<script>window") && !html.contains("<img src=x"), "{html:.3000}");
        assert!(!html.contains(['\u{202e}', '\u{1b}']), "{html:.3000}");
        assert!(html.len() < 400_000, "{}", html.len());
    }
}
