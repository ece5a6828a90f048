//! The playground, and what can be done with runs.

use serde_json::json;

use super::{OpenPage, browser::Browser, question, references, workplace};
use crate::support::{call, text, until};

/// The id of a run, from the address that a form led to.
async fn begun(page: &OpenPage, code: &str, language: &str) -> String {
    let fields = [("action", "run"), ("language", language), ("code", code)];
    let response = page.post("/ui/playground", &fields).await;
    let place = response.headers().get(reqwest::header::LOCATION);
    let place = place.map(|place| place.to_str().unwrap().to_owned());
    let Some(place) = place else { panic!("{}", response.text().await.unwrap()) };
    place.strip_prefix("/ui/playground?run=").unwrap().to_owned()
}

/// The page of a run, once it shows this.
async fn shows(page: &OpenPage, id: &str, what: &str) -> String {
    let path = format!("/ui/runs/{id}");
    until("the run", async || Some(page.get(&path).await).filter(|html| html.contains(what))).await
}

#[tokio::test]
async fn a_script_is_checked_and_run_without_scripts_in_the_browser() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    let shown = page.get("/ui/playground?language=python").await;
    assert!(shown.contains("# Every tool is a function"), "{shown}");
    let wrong = "const all = await records_lst({});\nawait records_delete({ idd: \"1\" });";
    let fields = [("action", "check"), ("language", "typescript"), ("code", wrong)];
    let checked = page.post("/ui/playground", &fields).await.text().await.unwrap();
    for part in ["records_lst", "records_list", "would not run", "Line 1, column 19", "Line 2"] {
        assert!(checked.contains(part), "{part}: {checked}");
    }
    // The command says the same.
    std::fs::write(place.path().join("wrong.ts"), wrong).unwrap();
    let outcome = place.run(&["run", "--check", "wrong.ts", "--json"]).await;
    let findings = outcome.json()["findings"].as_array().unwrap().clone();
    assert!(findings.len() >= 2, "{findings:?}");
    for finding in findings {
        let message = finding["message"].as_str().unwrap();
        let message = message.replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;");
        assert!(checked.contains(&message), "{message}: {checked}");
    }
    // Nothing was run.
    assert!(page.get("/ui/runs").await.contains("There are no such runs."));
    let code = "const all = await records_list({});\nconsole.log(\"read\", all);";
    let id = begun(&page, code, "typescript").await;
    let run = shows(&page, &id, "read 4711, 4712").await;
    assert!(run.contains("aria-label=\"1 call in") && run.contains("completed"), "{run}");
    let id = begun(&page, "print('from python', await records_list())", "python").await;
    shows(&page, &id, "from python").await;
    let again = page.get(&format!("/ui/playground?run={id}")).await;
    assert!(again.contains("print(&#39;from python&#39;") || again.contains("print('from python'"));
    // Calls that only read are written a moment later.
    let count = |runs: &String| runs.matches("href=\"/ui/runs/run_").count();
    let listed = async || page.get("/ui/runs?language=python&tool=records_list").await;
    let runs = until("the run", async || Some(listed().await).filter(|it| count(it) > 0)).await;
    assert_eq!(count(&runs), 1, "{runs}");
    let listed = place.run(&["runs", "--language", "python", "--json"]).await.json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert!(page.get("/ui/runs?state=failed").await.contains("There are no such runs."));
}

#[tokio::test]
async fn a_checked_script_does_nothing() {
    let place = workplace();
    // The check is not a run, whatever the script would do.
    for (name, code) in [
        ("a.ts", "await records_delete({ id: \"1\" }); while (true) {}"),
        ("a.py", "await records_delete(id='1')\nwhile True: pass"),
    ] {
        std::fs::write(place.path().join(name), code).unwrap();
        let outcome = place.run(&["run", "--check", name]).await;
        assert_eq!(outcome.code, Some(0), "{}", outcome.shown());
    }
    assert!(references(&place).await.is_empty());
    assert_eq!(place.run(&["runs", "--json"]).await.json(), json!([]));
}

#[tokio::test]
async fn a_run_that_waited_goes_on_from_the_page() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    let code = "const all = await records_list({});\nconsole.log(await records_delete({ id: all.slice(0, 4) }));";
    let id = begun(&page, code, "typescript").await;
    // The call waits before the run has ended.
    let waits = shows(&page, &id, ">Resume<").await;
    assert!(waits.contains("A call waits for a person"), "{waits}");
    let reference = question(&place).await;
    page.post(&format!("/ui/approvals/{reference}"), &[("answer", "once")]).await;
    page.post(&format!("/ui/runs/{id}"), &[("action", "resume")]).await;
    let done = shows(&page, &id, "gone").await;
    assert_eq!(done.matches("class=\"bar\"").count(), 2, "each call is made once: {done}");
    assert!(!done.contains(">Resume<"), "{done}");
    // The result of the first call went into the argument of the second.
    assert!(done.contains("aria-label=\"Data flow\"") && done.contains("class=\"node\""), "{done}");
    let shown = place.run(&["runs", "show", &id, "--json"]).await.json();
    assert_eq!(shown["flow"][0]["argument"], "/id", "{shown}");
    let twice = page.post(&format!("/ui/runs/{id}"), &[("action", "resume")]).await;
    assert_eq!(twice.status(), reqwest::StatusCode::SEE_OTHER);
    assert!(page.get(&format!("/ui/runs/{id}")).await.contains("has run to its end"));
}

#[tokio::test]
async fn a_run_of_the_page_is_stopped() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    let code = "await records_list({});\nawait new Promise((later) => setTimeout(later, 50_000));";
    let id = begun(&page, code, "typescript").await;
    shows(&page, &id, ">Stop<").await;
    page.post(&format!("/ui/runs/{id}"), &[("action", "stop")]).await;
    shows(&page, &id, "cancelled").await;
}

#[tokio::test]
async fn names_and_arguments_are_completed() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    let complete = async |before: &str, language: &str| {
        let fields = [("before", before), ("language", language)];
        let found = page.post("/ui/playground/complete", &fields).await;
        found.json::<serde_json::Value>().await.unwrap()
    };
    // Completion does not wait for servers that have not listed their tools.
    let found = until("the tools", async || {
        let found = complete("const a = await rec", "typescript").await;
        Some(found).filter(|found| !found["items"][0].is_null())
    })
    .await;
    assert_eq!(found["typed"], "rec");
    assert_eq!(found["items"][0]["insert"], "records_delete");
    assert_eq!(found["items"][1]["about"], "List all records.");
    let found = complete("await records_delete({ ", "typescript").await;
    assert_eq!(found["items"][0]["insert"], "id: ");
    assert_eq!(found["items"][0]["about"], "string, required: Which record");
    let found = complete("records_delete(", "python").await;
    assert_eq!(found["items"][0]["insert"], "id=");
    assert_eq!(complete("\"rec", "typescript").await["items"], json!([]));
}

#[tokio::test]
async fn another_policy_is_tried_on_the_last_calls() {
    let place = workplace();
    let mut agent = place.connect(&[]).await;
    let code = "await records_list({}); await records_list({});";
    call(&mut agent, "run_code", json!({ "code": code })).await;
    let direct = call(&mut agent, "call_tool", json!({ "name": "records_list" })).await;
    assert_eq!(text(&direct), "4711, 4712");
    let policy = json!({ "default": "allow", "rules": [
        { "tool": "records_list", "verdict": "deny", "reason": "lists are secret" },
    ] });
    std::fs::write(place.path().join("other.json"), policy.to_string()).unwrap();
    let found = place.run(&["policy", "what-if", "other.json", "--json"]).await.json();
    assert_eq!(found["calls"], 3, "{found}");
    let change = &found["changes"][0];
    assert_eq!((&change["before"], &change["after"]), (&json!("allow"), &json!("deny")));
    assert_eq!((&change["tool"], &change["count"]), (&json!("records_list"), &json!(3)));
    let page = OpenPage::start(&place).await;
    assert!(page.get("/ui/policy/what-if").await.contains("it cannot be undone"));
    let text = policy.to_string();
    let tried = page.post("/ui/policy/what-if", &[("policy", &text)]).await.text().await.unwrap();
    for part in ["3 calls of the last 3 would be decided differently", "lists are secret"] {
        assert!(tried.contains(part), "{part}: {tried}");
    }
    // What cannot be read is refused, and nothing is written.
    for (wrong, why) in [("{", "not JSON"), ("{ \"default\": \"maybe\" }", "not understood")] {
        let said = page.post("/ui/policy/what-if", &[("policy", wrong)]).await;
        let said = said.text().await.unwrap();
        assert!(said.contains(why), "{wrong}: {said}");
    }
    let config = std::fs::read_to_string(place.config()).unwrap();
    assert!(!config.contains("secret"), "{config}");
}

#[tokio::test]
async fn a_script_is_written_and_run_in_the_browser() {
    let place = workplace();
    let Some(mut browser) = Browser::open(&place).await else { return };
    browser.does("go", json!("/ui/playground")).await;
    browser.does("type", json!(["#code", "const all = await records_li"])).await;
    let option = browser.does("see", json!("#completions li")).await;
    assert!(option.as_str().unwrap().contains("records_list"), "{option}");
    browser.does("keys", json!(["ArrowDown", "Enter"])).await;
    browser.does("type", json!(["#code", "({});\n"])).await;
    let found = browser.does("see", json!("#findings ol li, #findings p.quiet")).await;
    assert!(!found.as_str().unwrap().is_empty(), "{found}");
    browser.does("type", json!(["#code", "await records_delete({ "])).await;
    let option = browser.does("see", json!("#completions li")).await;
    assert!(option.as_str().unwrap().contains("required"), "{option}");
    browser.does("keys", json!(["ArrowDown", "Tab"])).await;
    browser.does("type", json!(["#code", "\"4711\" });"])).await;
    assert_eq!(
        browser
            .does("value", json!("#code"))
            .await
            .as_str()
            .unwrap()
            .lines()
            .skip(1)
            .collect::<Vec<_>>(),
        ["const all = await records_list({});", "await records_delete({ id: \"4711\" });"],
    );
    browser.does("press", json!("#run-script")).await;
    // The call waits for a person, which the stream brings.
    let notice = browser.does("see", json!("div#run p.notice")).await;
    assert!(notice.as_str().unwrap().contains("waits for a person"), "{notice}");
    question(&place).await;
    assert_eq!(browser.complaints().await, json!([]));
}
