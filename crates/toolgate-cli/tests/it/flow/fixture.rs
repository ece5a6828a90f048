//! A host with labelled servers: private data, untrusted content, tools that send data out.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_host::{CodeSettings, HostSettings, ServerSetup, ToolHost};
use toolgate_policy::{
    FlowMode, Label, LabelSet, Mode, PolicySettings, ServerPolicy, ToolPolicySettings,
};
use toolgate_sandbox::{PoolSettings, PythonChoice, PythonEngine};
use toolgate_testkit::Fixture;
use toolgate_upstream::{Endpoint, ServerSpec, StdioEndpoint};

use crate::support::program;

/// A tool of `tests/flow/tools.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LabelledTool {
    name: String,
    server: String,
    tool: String,
    labels: Vec<Label>,
    pub(super) destructive: bool,
    input_schema: Value,
    #[serde(default)]
    result: Value,
    results_by: Option<ResultsBy>,
}

/// Results that an argument selects.
#[derive(Debug, Clone, Deserialize)]
struct ResultsBy {
    argument: String,
    values: BTreeMap<String, Value>,
    otherwise: Value,
}

#[derive(Deserialize)]
struct ToolFile {
    tools: Vec<LabelledTool>,
}

impl LabelledTool {
    pub(super) fn sends_out(&self) -> bool {
        self.labels.contains(&Label::Egress)
    }

    /// Whether it only reads, as its name says.
    fn reads(&self) -> bool {
        let verbs =
            ["list", "get", "read", "inbox", "fetch", "query", "public", "approved", "services"];
        !self.destructive && verbs.iter().any(|verb| self.tool.contains(verb))
    }

    fn definition(&self) -> Value {
        let annotations =
            json!({ "readOnlyHint": self.reads(), "destructiveHint": self.destructive });
        json!({ "name": self.tool, "annotations": annotations, "inputSchema": self.input_schema })
    }
}

fn tools() -> Vec<LabelledTool> {
    let text = include_str!("../../flow/tools.json");
    serde_json::from_str::<ToolFile>(text).unwrap().tools
}

/// The exposed names of some tools.
pub(super) fn names(which: impl Fn(&LabelledTool) -> bool) -> BTreeSet<String> {
    tools().into_iter().filter(which).map(|tool| tool.name).collect()
}

/// A host where nobody can be asked: what needs an approval is refused. Python scripts run in the
/// machine's own Python, which must be there.
pub(super) async fn host(flow: FlowMode, branches: bool) -> ToolHost {
    host_with(flow, branches, PythonChoice::Auto).await
}

pub(super) async fn host_with(flow: FlowMode, branches: bool, python: PythonChoice) -> ToolHost {
    let mut policy = PolicySettings { flow, branches, ..PolicySettings::of_mode(Mode::Allow) };
    let mut fixtures: BTreeMap<String, Fixture> = BTreeMap::new();
    for tool in tools() {
        let labels: LabelSet = tool.labels.iter().copied().collect();
        let known: &mut ServerPolicy =
            policy.servers.entry(tool.server.as_str().into()).or_default();
        let settings = ToolPolicySettings { labels: Some(labels), ..Default::default() };
        known.tools.insert(tool.tool.as_str().into(), settings);
        let fixture = fixtures.remove(&tool.server);
        let fixture = fixture.unwrap_or_else(|| Fixture::new(tool.server.as_str()));
        let fixture = with_tool(fixture, &tool);
        fixtures.insert(tool.server.clone(), fixture);
    }
    let setups = fixtures.values().map(setup).collect();
    let is_embedded = python == PythonChoice::Embedded;
    let mut pool = PoolSettings::new(program(), ["sandbox-worker"]);
    pool.python.choice = python;
    let code = CodeSettings::new(pool);
    let settings = HostSettings { policy, code: Some(code), ..HostSettings::new(setups) };
    let host = ToolHost::start(settings);
    host.all_known().await;
    let engine = host.code().python().await;
    assert_eq!(matches!(engine, Some(PythonEngine::Machine(_))), !is_embedded, "{engine:?}");
    host
}

fn with_tool(fixture: Fixture, tool: &LabelledTool) -> Fixture {
    let fixture = fixture.with_tool(tool.definition());
    match &tool.results_by {
        None => fixture.with_answer(tool.tool.as_str(), answer(&tool.result)),
        Some(by) => {
            let fixture = fixture.with_answer(tool.tool.as_str(), answer(&by.otherwise));
            by.values.iter().fold(fixture, |fixture, (value, result)| {
                let argument = (by.argument.as_str(), json!(value));
                fixture.with_answer_for(tool.tool.as_str(), argument, answer(result))
            })
        }
    }
}

fn setup(fixture: &Fixture) -> ServerSetup {
    let entry = fixture.entry().unwrap();
    let endpoint = Endpoint::Stdio(StdioEndpoint {
        command: entry.command,
        args: entry.args,
        env: std::collections::BTreeMap::default(),
        cwd: None,
    });
    ServerSetup::new(ServerSpec::new(fixture.name.as_str(), endpoint))
}

/// A result, as JSON in a text. `{"error": …}` is a failed call.
fn answer(data: &Value) -> Value {
    if let (Some(error), Some(1)) =
        (data["error"].as_str(), data.as_object().map(serde_json::Map::len))
    {
        return json!({ "content": [{ "type": "text", "text": error }], "isError": true });
    }
    json!({ "content": [{ "type": "text", "text": data.to_string() }] })
}
