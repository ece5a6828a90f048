//! The page: who may open it, what it shows, and what it lets a person decide.

mod administering;
mod browser;
mod deciding;
mod everyday;
mod forms;
mod playground;
mod safety;
mod screens;
mod setup;
mod windows;

use reqwest::{RequestBuilder, Response, StatusCode, header, redirect};
use serde_json::{Value, json};
use toolgate_testkit::{Fixture, RawClient, within};

use crate::{
    fixtures::tool,
    support::{Gateway, Workplace, entry, until},
    typist::Typist,
};

/// A running `toolgate web`, and a browser without scripts that has opened it.
pub(super) struct OpenPage {
    _typist: Typist,
    /// `http://127.0.0.1:PORT`.
    pub(super) origin: String,
    pub(super) cookie: String,
    pub(super) http: reqwest::Client,
}

impl OpenPage {
    /// Starts the page, and opens its link.
    pub(super) async fn start(place: &Workplace) -> Self {
        let (typist, link) = started(place).await;
        Self::open(typist, &link).await
    }

    /// Opens the link of a page that was started.
    pub(super) async fn open(typist: Typist, link: &str) -> Self {
        let http = client();
        let opened = within("the page", http.get(link).send()).await.unwrap();
        assert_eq!(opened.status(), StatusCode::SEE_OTHER);
        let cookie = opened.headers()[header::SET_COOKIE].to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        Self { _typist: typist, origin: origin(link), cookie, http }
    }

    /// A screen, as its browser sees it.
    pub(super) async fn get(&self, path: &str) -> String {
        let response = self.ask(self.http.get(format!("{}{path}", self.origin))).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        within("the screen", response.text()).await.unwrap()
    }

    /// Sends a request with the cookie.
    pub(super) async fn ask(&self, request: RequestBuilder) -> Response {
        let request = request.header(header::COOKIE, &self.cookie);
        within("the page", request.send()).await.unwrap()
    }

    /// The token that the forms of this browser send.
    pub(super) async fn form_token(&self) -> String {
        let page = self.get("/ui/playground").await;
        let (_, rest) = page.split_once("name=\"form_token\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }

    /// Waits until the server of a tool has listed it.
    pub(super) async fn knows(&self, tool: &str) {
        until("the tool", async || {
            let shown = self.http.get(format!("{}/ui/tools/{tool}", self.origin));
            (self.ask(shown).await.status() == StatusCode::OK).then_some(())
        })
        .await;
    }

    /// Sends a form, as the browser does.
    pub(super) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let token = self.form_token().await;
        let body = form(&[&[("form_token", token.as_str())], fields].concat());
        let request = self.http.post(format!("{}{path}", self.origin)).body(body);
        self.ask(
            request
                .header(header::ORIGIN, &self.origin)
                .header("sec-fetch-site", "same-origin")
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded"),
        )
        .await
    }
}

/// Starts the page. Returns the link on its terminal.
pub(super) async fn started(place: &Workplace) -> (Typist, String) {
    let mut typist = Typist::start(place, &["web", "--no-open"]);
    let link = typist.line_with("/ui/open?token=").await;
    (typist, link)
}

pub(super) fn origin(link: &str) -> String {
    link.split("/ui/").next().unwrap().to_owned()
}

/// A client that follows no redirection.
pub(super) fn client() -> reqwest::Client {
    toolgate_http::client_builder().redirect(redirect::Policy::none()).build().unwrap()
}

pub(super) fn form(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

/// A server with a tool that only reads, and one that needs an approval.
pub(super) fn records() -> Fixture {
    let id = json!({ "id": { "type": "string", "description": "Which record" } });
    let mut list = tool("list", "List all records.", &json!({}), &[]);
    list["annotations"] = json!({ "readOnlyHint": true });
    let mut delete = tool("delete", "Delete a record for good.", &id, &["id"]);
    delete["annotations"] = json!({ "destructiveHint": true });
    let said = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    Fixture::new("records")
        .with_tools([list, delete])
        .with_answer("list", said("4711, 4712"))
        .with_answer("delete", said("gone"))
}

/// A workplace where `records_delete` needs an approval.
pub(super) fn workplace() -> Workplace {
    Workplace::new(&json!({
        "mcpServers": { "records": entry(&records()) },
        "policy": { "default": "allow", "rules": [
            { "tool": "records_delete", "verdict": "ask", "reason": "it cannot be undone" },
        ] },
    }))
}

/// Parameters of a client that knows tasks, so that its calls wait for a person.
pub(super) fn knowing_tasks(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "raw-client", "version": "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    params
}

/// Begins a call of `records_delete` that waits for a person. Returns its task.
pub(super) async fn waiting_call(client: &mut Gateway, id: &str) -> Value {
    let call = json!({ "name": "records_delete", "arguments": { "id": id } });
    let created = client.request("tools/call", knowing_tasks(call)).await.unwrap();
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    created["result"]["taskId"].clone()
}

/// The result of a task, once it has ended.
pub(super) async fn ended(client: &mut RawClient, task: &Value) -> Value {
    until("the task ended", async || {
        let params = knowing_tasks(json!({ "taskId": task }));
        let seen = client.request("tasks/get", params).await.unwrap()["result"].take();
        (seen["status"] != "working").then_some(seen)
    })
    .await
}

/// The names of the questions that wait.
pub(super) async fn references(place: &Workplace) -> Vec<String> {
    let waiting = place.run(&["approve", "--json"]).await.json();
    let all = waiting.as_array().unwrap().iter();
    all.map(|row| row["reference"].as_str().unwrap().to_owned()).collect()
}

/// The name of a question, once it waits. A call says that it waits before its question is stored.
pub(super) async fn question(place: &Workplace) -> String {
    until("the question", async || references(place).await.pop()).await
}
