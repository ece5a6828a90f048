//! What the scenarios share: a tool box, settings, and the reading of turns.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures::StreamExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolgate_agent::{
    AgentCatalogue, AgentError, AgentEvent, AgentServer, AgentTool, AllowedCallers, CallScope,
    Conversation, ConversationSettings, MetaMode, ModelSettings, RetryPolicy, ToolBox, ToolOutput,
    ToolRequest, Turn, TurnEnd, WireApi,
};
use toolgate_testkit::within;

use crate::endpoint::{Endpoint, Play};

/// Makes a test of each scenario, and a function that runs them all for the judge.
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        pub(crate) async fn all() {
            $( $name().await; )*
        }

        mod tests {
            $(
                #[tokio::test]
                async fn $name() {
                    toolgate_testkit::within(stringify!($name), super::$name()).await;
                }
            )*
        }
    };
}
pub(crate) use scenarios;

pub(crate) const KEY: &str = "sk-secret-1234567890";

/// A tool box with two servers. `fail` fails, `wait` waits until it may go on, and all others repeat their arguments.
pub(crate) struct TestTools {
    pub(crate) catalogue: Mutex<AgentCatalogue>,
    generation: AtomicU64,
    pub(crate) calls: Mutex<Vec<ToolRequest>>,
    pub(crate) searches: Mutex<Vec<(String, usize)>>,
    pub(crate) may_go: Semaphore,
    pub(crate) waiting: Semaphore,
}

pub(crate) fn tool(name: &str, server: &str) -> AgentTool {
    AgentTool {
        name: name.to_owned(),
        description: format!("Does {name}."),
        input_schema: json!({"type": "object", "properties": {"title": {"type": "string"}}}),
        output_schema: Some(json!({"type": "object", "properties": {"ok": {"type": "boolean"}}})),
        server: Some(server.to_owned()),
        ..AgentTool::default()
    }
}

impl TestTools {
    pub(crate) fn new() -> Arc<Self> {
        let server = |name: &str| AgentServer {
            name: name.to_owned(),
            description: format!("The {name}."),
            remote: None,
        };
        let mut direct = tool("github_delete_repo", "github");
        direct.callers = AllowedCallers::DIRECT;
        let mut code = tool("logs_scan", "logs");
        code.callers = AllowedCallers::CODE;
        code.input_examples = vec![json!({"title": "x"})];
        let catalogue = AgentCatalogue {
            listed: vec![tool("time_now", "time")],
            deferred: vec![
                tool("github_create_issue", "github"),
                direct,
                tool("logs_read", "logs"),
                code,
                tool("fail", "logs"),
                tool("wait", "logs"),
            ],
            servers: vec![server("time"), server("github"), server("logs")],
        };
        Arc::new(Self {
            catalogue: Mutex::new(catalogue),
            generation: AtomicU64::new(1),
            calls: Mutex::default(),
            searches: Mutex::default(),
            may_go: Semaphore::new(0),
            waiting: Semaphore::new(0),
        })
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut AgentCatalogue)) {
        change(&mut self.catalogue.lock());
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn called(&self) -> Vec<String> {
        self.calls.lock().iter().map(|call| call.name.clone()).collect()
    }
}

#[async_trait]
impl ToolBox for TestTools {
    fn catalogue(&self) -> AgentCatalogue {
        self.catalogue.lock().clone()
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    fn meta_tools(&self, mode: MetaMode) -> Vec<AgentTool> {
        let names: &[&str] = match mode {
            MetaMode::Stable => &["search_tools", "call_tool"],
            MetaMode::Code => &["search_tools", "run_code"],
        };
        names
            .iter()
            .map(|name| AgentTool { server: None, output_schema: None, ..tool(name, "") })
            .collect()
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<String>, ToolOutput> {
        self.searches.lock().push((query.to_owned(), limit));
        if query == "broken" {
            return Err(ToolOutput::error("the index is broken"));
        }
        let catalogue = self.catalogue.lock();
        let fits = catalogue.tools().filter(|tool| tool.name.contains(query));
        Ok(fits.map(|tool| tool.name.clone()).take(limit).collect())
    }

    async fn call(&self, request: ToolRequest, scope: &CallScope) -> ToolOutput {
        self.calls.lock().push(request.clone());
        match request.name.as_str() {
            "fail" => ToolOutput::error("it failed"),
            "wait" => {
                self.waiting.add_permits(1);
                self.may_go.acquire().await.unwrap().forget();
                ToolOutput::text("waited")
            }
            "ask_and_wait" => {
                scope.approval_needed("q_1", "May it?");
                self.waiting.add_permits(1);
                std::future::pending().await
            }
            "ask" => {
                scope.approval_needed("q_1", "May it?");
                ToolOutput::text("allowed")
            }
            _ => ToolOutput::structured(json!({"ok": true, "got": request.arguments})),
        }
    }
}

/// Settings for an endpoint on loopback.
pub(crate) fn model(api: WireApi, endpoint: &Endpoint) -> ModelSettings {
    let mut settings = ModelSettings::new(api, &endpoint.url, "m");
    settings.key = Some(KEY.to_owned().into());
    settings
}

pub(crate) fn settings() -> ConversationSettings {
    let wait = Duration::from_millis(1);
    ConversationSettings {
        instructions: "Be brief.".to_owned(),
        retry: RetryPolicy { first_wait: wait, longest_wait: wait, ..RetryPolicy::default() },
        window: Some(100_000),
        ..ConversationSettings::default()
    }
}

/// A conversation over a scripted endpoint.
pub(crate) struct Lab {
    pub(crate) endpoint: Endpoint,
    pub(crate) tools: Arc<TestTools>,
    pub(crate) conversation: Conversation,
}

impl Lab {
    pub(crate) async fn new(api: WireApi, plays: Vec<Play>) -> Self {
        Self::with(api, plays, |_| {}, |_| {}).await
    }

    pub(crate) async fn with(
        api: WireApi,
        plays: Vec<Play>,
        of_model: impl FnOnce(&mut ModelSettings),
        of_conversation: impl FnOnce(&mut ConversationSettings),
    ) -> Self {
        let endpoint = Endpoint::start(plays).await;
        let tools = TestTools::new();
        let (mut model, mut settings) = (model(api, &endpoint), settings());
        of_model(&mut model);
        of_conversation(&mut settings);
        let provider = model.provider().unwrap();
        let conversation =
            Conversation::new(provider, Arc::<TestTools>::clone(&tools), settings).unwrap();
        Self { endpoint, tools, conversation }
    }

    pub(crate) async fn ask(
        &mut self,
        text: &str,
    ) -> (Vec<AgentEvent>, Result<TurnEnd, AgentError>) {
        read(self.conversation.ask(text)).await
    }

    /// Asks, and returns the answer of a turn that ends well.
    pub(crate) async fn answer(&mut self, text: &str) -> TurnEnd {
        let (events, end) = self.ask(text).await;
        end.unwrap_or_else(|error| panic!("{error}; events: {events:?}"))
    }

    pub(crate) fn body(&self, place: usize) -> Value {
        self.endpoint.body(place)
    }
}

/// All events of a turn, and its end.
pub(crate) async fn read(mut turn: Turn<'_>) -> (Vec<AgentEvent>, Result<TurnEnd, AgentError>) {
    let mut events = Vec::new();
    loop {
        let event = within("the next event", turn.next()).await.expect("a last event");
        match event {
            AgentEvent::Done(end) => return (events, Ok(end)),
            AgentEvent::Failed { error } => return (events, Err(error)),
            event => events.push(event),
        }
    }
}

/// The names of the kinds of events, as programs see them.
pub(crate) fn kinds(events: &[AgentEvent]) -> Vec<String> {
    let kinds = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned());
    kinds.collect()
}
