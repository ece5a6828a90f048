//! What it costs to read a script before it runs.

use serde_json::{json, value::to_raw_value};
use toolgate_bindings::check::{Language, Lookup, LookupResult, check};

fn main() {
    divan::main();
}

struct BenchTools;

impl Lookup for BenchTools {
    fn look_up(&mut self, names: &[String]) -> Vec<LookupResult> {
        let schema = json!({
            "type": "object",
            "properties": {"since": {"type": "string"}, "level": {"enum": ["error", "warning"]}},
            "required": ["since"],
            "additionalProperties": false,
        });
        let tool = |name: &String| {
            let input_schema = to_raw_value(&schema).ok()?;
            Some(LookupResult::Tool { name: name.clone(), input_schema, output_schema: None })
        };
        names.iter().filter_map(tool).collect()
    }
}

const TYPESCRIPT: &str = r#"
interface Entry { message: string; at: string }
const logs: Entry[] = await logging_get_logs({ since: "1h", level: "error" });
const unique = new Map<string, Entry[]>();
for (const entry of logs) {
  const known = unique.get(entry.message) ?? [];
  unique.set(entry.message, [...known, entry]);
}
const issues = await Promise.all(
  [...unique.keys()].map((message) => ticketing_create_issue({ since: message })),
);
return `${issues.length} issues`;
"#;

const PYTHON: &str = r#"
import asyncio, json
logs = await logging_get_logs(since="1h", level="error")
unique = {}
for entry in logs:
    unique.setdefault(entry["message"], []).append(entry)
issues = await asyncio.gather(*[ticketing_create_issue(since=message) for message in unique])
print(json.dumps({"issues": len(issues)}))
"#;

#[divan::bench]
fn typescript() -> usize {
    run(Language::TypeScript, TYPESCRIPT)
}

#[divan::bench]
fn python() -> usize {
    run(Language::Python, PYTHON)
}

#[divan::bench]
fn typescript_of_a_thousand_lines() -> usize {
    let block = format!("{{{}}}", TYPESCRIPT.replace("return ", "const result = "));
    let source = block.repeat(100);
    run(Language::TypeScript, &source)
}

fn run(language: Language, source: &str) -> usize {
    let modules = ["asyncio", "json"];
    let checked = check(language, source, &[], &modules, &mut BenchTools);
    assert!(checked.findings.is_empty());
    checked.source.len()
}
