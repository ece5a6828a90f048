//! A scripted agent does two tasks over each wire and in each mode, and counts what is in its context.
//! The table of `docs/agent.md` shows these numbers.

use std::{collections::BTreeMap, fmt::Write as _, fs, sync::Arc};

use futures::StreamExt as _;
use serde_json::{Value, json};
use toolgate_agent::{
    AgentCatalogue, AgentEvent, AgentServer, AgentTool, AllowedCallers, CallScope, Conversation,
    ConversationSettings, MetaMode, ModelSettings, ToolBox, ToolDiscovery, ToolOutput, ToolRequest,
    WireApi,
};
use toolgate_catalog::{ExposureKind, RequestedMode, TokenCounter, grouped};
use toolgate_host::{
    CodeSettings, HostSettings, MetaTool, ServerSetup, ToolHost, ToolQuery, ToolSession,
};
use toolgate_sandbox::PoolSettings;
use toolgate_testkit::{ScriptedModel, within};
use toolgate_upstream::{CallOptions, Endpoint, ServerSpec, StdioEndpoint};

use crate::support::program;

const WIRES: [(&str, WireApi); 4] = [
    ("Anthropic", WireApi::Anthropic),
    ("OpenAI Responses", WireApi::Responses),
    ("Chat Completions", WireApi::Completions),
    ("Gemini", WireApi::Gemini),
];
const TICKETS: &str = include_str!("../../../toolgate-demo/scripts/tickets.ts");
const BUDGET: &str = include_str!("../../../toolgate-demo/scripts/budget.py");

/// What the model does in one reply.
#[derive(Debug, Clone)]
enum Move {
    /// Searches in the way of the wire.
    Search(&'static str),
    /// Calls tools by their names, at once.
    Calls(Vec<(String, Value)>),
    /// Answers.
    Say(&'static str),
}

/// A task: what the model searches for before which calls, and the script that does the same.
struct Task {
    name: &'static str,
    question: &'static str,
    steps: Vec<(&'static str, Vec<(String, Value)>)>,
    script: (&'static str, &'static str),
}

/// The tokens in the context at the end.
#[derive(Debug, Clone, Copy)]
struct Cost {
    definitions: usize,
    messages: usize,
}

impl Cost {
    fn all(self) -> usize {
        self.definitions + self.messages
    }
}

/// The tools of a session, as the loop sees them.
struct Tools(ToolSession);

#[async_trait::async_trait]
impl ToolBox for Tools {
    fn catalogue(&self) -> AgentCatalogue {
        let catalog = self.0.host().catalog().read();
        let mut known = AgentCatalogue::default();
        for server in catalog.servers() {
            let (name, description) = (server.name.to_string(), server.description.clone());
            let description = description.unwrap_or_default();
            known.servers.push(AgentServer { name, description, remote: None });
            known.deferred.extend(catalog.tools_of(server.name.as_str()).iter().map(|tool| {
                AgentTool {
                    name: tool.name.to_string(),
                    description: tool.definition.description().to_owned(),
                    input_schema: tool.definition.input_schema(),
                    output_schema: tool.definition.output_schema(),
                    server: Some(server.name.to_string()),
                    callers: AllowedCallers::default(),
                    input_examples: Vec::new(),
                }
            }));
        }
        known
    }

    fn meta_tools(&self, mode: MetaMode) -> Vec<AgentTool> {
        let kind = match mode {
            MetaMode::Stable => ExposureKind::Stable,
            MetaMode::Code => ExposureKind::Code,
        };
        let text = |definition: &Value, key: &str| definition[key].as_str().unwrap().to_owned();
        let tools = self.0.meta_tools(kind).into_iter().map(|definition| AgentTool {
            name: text(&definition, "name"),
            description: text(&definition, "description"),
            input_schema: definition["inputSchema"].clone(),
            ..AgentTool::default()
        });
        tools.collect()
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<String>, ToolOutput> {
        let queries = vec![query.to_owned()];
        let query = ToolQuery { queries, limit: Some(limit), ..ToolQuery::default() };
        let found = self.0.find(&query).await.unwrap();
        Ok(found.tools.iter().map(|found| found.tool.name.to_string()).collect())
    }

    async fn call(&self, request: ToolRequest, _scope: &CallScope) -> ToolOutput {
        let arguments = request.arguments.as_object().cloned().unwrap_or_default();
        let options = CallOptions::default();
        // As in a chat: only the meta-tools shorten what they return.
        let result = match MetaTool::named(&request.name) {
            Some(_) => self.0.call(&request.name, arguments, options).await.unwrap(),
            None => self.0.call_exact(&request.name, arguments, options).await.unwrap(),
        };
        assert_ne!(result["isError"], true, "{}: {result}", request.name);
        let texts = result["content"].as_array().unwrap().iter();
        let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
        ToolOutput::text(with_fixed_ids(&texts.join("\n")))
    }
}

/// The ids of outputs are random, and so is the number of their tokens.
fn with_fixed_ids(text: &str) -> String {
    let mut parts = text.split("\"out_");
    let mut fixed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        fixed.push_str("\"out_59a0c1f2e8d7b643");
        fixed.push_str(part.trim_start_matches(|next: char| next.is_ascii_hexdigit()));
    }
    fixed
}

/// The ten servers of the demo.
async fn demo() -> ToolHost {
    let servers = toolgate_demo::servers().iter().map(|server| {
        let endpoint = Endpoint::Stdio(StdioEndpoint {
            command: program().to_owned(),
            args: vec!["demo-server".to_owned(), server.name.clone()],
            env: BTreeMap::new(),
            cwd: None,
        });
        let mut setup = ServerSetup::new(ServerSpec::new(server.name.as_str(), endpoint));
        setup.entry.prefix.clone_from(&server.prefix);
        setup.entry.description = Some(server.description.clone());
        setup
    });
    let mut settings = HostSettings::new(servers.collect());
    settings.exposure.mode = RequestedMode::Deferred;
    settings.code = Some(CodeSettings::new(PoolSettings::new(program(), ["sandbox-worker"])));
    let host = ToolHost::start(settings);
    host.all_known().await;
    host
}

async fn data(host: &ToolHost, tool: &str, arguments: Value) -> Value {
    let arguments = arguments.as_object().cloned().unwrap();
    let result = host.session().call_exact(tool, arguments, CallOptions::default()).await.unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{result}"))
}

/// The two examples, with the calls that their data leads to.
async fn tasks(host: &ToolHost) -> [Task; 2] {
    let errors = json!({ "level": "error", "since": "1h" });
    let logs = data(host, "logging_getLogs", errors.clone()).await;
    let mut counts: Vec<(String, usize)> = Vec::new();
    for entry in logs.as_array().unwrap() {
        let message = entry["message"].as_str().unwrap();
        match counts.iter_mut().find(|(known, _)| known == message) {
            Some((_, count)) => *count += 1,
            None => counts.push((message.to_owned(), 1)),
        }
    }
    let tickets = counts.iter().map(|(title, count)| {
        let body = format!("Logged {count} times in the last hour.");
        let arguments = json!({ "title": title, "body": body, "labels": ["bug"] });
        ("ticketing_createIssue".to_owned(), arguments)
    });
    let tickets = Task {
        name: "logs to tickets",
        question: "Open one ticket for each distinct error of the last hour.",
        steps: vec![
            ("error logs of the last hour", vec![("logging_getLogs".to_owned(), errors)]),
            ("open a ticket", tickets.collect()),
        ],
        script: ("typescript", TICKETS),
    };
    let department = json!({ "department": "engineering" });
    let team = data(host, "get_team_members", department.clone()).await;
    let mut levels: Vec<&str> = Vec::new();
    for member in team.as_array().unwrap() {
        let level = member["level"].as_str().unwrap();
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    let budgets =
        levels.iter().map(|level| ("get_budget_by_level".to_owned(), json!({ "level": level })));
    let expenses = team.as_array().unwrap().iter().map(|member| {
        let arguments = json!({ "employee_id": member["id"], "quarter": "Q3" });
        ("get_expenses".to_owned(), arguments)
    });
    let budget = Task {
        name: "travel budget",
        question: "Who in engineering spent more than the travel budget of their level in Q3?",
        steps: vec![
            ("members of a team", vec![("get_team_members".to_owned(), department)]),
            ("travel budget of a level", budgets.collect()),
            ("expenses of a person in a quarter", expenses.collect()),
        ],
        script: ("python", BUDGET),
    };
    [tickets, budget]
}

impl Task {
    /// What a model does in a mode.
    fn moves(&self, discovery: ToolDiscovery) -> Vec<Move> {
        let one = |name: &str, arguments: Value| Move::Calls(vec![(name.to_owned(), arguments)]);
        let mut moves = Vec::new();
        let mut used = Vec::new();
        for (query, calls) in &self.steps {
            let names = [calls[0].0.clone()];
            match discovery {
                ToolDiscovery::Direct => moves.push(Move::Calls(calls.clone())),
                ToolDiscovery::Search => {
                    moves.push(Move::Search(query));
                    moves.push(Move::Calls(calls.clone()));
                }
                ToolDiscovery::Stable => {
                    moves.push(one("search_tools", json!({ "query": query, "limit": 3 })));
                    moves.push(one("get_tool_details", json!({ "names": names })));
                    let inner = calls.iter().map(|(name, arguments)| {
                        let arguments = json!({ "name": name, "arguments": arguments });
                        ("call_tool".to_owned(), arguments)
                    });
                    moves.push(Move::Calls(inner.collect()));
                }
                ToolDiscovery::Code => used.push((*query, calls[0].0.clone())),
                other => panic!("{other:?}"),
            }
        }
        if discovery == ToolDiscovery::Code {
            let (language, code) = self.script;
            let queries: Vec<&str> = used.iter().map(|(query, _)| *query).collect();
            let names: Vec<&str> = used.iter().map(|(_, name)| name.as_str()).collect();
            moves.push(one("search_tools", json!({ "queries": queries, "limit": 3 })));
            moves.push(one("get_tool_details", json!({ "names": names, "format": language })));
            moves.push(one("run_code", json!({ "code": code, "language": language })));
        }
        moves.push(Move::Say("Done."));
        moves
    }
}

/// A reply of a model on a wire.
fn reply(api: WireApi, place: usize, made: &Move) -> Value {
    let id = |call: usize| format!("call_{place}_{call}");
    let searched;
    let calls = match made {
        Move::Calls(calls) => calls.as_slice(),
        Move::Search(query) => {
            let arguments = json!({ "query": query, "limit": 3 });
            if api == WireApi::Responses {
                let item = json!({
                    "id": "ts_1", "type": "tool_search_call", "call_id": id(0), "execution": "client",
                    "arguments": arguments, "status": "completed",
                });
                return json!({ "id": "r", "object": "response", "status": "completed", "output": [item] });
            }
            searched = [("search_tools".to_owned(), arguments)];
            &searched
        }
        Move::Say(_) => &[],
    };
    let text = if let Move::Say(text) = made { Some(*text) } else { None };
    let calls = calls.iter().enumerate();
    match api {
        WireApi::Anthropic => {
            let text = text.map(|text| json!({ "type": "text", "text": text }));
            let calls = calls.map(|(at, (name, input))| {
                json!({ "type": "tool_use", "id": id(at), "name": name, "input": input })
            });
            let content: Vec<Value> = text.into_iter().chain(calls).collect();
            let stop = if matches!(made, Move::Say(_)) { "end_turn" } else { "tool_use" };
            json!({ "id": "m", "type": "message", "role": "assistant", "model": "m", "content": content,
                "stop_reason": stop, "usage": { "input_tokens": 1, "output_tokens": 1 } })
        }
        WireApi::Responses => {
            let text = text.map(|text| {
                json!({ "id": "m", "type": "message", "role": "assistant", "status": "completed",
                    "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
            });
            let calls = calls.map(|(at, (name, arguments))| {
                json!({ "id": format!("fc_{}", id(at)), "type": "function_call", "call_id": id(at), "name": name,
                    "arguments": arguments.to_string(), "status": "completed" })
            });
            let output: Vec<Value> = text.into_iter().chain(calls).collect();
            json!({ "id": "r", "object": "response", "status": "completed", "output": output })
        }
        WireApi::Completions => {
            let calls: Vec<Value> = calls
                .map(|(at, (name, arguments))| {
                    json!({ "id": id(at), "type": "function",
                        "function": { "name": name, "arguments": arguments.to_string() } })
                })
                .collect();
            let mut message = json!({ "role": "assistant", "content": text });
            if !calls.is_empty() {
                message["tool_calls"] = json!(calls);
            }
            let stop = if text.is_some() { "stop" } else { "tool_calls" };
            json!({ "id": "c", "object": "chat.completion", "choices": [
                { "index": 0, "message": message, "finish_reason": stop }] })
        }
        WireApi::Gemini => {
            let text = text.map(|text| json!({ "text": text }));
            let calls = calls.map(|(at, (name, arguments))| {
                json!({ "functionCall": { "id": id(at), "name": name, "args": arguments } })
            });
            let parts: Vec<Value> = text.into_iter().chain(calls).collect();
            json!({ "candidates": [{ "index": 0, "finishReason": "STOP",
                "content": { "role": "model", "parts": parts } }] })
        }
    }
}

/// Does a task, and counts what the last request has in the model's context.
async fn cost(
    host: &ToolHost,
    api: WireApi,
    discovery: Option<ToolDiscovery>,
    task: &Task,
) -> Cost {
    let model = ScriptedModel::start().await.unwrap();
    let mut settings = ModelSettings::new(api, model.url(), "m");
    (settings.discovery, settings.stream) = (discovery, false);
    let provider = settings.provider().unwrap();
    let moves = task.moves(provider.discovery());
    let replies = moves.iter().enumerate().map(|(place, made)| reply(api, place, made));
    model.script(replies.collect());
    let tools: Arc<dyn ToolBox> = Arc::new(Tools(host.session()));
    let settings =
        ConversationSettings { window: Some(1_000_000), ..ConversationSettings::default() };
    let mut conversation = Conversation::new(provider, tools, settings).unwrap();
    let mut turn = conversation.ask(task.question);
    loop {
        match within("the next event", turn.next()).await.unwrap() {
            AgentEvent::Done(end) => break assert_eq!(end.text, "Done."),
            AgentEvent::Failed { error } => panic!("{api:?} {discovery:?} {}: {error}", task.name),
            AgentEvent::ToolResult { name, is_error, .. } => assert!(!is_error, "{name}"),
            _ => {}
        }
    }
    drop(turn);
    let requests = model.requests();
    assert_eq!(requests.len(), moves.len());
    in_context(requests.last().unwrap())
}

/// Definitions that a model has, and all messages without them.
fn in_context(request: &Value) -> Cost {
    let tokens = |value: &Value| TokenCounter::shared().count(&value.to_string());
    let none = Vec::new();
    let tools = request["tools"].as_array().unwrap_or(&none);
    let is_deferred = |tool: &&Value| tool["defer_loading"] == true;
    let mut definitions: usize = tools.iter().filter(|tool| !is_deferred(tool)).map(tokens).sum();
    let key = ["messages", "input", "contents"].into_iter().find(|key| request[key].is_array());
    let mut messages = request[key.unwrap()].clone();
    // Tools that a search has loaded: named by a reference, or defined in the output of the search.
    let mut loaded: Vec<String> = Vec::new();
    visit(&mut messages, &mut |value| {
        if value["type"] == "tool_reference" {
            loaded.extend(value["tool_name"].as_str().map(str::to_owned));
        }
        if value["type"] == "tool_search_output" {
            definitions += tokens(&value["tools"]);
            value["tools"] = json!([]);
        }
    });
    loaded.sort_unstable();
    loaded.dedup();
    for tool in tools.iter().filter(is_deferred) {
        if loaded.iter().any(|name| tool["name"] == name.as_str()) {
            definitions += tokens(tool);
        }
    }
    Cost { definitions, messages: tokens(&messages) }
}

fn visit(value: &mut Value, look: &mut impl FnMut(&mut Value)) {
    look(value);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, look)),
        Value::Object(members) => members.values_mut().for_each(|member| visit(member, look)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_the_agent_page_is_what_a_scripted_agent_counts() {
    let host = demo().await;
    let mut rows = String::new();
    for task in tasks(&host).await {
        for (wire, api) in WIRES {
            let direct = cost(&host, api, Some(ToolDiscovery::Direct), &task).await;
            for (mode, discovery) in [("default", None), ("code", Some(ToolDiscovery::Code))] {
                let own = cost(&host, api, discovery, &task).await;
                let number = |tokens: usize| grouped(tokens as u64);
                let saved = 100 - own.all() * 100 / direct.all();
                writeln!(
                    rows,
                    "| {} | {wire} | {mode} | {} | {} | {} | {} | {} | {} | {saved} % |",
                    task.name,
                    number(own.definitions),
                    number(own.messages),
                    number(own.all()),
                    number(direct.definitions),
                    number(direct.messages),
                    number(direct.all()),
                )
                .unwrap();
                assert!(own.definitions * 2 < direct.definitions, "{wire} {mode}");
            }
        }
    }
    host.shutdown().await;
    println!("{rows}");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = fs::read_to_string(format!("{root}/docs/agent.md")).unwrap();
    assert!(page.contains(&rows), "docs/agent.md has other numbers than\n{rows}");
}
