//! What the definitions of tools take in the context, and what it saves not to list all of them.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use serde_json::json;
use toolgate_agent::{AgentEvent, AgentTool, Conversation, ToolDiscovery};
use toolgate_catalog::{ExposureKind, TokenCounter, grouped};
use toolgate_host::ToolSession;

/// Counts the tokens of definitions, as toolgate counts them (o200k). A provider may count a little differently.
#[derive(Debug)]
pub(super) struct Ledger {
    discovery: ToolDiscovery,
    /// The definitions of the loop's own tools.
    own: Vec<String>,
    /// The tokens of each tool.
    tools: HashMap<String, u64>,
    /// What is in every request from the start.
    base: u64,
    /// The tools that searches have loaded.
    found: BTreeSet<String>,
    /// The tools that are in every request from the start.
    listed: BTreeSet<String>,
    requests: u64,
    saved: u64,
}

/// The saved tokens, for programs.
#[derive(Debug, Serialize)]
pub(super) struct Savings {
    #[serde(rename = "type")]
    kind: &'static str,
    /// The tokens of all definitions.
    all_definitions: u64,
    /// The tokens of the definitions that are in the context now.
    definitions_in_context: u64,
    /// How many tokens all requests together would have had more.
    saved: u64,
}

impl Ledger {
    /// For a conversation, with the requests and saved tokens of before.
    pub(super) fn of(
        session: &ToolSession,
        conversation: &Conversation,
        (requests, saved): (u64, u64),
    ) -> Self {
        let own: Vec<String> = conversation.own_tools().iter().map(definition).collect();
        let ledger = Self::new(session, conversation.provider().discovery(), &own);
        let found = conversation.loaded_tools().filter(|name| !ledger.listed.contains(*name));
        Self { found: found.map(str::to_owned).collect(), requests, saved, ..ledger }
    }

    fn new(session: &ToolSession, discovery: ToolDiscovery, own: &[String]) -> Self {
        let host = session.host();
        let (catalog, exposure) = (host.catalog().read(), host.exposure());
        let (mut tools, mut listed) = (HashMap::new(), BTreeSet::new());
        for server in catalog.servers() {
            for tool in catalog.tools_of(server.name.as_str()) {
                if session.ways_of(tool) == (false, false) {
                    continue;
                }
                tools.insert(tool.name.to_string(), u64::from(tool.definition.tokens()));
                if discovery == ToolDiscovery::Direct || exposure.loads(tool, server) {
                    listed.insert(tool.name.to_string());
                }
            }
        }
        let meta = match discovery {
            ToolDiscovery::Stable => Some(ExposureKind::Stable),
            ToolDiscovery::Code => Some(ExposureKind::Code),
            _ => None,
        };
        let count = |text: &str| TokenCounter::shared().count(text) as u64;
        let base: u64 = match meta {
            Some(kind) => {
                listed.clear();
                session.meta_tools(kind).iter().map(|tool| count(&tool.to_string())).sum()
            }
            None => listed.iter().filter_map(|name| tools.get(name)).sum(),
        };
        let base = base + own.iter().map(|tool| count(tool)).sum::<u64>();
        let (found, own) = (BTreeSet::new(), own.to_vec());
        Self { discovery, own, tools, base, found, listed, requests: 0, saved: 0 }
    }

    /// Counts the tools of now.
    pub(super) fn refresh(&mut self, session: &ToolSession) {
        let Self { requests, saved, .. } = *self;
        let found = std::mem::take(&mut self.found);
        *self = Self { found, requests, saved, ..Self::new(session, self.discovery, &self.own) };
    }

    /// Counts what an event says.
    pub(super) fn note(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ToolsFound { names, .. } => {
                let new = names.iter().filter(|name| !self.listed.contains(*name));
                self.found.extend(new.cloned());
            }
            AgentEvent::ToolsChanged { removed: gone, .. }
            | AgentEvent::ToolsUnloaded { names: gone } => {
                for name in gone {
                    self.found.remove(name);
                }
            }
            AgentEvent::Compacted { .. } => self.found.clear(),
            AgentEvent::Usage { .. } => {
                self.requests += 1;
                self.saved += self.all().saturating_sub(self.in_context());
            }
            _ => {}
        }
    }

    /// The requests so far, and the tokens that they have saved.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.requests, self.saved)
    }

    /// The tools that searches have loaded.
    pub(super) fn found(&self) -> &BTreeSet<String> {
        &self.found
    }

    /// Whether the model has the definition of a tool.
    pub(super) fn has(&self, name: &str) -> bool {
        self.listed.contains(name) || self.found.contains(name)
    }

    pub(super) fn savings(&self) -> Savings {
        Savings {
            kind: "savings",
            all_definitions: self.all(),
            definitions_in_context: self.in_context(),
            saved: self.saved,
        }
    }

    /// In a sentence.
    pub(super) fn shown(&self) -> String {
        format!(
            "Definitions: {} tokens in the context, {} if all {} tools were listed; {} saved in {} {}.",
            grouped(self.in_context()),
            grouped(self.all()),
            self.tools.len(),
            grouped(self.saved),
            self.requests,
            if self.requests == 1 { "request" } else { "requests" }
        )
    }

    fn all(&self) -> u64 {
        self.tools.values().sum()
    }

    fn in_context(&self) -> u64 {
        self.base + self.found.iter().filter_map(|name| self.tools.get(name)).sum::<u64>()
    }
}

/// A definition as toolgate counts it.
fn definition(AgentTool { name, description, input_schema, .. }: &AgentTool) -> String {
    json!({ "name": name, "description": description, "inputSchema": input_schema }).to_string()
}
