//! The session: one conversation with a host.

use serde::Serialize;
use serde_json::Value;
use toolgate_catalog::ExposedName;
use toolgate_host::{CallFailure, Resume, UnknownCalls};
use toolgate_sandbox::Language;
use toolgate_upstream::{CallOptions, StateKind};

use crate::{
    LoadedTool, ModeDecision, RunError, Script, ScriptRun, Search, SessionMode, ToolCallError,
    ToolDetails, ToolResult, UnknownTool, call,
};

/// One conversation: what a model is shown, what it has loaded, and how it searches and calls tools.
///
/// Dropping a future of a session cancels what it waits for. Dropping the session ends the grants that
/// were given for it.
#[derive(Debug)]
pub struct Session {
    pub(crate) inner: toolgate_host::ToolSession,
}

impl Session {
    /// The id of the session in events and in the audit log.
    pub fn id(&self) -> &str {
        self.inner.context().id()
    }

    /// Searches for tools, in words: `session.search("create an issue").limit(3).await`.
    pub fn search(&self, query: impl Into<String>) -> Search<'_> {
        Search::new(self, query.into())
    }

    /// Everything that is known of a tool. Connects a lazy server that the tool may belong to.
    pub async fn details(&self, name: &str) -> Result<ToolDetails, UnknownTool> {
        self.find(name).await.map(|tool| ToolDetails::of(&tool))
    }

    /// A tool as a function of TypeScript, for the model that writes a script.
    pub async fn typescript(&self, name: &str) -> Result<String, UnknownTool> {
        let tool = self.find(name).await?;
        Ok(self.inner.declaration(&tool, Language::TypeScript))
    }

    /// A tool as a function of Python, for the model that writes a script.
    pub async fn python(&self, name: &str) -> Result<String, UnknownTool> {
        let tool = self.find(name).await?;
        Ok(self.inner.declaration(&tool, Language::Python))
    }

    /// Calls a tool by its exposed name, whether the session lists it or not. The arguments are anything
    /// that is an object in JSON: `json!({ … })`, or a type of yours.
    ///
    /// ```no_run
    /// # async fn example(session: toolgate::Session) -> Result<(), Box<dyn std::error::Error>> {
    /// use toolgate::{ToolCallError, json};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Issue {
    ///     number: u64,
    /// }
    ///
    /// match session.call("github_create_issue", json!({ "title": "x" })).await {
    ///     Ok(result) => println!("{}", result.parse::<Issue>()?.number),
    ///     Err(ToolCallError::UnknownOutcome { message, .. }) => {
    ///         println!("look at the repository before you repeat this: {message}");
    ///     }
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<ToolResult, ToolCallError> {
        let arguments = call::arguments(name, arguments)?;
        let called = self.inner.call_by_name(name, arguments, CallOptions::default()).await;
        called.map(|result| ToolResult::new(name, result)).map_err(ToolCallError::of)
    }

    /// Answers a call that a model made: of a loaded tool, or of a meta-tool such as `search_tools`. Every
    /// problem is a result that the model can read. Of a long text the model gets the beginning, the end and
    /// an id for `read_output`; [`call`](Self::call) returns it whole.
    pub async fn answer(&self, name: &str, arguments: Value) -> ToolResult {
        match call::arguments(name, arguments) {
            Ok(arguments) => {
                readable(name, self.inner.call(name, arguments, CallOptions::default()).await)
            }
            Err(problem) => ToolResult::error(name, &problem.to_string()),
        }
    }

    /// Runs a script, whose calls are authorised like all others. A script that fails is an `Ok` too:
    /// [`ScriptRun::end`] says how it ended, and [`ScriptRun::parse`] returns the failure as an error.
    pub async fn run(&self, script: Script) -> Result<ScriptRun, RunError> {
        let options = CallOptions::default();
        let run = self.inner.run_code(&script.code, script.language, options).await;
        run.map(ScriptRun::of).ok_or(RunError::ScriptsOff)
    }

    /// Resumes a run that failed, was interrupted or waits for an approval. Calls that it has made are
    /// not made again. Needs a state folder.
    pub async fn resume(&self, run: &str) -> Result<ScriptRun, RunError> {
        let resume = Resume { code: None, unknown: UnknownCalls::Report };
        let resumed = self.inner.resume_run(run, resume, CallOptions::default()).await;
        let resumed = resumed.ok_or(RunError::ScriptsOff)?;
        resumed.map(ScriptRun::of).map_err(|error| RunError::CannotResume(error.to_string()))
    }

    /// The tools that the session lists: give them to your model. The first call decides the
    /// [`mode`](Self::mode).
    pub async fn loaded(&self) -> Vec<LoadedTool> {
        self.inner.list_tools().await.into_iter().map(LoadedTool::of).collect()
    }

    /// Loads tools before the conversation begins. The same as [`load`](Self::load).
    pub fn preload(
        &mut self,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), UnknownTool> {
        self.load(names)
    }

    /// Lists these tools from now on, in every mode. The whole list is a part of the prompt, so a change
    /// costs the model's cache.
    ///
    /// If a name is unknown, nothing is loaded. While a server has not listed its tools, its names are not
    /// known yet: they are taken as they are, and listed as soon as they exist.
    pub fn load(
        &mut self,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), UnknownTool> {
        let names = self.exposed(names)?;
        self.inner.load_tools(names);
        Ok(())
    }

    /// Lists these tools no longer, in every mode. Search still finds them, and they can be called. A
    /// search in the mode `dynamic` loads what it finds again.
    pub fn unload(
        &mut self,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), UnknownTool> {
        let names = self.exposed(names)?;
        self.inner.unload_tools(names);
        Ok(())
    }

    /// Returns to the beginning: the mode is decided again, and what was found, loaded and unloaded is
    /// forgotten. What the session has read stays known to the policy, and grants stay.
    pub fn reset(&mut self) {
        self.inner.restart();
    }

    /// Which tools the session lists, and why. It is decided once, and again after [`reset`](Self::reset).
    pub async fn mode(&self) -> ModeDecision {
        let exposure = self.inner.exposure().await;
        ModeDecision { mode: SessionMode::from(exposure.kind), reason: exposure.reason.to_string() }
    }

    /// The instructions of the servers for a model, quoted and within a budget of tokens; empty if there
    /// are none.
    pub fn server_instructions(&self) -> &str {
        self.inner.server_instructions()
    }

    async fn find(&self, name: &str) -> Result<toolgate_catalog::Tool, UnknownTool> {
        let unknown = |nearest| UnknownTool { name: name.to_owned(), nearest };
        self.inner.tool(name).await.map(|found| found.tool).map_err(unknown)
    }

    /// Checks names.
    fn exposed(
        &self,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Vec<ExposedName>, UnknownTool> {
        let host = self.inner.host();
        let catalog = host.catalog().read();
        let is_complete = catalog.servers().all(|server| {
            let name = server.name.as_str();
            let state = host.servers().state(name).map(|state| state.kind);
            !catalog.tools_of(name).is_empty()
                || !matches!(state, Some(StateKind::Idle | StateKind::Connecting))
        });
        let names = names.into_iter().map(|name| {
            let name = name.as_ref();
            if let Some(exposed) = ExposedName::written(name)
                && (!is_complete || catalog.resolve(name).is_some())
            {
                return Ok(exposed);
            }
            let known = catalog.tools().map(|tool| tool.name.as_str());
            let nearest = toolgate_catalog::nearest(name, known, 3);
            let nearest = nearest.into_iter().map(str::to_owned).collect();
            Err(UnknownTool { name: name.to_owned(), nearest })
        });
        names.collect()
    }
}

/// The result that a model reads, whatever the outcome is.
pub(crate) fn readable(name: &str, outcome: Result<Value, CallFailure>) -> ToolResult {
    match outcome {
        Ok(result) => ToolResult::new(name, result),
        Err(CallFailure::UnknownTool(message) | CallFailure::Refused { message, .. }) => {
            ToolResult::error(name, &message)
        }
        Err(CallFailure::Cancelled) => ToolResult::error(name, "The call was cancelled."),
    }
}
