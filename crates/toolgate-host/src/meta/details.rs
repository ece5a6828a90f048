//! `get_tool_details`.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_bindings::{DeclaredNames, Output, ToolApi};
use toolgate_catalog::{Tool, nearest};
use toolgate_policy::CallPath;
use toolgate_sandbox::Language;

use super::{error_result, one_line, result};
use crate::{resources::to_client_views, session::ToolSession};

/// The arguments of `get_tool_details`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DetailsRequest {
    #[serde(default)]
    names: Vec<String>,
    /// A spelling that models use.
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    format: Option<DetailFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DetailFormat {
    /// As the server sent it.
    Json,
    /// As a function of TypeScript, which takes less than half of the tokens.
    TypeScript,
    /// As a function of Python.
    Python,
}

const MAX_NAMES: usize = 20;
const SUGGESTIONS: usize = 3;
/// A single definition is always shown in full. Further ones are shown while there is room.
const ROOM_CHARACTERS: usize = 200_000;

pub(super) async fn details(session: &ToolSession, request: &DetailsRequest) -> Value {
    let names: Vec<&str> = request.names.iter().chain(&request.name).map(String::as_str).collect();
    if names.is_empty() {
        return error_result("Say which tools: get_tool_details(names: string[]).");
    }
    for name in names.iter().take(MAX_NAMES) {
        session.host().connect_owners(name).await;
    }
    let format = request.format.unwrap_or(DetailFormat::TypeScript);
    let catalog = session.host().catalog().read();
    let mut text = String::new();
    let mut tools = Vec::new();
    let mut used = DeclaredNames::default();
    for name in names.iter().take(MAX_NAMES) {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let of_scripts = match format {
            DetailFormat::Python => toolgate_bindings::python_function(name),
            DetailFormat::Json | DetailFormat::TypeScript => {
                toolgate_bindings::typescript_function(name)
            }
        };
        if let Some(declaration) = of_scripts.filter(|_| session.host().code().is_enabled()) {
            text.push_str(declaration.trim_end());
            tools.push(json!({ "name": name, "declaration": declaration }));
            continue;
        }
        let offered = |tool: &&Tool| session.offers(tool);
        let tool = catalog
            .resolve(name)
            .or_else(|| catalog.resolve_doubled(name))
            .or_else(|| catalog.resolve_own(name));
        let Some(tool) = tool.filter(offered) else {
            let known = catalog.tools().filter(offered).map(|tool| tool.name.as_str());
            let nearest = nearest(name, known, SUGGESTIONS);
            let name = one_line(name, 128);
            let hint = if nearest.is_empty() {
                "search_tools finds those there are.".to_owned()
            } else {
                format!("Nearest: {}.", nearest.join(", "))
            };
            let _ = write!(text, "{name}: there is no such tool. {hint}");
            tools.push(json!({ "name": name, "error": "unknown", "nearest": nearest }));
            continue;
        };
        let is_for_scripts = request.format.is_some_and(|format| format != DetailFormat::Json);
        if is_for_scripts && !session.opens(tool, CallPath::Script) {
            let name = tool.name.as_str();
            let _ = write!(text, "{name}: it is not for scripts; call it directly.");
            tools.push(json!({ "name": name, "error": "not for scripts" }));
            continue;
        }
        let language = match format {
            DetailFormat::Json => None,
            DetailFormat::TypeScript => Some(Language::TypeScript),
            DetailFormat::Python => Some(Language::Python),
        };
        let declaration =
            language.map(|language| declaration_beside(session, tool, language, &mut used));
        let view = tool.definition.view().has_view.then(|| {
            let mut definition = tool.definition.to_value();
            to_client_views(&tool.id.server, &mut definition);
            definition.to_string()
        });
        let json = || view.as_deref().unwrap_or_else(|| tool.definition.json());
        let definition = declaration.as_deref().unwrap_or_else(json);
        if !text.is_empty() && text.len() + definition.len() > ROOM_CHARACTERS {
            let size = definition.len();
            let _ = write!(
                text,
                "{name}: its definition ({size} bytes) is too long here; ask for it alone."
            );
            tools.push(json!({ "name": name, "error": "too large", "bytes": size }));
            continue;
        }
        let (name, server) = (tool.name.as_str(), tool.id.server.as_str());
        if let Some(declaration) = &declaration {
            text.push_str(declaration.trim_end());
            tools.push(json!({ "name": name, "server": server, "declaration": declaration }));
            continue;
        }
        let _ = write!(text, "{name} (server {server})\n{definition}");
        let mut definition = tool.definition.to_value();
        to_client_views(&tool.id.server, &mut definition);
        tools.push(json!({ "name": name, "server": server, "definition": definition }));
    }
    if names.len() > MAX_NAMES {
        let _ = write!(text, "\n\nOnly the first {MAX_NAMES} names were read.");
    }
    result(&text, &json!({ "tools": tools }))
}

/// The tool as a function of a language.
pub(crate) fn declaration(session: &ToolSession, tool: &Tool, language: Language) -> String {
    declaration_beside(session, tool, language, &mut DeclaredNames::default())
}

/// The same beside the declarations of other tools.
fn declaration_beside(
    session: &ToolSession,
    tool: &Tool,
    language: Language,
    used: &mut DeclaredNames,
) -> String {
    let render = match language {
        Language::TypeScript => toolgate_bindings::typescript_beside,
        Language::Python => toolgate_bindings::python_beside,
    };
    let input_schema = tool.definition.input_schema();
    let declared = tool.definition.output_schema();
    let learned = if declared.is_none() { session.host().code().shapes.shape(tool) } else { None };
    let output = match (&declared, &learned) {
        (Some(schema), _) => Output::Declared(schema),
        (None, Some(shape)) => Output::Learned(shape),
        (None, None) => Output::Unknown,
    };
    let description = Some(tool.definition.description()).filter(|text| !text.is_empty());
    let name = tool.name.as_str();
    render(&[ToolApi { name, description, input_schema: &input_schema, output }], used)
}
