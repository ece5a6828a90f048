//! `toolgate demo`

mod scripts;

use std::{collections::BTreeMap, env, fmt::Write, io, process::ExitCode};

use serde::Serialize;
use serde_json::{Value, json};
use toolgate_catalog::{RequestedMode, TokenCounter};
use toolgate_host::{HostSettings, ServerSetup, ToolHost, ToolSession};
use toolgate_upstream::{Endpoint, ServerSpec, StdioEndpoint};

use self::scripts::ScriptRun;
use super::{meta_call, text_of, tokens};
use crate::{
    cli::{Output, Unit},
    failure::{CommandResult, Failure},
    load, print,
    table::{grouped, percent, table},
};

/// How many lines of an answer are shown; all of it is counted.
const SHOWN_LINES: usize = 8;
const SHOWN_CHARACTERS: usize = 110;

/// One exchange of the demo's conversation.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    request: String,
    #[serde(skip)]
    result: Value,
    #[serde(skip)]
    answer: String,
    /// The cost of the exchange in the model's context.
    tokens: u64,
    /// Whether an agent that has all definitions would make it too.
    also_directly: bool,
}

/// Runs one of the demo's servers on stdin and stdout.
pub(crate) fn serve(name: &str) -> CommandResult {
    toolgate_demo::serve(name, io::stdin().lock(), io::stdout().lock())
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn run(output: Output) -> CommandResult {
    let host = ToolHost::start(settings()?);
    super::settle(&host).await;
    let outcome = present(&host, output.json).await;
    host.shutdown().await;
    outcome?;
    Ok(ExitCode::SUCCESS)
}

async fn present(host: &ToolHost, as_json: bool) -> Result<(), Failure> {
    let costs = tokens::count(host, Unit::Tokens).await;
    if costs.tools() == 0 {
        return Err(Failure::new("the demo's servers did not start")
            .hint("run `toolgate demo-server logging` and type a line to see why"));
    }
    if !as_json {
        print::line(
            "1. Ten demo servers, each a process of its own. The ordinary way puts all of this",
        );
        print::line("   into the model's context before its first word:\n");
        print::line(indented(&costs.render()));
        print::line(
            "\n2. Through toolgate the model sees a few tools and finds the rest. Its task: open a",
        );
        print::line("   ticket for the error that the services log most often.\n");
    }
    let steps = converse(&host.session(), as_json).await?;
    let (all, session) = costs.before_and_after();
    let exchanged: u64 = steps.iter().map(|step| step.tokens).sum();
    let direct: u64 = steps.iter().filter(|step| step.also_directly).map(|step| step.tokens).sum();
    let (before, after) = (all + direct, session + exchanged);
    let scripts = scripts::run(&host.session()).await?;
    if as_json {
        return print::json(&json!({
            "servers": host.settings().servers.len(),
            "tools": costs.tools(),
            "definitions": { "direct": all, "toolgate": session },
            "steps": steps,
            "exchanges": { "direct": direct, "toolgate": exchanged },
            "total": { "direct": before, "toolgate": after },
            "scripts": scripts,
        }));
    }
    print::line("3. What that cost the context, in tokens of o200k:\n");
    let row = |what: &str, directly: u64, through: u64| {
        vec![what.to_owned(), grouped(directly), grouped(through)]
    };
    let rows = vec![
        row(&format!("definitions of {} tools", costs.tools()), all, session),
        row("the conversation above", direct, exchanged),
        row("together", before, after),
    ];
    let columns = ["", ">directly", ">with toolgate"];
    print::line(indented(&table(&columns, rows)));
    print::line(format!(
        "\n   {} of the context saved. Definitions stay out of it however many servers you add.\n",
        percent(before.saturating_sub(after), before)
    ));
    present_scripts(&scripts);
    print::line("\n   Next: toolgate tokens --config FILE shows the cost of your own servers.");
    Ok(())
}

fn present_scripts(scripts: &[ScriptRun]) {
    print::line(
        "4. For several calls the model writes a script. It runs in a sandbox, its calls go to the",
    );
    print::line("   servers, and only what it prints or returns comes back:\n");
    for script in scripts {
        let text = format!("{}\n> {}", script.code.trim_end(), script.answer);
        let lines: Vec<String> = text.lines().map(cut).collect();
        print::line(indented(&lines.join("\n")) + "\n");
    }
    let row = |script: &ScriptRun| {
        let what = format!("{} script, {} calls", script.language, script.calls);
        let saved =
            percent(script.direct_tokens.saturating_sub(script.tokens), script.direct_tokens);
        vec![what, grouped(script.direct_tokens), grouped(script.tokens), saved]
    };
    let columns = ["", ">call by call", ">as a script", ">saved"];
    print::line(indented(&table(&columns, scripts.iter().map(row))));
}

/// What an agent would do, through the same meta-tools.
async fn converse(session: &ToolSession, quiet: bool) -> Result<Vec<Step>, Failure> {
    let mut steps = Vec::new();
    let mut ask = async |tool: &str, arguments: Value| {
        let request = format!("{tool}({arguments})");
        let step = exchange(session, request, tool, arguments).await?;
        if !quiet {
            print::line(indented(&step.render()) + "\n");
        }
        let answer = step.answer.clone();
        steps.push(step);
        Ok::<String, Failure>(answer)
    };
    ask("search_tools", json!({ "query": "error logs of the last hours", "limit": 3 })).await?;
    ask("get_tool_details", json!({ "names": ["logging_getLogs"] })).await?;
    let logs = ask(
        "call_tool",
        json!({ "name": "logging_getLogs", "arguments": { "level": "error", "since": "6h" } }),
    )
    .await?;
    ask("search_tools", json!({ "query": "open a ticket for a bug", "limit": 3 })).await?;
    ask("get_tool_details", json!({ "names": ["ticketing_createIssue"] })).await?;
    let title = most_frequent(&logs).unwrap_or_else(|| "Errors in the logs".to_owned());
    ask(
        "call_tool",
        json!({ "name": "ticketing_createIssue", "arguments": {
            "title": title, "body": "The error that was logged most often in the last six hours.", "priority": "high",
        } }),
    )
    .await?;
    Ok(steps)
}

/// Calls a meta-tool. The cost is that of the shown `request` and of the result.
async fn exchange(
    session: &ToolSession,
    request: String,
    tool: &str,
    arguments: Value,
) -> Result<Step, Failure> {
    let result = meta_call(session, tool, arguments).await?;
    let answer = text_of(&result);
    let counter = TokenCounter::shared();
    let tokens = (counter.count(&request) + counter.count(&answer)) as u64;
    Ok(Step { request, result, answer, tokens, also_directly: tool == "call_tool" })
}

/// The message that occurs most often in a list of log entries.
fn most_frequent(logs: &str) -> Option<String> {
    let entries: Vec<Value> = serde_json::from_str(logs).ok()?;
    let messages: Vec<&str> =
        entries.iter().filter_map(|entry| entry.get("message")?.as_str()).collect();
    let count = |message: &str| messages.iter().filter(|other| **other == message).count();
    messages.iter().max_by_key(|message| (count(message), **message)).map(ToString::to_string)
}

impl Step {
    fn render(&self) -> String {
        let mut text = format!("> {}", cut(&self.request));
        let lines: Vec<&str> = self.answer.lines().collect();
        for line in lines.iter().take(SHOWN_LINES) {
            let _ = write!(text, "\n  {}", cut(line));
        }
        if lines.len() > SHOWN_LINES {
            let _ = write!(text, "\n  … {} more lines", lines.len() - SHOWN_LINES);
        }
        format!("{text}\n  ({} tokens)", grouped(self.tokens))
    }
}

fn cut(line: &str) -> String {
    let characters = line.chars().count();
    if characters <= SHOWN_CHARACTERS {
        return line.to_owned();
    }
    let start: String = line.chars().take(SHOWN_CHARACTERS).collect();
    format!("{start}… ({} more characters)", characters - SHOWN_CHARACTERS)
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| format!("   {line}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// The demo's servers are this program again, in a hidden mode.
fn settings() -> Result<HostSettings, Failure> {
    let program = env::current_exe()
        .map_err(|error| Failure::new(format!("the program cannot find itself: {error}")))?;
    let servers = toolgate_demo::servers().iter().map(|server| {
        let endpoint = Endpoint::Stdio(StdioEndpoint {
            command: program.display().to_string(),
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
    settings.exposure.mode = RequestedMode::Auto;
    settings.code = load::code();
    Ok(settings)
}
