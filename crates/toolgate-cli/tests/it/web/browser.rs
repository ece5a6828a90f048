//! The page in a real browser, which a script of Node.js drives.

use std::{path::PathBuf, process::Stdio};

use axum::{Router, response::Html, routing::get};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};
use toolgate_testkit::{installed_servers, within};

use super::{
    ended, origin, question, references,
    safety::SCREENS,
    screens::{hostile, long_run},
    started, waiting_call, workplace,
};
use crate::{
    support::{Workplace, text},
    typist::Typist,
};

/// A browser that has opened the page of a workplace. It does one thing after the other that it is told.
pub(super) struct Browser {
    typist: Option<Typist>,
    _child: Child,
    told: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
    origin: String,
}

impl Browser {
    /// `None` if there is no browser, and the test is to be skipped.
    pub(super) async fn open(place: &Workplace) -> Option<Self> {
        let folder = installed_servers()?.browser()?;
        let (typist, link) = started(place).await;
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/web/browser.mjs");
        let mut child = Command::new("node")
            .arg(script)
            .arg(&folder)
            .arg(&link)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let told = child.stdin.take().unwrap();
        let origin = origin(&link);
        let mut browser = Self { typist: Some(typist), _child: child, told, said, origin };
        assert_eq!(browser.answer("the browser").await, json!("opened"));
        Some(browser)
    }

    /// Ends toolgate.
    pub(super) fn lose(&mut self) {
        self.typist = None;
    }

    /// Starts toolgate again at the same port.
    pub(super) fn restart(&mut self, place: &Workplace) {
        let port = self.origin.rsplit(':').next().unwrap();
        self.typist = Some(Typist::start(place, &["web", "--no-open", "--port", port]));
    }

    /// Tells the browser to do something, and returns what it says of it.
    pub(super) async fn does(&mut self, what: &str, with: Value) -> Value {
        self.begins(what, with).await;
        self.answer(what).await
    }

    async fn begins(&mut self, what: &str, with: Value) {
        let line = format!("{}\n", json!({ "what": what, "with": with }));
        self.told.write_all(line.as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, what: &str) -> Value {
        let line = within(what, self.said.next_line()).await.unwrap();
        let line = line.unwrap_or_else(|| panic!("the browser ended at {what}"));
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert!(answer.get("error").is_none(), "{what}: {answer}");
        answer["said"].clone()
    }

    /// What went wrong in the browser so far: errors of pages, and requests to other origins.
    pub(super) async fn complaints(&mut self) -> Value {
        self.does("complaints", Value::Null).await
    }
}

#[tokio::test]
async fn every_screen_is_accessible_in_every_form() {
    let place = workplace();
    let mut agent = place.serve(&["--mode", "direct"]);
    let code = "const all = await Promise.all([records_list({}), records_list({})]);\nconsole.log(all.length);";
    let run = json!({ "name": "run_code", "arguments": { "code": code } });
    agent.request("tools/call", super::knowing_tasks(run)).await.unwrap();
    waiting_call(&mut agent, "4711").await;
    let Some(mut browser) = Browser::open(&place).await else { return };
    let mut all = Vec::new();
    for screen in SCREENS.iter().copied().chain(["/ui/runs/first", "/ui/playground/first"]) {
        let found = browser.does("check", json!(screen)).await;
        all.extend(found.as_array().unwrap().iter().map(|found| format!("{screen} {found}")));
    }
    assert_eq!(all, Vec::<String>::new());
    assert_eq!(browser.complaints().await, json!([]));
}

#[tokio::test]
async fn an_approval_in_the_browser_lets_a_waiting_call_go_on() {
    let place = workplace();
    let Some(mut browser) = Browser::open(&place).await else { return };
    let mut agent = place.serve(&["--mode", "direct"]);
    // The page is open before anything waits: the stream brings the question.
    browser.does("go", json!("/ui/approvals")).await;
    browser.begins("allow once", Value::Null).await;
    let task = waiting_call(&mut agent, "4711").await;
    browser.answer("the question").await;
    let seen = ended(&mut agent, &task).await;
    assert_eq!(text(&seen["result"]), "gone", "{seen}");
    assert_eq!(references(&place).await, Vec::<String>::new());
    assert_eq!(browser.complaints().await, json!([]));
}

#[tokio::test]
async fn a_run_appears_while_it_runs() {
    let place = workplace();
    let Some(mut browser) = Browser::open(&place).await else { return };
    browser.does("go", json!("/ui/runs")).await;
    browser.begins("see", json!("main tbody tr")).await;
    let mut agent = place.serve(&["--mode", "direct"]);
    let code = "await records_list({});\nreturn await records_delete({ id: \"1\" });";
    let run = json!({ "name": "run_code", "arguments": { "code": code } });
    let created = agent.request("tools/call", super::knowing_tasks(run)).await.unwrap();
    let row = browser.answer("the run").await;
    assert!(row.as_str().unwrap().contains("typescript"), "{row}");
    // It waits for a person, and ends when one allows the call.
    browser.does("go", json!("/ui/approvals")).await;
    browser.does("allow once", Value::Null).await;
    let seen = ended(&mut agent, &created["result"]["taskId"]).await;
    assert_ne!(seen["result"]["isError"], json!(true), "{seen}");
}

#[tokio::test]
async fn a_hostile_server_does_nothing_in_the_browser() {
    let place = hostile();
    long_run(&mut place.connect(&[]).await).await;
    let Some(mut browser) = Browser::open(&place).await else { return };
    browser.does("go", json!("/ui/tools/records_list")).await;
    browser.does("press", json!("main form button")).await;
    for screen in SCREENS.iter().copied().chain(["/ui/runs/first", "/ui/playground/first"]) {
        browser.does("go", json!(screen)).await;
        let owned = browser.does("owned", Value::Null).await;
        assert_eq!(owned, json!(false), "{screen}");
    }
    assert_eq!(browser.complaints().await, json!([]));
}

/// A page of another port of this machine has the same site, so its requests carry the cookie.
#[tokio::test]
async fn a_page_of_another_origin_cannot_approve() {
    let place = workplace();
    let mut agent = place.serve(&["--mode", "direct"]);
    waiting_call(&mut agent, "4711").await;
    let reference = question(&place).await;
    let Some(mut browser) = Browser::open(&place).await else { return };
    let action = format!("{}/ui/approvals/{reference}", browser.origin);
    let evil = format!(
        "<title>evil</title><form method=post action=\"{action}\"><input name=answer value=once>\
         <input name=form_token value=guessed><button>x</button></form><iframe src=\"{action}\"></iframe>"
    );
    let router = Router::new().route("/", get(move || async move { Html(evil) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let status = browser.does("attack", json!(format!("http://{address}/"))).await;
    assert_eq!(status["form"], 403, "{status}");
    assert_eq!(status["fetch"], "refused", "{status}");
    assert_eq!(status["framed"], false, "{status}");
    assert_eq!(references(&place).await, [reference], "it still waits");
}
