//! The meta-tools: a model uses them to find and call all other tools.
//!
//! Their texts are part of the product: short, deterministic, and within a budget of tokens.

mod call;
mod definitions;
mod details;
mod notes;
mod read;
mod run;
mod search;
mod search_report;
mod servers;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{Map, Value, json};
use toolgate_broker::BrokerError;
use toolgate_mcp::ErrorObject;
use toolgate_upstream::{CallError, CallOptions, required_pages};

pub use definitions::PythonKind;
pub(crate) use definitions::{MetaToolOptions, direct_cost, input_schema, meta_definitions};
pub(crate) use details::declaration;
pub(crate) use read::ReadRequest;

use crate::session::{CallFailure, ToolSession, error_result};

/// A tool of toolgate itself. Meta-tools are never deferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaTool {
    /// `search_tools`.
    Search,
    /// `get_tool_details`.
    Details,
    /// `call_tool`.
    Call,
    /// `run_code`.
    Run,
    /// `resume_run`.
    Resume,
    /// `read_output`.
    Read,
    /// `search_available_servers`.
    FindServers,
    /// `enable_server`.
    Enable,
    /// `disable_server`.
    Disable,
    /// `load_skill`.
    LoadSkill,
}

impl MetaTool {
    /// All meta-tools, in the order of every list.
    pub const ALL: [Self; 10] = [
        Self::Search,
        Self::Details,
        Self::Call,
        Self::Run,
        Self::Resume,
        Self::Read,
        Self::FindServers,
        Self::Enable,
        Self::Disable,
        Self::LoadSkill,
    ];

    /// The name of the tool.
    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "search_tools",
            Self::Details => "get_tool_details",
            Self::Call => "call_tool",
            Self::Run => "run_code",
            Self::Resume => "resume_run",
            Self::Read => "read_output",
            Self::FindServers => "search_available_servers",
            Self::Enable => "enable_server",
            Self::Disable => "disable_server",
            Self::LoadSkill => "load_skill",
        }
    }

    /// The meta-tool with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}

/// Calls a meta-tool.
pub(crate) async fn call(
    session: &ToolSession,
    tool: MetaTool,
    arguments: Map<String, Value>,
    mut options: CallOptions,
) -> Result<Value, CallFailure> {
    options.gets_texts = true;
    let called = if tool == MetaTool::Call {
        async { Ok(call::call(session, read(tool, arguments)?, options).await?) }.await
    } else {
        // The future of a call is moved several times, so it must not have room for all of these.
        Box::pin(call_other(session, tool, arguments, options)).await
    };
    match called {
        Ok(result) => Ok(result),
        Err(MetaCallError::Arguments(text)) => Ok(error_result(&text)),
        Err(MetaCallError::Failure(failure)) => Err(failure),
    }
}

/// Why a meta-tool has no result of its own.
enum MetaCallError {
    /// What is wrong with the arguments, for the model.
    Arguments(String),
    Failure(CallFailure),
}

impl From<CallFailure> for MetaCallError {
    fn from(failure: CallFailure) -> Self {
        Self::Failure(failure)
    }
}

/// Calls a meta-tool other than `call_tool`.
async fn call_other(
    session: &ToolSession,
    tool: MetaTool,
    arguments: Map<String, Value>,
    options: CallOptions,
) -> Result<Value, MetaCallError> {
    Ok(match tool {
        MetaTool::Search => search::search(session, &read(tool, arguments)?).await,
        MetaTool::Details => details::details(session, &read(tool, arguments)?).await,
        MetaTool::Call => call::call(session, read(tool, arguments)?, options).await?,
        MetaTool::Run => run::run(session, read(tool, arguments)?, options).await,
        MetaTool::Resume => run::resume(session, read(tool, arguments)?, options).await,
        MetaTool::Read => read::read(session, &read(tool, arguments)?, options).await,
        MetaTool::FindServers => servers::find(session, &read(tool, arguments)?).await,
        MetaTool::Enable => servers::enable(session, &read(tool, arguments)?, &options).await?,
        MetaTool::Disable => servers::disable(session, &read(tool, arguments)?).await,
        MetaTool::LoadSkill => servers::load(session, &read(tool, arguments)?, &options).await?,
    })
}

/// Reads the arguments of a meta-tool.
fn read<T: DeserializeOwned>(
    tool: MetaTool,
    arguments: Map<String, Value>,
) -> Result<T, MetaCallError> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        let schema = definitions::input_schema(tool, false);
        let signature = toolgate_catalog::signature(tool.name(), &schema);
        let text = format!("The arguments do not fit: {error}. Expected: {signature}");
        MetaCallError::Arguments(text)
    })
}

/// A whole number of at least `FROM`.
#[derive(Debug, Clone, Copy, Default)]
struct Whole<const FROM: usize>(usize);

impl<'de, const FROM: usize> Deserialize<'de> for Whole<FROM> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        number.map(Self).ok_or_else(|| {
            let given = one_line(&value.to_string(), 40);
            D::Error::custom(format!("{given} is not a whole number of at least {FROM}"))
        })
    }
}

/// The text of a refusal. If the tool is unknown, its server may be absent, which helps a model
/// more than similar names. If a person has to visit a page first, the text names the page.
pub(crate) fn refusal(session: &ToolSession, error: &BrokerError) -> String {
    let mut text = error.to_string();
    if let BrokerError::UnknownTool { name, .. } = error {
        let host = session.host();
        // The caller knows it from another list: one before a change, or one of another node.
        if let Some(why) = session.held_back(name) {
            return format!(
                "`{name}` was not called: its definition {why}, so it is held back until a person approves it: \
                 `toolgate definitions`, in a terminal of their own"
            );
        }
        for note in notes::absent_servers(session, &host.catalog().read()) {
            text.push('\n');
            text.push_str(&note);
        }
    }
    if let BrokerError::Call(error) = error
        && let CallError::Refused { error, .. } = &**error
    {
        text.push_str(&visits(error));
    }
    text
}

/// What a person has to do before a server takes a call that it has refused with this error; empty if nothing.
pub(crate) fn visits(error: &ErrorObject) -> String {
    let pages = required_pages(error);
    let visits = |pages| format!("; a person has to visit {pages} first, then call again");
    pages.map(visits).unwrap_or_default()
}

/// A result with a text, and the same as structured content.
fn result(text: &str, data: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": data })
}

/// A server's text on one line, without control characters and invisible characters, cut to `limit`
/// characters.
pub fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    for (count, word) in text.split(|c: char| c.is_whitespace() || is_invisible(c)).enumerate() {
        if word.is_empty() {
            continue;
        }
        if count > 0 && !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // Words are cut too: a word may have a megabyte.
        if line.len() > limit * 4 {
            break;
        }
    }
    if line.chars().count() > limit {
        line = line.chars().take(limit - 1).collect();
        line.push('…');
    }
    line
}

/// Whether a character moves the cursor, reverses a line, or hides text from a person that a model
/// reads.
pub(crate) fn is_invisible(character: char) -> bool {
    let hides = matches!(
        character,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    );
    character.is_control() || hides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line("  a\n\tb\u{7}c  d ", 40), "a b c d");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line(&"x".repeat(1_000_000), 10).chars().count(), 10);
        assert_eq!(one_line("", 10), "");
    }
}
