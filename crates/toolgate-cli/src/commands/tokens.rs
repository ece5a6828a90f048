//! `toolgate tokens`

use std::process::ExitCode;

use serde::Serialize;
use toolgate_catalog::{CHARACTERS_A_TOKEN, TokenCounter};
use toolgate_host::ToolHost;

use crate::{
    cli::{Globals, Tokens, Unit},
    failure::CommandResult,
    load, print,
    table::{grouped, table},
};

/// The cost of all definitions, and of a session.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Costs {
    unit: Unit,
    context_window: u64,
    servers: Vec<Row>,
    total: Row,
    /// The start of a session: the meta-tools, and the tools that are always loaded.
    session: Row,
    exposure: String,
    reason: String,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    name: String,
    tools: u64,
    cost: u64,
    /// Of the context window, as a fraction.
    share: f64,
}

/// The length of a text.
#[derive(Debug, Serialize)]
struct TextLength {
    unit: Unit,
    count: u64,
}

pub(crate) async fn run(globals: &Globals, arguments: &Tokens) -> CommandResult {
    if let Some(file) = &arguments.text {
        let text = super::read_text(file, "name a text, or `-` to read it from stdin")?;
        let length = TextLength { unit: arguments.unit, count: cost(&text, arguments.unit) };
        print::show(arguments.output.json, &length, || length.count)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (loaded, host) = super::start(globals, None)?;
    // The cache may be out of date, so the servers are asked.
    super::settle(&host).await;
    let costs = count(&host, arguments.unit).await;
    let missing = uncounted(&host);
    host.shutdown().await;
    print::show(arguments.output.json, &costs, || costs.render())?;
    for note in &missing {
        print::note(note);
    }
    let complete = missing.is_empty() && !load::has_errors(&loaded.configuration.problems);
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Servers whose tools are not in the sums, and why.
fn uncounted(host: &ToolHost) -> Vec<String> {
    let settings = host.settings();
    let servers = settings.servers.iter().map(|setup| setup.spec.name.as_str());
    let unknown = servers.filter(|name| host.catalog().read().tools_of(name).is_empty());
    unknown
        .filter_map(|name| {
            let failure = host.servers().state(name)?.failure?;
            let (reason, action) = (failure.reason, failure.action);
            Some(format!("error: server `{name}` is not counted: {reason}\n  hint: {action}"))
        })
        .collect()
}

/// Counts the cost of all definitions, and the cost of a session that starts now.
pub(crate) async fn count(host: &ToolHost, unit: Unit) -> Costs {
    let session = host.session();
    let shown = session.list_tools().await;
    let exposure = session.exposure().await;
    let context_window = host.settings().exposure.context_window;
    let row = |name: String, tools: u64, cost: u64| Row {
        name,
        tools,
        cost,
        share: share(cost, context_window, unit),
    };
    let catalog = host.catalog().read();
    let servers: Vec<Row> = catalog
        .servers()
        .map(|entry| {
            let tools = catalog.tools_of(entry.name.as_str());
            let cost = tools.iter().map(|tool| match unit {
                Unit::Tokens => u64::from(tool.definition.tokens()),
                Unit::Characters => tool.definition.characters() as u64,
            });
            row(entry.name.to_string(), tools.len() as u64, cost.sum())
        })
        .collect();
    let total = row(
        "all servers".to_owned(),
        servers.iter().map(|row| row.tools).sum(),
        servers.iter().map(|row| row.cost).sum(),
    );
    let paid = shown.iter().map(|definition| {
        let seen = serde_json::json!({
            "name": definition["name"],
            "description": definition["description"],
            "inputSchema": definition["inputSchema"],
        });
        cost(&seen.to_string(), unit)
    });
    let session = row("a session now".to_owned(), shown.len() as u64, paid.sum());
    Costs {
        unit,
        context_window,
        servers,
        total,
        session,
        exposure: exposure.kind.to_string(),
        reason: exposure.reason.to_string(),
    }
}

fn cost(text: &str, unit: Unit) -> u64 {
    match unit {
        Unit::Tokens => TokenCounter::shared().count(text) as u64,
        Unit::Characters => text.chars().count() as u64,
    }
}

/// The part of a window of so many tokens.
#[expect(clippy::cast_precision_loss, reason = "a share needs no more than a double has")]
fn share(cost: u64, window: u64, unit: Unit) -> f64 {
    let limit = match unit {
        Unit::Tokens => window,
        Unit::Characters => window.saturating_mul(CHARACTERS_A_TOKEN),
    };
    cost as f64 / limit.max(1) as f64
}

impl Costs {
    /// A table, dearest server first.
    pub(crate) fn render(&self) -> String {
        let row = |row: &Row| {
            let share = format!("{:.1} %", row.share * 100.0);
            vec![row.name.clone(), grouped(row.tools), grouped(row.cost), share]
        };
        let mut sorted = self.servers.clone();
        sorted.sort_by(|left, right| right.cost.cmp(&left.cost).then(left.name.cmp(&right.name)));
        let rows = sorted.iter().chain([&self.total, &self.session]).map(row).collect::<Vec<_>>();
        let unit = match self.unit {
            Unit::Tokens => ">tokens",
            Unit::Characters => ">characters",
        };
        let columns = ["server", ">tools", unit, ">of context"];
        format!("{}\n\nA session is {}: {}.", table(&columns, rows), self.exposure, self.reason)
    }

    /// The cost without and with toolgate.
    pub(crate) fn before_and_after(&self) -> (u64, u64) {
        (self.total.cost, self.session.cost)
    }

    /// How many tools there are.
    pub(crate) fn tools(&self) -> u64 {
        self.total.tools
    }
}
