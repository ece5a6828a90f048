//! What a fixture serves: its identity, its era and its tools.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Builtin, Faults, TaskPlan};

/// A fixture server: what it serves and how it misbehaves.
///
/// Every field has a default, so the JSON form can be as short as `{}`.
///
/// ```
/// use toolgate_testkit::{Builtin, FixtureEra, Fixture};
///
/// let fixture: Fixture = serde_json::from_str(r#"{"era": "both", "builtins": ["echo"]}"#)?;
/// assert_eq!(fixture.era, FixtureEra::Both);
/// assert_eq!(fixture.builtins, [Builtin::Echo]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Fixture {
    /// The server's name in its handshake.
    pub name: String,
    /// The server's version in its handshake.
    pub version: String,
    /// The instructions that it sends with its handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The protocol revisions that it speaks.
    pub era: FixtureEra,
    /// How a legacy server refuses `server/discover`.
    pub probe_refusal: ProbeRefusal,
    /// The revisions that it accepts in `initialize`, oldest first. It answers any other one with
    /// the last of these.
    pub legacy_versions: Vec<String>,
    /// Whether it advertises `tools.listChanged`.
    pub advertises_list_changed: bool,
    /// Built-in tools, listed first.
    pub builtins: Vec<Builtin>,
    /// Raw definitions, listed after the built-ins exactly as given, well formed or not.
    ///
    /// A raw definition named like a built-in behaves like it; any other name answers like
    /// [`Builtin::Echo`], unless [`answers`](Self::answers) has a result for it.
    pub tools: Vec<Value>,
    /// Raw `tools/call` results by tool name, sent exactly as given.
    pub answers: BTreeMap<String, Value>,
    /// Raw results of calls with a certain argument, by tool name. They come before `answers`.
    pub answers_for: BTreeMap<String, Vec<ArgumentAnswer>>,
    /// Raw definitions of resources, listed exactly as given. Reading one returns a text with the
    /// server and the URI, or a few bytes if its type is an image.
    pub resources: Vec<Value>,
    /// Raw templates of resources. What begins like one of them can be read.
    pub templates: Vec<Value>,
    /// Raw definitions of prompts. Each returns its name and arguments, and a link to the first
    /// resource. The argument `announce` names a notification that is sent to all listeners, with
    /// the JSON of the argument `params`.
    pub prompts: Vec<Value>,
    /// Capabilities that it declares beside `tools`, as they are.
    pub capabilities: Map<String, Value>,
    /// Results of any other method, sent exactly as given.
    pub methods: BTreeMap<String, Value>,
    /// The tools that can only be called as tasks. Each needs a definition too, and the fixture the capability.
    pub tasks: BTreeMap<String, TaskPlan>,
    /// Results of any method by the parameter `name` or `uri`, sent exactly as given. They come before `methods`.
    pub methods_for: BTreeMap<String, BTreeMap<String, Value>>,
    /// A file that gets one JSON line, `{"name", "arguments"}`, for each `tools/call`, written
    /// before the tool runs. It survives a crash, so it proves that a call was not repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_log: Option<PathBuf>,
    /// How it behaves over HTTP.
    pub http: HttpOptions,
    /// How it misbehaves.
    pub faults: Faults,
}

impl Fixture {
    /// A well-behaved legacy server without tools.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds built-in tools.
    #[must_use]
    pub fn with_builtins(mut self, builtins: impl IntoIterator<Item = Builtin>) -> Self {
        self.builtins.extend(builtins);
        self
    }

    /// Adds a raw tool definition.
    #[must_use]
    pub fn with_tool(mut self, definition: Value) -> Self {
        self.tools.push(definition);
        self
    }

    /// Adds raw tool definitions.
    #[must_use]
    pub fn with_tools(mut self, definitions: impl IntoIterator<Item = Value>) -> Self {
        self.tools.extend(definitions);
        self
    }

    /// Makes the tool `name` answer each call with `result`, exactly as given.
    #[must_use]
    pub fn with_answer(mut self, name: impl Into<String>, result: Value) -> Self {
        self.answers.insert(name.into(), result);
        self
    }

    /// Makes the tool `name` answer calls in which `argument` is `value` with `result`.
    #[must_use]
    pub fn with_answer_for(
        mut self,
        name: impl Into<String>,
        (argument, value): (impl Into<String>, Value),
        result: Value,
    ) -> Self {
        let answer = ArgumentAnswer { argument: argument.into(), value, result };
        self.answers_for.entry(name.into()).or_default().push(answer);
        self
    }

    /// Adds raw definitions of resources.
    #[must_use]
    pub fn with_resources(mut self, definitions: impl IntoIterator<Item = Value>) -> Self {
        self.resources.extend(definitions);
        self
    }

    /// Adds raw templates of resources.
    #[must_use]
    pub fn with_templates(mut self, templates: impl IntoIterator<Item = Value>) -> Self {
        self.templates.extend(templates);
        self
    }

    /// Adds raw definitions of prompts.
    #[must_use]
    pub fn with_prompts(mut self, definitions: impl IntoIterator<Item = Value>) -> Self {
        self.prompts.extend(definitions);
        self
    }

    /// Declares a capability beside `tools`.
    #[must_use]
    pub fn with_capability(mut self, name: impl Into<String>, capability: Value) -> Self {
        self.capabilities.insert(name.into(), capability);
        self
    }

    /// Makes it answer each request of `method` with `result`, exactly as given.
    #[must_use]
    pub fn with_method(mut self, method: impl Into<String>, result: Value) -> Self {
        self.methods.insert(method.into(), result);
        self
    }

    /// Lets the tool `name` be called only as a task.
    #[must_use]
    pub fn with_task(mut self, name: impl Into<String>, plan: TaskPlan) -> Self {
        self.tasks.insert(name.into(), plan);
        self
    }

    /// Makes it answer requests of `method` whose `name` or `uri` is `key` with `result`.
    #[must_use]
    pub fn with_method_for(
        mut self,
        method: impl Into<String>,
        key: impl Into<String>,
        result: Value,
    ) -> Self {
        self.methods_for.entry(method.into()).or_default().insert(key.into(), result);
        self
    }

    /// Sets the era.
    #[must_use]
    pub fn with_era(mut self, era: FixtureEra) -> Self {
        self.era = era;
        self
    }

    /// Sets how a legacy server refuses `server/discover`.
    #[must_use]
    pub fn with_probe_refusal(mut self, probe_refusal: ProbeRefusal) -> Self {
        self.probe_refusal = probe_refusal;
        self
    }

    /// Sets the instructions.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the file that records each call.
    #[must_use]
    pub fn with_call_log(mut self, path: impl Into<PathBuf>) -> Self {
        self.call_log = Some(path.into());
        self
    }

    /// Sets how it behaves over HTTP.
    #[must_use]
    pub fn with_http(mut self, http: HttpOptions) -> Self {
        self.http = http;
        self
    }

    /// Sets how it misbehaves.
    #[must_use]
    pub fn with_faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }
}

impl Default for Fixture {
    fn default() -> Self {
        Self {
            name: "fixture".to_owned(),
            version: "1.0.0".to_owned(),
            instructions: None,
            era: FixtureEra::default(),
            probe_refusal: ProbeRefusal::default(),
            legacy_versions: ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
                .map(str::to_owned)
                .to_vec(),
            advertises_list_changed: true,
            builtins: Vec::new(),
            tools: Vec::new(),
            answers: BTreeMap::new(),
            answers_for: BTreeMap::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            capabilities: Map::new(),
            methods: BTreeMap::new(),
            tasks: BTreeMap::new(),
            methods_for: BTreeMap::new(),
            call_log: None,
            http: HttpOptions::default(),
            faults: Faults::default(),
        }
    }
}

/// The result of calls with a certain argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArgumentAnswer {
    /// The name of the argument.
    pub argument: String,
    /// Its value.
    pub value: Value,
    /// The raw result.
    pub result: Value,
}

/// The protocol revisions of a fixture, and how it handles a probe for the newer one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FixtureEra {
    /// `initialize` and the revisions up to 2025-11-25. Refuses `server/discover` with an error.
    #[default]
    Legacy,
    /// 2026-07-28 alone: `server/discover`, no session, `_meta` on each request.
    Modern,
    /// Both; each request says which by its `_meta`.
    Both,
    /// Legacy, and `server/discover` is never answered.
    SilentOnProbe,
    /// Legacy; `server/discover` is never answered, and an `initialize` after it ends the process.
    SilentThenDies,
    /// Legacy; the process exits when it gets `server/discover`.
    DiesOfProbe,
}

/// The error with which a legacy server refuses `server/discover`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeRefusal {
    /// −32601, as most servers do.
    #[default]
    MethodNotFound,
    /// −32602, as servers do that check the parameters first.
    InvalidParams,
    /// −32000 (and HTTP status 400), as servers do that check for a session first.
    NotInitialized,
}

/// How a fixture behaves over Streamable HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct HttpOptions {
    /// The form of the response to a POST.
    pub answers: HttpAnswers,
    /// Whether GET opens a stream of notifications; 405 otherwise. Legacy sessions only.
    pub notification_stream: bool,
    /// The bearer token that each request must carry; 401 otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer: Option<String>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self { answers: HttpAnswers::default(), notification_stream: true, bearer: None }
    }
}

/// The content type of the answer to a POST.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpAnswers {
    /// `application/json`: only the response. Other messages of a request go to the GET stream of a
    /// legacy session, without a fixed order. In the modern era they are lost.
    #[default]
    Json,
    /// `text/event-stream`: what belongs to the request (progress, questions), then the answer.
    Sse,
}
