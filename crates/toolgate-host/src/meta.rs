//! The meta-tools: what a model uses to find and call everything else.
//!
//! Their texts are a product surface: short, deterministic, within a budget of tokens.

mod absent;
mod call;
mod definitions;
mod details;
mod elsewhere;
mod read;
mod run;
mod search;
mod servers;
mod skill;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{Map, Value, json};
use toolgate_broker::BrokerError;
use toolgate_upstream::CallOptions;

pub(crate) use definitions::{MetaToolOptions, input_schema, meta_definitions};

use crate::session::{CallFailure, Session, error_result};

/// A tool of the host itself. These are never deferred.
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
    /// All of them, in the order of every listing.
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

    /// Its name.
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

    /// The meta-tool of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}

pub(crate) async fn call(
    session: &Session,
    tool: MetaTool,
    arguments: Map<String, Value>,
    options: CallOptions,
) -> Result<Value, CallFailure> {
    match tool {
        MetaTool::Search => Ok(match read(tool, arguments) {
            Ok(request) => search::search(session, &request).await,
            Err(result) => result,
        }),
        MetaTool::Details => Ok(match read(tool, arguments) {
            Ok(request) => details::details(session, &request).await,
            Err(result) => result,
        }),
        MetaTool::Call => match read(tool, arguments) {
            Ok(request) => call::call(session, request, options).await,
            Err(result) => Ok(result),
        },
        MetaTool::Run => Ok(match read(tool, arguments) {
            Ok(request) => run::run(session, request, options).await,
            Err(result) => result,
        }),
        MetaTool::Resume => Ok(match read(tool, arguments) {
            Ok(request) => run::resume(session, request, options).await,
            Err(result) => result,
        }),
        MetaTool::Read => Ok(match read(tool, arguments) {
            Ok(request) => read::read(session, &request, options).await,
            Err(result) => result,
        }),
        MetaTool::FindServers => Ok(match read(tool, arguments) {
            Ok(request) => servers::find(session, &request).await,
            Err(result) => result,
        }),
        MetaTool::Enable => match read(tool, arguments) {
            Ok(request) => servers::enable(session, &request, &options).await,
            Err(result) => Ok(result),
        },
        MetaTool::Disable => Ok(match read(tool, arguments) {
            Ok(request) => servers::disable(session, &request).await,
            Err(result) => result,
        }),
        MetaTool::LoadSkill => match read(tool, arguments) {
            Ok(request) => skill::load(session, &request, &options).await,
            Err(result) => Ok(result),
        },
    }
}

/// Reads the arguments of a meta-tool, or gives the result that says what is wrong with them.
fn read<T: DeserializeOwned>(tool: MetaTool, arguments: Map<String, Value>) -> Result<T, Value> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        let schema = definitions::input_schema(tool, false);
        let signature = toolgate_catalog::signature(tool.name(), &schema);
        error_result(&format!("The arguments do not fit: {error}. Expected: {signature}"))
    })
}

/// A number that a model gives: from `FROM` on, as far as it is told.
#[derive(Debug, Clone, Copy, Default)]
struct Whole<const FROM: usize>(usize);

impl<'de, const FROM: usize> Deserialize<'de> for Whole<FROM> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
        number.map(Self).ok_or_else(|| {
            let given = one_line(&value.to_string(), 40);
            D::Error::custom(format!("{given} is no whole number from {FROM} on"))
        })
    }
}

/// A broker's refusal in words. Where a tool is unknown its server may be absent, which is worth
/// more than a list of names that look alike.
pub(crate) fn refusal(session: &Session, error: &BrokerError) -> String {
    let mut text = error.to_string();
    if matches!(error, BrokerError::UnknownTool { .. }) {
        let host = session.host();
        for note in absent::notes(host, &host.catalog().read()) {
            text.push('\n');
            text.push_str(&note);
        }
    }
    text
}

/// A result with its text and the same as data.
fn result(text: &str, data: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": data })
}

/// A server's text on one line, without what a terminal or a model could trip over, cut to `limit`
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
        // Words are cut too: one may have a megabyte.
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

/// Whether a character moves a cursor, turns a line around, or hides text from a person that a
/// model reads all the same.
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
