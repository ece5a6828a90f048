//! The tools of a session, as the loop of an agent sees them.

use std::{collections::VecDeque, sync::Arc};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};
use toolgate_agent::{
    AgentCatalogue, AgentError, AgentServer, AgentTool, AllowedCallers, CallScope, Conversation,
    ConversationSettings, MetaMode, Provider, SavedConversation, SavedConversationError, ToolBox,
    ToolCaller, ToolContent, ToolOutput, ToolRequest,
};
use toolgate_broker::{ApprovalRequest, PriorRead};
use toolgate_catalog::{ExposureKind, Fingerprint};
use toolgate_host::{HostEvent, MetaTool, ProviderProgram, ToolQuery, ToolSession};
use toolgate_upstream::CallOptions;

use crate::{Session, ToolResult, call, session::readable};

/// The tools of a session for the loop of an agent. The broker authorises every call: calls of the model as direct ones,
/// and calls of code that the provider runs as those of a script.
#[derive(Debug, Clone)]
pub struct SessionTools(Arc<BoundSession>);

#[derive(Debug)]
struct BoundSession {
    session: Session,
    /// The programs that called last, by the provider's id.
    programs: Mutex<VecDeque<(String, Arc<ProviderProgram>)>>,
}

/// How many programs are remembered. A provider runs one at a time.
const PROGRAMS: usize = 32;

/// A conversation as data, with what the policy knows of it: which labelled results it has read. So a rule about data
/// holds after a restart too.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedChat {
    conversation: SavedConversation,
    #[serde(default)]
    read: Vec<PriorRead>,
}

impl SessionTools {
    /// The tools of a session.
    pub fn new(session: Session) -> Self {
        Self(Arc::new(BoundSession { session, programs: Mutex::default() }))
    }

    /// The tools of a session that the program `toolgate` has made.
    pub fn of(session: ToolSession) -> Self {
        Self::new(Session { inner: session })
    }

    pub(crate) fn session(&self) -> &Session {
        &self.0.session
    }

    /// Begins a conversation with these tools.
    pub fn begin(
        &self,
        provider: Arc<dyn Provider>,
        settings: ConversationSettings,
    ) -> Result<Conversation, AgentError> {
        Conversation::new(provider, Arc::new(self.clone()), settings)
    }

    /// A conversation with these tools as data.
    pub fn save(&self, conversation: &Conversation) -> SavedChat {
        SavedChat { conversation: conversation.save(), read: self.inner().context().read() }
    }

    /// Continues a conversation. Everything in it counts as read from the tools whose labelled results it has read.
    pub fn restore(
        &self,
        saved: SavedChat,
        provider: Arc<dyn Provider>,
        settings: ConversationSettings,
    ) -> Result<Conversation, SavedConversationError> {
        let SavedChat { conversation, read } = saved;
        let tools = Arc::new(self.clone());
        let restored = Conversation::restore(conversation, provider, tools, settings)?;
        if !read.is_empty() {
            let mut texts = String::new();
            for message in restored.history() {
                collect_texts(&message.to_value(), &mut texts);
            }
            self.inner().context().add_read(&read, &texts);
        }
        Ok(restored)
    }

    /// The session in the host.
    pub fn inner(&self) -> &ToolSession {
        &self.0.session.inner
    }
}

impl BoundSession {
    /// The program with this id of the provider. A program that is forgotten begins anew, without its grants.
    fn program(&self, id: &str) -> Arc<ProviderProgram> {
        let mut programs = self.programs.lock();
        if let Some((_, known)) = programs.iter().find(|(known, _)| known == id) {
            return Arc::clone(known);
        }
        let program = Arc::new(self.session.inner.begin_program());
        programs.push_back((id.to_owned(), Arc::clone(&program)));
        if programs.len() > PROGRAMS {
            programs.pop_front();
        }
        program
    }

    async fn answer(&self, request: ToolRequest, options: CallOptions) -> ToolResult {
        let name = request.name;
        let session = &self.session.inner;
        let outcome = match call::arguments(&name, request.arguments) {
            Err(problem) => return ToolResult::error(&name, &problem.to_string()),
            Ok(arguments) => match request.caller {
                ToolCaller::Direct if MetaTool::named(&name).is_some() => {
                    session.call(&name, arguments, options).await
                }
                // The model may not have `read_output`. The loop has a limit of its own.
                ToolCaller::Direct => session.call_exact(&name, arguments, options).await,
                ToolCaller::Code { program } => {
                    let program = self.program(&program);
                    session.call_for_program(&program, &name, arguments, options).await
                }
            },
        };
        readable(&name, outcome)
    }
}

#[async_trait]
impl ToolBox for SessionTools {
    fn catalogue(&self) -> AgentCatalogue {
        let session = self.inner();
        let host = session.host();
        let (catalog, exposure) = (host.catalog().read(), host.exposure());
        let mut known = AgentCatalogue::default();
        for server in catalog.servers() {
            known.servers.push(AgentServer {
                name: server.name.to_string(),
                description: server.description.clone().unwrap_or_default(),
                remote: None,
            });
            for tool in catalog.tools_of(server.name.as_str()) {
                let (direct, code) = session.ways_of(tool);
                if !direct && !code {
                    continue;
                }
                let described = AgentTool {
                    name: tool.name.to_string(),
                    description: tool.definition.description().to_owned(),
                    input_schema: tool.definition.input_schema(),
                    output_schema: tool.definition.output_schema(),
                    server: Some(server.name.to_string()),
                    callers: AllowedCallers { direct, code },
                    input_examples: Vec::new(),
                };
                let is_listed = exposure.loads(tool, server);
                let list = if is_listed { &mut known.listed } else { &mut known.deferred };
                list.push(described);
            }
        }
        known
    }

    fn generation(&self) -> u64 {
        *self.inner().host().changes().borrow()
    }

    fn meta_tools(&self, mode: MetaMode) -> Vec<AgentTool> {
        let kind = match mode {
            MetaMode::Stable => ExposureKind::Stable,
            MetaMode::Code => ExposureKind::Code,
        };
        let definitions = self.inner().meta_tools(kind).into_iter();
        let tools = definitions.map(|definition| AgentTool {
            name: definition["name"].as_str().unwrap_or_default().to_owned(),
            description: definition["description"].as_str().unwrap_or_default().to_owned(),
            input_schema: definition["inputSchema"].clone(),
            // A meta-tool would let code call what only the model may call.
            callers: AllowedCallers::DIRECT,
            ..AgentTool::default()
        });
        tools.collect()
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<String>, ToolOutput> {
        let query = ToolQuery {
            queries: vec![query.to_owned()],
            limit: Some(limit),
            ..ToolQuery::default()
        };
        let found = self.inner().find(&query).await;
        let found = found.map_err(|error| ToolOutput::error(error.to_string()))?;
        Ok(found.tools.iter().map(|found| found.tool.name.to_string()).collect())
    }

    async fn call(&self, request: ToolRequest, scope: &CallScope) -> ToolOutput {
        let options = CallOptions::default();
        let mut questions = Questions::of(self.inner(), &request);
        // A cancelled turn drops this future. The call then ends in order: nobody is asked about it any more, the
        // server is told, and the audit log has it.
        let _cancelled_when_dropped = options.cancel.clone().drop_guard();
        let shared = Arc::clone(&self.0);
        let mut call = tokio::spawn(async move { shared.answer(request, options).await });
        let result = loop {
            tokio::select! {
                biased;
                () = questions.show(scope) => {}
                result = &mut call => break result,
            }
        };
        match result {
            Ok(result) => output(&result),
            Err(_) => ToolOutput::error("the call failed inside of toolgate"),
        }
    }
}

/// The questions about one call, or about the calls of its script.
struct Questions {
    events: broadcast::Receiver<HostEvent>,
    session: Arc<str>,
    /// The tool and the hash of its arguments; `None` for a script, which may call any tool.
    call: Option<(String, Fingerprint)>,
}

impl Questions {
    fn of(session: &ToolSession, request: &ToolRequest) -> Self {
        let events = session.host().events().subscribe();
        let (name, arguments) = match request.name.as_str() {
            "call_tool" => (request.arguments["name"].as_str(), &request.arguments["arguments"]),
            name => (Some(name), &request.arguments),
        };
        let is_script = matches!(request.name.as_str(), "run_code" | "resume_run");
        let call = name.filter(|_| !is_script);
        let call = call.map(|name| (name.to_owned(), Fingerprint::of(arguments)));
        Self { events, session: Arc::clone(session.context().id()), call }
    }

    /// Shows the next event about a question, or waits for ever.
    async fn show(&mut self, scope: &CallScope) {
        match self.events.recv().await {
            Ok(HostEvent::ApprovalAsked { question }) if self.are(&question) => {
                scope.approval_needed("", question.to_string());
            }
            Ok(HostEvent::ApprovalAnswered { question, .. }) if self.are(&question) => {
                scope.approval_answered();
            }
            Ok(HostEvent::ApprovalWaits { call, question })
                if call.session == self.session
                    && self.call.as_ref().is_none_or(|(name, _)| *name == call.tool) =>
            {
                let text = format!("`{}` waits for an approval: `toolgate approve`", call.tool);
                scope.approval_needed(question.to_string(), text);
            }
            Err(RecvError::Closed) => std::future::pending().await,
            _ => {}
        }
    }

    fn are(&self, question: &ApprovalRequest) -> bool {
        let is_of = |(name, hash): &(String, Fingerprint)| {
            *name == question.name && *hash == question.arguments_hash
        };
        question.session == self.session && self.call.as_ref().is_none_or(is_of)
    }
}

/// All texts of a message, one a line.
fn collect_texts(value: &Value, texts: &mut String) {
    match value {
        Value::String(text) => {
            texts.push_str(text);
            texts.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect_texts(field, texts)),
        _ => {}
    }
}

/// A result for the loop.
fn output(result: &ToolResult) -> ToolOutput {
    let blocks = result.content().iter().map(|block| {
        let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("text") => ToolContent::Text(text("text")),
            Some("image") => {
                ToolContent::Image { media_type: text("mimeType"), data: text("data") }
            }
            Some("audio") => ToolContent::Text(format!("[audio of type {}]", text("mimeType"))),
            _ => ToolContent::Text(json!(block).to_string()),
        }
    });
    let structured = result.raw().get("structuredContent").filter(|data| !data.is_null()).cloned();
    let mut content: Vec<ToolContent> = blocks.collect();
    if let (true, Some(data)) = (content.is_empty(), &structured) {
        content.push(ToolContent::Text(Value::to_string(data)));
    }
    ToolOutput { content, structured, is_error: result.is_error() }
}
