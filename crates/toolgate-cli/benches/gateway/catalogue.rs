//! The servers that are measured: generated ones, and those of a folder of captures.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use toolgate_testkit::Fixture;

/// The name of a server, and its tools.
pub(crate) type Server = (String, Vec<Value>);

const SERVERS: usize = 60;
const TOOLS_EACH: usize = 31;
/// The larger set of captures: as many servers, some of them twice under other names.
const MANY: usize = 94;

/// The sets, with their names.
pub(crate) fn all(captures: Option<&Path>) -> Vec<(String, Vec<Server>)> {
    let mut sets = vec![(
        format!("{SERVERS} generated servers"),
        (0..SERVERS).map(synthetic).collect::<Vec<_>>(),
    )];
    if let Some(folder) = captures {
        let public = captured(folder);
        let few: Vec<Server> = public.iter().take(SERVERS).cloned().collect();
        sets.push((format!("{} public servers", few.len()), few));
        let again = public.iter().map(|(name, tools)| (format!("{name}-2"), tools.clone()));
        let many: Vec<Server> = public.iter().cloned().chain(again).take(MANY).collect();
        sets.push((format!("{} servers, {} of them public", many.len(), public.len()), many));
    }
    sets
}

pub(crate) fn write_config(folder: &Path, servers: &[Server]) -> PathBuf {
    fs::create_dir_all(folder).expect("a folder");
    let entries: Map<String, Value> = servers
        .iter()
        .map(|(name, tools)| {
            let fixture = Fixture::new(name.as_str()).with_tools(tools.clone());
            let file = folder.join(format!("{name}.fixture.json"));
            let entry = fixture.entry_through_file(&file).expect("the fixture");
            (name.clone(), entry.to_json())
        })
        .collect();
    let path = folder.join("all.json");
    fs::write(&path, json!({ "mcpServers": entries }).to_string()).expect("a file");
    path
}

fn synthetic(index: usize) -> Server {
    const VERBS: [&str; 8] =
        ["read", "list", "create", "update", "delete", "search", "send", "get"];
    const NOUNS: [&str; 8] =
        ["file", "issue", "invoice", "deployment", "message", "customer", "log", "event"];
    let tools = (0..TOOLS_EACH).map(|tool| {
        let (verb, noun) = (VERBS[tool % 8], NOUNS[(tool / 8 + index) % 8]);
        json!({
            "name": format!("{verb}_{noun}_{tool}"),
            "description": format!("{verb} a {noun} of workspace {index}, and say what became of it."),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "id": { "type": "string", "description": format!("Which {noun}") },
                    "options": { "type": "object", "properties": {
                        "limit": { "type": "integer" }, "format": { "enum": ["text", "json"] },
                    } },
                },
                "required": ["id"],
            },
        })
    });
    (format!("server{index}"), tools.collect())
}

fn captured(folder: &Path) -> Vec<Server> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder of captures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = fs::read_to_string(path).expect("a capture");
            let capture: Value = serde_json::from_str(&text).expect("JSON");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, capture["tools"].as_array().cloned().unwrap_or_default())
        })
        .collect()
}
