//! `toolgate tokens`

use std::{collections::BTreeMap, process::ExitCode};

use serde::Serialize;
use serde_json::{Value, json};
use toolgate_catalog::{CHARACTERS_A_TOKEN, ExposureKind, Reason, TokenCounter};
use toolgate_gateway::instructions_in;
use toolgate_host::{ToolHost, ToolSession};
use toolgate_store::utc;

use crate::{
    cli::{Globals, Tokens, Unit},
    failure::CommandResult,
    load, print,
    table::{grouped, table},
};

/// Shows what sessions did not have to read, by hour.
fn saved(as_json: bool) -> CommandResult {
    let all = load::required_store()?.savings().read();
    let mut hours: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for each in &all {
        let hour = hours.entry(each.time / HOUR).or_default();
        (hour.0, hour.1) = (hour.0 + each.definitions, hour.1 + each.results);
    }
    if as_json {
        let rows = hours.iter().map(|(hour, (definitions, results))| {
            json!({ "hour": utc(hour * HOUR / 1_000), "definitions": definitions, "results": results })
        });
        print::json(&rows.collect::<Vec<_>>())?;
    } else if hours.is_empty() {
        print::line("No gateway has noted saved tokens yet.");
    } else {
        let rows = hours.iter().map(|(hour, (definitions, results))| {
            vec![utc(hour * HOUR / 1_000), grouped(*definitions), grouped(*results)]
        });
        print::line(table(&["hour from", ">of definitions", ">of results (about)"], rows));
    }
    Ok(ExitCode::SUCCESS)
}

/// In milliseconds.
const HOUR: u64 = 3_600_000;

/// The cost of all definitions, and of a session in each mode.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Costs {
    unit: Unit,
    context_window: u64,
    /// What is counted.
    counted: &'static str,
    servers: Vec<Row>,
    total: Row,
    /// The start of a session: the meta-tools, and the tools that are always loaded.
    session: Row,
    modes: SessionCosts,
    #[serde(skip)]
    now: ExposureKind,
    exposure: String,
    reason: String,
}

/// What is counted of a session.
const COUNTED: &str =
    "name, description and input schema of each listed tool, and the instructions of the handshake";

/// What the start of a session costs, in each mode.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionCosts {
    /// The servers without toolgate: their own definitions and instructions.
    without: SessionCost,
    direct: SessionCost,
    stable: SessionCost,
    dynamic: SessionCost,
    code: SessionCost,
    recommended: ExposureKind,
    /// Why it is recommended.
    why: String,
    /// What costs less, and what speaks against it, as sentences.
    cheaper: Vec<String>,
}

/// What the start of a session costs.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionCost {
    tools: u64,
    pub(crate) definitions: u64,
    pub(crate) instructions: u64,
    pub(crate) together: u64,
}

impl SessionCost {
    fn new(tools: usize, definitions: u64, instructions: u64) -> Self {
        let together = definitions + instructions;
        Self { tools: tools as u64, definitions, instructions, together }
    }
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
    if arguments.saved {
        return saved(arguments.output.json);
    }
    if let Some(file) = &arguments.text {
        let text = super::read_text(file, "name a text, or `-` to read it from stdin")?;
        let length = TextLength { unit: arguments.unit, count: amount(&text, arguments.unit) };
        print::show(arguments.output.json, &length, || length.count)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (loaded, host) = super::start(globals, arguments.mode)?;
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
    drop(catalog);
    let paid = definitions(&shown, unit);
    let session = row("a session now".to_owned(), shown.len() as u64, paid);
    Costs {
        unit,
        context_window,
        counted: COUNTED,
        servers,
        total,
        session,
        modes: session_costs(host, unit).await,
        now: exposure.kind,
        exposure: exposure.kind.to_string(),
        reason: exposure.reason.to_string(),
    }
}

/// What the start of a session costs in each mode, and which mode is recommended.
pub(crate) async fn session_costs(host: &ToolHost, unit: Unit) -> SessionCosts {
    let of = async |mode: ExposureKind| {
        let session = host.predicted_session(mode).await;
        cost_of(&session, mode, unit).await
    };
    let direct = of(ExposureKind::Direct).await;
    let stable = of(ExposureKind::Stable).await;
    let code = of(ExposureKind::Code).await;
    let reason = host.automatic_exposure().reason;
    let (recommended, why) = match reason {
        Reason::Fits { .. } if direct.together <= stable.together => (
            ExposureKind::Direct,
            "it costs no more than the meta-tools, and no search is needed".to_owned(),
        ),
        Reason::Fits { .. } => (ExposureKind::Direct, format!("{reason}, and no search is needed")),
        _ => (ExposureKind::Stable, reason.to_string()),
    };
    let mut costs = SessionCosts {
        without: without_toolgate(host, unit),
        direct,
        stable,
        dynamic: of(ExposureKind::Dynamic).await,
        code,
        recommended,
        why,
        cheaper: Vec::new(),
    };
    costs.cheaper = costs.cheaper_ways(host.code().is_enabled());
    costs
}

async fn cost_of(session: &ToolSession, mode: ExposureKind, unit: Unit) -> SessionCost {
    let listed = session.list_tools().await;
    let instructions = instructions_in(session, mode == ExposureKind::Code);
    SessionCost::new(listed.len(), definitions(&listed, unit), amount(&instructions, unit))
}

/// What the servers cost a client that connects to each of them.
fn without_toolgate(host: &ToolHost, unit: Unit) -> SessionCost {
    let catalog = host.catalog().read();
    let (mut tools, mut cost, mut instructions) = (0, 0, 0);
    for entry in catalog.servers() {
        let name = entry.name.as_str();
        for tool in catalog.tools_of(name) {
            tools += 1;
            cost += match unit {
                Unit::Tokens => u64::from(tool.definition.tokens()),
                Unit::Characters => tool.definition.characters() as u64,
            };
        }
        instructions += instructions_of(host, name, unit);
    }
    SessionCost::new(tools, cost, instructions)
}

/// What the instructions of a server cost.
pub(crate) fn instructions_of(host: &ToolHost, server: &str, unit: Unit) -> u64 {
    let handshake = host.servers().state(server).and_then(|state| state.handshake);
    let said = handshake.and_then(|handshake| handshake.instructions);
    said.map_or(0, |said| amount(&said, unit))
}

/// What a model reads of definitions.
fn definitions(listed: &[Value], unit: Unit) -> u64 {
    let read = listed.iter().map(|definition| {
        let seen = serde_json::json!({
            "name": definition["name"],
            "description": definition["description"],
            "inputSchema": definition["inputSchema"],
        });
        amount(&seen.to_string(), unit)
    });
    read.sum()
}

fn amount(text: &str, unit: Unit) -> u64 {
    match unit {
        Unit::Tokens => TokenCounter::shared().count(text) as u64,
        Unit::Characters => text.chars().count() as u64,
    }
}

impl SessionCosts {
    /// A table of the modes. `now` is that of a session that starts now.
    pub(crate) fn render(&self, now: ExposureKind) -> String {
        let row = |name: &str, cost: &SessionCost, mode: Option<ExposureKind>| {
            let mut remark = Vec::new();
            remark.extend((mode == Some(now)).then_some("now"));
            remark.extend((mode == Some(self.recommended)).then_some("recommended"));
            let numbers = [cost.tools, cost.definitions, cost.instructions, cost.together];
            let mut cells = vec![name.to_owned()];
            cells.extend(numbers.map(grouped));
            cells.push(remark.join(", "));
            cells
        };
        let rows = [
            row("without toolgate", &self.without, None),
            row("direct", &self.direct, Some(ExposureKind::Direct)),
            row("stable", &self.stable, Some(ExposureKind::Stable)),
            row("dynamic", &self.dynamic, Some(ExposureKind::Dynamic)),
            row("code", &self.code, Some(ExposureKind::Code)),
        ];
        let columns = ["a session", ">tools", ">definitions", ">instructions", ">together", ""];
        let named = match self.recommended {
            ExposureKind::Direct => "direct",
            _ => "stable",
        };
        let mut text =
            format!("{}\n\nRecommended: {named}, because {}.", table(&columns, rows), self.why);
        for sentence in &self.cheaper {
            text.push('\n');
            text.push_str(sentence);
        }
        text
    }

    /// A sentence about the cheapest mode, and one about the servers without toolgate, where they cost less
    /// than what is recommended.
    fn cheaper_ways(&self, has_scripts: bool) -> Vec<String> {
        let recommended = self.of(self.recommended).together;
        let code = has_scripts.then_some((
            "Code",
            &self.code,
            ": tools are searched for first, and called by scripts",
        ));
        let modes = [
            ("Direct", &self.direct, ""),
            ("Stable", &self.stable, ": tools are searched for first"),
        ];
        let cheapest = modes.into_iter().chain(code).min_by_key(|(_, cost, _)| cost.together);
        let mut sentences = Vec::new();
        if let Some((name, cost, but)) = cheapest
            && cost.together < recommended
        {
            sentences
                .push(format!("{name} costs {} less{but}.", grouped(recommended - cost.together)));
        }
        if self.without.tools > 0 && self.without.together < recommended {
            let less = grouped(recommended - self.without.together);
            sentences.push(format!(
                "Without toolgate a session costs {less} less, and has no scripts, no search and no policy."
            ));
        }
        sentences
    }

    /// What a session costs in a mode.
    fn of(&self, mode: ExposureKind) -> &SessionCost {
        match mode {
            ExposureKind::Direct => &self.direct,
            ExposureKind::Stable => &self.stable,
            ExposureKind::Dynamic => &self.dynamic,
            ExposureKind::Code => &self.code,
        }
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
    /// The servers and the modes.
    pub(crate) fn render(&self) -> String {
        format!(
            "{}\n\n{}\nA session now is {}: {}.\nCounted: {COUNTED}.",
            self.render_servers(),
            self.modes.render(self.now),
            self.exposure,
            self.reason
        )
    }

    /// A table of the definitions, dearest server first.
    pub(crate) fn render_servers(&self) -> String {
        let row = |row: &Row| {
            let share = format!("{:.1} %", row.share * 100.0);
            vec![row.name.clone(), grouped(row.tools), grouped(row.cost), share]
        };
        let mut sorted = self.servers.clone();
        sorted.sort_by(|left, right| right.cost.cmp(&left.cost).then(left.name.cmp(&right.name)));
        let rows = sorted.iter().chain([&self.total]).map(row).collect::<Vec<_>>();
        let unit = match self.unit {
            Unit::Tokens => ">tokens",
            Unit::Characters => ">characters",
        };
        let columns = ["server", ">tools", unit, ">of context"];
        table(&columns, rows)
    }

    /// The cost of the start of a session, without and with toolgate.
    pub(crate) fn before_and_after(&self) -> (&SessionCost, &SessionCost) {
        (&self.modes.without, self.modes.of(self.now))
    }

    /// The dearest servers, the number of the others, and the sum.
    pub(crate) fn dearest(&self, shown: usize) -> String {
        let mut sorted: Vec<&Row> = self.servers.iter().collect();
        sorted.sort_by(|left, right| right.cost.cmp(&left.cost).then(left.name.cmp(&right.name)));
        let cells = |name: String, tools: u64, cost: u64, share: f64| {
            vec![name, grouped(tools), grouped(cost), format!("{:.1} %", share * 100.0)]
        };
        let mut rows: Vec<Vec<String>> = sorted
            .iter()
            .take(shown)
            .map(|row| cells(row.name.clone(), row.tools, row.cost, row.share))
            .collect();
        if let Some(others) = sorted.get(shown..).filter(|others| !others.is_empty()) {
            let sum = |of: fn(&Row) -> u64| others.iter().map(|row| of(row)).sum();
            let share = others.iter().map(|row| row.share).sum();
            let name = format!("{} others", others.len());
            rows.push(cells(name, sum(|row| row.tools), sum(|row| row.cost), share));
        }
        let Row { name, tools, cost, share } = self.total.clone();
        rows.push(cells(name, tools, cost, share));
        table(&["server", ">tools", ">tokens", ">of context"], rows)
    }

    /// How many tools there are.
    pub(crate) fn tools(&self) -> u64 {
        self.total.tools
    }
}
