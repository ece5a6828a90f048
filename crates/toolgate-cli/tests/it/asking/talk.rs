//! Clients of both eras over both transports, with or without elicitation.

use serde_json::{Value, json};
use toolgate_testkit::RawClient;

use crate::{
    http::HttpGateway,
    support::{Gateway, Workplace},
};

/// How a client talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    StdioLegacy,
    StdioModern,
    HttpLegacy,
    HttpModern,
}

impl Way {
    pub(super) const ALL: [Self; 4] =
        [Self::StdioLegacy, Self::StdioModern, Self::HttpLegacy, Self::HttpModern];
}

/// A client.
pub(super) enum Talk {
    StdioLegacy(Gateway),
    StdioModern(Gateway, Manners),
    HttpLegacy(Line, String),
    HttpModern(Line),
}

/// What a client says of itself.
#[derive(Debug, Clone)]
pub(super) struct Manners {
    pub(super) name: &'static str,
    pub(super) can_be_asked: bool,
    /// Whether it can be asked to visit a page.
    pub(super) visits_pages: bool,
}

/// A connection over HTTP.
#[derive(Debug)]
pub(super) struct Line {
    url: String,
    token: Option<String>,
    manners: Manners,
    http: reqwest::Client,
}

impl Manners {
    pub(super) const ALONE: Self =
        Self { name: "lonely", can_be_asked: false, visits_pages: false };
    pub(super) const ASKED: Self = Self { name: "kind", can_be_asked: true, visits_pages: false };

    fn capabilities(&self) -> Value {
        match (self.can_be_asked, self.visits_pages) {
            (false, _) => json!({}),
            (true, false) => json!({ "elicitation": { "form": {} } }),
            (true, true) => json!({ "elicitation": { "form": {}, "url": {} } }),
        }
    }

    fn info(&self) -> Value {
        json!({ "name": self.name, "version": "1" })
    }

    pub(super) fn initialize(&self) -> Value {
        json!({
            "protocolVersion": "2025-11-25", "capabilities": self.capabilities(),
            "clientInfo": self.info(),
        })
    }

    pub(super) fn modern(&self, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": self.info(),
            "io.modelcontextprotocol/clientCapabilities": self.capabilities(),
        });
        params
    }
}

impl Talk {
    /// Starts a gateway and a client. Over HTTP the gateway is returned too.
    pub(super) async fn start(
        workplace: &Workplace,
        way: Way,
        manners: Manners,
    ) -> (Self, Option<HttpGateway>) {
        match way {
            Way::StdioLegacy => {
                let mut client = workplace.serve(&[]);
                client.request("initialize", manners.initialize()).await.unwrap();
                client.notify("notifications/initialized", json!({})).await.unwrap();
                (Self::StdioLegacy(client), None)
            }
            Way::StdioModern => (Self::StdioModern(workplace.serve(&[]), manners), None),
            Way::HttpLegacy | Way::HttpModern => {
                let gateway = workplace.serve_http(&[]).await;
                let talk = Self::over_http(&gateway, way, manners, None).await;
                (talk, Some(gateway))
            }
        }
    }

    /// A client of a gateway that runs.
    pub(super) async fn over_http(
        gateway: &HttpGateway,
        way: Way,
        manners: Manners,
        token: Option<&str>,
    ) -> Self {
        let (url, token) = (gateway.url().to_owned(), token.map(str::to_owned));
        let line =
            Line { url, token, manners, http: toolgate_http::client_builder().build().unwrap() };
        if way == Way::HttpModern {
            return Self::HttpModern(line);
        }
        let body = message(&json!(0), "initialize", &line.manners.initialize());
        let answer = line.post(&[], &body).await;
        let session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        line.post(&[("mcp-session-id", &session)], &ready).await;
        Self::HttpLegacy(line, session)
    }

    /// Calls a tool, and returns the result. `person` answers input requests.
    pub(super) async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        person: impl AsyncFn(Value) -> Value,
    ) -> Value {
        let call = json!({ "name": tool, "arguments": arguments });
        match self {
            Self::StdioLegacy(client) => stdio_legacy(client, call, person).await,
            Self::StdioModern(client, manners) => {
                modern(call, person, async |params| {
                    client.request("tools/call", manners.modern(params)).await.unwrap()
                })
                .await
            }
            Self::HttpLegacy(line, session) => line.legacy(session, &call, person).await,
            Self::HttpModern(line) => {
                let headers = [
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", tool),
                ];
                modern(call, person, async |params| {
                    let body = message(&json!(1), "tools/call", &line.manners.modern(params));
                    let answer = line.post(&headers, &body).await.text().await.unwrap();
                    serde_json::from_str(&answer)
                        .unwrap_or_else(|error| panic!("{error}: {answer}"))
                })
                .await
            }
        }
    }

    /// Calls a tool without input requests.
    pub(super) async fn call_alone(&mut self, tool: &str, arguments: Value) -> Value {
        let nobody = async |question: Value| panic!("nobody can be asked: {question}");
        self.call(tool, arguments, nobody).await
    }
}

fn message(id: &Value, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn result(mut answer: Value) -> Value {
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

async fn stdio_legacy(
    client: &mut RawClient,
    call: Value,
    person: impl AsyncFn(Value) -> Value,
) -> Value {
    let id = client.begin("tools/call", call).await.unwrap();
    loop {
        let mut heard: Value = serde_json::from_str(&client.line().await.unwrap()).unwrap();
        if heard["method"] == "elicitation/create" {
            let said = person(heard["params"].take()).await;
            let answer = json!({ "jsonrpc": "2.0", "id": heard["id"], "result": said });
            client.send_line(&answer.to_string()).await.unwrap();
        } else if heard["id"] == id {
            return result(heard);
        }
    }
}

/// Asks until the result is complete.
async fn modern(
    call: Value,
    person: impl AsyncFn(Value) -> Value,
    mut request: impl AsyncFnMut(Value) -> Value,
) -> Value {
    let mut params = call.clone();
    loop {
        let mut told = result(request(params).await);
        if told["resultType"] != "input_required" {
            return told;
        }
        let mut responses = json!({});
        for (key, question) in told["inputRequests"].as_object().unwrap() {
            responses[key] = person(question["params"].clone()).await;
        }
        params = call.clone();
        params["requestState"] = told["requestState"].take();
        params["inputResponses"] = responses;
    }
}

impl Line {
    async fn post(&self, headers: &[(&str, &str)], body: &Value) -> reqwest::Response {
        let mut request = self
            .http
            .post(&self.url)
            .header("accept", "application/json, text/event-stream")
            .json(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        answer
    }

    /// Reads the stream of a call, and answers its input requests.
    async fn legacy(
        &self,
        session: &str,
        call: &Value,
        person: impl AsyncFn(Value) -> Value,
    ) -> Value {
        let headers = [("mcp-session-id", session)];
        let mut stream = self.post(&headers, &message(&json!(1), "tools/call", call)).await;
        let mut text = String::new();
        loop {
            let chunk = stream.chunk().await.unwrap().expect("an answer before the end");
            text.push_str(std::str::from_utf8(&chunk).unwrap());
            while let Some((event, rest)) = text.split_once("\n\n") {
                let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
                let heard: Option<Value> = serde_json::from_str(&data.collect::<String>()).ok();
                text = rest.to_owned();
                let Some(mut heard) = heard else { continue };
                if heard["method"] == "elicitation/create" {
                    let said = person(heard["params"].take()).await;
                    let answer = json!({ "jsonrpc": "2.0", "id": heard["id"], "result": said });
                    self.post(&headers, &answer).await;
                } else if heard["id"] == 1 {
                    return result(heard);
                }
            }
        }
    }
}
