//! `toolgate inspect`

use std::process::ExitCode;

use serde_json::{Value, json};

use super::{Needed, meta_call};
use crate::{
    cli::{Globals, Inspect},
    failure::CommandResult,
    print,
};

pub(crate) async fn run(globals: &Globals, arguments: Inspect) -> CommandResult {
    let (_, host) =
        super::start_when_needed(globals, Needed::Names(&arguments.names), None).await?;
    let session = host.session();
    let mut tools = Vec::new();
    for name in &arguments.names {
        // One at a time: a definition on its own is always given whole.
        let request = json!({ "names": [name], "format": "json" });
        let mut result = meta_call(&session, "get_tool_details", request).await?;
        if let Some(found) = result["structuredContent"]["tools"].as_array_mut() {
            tools.append(found);
        }
    }
    // A tool of a server that did not answer may well exist.
    let silent: Vec<(String, String)> = host
        .overview(&host.exposure())
        .into_iter()
        .filter_map(|server| Some((server.server.to_string(), server.reason?)))
        .collect();
    host.shutdown().await;
    let render = |tool: &Value| {
        let name = tool["name"].as_str().unwrap_or_default();
        let of_silent = silent.iter().find(|(server, _)| {
            let prefix = server.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            name.strip_prefix(&prefix).is_some_and(|rest| rest.starts_with('_'))
        });
        match of_silent.filter(|_| tool.get("definition").is_none()) {
            Some((server, reason)) => format!("{name}: {server} cannot be asked: {reason}\n"),
            None => render(tool),
        }
    };
    let text = || tools.iter().map(render).collect::<Vec<_>>().join("\n");
    print::show(arguments.output.json, &tools, text)?;
    let unknown = tools.iter().any(|tool| tool.get("error").is_some());
    Ok(if unknown { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn render(tool: &Value) -> String {
    let name = tool["name"].as_str().unwrap_or_default();
    let Some(definition) = tool.get("definition") else {
        let nearest: Vec<&str> =
            tool["nearest"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let hint = if nearest.is_empty() {
            "`toolgate search` finds tools".to_owned()
        } else {
            format!("nearest: {}", nearest.join(", "))
        };
        return format!("{name}: there is no such tool; {hint}\n");
    };
    let signature = toolgate_catalog::signature(name, &definition["inputSchema"]);
    let pretty = serde_json::to_string_pretty(definition).unwrap_or_default();
    format!("{signature}\nserver: {}\n{pretty}\n", tool["server"].as_str().unwrap_or_default())
}
