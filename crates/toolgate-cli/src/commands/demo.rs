//! `toolgate demo`

mod picture;
mod scripts;

use std::{
    collections::BTreeMap,
    env,
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use serde::Serialize;
use serde_json::{Value, json};
use toolgate_catalog::{RequestedMode, TokenCounter};
use toolgate_host::{HostSettings, ServerSetup, ToolHost, ToolSession};
use toolgate_upstream::{Endpoint, ServerSpec, StdioEndpoint};

use self::{picture::Bars, scripts::ScriptRun};
use super::{meta_call, text_of, tokens};
use crate::{
    cli::{Demo, Unit},
    failure::{CommandResult, Failure},
    load, print,
    table::{grouped, percent, table},
};

/// How many servers are shown one by one.
const SHOWN_SERVERS: usize = 3;
/// How much of a line is shown; all of it is counted.
const SHOWN_CHARACTERS: usize = 74;

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

pub(crate) async fn run(arguments: &Demo) -> CommandResult {
    let host = ToolHost::start(settings()?);
    super::settle(&host).await;
    let outcome = present(&host, arguments).await;
    host.shutdown().await;
    outcome?;
    Ok(ExitCode::SUCCESS)
}

async fn present(host: &ToolHost, arguments: &Demo) -> Result<(), Failure> {
    let as_json = arguments.output.json;
    let costs = tokens::count(host, Unit::Tokens).await;
    if costs.tools() == 0 {
        return Err(Failure::new("the demo's servers did not start")
            .hint("run `toolgate demo-server logging` and type a line to see why"));
    }
    let screens = Screens::new(as_json || arguments.picture.is_some());
    screens.show(&format!(
        "1. Ten demo servers, each a process of its own. Without toolgate the model gets\n   \
         all of these definitions before its first word:\n\n{}\n",
        indented(&costs.dearest(SHOWN_SERVERS))
    ));
    let steps = converse(&host.session()).await?;
    let conversation: Vec<String> = steps.iter().map(|step| indented(&step.render())).collect();
    screens.next(&format!(
        "2. Through toolgate it gets a few tools, and finds the others. Its task: open a\n   \
         ticket for the error that the services log most often.\n\n{}\n",
        conversation.join("\n")
    ));
    let (before, after) = costs.before_and_after();
    let exchanged: u64 = steps.iter().map(|step| step.tokens).sum();
    let direct: u64 = steps.iter().filter(|step| step.also_directly).map(|step| step.tokens).sum();
    let all = before.definitions + before.instructions + direct;
    let paid = after.definitions + after.instructions + exchanged;
    let scripts = scripts::run(&host.session()).await?;
    if as_json {
        return print::json(&json!({
            "servers": host.settings().servers.len(),
            "tools": costs.tools(),
            "definitions": { "direct": before.definitions, "toolgate": after.definitions },
            "instructions": { "direct": before.instructions, "toolgate": after.instructions },
            "steps": steps,
            "exchanges": { "direct": direct, "toolgate": exchanged },
            "total": { "direct": all, "toolgate": paid },
            "scripts": scripts,
        }));
    }
    if let Some(folder) = &arguments.picture {
        let start = |cost: &tokens::SessionCost| cost.definitions + cost.instructions;
        let mut bars = vec![
            Bars::new(format!("{} tools at the start", costs.tools()), start(before), start(after)),
            Bars::new("one task, with its conversation".to_owned(), all, paid),
        ];
        bars.extend(scripts.last().map(|script| {
            let what = format!("{} calls in one script", script.calls);
            Bars::new(what, script.direct_tokens, script.tokens)
        }));
        return picture::write(folder, &bars);
    }
    let row = |what: &str, directly: u64, through: u64| {
        vec![what.to_owned(), grouped(directly), grouped(through)]
    };
    let definitions = format!("definitions of {} tools", costs.tools());
    let rows = vec![
        row(&definitions, before.definitions, after.definitions),
        row("instructions", before.instructions, after.instructions),
        row("the conversation above", direct, exchanged),
        row("together", all, paid),
    ];
    let columns = ["", ">directly", ">with toolgate"];
    screens.show(&format!(
        "3. What that cost the context, in tokens of o200k:\n\n{}\n\n   {} saved. However many servers \
         you add, their definitions stay out.\n",
        indented(&table(&columns, rows)),
        percent(all.saturating_sub(paid), all)
    ));
    present_scripts(&screens, &scripts);
    Ok(())
}

/// Shows the demo in parts. A person at a terminal reads one part at a time.
struct Screens {
    is_quiet: bool,
    waits: bool,
}

impl Screens {
    fn new(is_quiet: bool) -> Self {
        let waits = !is_quiet && io::stdin().is_terminal() && io::stdout().is_terminal();
        Self { is_quiet, waits }
    }

    fn show(&self, text: &str) {
        if !self.is_quiet {
            print::line(text);
        }
    }

    /// Shows the next part, when the person has read the one before.
    fn next(&self, text: &str) {
        if self.waits {
            print::note("   (Enter continues)");
            let _ = io::stdin().read_line(&mut String::new());
        }
        self.show(text);
    }
}

fn present_scripts(screens: &Screens, scripts: &[ScriptRun]) {
    let mut text =
        "4. For several calls the model writes a script. It runs in a sandbox, and only\n   \
                    what it prints or returns comes back:\n\n"
            .to_owned();
    if let Some(script) = scripts.first() {
        let answer = script.answer.lines().next().unwrap_or_default();
        let shown = format!("{}\n> {answer}", script.code.trim_end());
        let lines: Vec<String> = shown.lines().filter(|line| !line.is_empty()).map(cut).collect();
        text += &indented(&lines.join("\n"));
    }
    let row = |script: &ScriptRun| {
        let what = format!("{} script, {} calls", script.language, script.calls);
        let saved =
            percent(script.direct_tokens.saturating_sub(script.tokens), script.direct_tokens);
        vec![what, grouped(script.direct_tokens), grouped(script.tokens), saved]
    };
    let columns = ["", ">call by call", ">as a script", ">saved"];
    let rows = indented(&table(&columns, scripts.iter().map(row)));
    let next = "Next: `toolgate tokens FILE` shows the cost of your own servers.";
    screens.next(&format!("{text}\n\n{rows}\n\n   {next}"));
}

/// What an agent would do, through the same meta-tools.
async fn converse(session: &ToolSession) -> Result<Vec<Step>, Failure> {
    let mut steps = Vec::new();
    let mut ask = async |tool: &str, arguments: Value| {
        let request = format!("{tool}({arguments})");
        let step = exchange(session, request, tool, arguments).await?;
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
    /// The request, the first line of the answer, and the cost.
    fn render(&self) -> String {
        let first = self.answer.lines().next().unwrap_or_default();
        let cost = format!("({} tokens)", grouped(self.tokens));
        let width = SHOWN_CHARACTERS.saturating_sub(cost.len() + 3);
        format!("> {}\n  {} {cost}", cut(&self.request), shortened(first, width))
    }
}

fn cut(line: &str) -> String {
    shortened(line, SHOWN_CHARACTERS)
}

fn shortened(line: &str, most: usize) -> String {
    if line.chars().count() <= most {
        return line.to_owned();
    }
    let start: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{start}…")
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
