//! What declarations cost against the JSON that they stand for.
//!
//! ```text
//! cargo run --package toolgate-bindings --example measure -- FOLDER [SERVER]
//! ```
//!
//! The folder has captures of servers, `NAME.json` with a list of `tools`. With the name of a
//! server, its declarations are printed instead.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::{error::Error, fs, path::Path};

use serde_json::Value;
use toolgate_bindings::{Output, ToolApi, python, typescript};
use toolgate_catalog::TokenCounter;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("name a folder of captures")?;
    let chosen = arguments.next();
    let mut rows = Vec::new();
    let mut per_server = Vec::new();
    for (server, tools) in captures(Path::new(&folder))? {
        if let Some(chosen) = &chosen {
            if *chosen == server {
                for tool in &tools {
                    let (text, stub) = declarations(&server, tool);
                    println!("{text}\n{stub}\n");
                }
            }
            continue;
        }
        let costs: Vec<Costs> = tools.iter().map(|tool| Costs::of(&server, tool)).collect();
        per_server.push((server, Costs::sum(&costs)));
        rows.extend(costs);
    }
    if rows.is_empty() {
        return Ok(());
    }
    let total = Costs::sum(&rows);
    println!("{} tools", rows.len());
    println!(
        "{:<20}{:>9}{:>15}{:>15}{:>15}",
        "tokens", "JSON", "descriptions", "TypeScript", "Python"
    );
    row("total", &total);
    row("p50", &Costs::at(&rows, 50));
    row("p90", &Costs::at(&rows, 90));
    row("p99", &Costs::at(&rows, 99));
    per_server.sort_by_key(|(_, costs)| costs.typescript * 1000 / costs.json.max(1));
    println!("\nthe least and the most against the JSON");
    let count = per_server.len();
    for (index, (server, costs)) in per_server.iter().enumerate() {
        if index < 5 || index + 8 >= count {
            row(server, costs);
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, Default)]
struct Costs {
    json: usize,
    /// What of the JSON are descriptions: no declaration that keeps them can cost less.
    descriptions: usize,
    typescript: usize,
    python: usize,
}

impl Costs {
    fn of(server: &str, tool: &Value) -> Self {
        let counter = TokenCounter::shared();
        let (text, stub) = declarations(server, tool);
        Self {
            json: counter.count(&tool.to_string()),
            descriptions: descriptions(tool).iter().map(|text| counter.count(text)).sum(),
            typescript: counter.count(&text),
            python: counter.count(&stub),
        }
    }

    fn sum(all: &[Self]) -> Self {
        all.iter().fold(Self::default(), |sum, costs| Self {
            json: sum.json + costs.json,
            descriptions: sum.descriptions + costs.descriptions,
            typescript: sum.typescript + costs.typescript,
            python: sum.python + costs.python,
        })
    }

    /// The percentile of each column by itself.
    fn at(all: &[Self], percentile: usize) -> Self {
        let column = |of: fn(&Self) -> usize| {
            let mut column: Vec<usize> = all.iter().map(of).collect();
            column.sort_unstable();
            column[(column.len() - 1) * percentile / 100]
        };
        Self {
            json: column(|costs| costs.json),
            descriptions: column(|costs| costs.descriptions),
            typescript: column(|costs| costs.typescript),
            python: column(|costs| costs.python),
        }
    }
}

fn row(name: &str, costs: &Costs) {
    let column = |tokens: usize| format!("{tokens} {:>3}%", tokens * 100 / costs.json.max(1));
    let columns = [costs.descriptions, costs.typescript, costs.python].map(column);
    let [descriptions, typescript, python] = columns;
    println!("{name:<20}{:>9}{descriptions:>15}{typescript:>15}{python:>15}", costs.json);
}

/// All descriptions in a definition, wherever they stand.
fn descriptions(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, member)| match member {
                Value::String(text) if key == "description" => vec![text.as_str()],
                _ => descriptions(member),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(descriptions).collect(),
        _ => Vec::new(),
    }
}

fn declarations(server: &str, tool: &Value) -> (String, String) {
    let name = format!("{server}_{}", tool["name"].as_str().unwrap_or_default());
    let name: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
        .collect();
    let api = ToolApi {
        name: &name,
        description: tool["description"].as_str(),
        input_schema: &tool["inputSchema"],
        output: tool.get("outputSchema").map_or(Output::Unknown, Output::Declared),
    };
    (typescript(&[api]), python(&[api]))
}

/// A server and its tools.
type Capture = (String, Vec<Value>);

fn captures(folder: &Path) -> Result<Vec<Capture>, Box<dyn Error>> {
    let mut paths: Vec<_> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let mut captures = Vec::new();
    for path in paths {
        let capture: Value = serde_json::from_slice(&fs::read(&path)?)?;
        let tools = capture["tools"].as_array().cloned().unwrap_or_default();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        captures.push((name, tools));
    }
    Ok(captures)
}
