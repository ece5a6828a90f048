//! `toolgate policy suggest`: proposals of labels and rules, for a person to accept.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::{Value, json};
use toolgate_catalog::{ServerName, Tool};
use toolgate_config::{Format, PolicyAddition, add_to_policy, policy_in};
use toolgate_host::ToolHost;
use toolgate_policy::{
    CallPath, CallerFacts, Flow, LabelSet, Suggestion, Verdict, definitions::shown, suggest,
};

use crate::{
    cli::Globals,
    decisions,
    failure::{CommandResult, Failure},
    folders,
    load::{self, Loaded},
    person::{self, OpenTerminal},
    policy_place::{self, WrittenPolicy},
    print,
};

/// The proposals for the tools of one server, by the names that the server gives them.
type ServerSuggestions = Vec<(String, Suggestion)>;

/// The longest name that is shown.
const NAME: usize = 200;

pub(super) async fn run(
    globals: &Globals,
    server: Option<&str>,
    write: bool,
    as_json: bool,
) -> CommandResult {
    let needed = super::super::Needed::Tools(server);
    let (loaded, host) = super::super::start_when_needed(globals, needed, None).await?;
    let found = proposals(&host, server);
    host.shutdown().await;
    if as_json {
        print::json(&rows(&found))?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        print::line("There is nothing to propose: the known tools have labels, or need none.");
        return Ok(ExitCode::SUCCESS);
    }
    if write {
        return accept(&loaded, &found);
    }
    for (server, tools) in &found {
        print::line(describe(server, tools));
    }
    let addition = addition(found.iter().flat_map(|(server, tools)| {
        tools.iter().map(move |(tool, suggestion)| (server, tool, suggestion))
    }));
    print::line("\nThe same for `policy` of the configuration:\n");
    let rules = addition.rules;
    let labels: BTreeMap<String, Vec<&str>> = addition.labels.into_iter().collect();
    let snippet = json!({ "labels": labels, "rules": rules });
    print::line(serde_json::to_string_pretty(&snippet).unwrap_or_default());
    print::line(format!(
        "\nThese are guesses by annotations, names and schemas. `toolgate policy suggest --write` asks you about \
         them and writes what you accept to {}.",
        folders::shown(&loaded.path)
    ));
    Ok(ExitCode::SUCCESS)
}

/// What is proposed, by server. Tools that have labels keep them, and tools that are asked about or
/// denied need no rule.
fn proposals(host: &ToolHost, wanted: Option<&str>) -> BTreeMap<ServerName, ServerSuggestions> {
    let tools: Vec<Tool> = host.catalog().read().tools().cloned().collect();
    let mut found: BTreeMap<ServerName, ServerSuggestions> = BTreeMap::new();
    for tool in tools.iter().filter(|tool| wanted.is_none_or(|it| tool.id.server.as_str() == it)) {
        // Such a name would be a pattern, or belong to another server.
        if tool.id.tool.contains(['*', '?']) || tool.id.server.as_str().contains(['*', '?', '/']) {
            continue;
        }
        let policy = host.broker().policy_of(tool);
        let mut suggestion = suggest(tool.id.server.as_str(), &tool.definition);
        if policy.labels() != LabelSet::EMPTY {
            suggestion.labels.clear();
        }
        let decision =
            policy.decide_for(&CallerFacts::default(), CallPath::Direct, &json!({}), &Flow::NONE);
        if decision.verdict != Verdict::Allow && !decision.is_optional() {
            suggestion.rule = None;
        }
        if suggestion != Suggestion::default() {
            let tools = found.entry(tool.id.server.clone()).or_default();
            tools.push((tool.id.tool.to_string(), suggestion));
        }
    }
    found
}

fn rows(found: &BTreeMap<ServerName, ServerSuggestions>) -> Vec<Value> {
    let row = |server: &ServerName, tool: &str, suggestion: &Suggestion| {
        let mut row = json!(suggestion);
        row["tool"] = json!(format!("{server}/{tool}"));
        row
    };
    let rows = found.iter().flat_map(|(server, tools)| {
        tools.iter().map(move |(tool, suggestion)| row(server, tool, suggestion))
    });
    rows.collect()
}

fn describe(server: &ServerName, tools: &ServerSuggestions) -> String {
    let mut lines = Vec::new();
    for (tool, suggestion) in tools {
        lines.push(shown(&format!("{server}/{tool}"), NAME));
        let labels = suggestion.labels.iter();
        lines.extend(labels.map(|it| format!("  {}: {}", it.label.as_str(), it.reason)));
        lines.extend(suggestion.rule.iter().map(|it| format!("  {}: {}", it.verdict, it.reason)));
    }
    lines.join("\n")
}

fn addition<'s>(
    accepted: impl Iterator<Item = (&'s ServerName, &'s String, &'s Suggestion)>,
) -> PolicyAddition {
    let mut addition = PolicyAddition::default();
    for (server, tool, suggestion) in accepted {
        let name = format!("{server}/{tool}");
        if let Some(rule) = &suggestion.rule {
            let rule = json!({ "tool": name, "verdict": rule.verdict, "reason": rule.reason });
            addition.rules.push(rule);
        }
        if !suggestion.labels.is_empty() {
            let labels = suggestion.labels.iter().map(|it| it.label.as_str()).collect();
            addition.labels.push((name, labels));
        }
    }
    addition
}

/// Asks about each server, or each tool of it, and writes what the person accepts.
fn accept(loaded: &Loaded, found: &BTreeMap<ServerName, ServerSuggestions>) -> CommandResult {
    let path = fs::canonicalize(&loaded.path).unwrap_or_else(|_| loaded.path.clone());
    let file = folders::shown(&loaded.path);
    let mut person = OpenTerminal::open()?;
    let mut accepted = Vec::new();
    for (server, tools) in found {
        print::line(describe(server, tools));
        let name = shown(server.as_str(), NAME);
        let question = format!("Accept this for {name}: [y]es, [e]ach tool by itself, or [N]o? ");
        match person.answer(&question)?.as_str() {
            "y" | "yes" => accepted.extend(tools.iter().map(|(tool, it)| (server, tool, it))),
            "e" | "each" => {
                for (tool, suggestion) in tools {
                    let alone = vec![(tool.clone(), suggestion.clone())];
                    print::line(describe(server, &alone));
                    if matches!(person.answer("Accept this? [y/N] ")?.as_str(), "y" | "yes") {
                        accepted.push((server, tool, suggestion));
                    }
                }
            }
            _ => {}
        }
    }
    if accepted.is_empty() {
        print::line("Nothing was accepted, and nothing is written.");
        return Ok(ExitCode::SUCCESS);
    }
    let count = accepted.len();
    let before = WrittenPolicy::of(loaded);
    if before.is_saved() {
        let place = save(loaded, &before, &addition(accepted.into_iter()))?;
        print::line(format!("The labels and rules of {count} tools are in {place}."));
        return Ok(ExitCode::SUCCESS);
    }
    let copy = write(&path, &addition(accepted.into_iter()))?;
    print::line(format!(
        "The labels and rules of {count} tools are in {file}. The old file is {}.",
        folders::shown(&copy)
    ));
    let of_folder = folders::configuration_of(Path::new("."));
    if of_folder.is_some_and(|it| it.canonicalize().is_ok_and(|it| it == path)) {
        print::line("If this folder was trusted, `toolgate trust` trusts the changed file.");
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds to the policy that is saved in the database of the fleet. Returns where it is now.
fn save(
    loaded: &Loaded,
    before: &WrittenPolicy,
    addition: &PolicyAddition,
) -> Result<String, Failure> {
    let text = json!({ "policy": before.value }).to_string();
    let text = add_to_policy(&text, Format::Jsonc, addition)
        .map_err(|error| Failure::usage(format!("the saved policy was not changed: {error}")))?;
    let policy = policy_in(&text, Format::Jsonc).unwrap_or_default();
    let shown = serde_json::to_string_pretty(&policy).unwrap_or_default();
    let shown = format!("{shown}\n\n{}", before.consequence());
    person::agrees(loaded.presence()?, &shown, "Save this policy?")?;
    policy_place::save(loaded, &load::required_store()?, &policy, before, &decisions::caller())
}

/// Writes the file, with a copy of the old one beside it. Returns the path of the copy.
fn write(path: &Path, addition: &PolicyAddition) -> Result<PathBuf, Failure> {
    let shown = folders::shown(path);
    let old = load::read(path)?;
    let format = Format::of_file(path);
    let new = add_to_policy(&old, format, addition)
        .map_err(|error| Failure::usage(format!("{shown} was not changed: {error}")))?;
    let problems = |text: &str| {
        let read = toolgate_config::parse(text, format, &shown, &load::variable);
        read.map(|read| read.problems.len())
    };
    // What is written must be understood as well as what was there.
    match (problems(&old), problems(&new)) {
        (Ok(before), Ok(after)) if after <= before => {}
        _ => return Err(Failure::new(format!("{shown} was not changed: the result has problems"))),
    }
    let failed =
        |error: std::io::Error| Failure::new(format!("cannot write beside {shown}: {error}"));
    let beside = |end: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let copy =
        (1..10_000).map(|number| beside(format!(".{number}.bak"))).find(|copy| !copy.exists());
    let copy = copy.unwrap_or_else(|| beside(".bak".to_owned()));
    fs::copy(path, &copy).map_err(failed)?;
    let next = beside(".new".to_owned());
    fs::copy(path, &next).map_err(failed)?; // With the permissions of the file.
    fs::write(&next, new).and_then(|()| fs::rename(&next, path)).map_err(failed)?;
    Ok(copy)
}
