//! What the forms of the page understand, and that nothing that is typed is lost or ignored.

use std::fs;

use reqwest::StatusCode;
use serde_json::json;
use toolgate_testkit::Fixture;

use super::{OpenPage, browser::Browser, question, records, references, setup::put, workplace};
use crate::{
    fixtures::tool,
    support::{Workplace, entry, until},
    trust::Visit,
    typist::Typist,
};

#[tokio::test]
async fn conditions_that_were_typed_are_not_left_out() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    page.knows("records_delete").await;
    page.post("/ui/tools/records_delete", &[("argument.id", "4711")]).await;
    let path = format!("/ui/approvals/{}", question(&place).await);
    let answer = async |extent: &str, condition: &str| {
        let fields = [
            ("answer", "more"),
            ("lasts", "always"),
            ("days", "3"),
            ("extent", extent),
            ("where", condition),
        ];
        page.post(&path, &fields).await
    };
    for (extent, condition) in [("any", "id=4711"), ("these", "id=4711"), ("where", "id=47*")] {
        let said = answer(extent, condition).await.text().await.unwrap();
        assert!(said.contains("Nothing was decided"), "{extent}: {said}");
        // The form is open, and has what was typed.
        assert!(said.contains("<details open>"), "{said}");
        for part in [
            format!("name=\"where\" value=\"{condition}\""),
            format!("name=\"extent\" value=\"{extent}\" checked"),
            "name=\"lasts\" value=\"always\" checked".to_owned(),
            "name=\"days\" min=\"1\" max=\"3650\" value=\"3\"".to_owned(),
        ] {
            assert!(said.contains(&part), "{part}: {said}");
        }
        assert_eq!(references(&place).await.len(), 1, "it still waits");
        let grants = place.run(&["grants", "--json"]).await.json();
        assert_eq!(grants, json!([]), "{extent}");
    }
    assert_eq!(answer("where", "id=4711").await.status(), StatusCode::SEE_OTHER);
    let grants = place.run(&["grants"]).await.stdout;
    assert!(grants.contains("only where id"), "{grants}");
}

/// A server whose tool takes what most servers take: texts that may be missing, and choices that are no texts.
fn choosy() -> Workplace {
    let optional = |kind: &str| json!({ "anyOf": [{ "type": kind }, { "type": "null" }] });
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let properties = json!({
        "level": { "enum": ["low", "high"] },
        "place": { "enum": [1, 2] },
        "note": optional("string"),
        "tags": { "anyOf": [list, { "type": "string" }] },
        "opts": { "type": "object", "properties": { "force": { "type": "boolean" }, "how": { "enum": ["fast", "slow"] } } },
    });
    let said = json!({ "content": [{ "type": "text", "text": "it is set" }] });
    let server = Fixture::new("records")
        .with_tools([tool("set", "Set a level.", &properties, &["level"])])
        .with_answer("set", said);
    Workplace::new(
        &json!({ "mcpServers": { "records": entry(&server) }, "policy": "off", "audit": { "arguments": true } }),
    )
}

#[tokio::test]
async fn texts_that_may_be_missing_are_typed_as_texts() {
    let place = choosy();
    let page = OpenPage::start(&place).await;
    let shown = page.get("/ui/tools/records_set").await;
    assert!(shown.contains("<input type=\"text\" name=\"argument.note\""), "{shown}");
    assert!(shown.contains("<option value=\"2\">2</option>"), "{shown}");
    let fields = [
        ("argument.level", "high"),
        ("argument.place", "2"),
        ("argument.note", "hello"),
        ("argument.tags", "[\"a\"]"),
    ];
    let called = page.post("/ui/tools/records_set", &fields).await.text().await.unwrap();
    assert!(called.contains("it is set"), "{called}");
    let log = place.run(&["audit", "--tool", "records_set", "--json"]).await.stdout;
    for part in ["\"place\":2", "\"note\":\"hello\"", "\"tags\":[\"a\"]"] {
        assert!(log.replace('\\', "").contains(part), "{part}: {log}");
    }
}

#[tokio::test]
async fn values_of_arguments_are_completed() {
    let place = choosy();
    let page = OpenPage::start(&place).await;
    let complete = async |before: &str, language: &str| -> Vec<String> {
        let fields = [("before", before), ("language", language)];
        let found = page.post("/ui/playground/complete", &fields).await;
        let found = found.json::<serde_json::Value>().await.unwrap();
        let items = found["items"].as_array().unwrap().iter();
        items.map(|item| item["insert"].as_str().unwrap().to_owned()).collect()
    };
    until("the tools", async || {
        Some(complete("records_", "typescript").await).filter(|found| !found.is_empty())
    })
    .await;
    let ts = async |before: &str| complete(before, "typescript").await;
    assert_eq!(ts("await records_set({ level: ").await, ["\"low\"", "\"high\""]);
    assert_eq!(ts("await records_set({ level: \"h").await, ["high\""]);
    assert_eq!(ts("await records_set({ place: ").await, ["1", "2"]);
    assert_eq!(ts("await records_set({ opts: { ").await, ["force: ", "how: "]);
    assert_eq!(ts("await records_set({ opts: { how: 'f").await, ["fast'"]);
    assert_eq!(ts("await records_set({ opts: { force: ").await, ["true", "false"]);
    // What is there already is not offered again.
    let rest = ts("await records_set({ level: 'low', place: 1, ").await;
    assert_eq!(rest, ["note: ", "tags: ", "opts: "]);
    let python = async |before: &str| complete(before, "python").await;
    assert_eq!(python("await records_set(level='").await, ["low'", "high'"]);
    assert_eq!(python("await records_set(opts={").await, ["\"force\": ", "\"how\": "]);
    assert_eq!(python("await records_set(opts={'force': ").await, ["True", "False"]);
}

#[tokio::test]
async fn a_server_that_is_not_added_stays_in_the_form() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    let add = async |name: &str, words: &str, env: &str| {
        let fields = [("kind", "program"), ("name", name), ("words", words), ("env", env)];
        page.post("/ui/servers-add", &fields).await.text().await.unwrap()
    };
    let said = add("other", "prog\r\n--flag", "NOEQUALS").await;
    assert!(said.contains("`NOEQUALS` is not NAME=VALUE"), "{said}");
    for part in
        ["name=\"name\" value=\"other\"", "prog\r\n--flag</textarea>", "NOEQUALS</textarea>"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = add("records", "prog", "").await;
    assert!(said.contains("`toolgate add records --replace` replaces it"), "{said}");
    let before = fs::read_to_string(place.config()).unwrap();
    let said = add("rec\u{202e}ords", "prog", "").await;
    assert!(said.contains("1 to 128 characters that can be seen"), "{said}");
    assert_eq!(fs::read_to_string(place.config()).unwrap(), before);
}

/// What is written to the file of a folder has to be trusted, and until then nothing of the file is used.
#[tokio::test]
async fn a_server_of_a_folder_waits_for_trust() {
    let config = json!({ "mcpServers": { "records": entry(&records()) } });
    let visit = Visit::new().with("toolgate.json", &config);
    let trusted = visit.trust("y\n").await;
    assert_eq!(trusted.code, Some(0), "{}", trusted.shown());
    let mut typist = Typist::run_command(visit.command(&["web", "--no-open"]));
    let link = typist.line_with("/ui/open?token=").await;
    let page = OpenPage::open(typist, &link).await;
    assert!(page.get("/ui/servers").await.contains("/ui/servers/records"));
    let fields = [("kind", "program"), ("name", "other"), ("words", "prog")];
    let added = page.post("/ui/servers-add", &fields).await;
    assert_eq!(added.headers()["location"], "/ui/servers");
    let shown = page.get("/ui/servers").await;
    assert!(shown.contains("Run `toolgate trust` again"), "{shown}");
    assert!(!shown.contains("The configuration has no servers"), "{shown}");
    assert!(page.get("/ui").await.contains("toolgate trust"));
}

#[tokio::test]
async fn times_of_the_audit_log_are_those_of_the_command() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    page.knows("records_list").await;
    page.post("/ui/tools/records_list", &[]).await;
    let log = place.run(&["audit", "--json"]).await.json();
    let today = toolgate_store::utc(log["time"].as_u64().unwrap() / 1_000);
    let today = &today[..10];
    for (name, value, fits) in [
        ("since", "30m", true),
        ("since", today, true),
        ("since", "2100-01-01 14:00", false),
        ("until", today, true),
        ("until", "7d", false),
        ("until", "2020-01-01", false),
    ] {
        let shown = page.get(&format!("/ui/audit?{name}={}", value.replace(' ', "+"))).await;
        assert_eq!(shown.contains(">records_list<"), fits, "{name}={value}: {shown}");
        let command = place.run(&["audit", &format!("--{name}"), value]).await;
        assert_eq!(command.stdout.contains("records_list"), fits, "{}", command.shown());
    }
    let wrong = place.run(&["audit", "--since", "yesterday"]).await;
    assert!(wrong.stderr.contains("write how long ago it is, such as 12h"), "{}", wrong.shown());
}

#[tokio::test]
async fn records_that_fit_the_filter_appear() {
    let place = workplace();
    let Some(mut browser) = Browser::open(&place).await else { return };
    browser.does("go", json!("/ui/audit?tool=records_list&since=30m")).await;
    place.run(&["call", "records_delete", "--arg", "id=x"]).await;
    place.run(&["call", "records_list"]).await;
    let row = browser.does("see", json!("#records tbody tr")).await;
    assert!(row.as_str().unwrap().contains("records_list"), "{row}");
    assert_eq!(browser.complaints().await, json!([]));
}

#[tokio::test]
async fn the_policy_says_what_is_wrong_with_it() {
    let config = |policy: serde_json::Value| {
        let mut config = json!({ "mcpServers": { "records": entry(&records()) } });
        config.as_object_mut().unwrap().extend(policy.as_object().cloned().unwrap_or_default());
        config
    };
    let place = Workplace::new(&config(json!({})));
    let page = OpenPage::start(&place).await;
    assert!(page.get("/ui/policy").await.contains("No policy is set"));
    let when = json!({ "arguments": { "id": { "prefix": "git " } } });
    let place = Workplace::new(&config(json!({ "policy": { "rules": [
        { "tool": "nothing_*", "verdict": "deny" },
        { "tool": "records_delete", "verdict": "ask", "when": when },
    ] } })));
    let page = OpenPage::start(&place).await;
    let mark = "matches no tool that is known";
    let shown = until("the tools", async || {
        Some(page.get("/ui/policy").await).filter(|html| html.contains(mark))
    })
    .await;
    assert_eq!(shown.matches(mark).count(), 1, "{shown}");
    assert!(shown.contains("compares the letters of a command line"), "{shown}");
    assert!(!shown.contains("No policy is set"), "{shown}");
    // The command knows what was listed before.
    until("the command", async || {
        let command = place.run(&["policy"]).await.stdout;
        (command.matches(mark).count() == 1).then_some(())
    })
    .await;
    // A blank around the name is not part of it.
    let explained = page.get("/ui/policy?tool=+records_delete+&arguments=%7B%7D").await;
    assert!(!explained.contains("There is no tool of this name"), "{explained}");
}

#[tokio::test]
async fn servers_that_nobody_can_use_are_named() {
    let mut off = entry(&records());
    off["disabled"] = json!(true);
    let unset = json!({ "command": "x", "env": { "KEY": "${NOBODY_HAS_SET_THIS}" } });
    let place = Workplace::new(&json!({ "mcpServers": { "asleep": off, "unset": unset } }));
    let page = OpenPage::start(&place).await;
    let shown = page.get("/ui/servers").await;
    assert!(shown.contains("The configuration switches off: <bdi>asleep</bdi>"), "{shown}");
    // As `toolgate status` shows them.
    for screen in ["/ui", "/ui/servers"] {
        let shown = page.get(screen).await;
        assert!(shown.contains("NOBODY_HAS_SET_THIS"), "{screen}: {shown}");
        assert!(shown.contains(">unusable<"), "{screen}: {shown}");
    }
}

#[tokio::test]
async fn a_configuration_that_was_broken_is_said() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    place.rewrite("{ \"mcpServers\": { \"a\": \"sk-live-0123456789\"");
    for screen in ["/ui", "/ui/servers", "/ui/policy"] {
        let shown = page.get(screen).await;
        assert!(shown.contains("What was read before still holds"), "{screen}: {shown}");
        assert!(!shown.contains("sk-live"), "{screen}: {shown}");
    }
    let fields = [("kind", "program"), ("name", "other"), ("words", "prog")];
    let said = page.post("/ui/servers-add", &fields).await.text().await.unwrap();
    assert!(said.contains("Nothing was added") && !said.contains("sk-live"), "{said}");
}

/// What is wrong, and what to do, has room beside the numbers and the buttons.
#[tokio::test]
async fn servers_that_fail_fit_their_screen() {
    let place = Workplace::new(&json!({ "mcpServers": {
        "a-server-with-a-name": { "command": "/no/such/program/that/anybody/has/installed" },
        "far": { "url": "http://127.0.0.1:9/mcp" },
        "later": { "command": "x", "lazy": true },
    } }));
    let Some(mut browser) = Browser::open(&place).await else { return };
    for width in [1_180, 1_024] {
        let wide = browser.does("sideways", json!([width, "/ui/servers"])).await;
        assert_eq!(wide, json!([]), "{width}");
    }
}

#[tokio::test]
async fn an_error_of_a_run_is_said_once() {
    let place = workplace();
    fs::write(place.path().join("a.py"), "print('before')\nx = 1 / 0").unwrap();
    place.run(&["run", "a.py"]).await;
    let page = OpenPage::start(&place).await;
    let runs = page.get("/ui/runs").await;
    let (_, rest) = runs.split_once("href=\"/ui/runs/").unwrap();
    let run = page.get(&format!("/ui/runs/{}", rest.split('"').next().unwrap())).await;
    assert_eq!(run.matches("ZeroDivisionError").count(), 1, "{run}");
    assert!(run.contains("before"), "{run}");
    let none = place.run(&["runs", "--tool", "records_list"]).await;
    assert!(none.shown().contains("no run is like this"), "{}", none.shown());
    let overview = page.get("/ui").await;
    assert!(overview.contains("at most 0 in an hour"), "{overview}");
}

#[tokio::test]
async fn a_client_that_cannot_be_read_is_not_counted() {
    let place = workplace();
    put(&place, ".cursor/mcp.json", "other", &entry(&records()));
    fs::create_dir_all(place.path().join(".gemini")).unwrap();
    fs::write(place.path().join(".gemini/settings.json"), "nonsense").unwrap();
    let page = OpenPage::start(&place).await;
    let fields = [("action", "plan-setup"), ("differing", "first")];
    let shown = page.post("/ui/access", &fields).await.text().await.unwrap();
    assert!(shown.contains("Gemini CLI: not changed: "), "{shown}");
    let about = |line: &&str| line.contains("Gemini CLI") && !line.contains("not changed");
    let (_, setup) = shown.split_once("id=\"setup\"").unwrap();
    let setup = setup.split("</pre>").next().unwrap();
    assert_eq!(setup.lines().find(about), None, "{setup}");
    // The choice stays where it was made.
    assert!(shown.contains("<option value=\"first\" selected>"), "{shown}");
    let (_, rest) = shown.split_once("value=\"set-up\"").unwrap();
    let (_, rest) = rest.split_once("name=\"what\" value=\"").unwrap();
    let number = rest.split('"').next().unwrap();
    let fields = [("action", "set-up"), ("what", number)];
    page.post("/ui/access", &fields).await;
    assert!(page.get("/ui/access").await.contains("Written: "));
    page.post("/ui/access", &fields).await;
    let twice = page.get("/ui/access").await;
    assert!(twice.contains("this setup was written already"), "{twice}");
}
