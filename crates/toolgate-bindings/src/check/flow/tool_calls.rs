//! Calls of tools: what is sent, and what comes back.

use super::{
    Site, Solver,
    calls::{ArgumentKind, CallState},
    graph::{ObjectKind, SiteId, Use, Value},
    ir::{Name, index, name},
};
use crate::check::lookup::takes_positions;

/// Functions of the gateway that scripts can call. Their results depend on their arguments.
const OWN_FUNCTIONS: &[&str] = &[
    "search_tools",
    "get_tool_details",
    "extract",
    "search_available_servers",
    "connect_server",
    "read_output",
    "read_resource",
];

impl Solver<'_> {
    /// A call of a tool: its arguments are sent, and its result is data.
    pub(super) fn call_tool(&mut self, state: &CallState, tool: Option<Name>) {
        let text = tool.map(|tool| self.names.text(tool));
        if text.as_deref() == Some("call_tool") {
            let at = usize::from(self.program.is_python);
            let named = self.names.intern("name");
            let mut arguments = Vec::new();
            let condition = self.node();
            self.copy(state.condition, condition);
            for (position, (kind, node)) in state.arguments.iter().enumerate() {
                match kind {
                    ArgumentKind::Keyword(name::ARGUMENTS) => arguments.push(*node),
                    ArgumentKind::Position if self.program.is_python && position == at => {
                        arguments.push(*node);
                    }
                    // The name: the error contains it, and it decides which tool is called.
                    ArgumentKind::Keyword(_) | ArgumentKind::Position if self.program.is_python => {
                        self.deep(*node, state.thrown);
                        self.flow(*node, Use::Choose(condition));
                    }
                    _ => {
                        let inner = self.node();
                        self.flow(*node, Use::Load(name::ARGUMENTS, inner));
                        self.flow(*node, Use::Load(named, inner));
                        arguments.push(inner);
                        // Something may be called when it becomes a text.
                        let all = self.node();
                        self.deep(*node, all);
                        arguments.push(all);
                    }
                }
            }
            let arguments =
                arguments.into_iter().map(|node| (ArgumentKind::KeywordSpread, node)).collect();
            let state = CallState { arguments, condition, ..state.clone() };
            return self.call_tool(&state, None);
        }
        let site = self.site(state.offset, tool);
        let sent = self.sites[site as usize].sent;
        let parameters = text.as_deref().and_then(|text| Some(&self.tools.tool(text)?.parameters));
        let is_positional = self.program.is_python || text.as_deref().is_some_and(takes_positions);
        // A single dictionary may have all arguments.
        if let ([(ArgumentKind::Position, only)], true) =
            (state.arguments.as_slice(), self.program.is_python)
        {
            let tool = text.as_deref().and_then(|text| self.tools.tool(text));
            if tool.is_none_or(|tool| !tool.first_takes_object()) {
                self.flow(*only, Use::Spread(sent));
            }
        }
        let mut position = 0;
        for (kind, node) in &state.arguments {
            match kind {
                ArgumentKind::Position if is_positional => {
                    let field = parameters.and_then(|all| all.get(position));
                    let field = field.map_or(name::ANY, |field| self.names.intern(field));
                    let place = self.field(sent, field);
                    self.copy(*node, place);
                    position += 1;
                }
                ArgumentKind::Keyword(name) => {
                    let place = self.field(sent, *name);
                    self.copy(*node, place);
                }
                ArgumentKind::Spread => {
                    let any = self.field(sent, name::ANY);
                    self.flow(*node, Use::LoadAny(any));
                }
                ArgumentKind::KeywordSpread => self.flow(*node, Use::Spread(sent)),
                // A tool takes one object and does not look at what comes after it.
                ArgumentKind::Position => {
                    if position == 0 {
                        self.flow(*node, Use::Spread(sent));
                    }
                    position += 1;
                }
            }
        }
        let branch = self.field(sent, name::BRANCH);
        // It decides that the call is made, and is not sent.
        self.flow(state.condition, Use::Choose(branch));
        self.flow(state.chosen, Use::Choose(branch));
        self.copy(self.ended, branch);
        let result = self.object(ObjectKind::Result(site));
        self.add(state.result, Value::Object(result), state.result);
        self.add(state.thrown, Value::Data(site), state.thrown);
        // A function of the gateway answers with what it was asked, and has no labels of its own.
        let text = tool.map(|tool| self.names.text(tool));
        if text.is_none_or(|text| OWN_FUNCTIONS.contains(&&*text)) {
            let (asked, place) = (self.taint(sent), self.field(result, name::ANY));
            self.copy(asked, place);
        }
        // The error of a call that was refused contains its arguments.
        let asked = self.taint(sent);
        self.copy(asked, state.thrown);
    }

    pub(super) fn site(&mut self, offset: u32, tool: Option<Name>) -> SiteId {
        if let Some(site) = self.site_ids.get(&(offset, tool)) {
            return *site;
        }
        let site = index(self.sites.len());
        let sent = self.object(ObjectKind::Sent(site));
        self.sites.push(Site { tool, offset, sent });
        self.site_ids.insert((offset, tool), site);
        site
    }
}
