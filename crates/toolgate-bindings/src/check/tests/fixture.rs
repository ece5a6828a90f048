//! A few tools to check scripts against.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::check::{
    CheckSeverity, Checked, Language, Lookup, LookupResult, check, typescript::NOT_RETURNED,
};

/// What an engine would give a script.
pub(super) const GLOBALS: &[&str] =
    &["setTimeout", "URL", "tools", "process", "emit", "len", "range"];
pub(super) const MODULES: &[&str] = &["asyncio", "json", "re", "datetime", "math", "collections"];

/// The modules of Node that a script can import.
const NODE_MODULES: &[&str] = &["buffer", "crypto", "timers", "timers/promises"];

/// The tools that exist, and the number of queries.
pub(super) struct Fake {
    pub(super) tools: Vec<(String, Value)>,
    pub(super) asked: Vec<Vec<String>>,
}

impl Fake {
    pub(super) fn new() -> Self {
        let tools = tools().into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
        Self { tools, asked: Vec::new() }
    }

    pub(super) fn with(name: &str, schema: Value) -> Self {
        Self { tools: vec![(name.to_owned(), schema)], asked: Vec::new() }
    }

    pub(super) fn check(&mut self, language: Language, source: &str) -> Checked {
        match language {
            Language::TypeScript => check(language, source, GLOBALS, NODE_MODULES, self),
            // `tools` is a global of the other interpreter.
            Language::Python => {
                let globals: Vec<&str> =
                    GLOBALS.iter().copied().filter(|name| *name != "tools").collect();
                check(language, source, &globals, MODULES, self)
            }
        }
    }
}

impl Lookup for Fake {
    fn look_up(&mut self, names: &[String]) -> Vec<LookupResult> {
        self.asked.push(names.to_vec());
        let answer = |name: &String| {
            if let Some((name, schema)) = self.tools.iter().find(|(known, _)| known == name) {
                let input_schema = serde_json::value::to_raw_value(schema).unwrap();
                return LookupResult::Tool {
                    name: name.clone(),
                    input_schema,
                    output_schema: None,
                };
            }
            let is_like = |known: &str| strsim::jaro_winkler(known, name) > 0.9;
            let known = self.tools.iter().map(|(known, _)| known.clone());
            let nearest = known.filter(|known| is_like(known)).take(3).collect();
            LookupResult::Unknown { name: name.clone(), nearest }
        };
        names.iter().map(answer).collect()
    }
}

/// A case's findings in short: `line message`, warnings marked with `?`.
pub(super) fn found(language: Language, source: &str) -> Vec<String> {
    let mut fake = Fake::new();
    let checked = fake.check(language, source);
    assert!(fake.asked.len() <= 1, "asked more than once: {:?}", fake.asked);
    // Scripts in tables are short: most end with the call that they are about.
    let findings = checked.findings.iter().filter(|finding| finding.message != NOT_RETURNED);
    let short = findings.map(|finding| {
        let mark = if finding.severity == CheckSeverity::Warning { "?" } else { "" };
        format!("{}{mark} {}", finding.line, finding.message)
    });
    short.collect()
}

/// Each case is a script and its findings; all that are wrong are shown at once.
pub(super) fn run(language: Language, cases: &[(&str, &[&str])]) {
    let mut wrong = String::new();
    for (source, expected) in cases {
        let actual = found(language, source);
        if actual != *expected {
            let _ = writeln!(wrong, "\n{source}\n  expected {expected:#?}\n  found {actual:#?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn tools() -> Vec<(&'static str, Value)> {
    vec![
        (
            "github_list_issues",
            json!({
                "type": "object",
                "properties": {
                    "owner": {"type": "string"},
                    "repo": {"type": "string"},
                    "state": {"type": "string", "enum": ["open", "closed", "all"]},
                    "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                    "page": {"type": "integer", "minimum": 1},
                    "archived": {"type": "boolean"},
                },
                "required": ["owner", "repo"],
                "additionalProperties": false,
            }),
        ),
        (
            "github_create_issue",
            json!({
                "type": "object",
                "properties": {
                    "title": {"type": "string", "minLength": 1},
                    "body": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "labels": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["title"],
            }),
        ),
        (
            "shop_buy",
            json!({
                "type": "object",
                "properties": {
                    "lines": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Line"}},
                    "payment": {"oneOf": [
                        {"type": "object", "properties": {"kind": {"const": "card"}, "number": {"type": "string"}},
                            "required": ["kind", "number"], "additionalProperties": false},
                        {"type": "object", "properties": {"kind": {"const": "cash"}},
                            "required": ["kind"], "additionalProperties": false},
                    ]},
                    "meta": {"type": "object", "additionalProperties": {"type": "number"}},
                },
                "required": ["lines"],
                "$defs": {"Line": {
                    "type": "object",
                    "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
                    "required": ["sku", "count"],
                    "additionalProperties": false,
                }},
            }),
        ),
        ("notes_clear", json!({"type": "object", "properties": {}, "additionalProperties": false})),
        ("notes_list", json!({"type": "object", "properties": {"limit": {"type": "integer"}}})),
        (
            "get_team_members",
            json!({"properties": {"department": {"type": "string"}}, "required": ["department"]}),
        ),
        (
            "get_expenses",
            json!({"properties": {"user_id": {"type": "string"}, "quarter": {"type": "string"}},
                "required": ["user_id", "quarter"]}),
        ),
        ("get_budget_by_level", json!({"properties": {"level": {}}, "required": ["level"]})),
        (
            "search_tools",
            json!({"properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}}),
        ),
        (
            "get_tool_details",
            json!({"properties": {"names": {"type": "array"}}, "required": ["names"]}),
        ),
    ]
}
