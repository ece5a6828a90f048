//! Schemas of our own, as awkward as we could think of.

use serde_json::{Value, json};
use toolgate_bindings::typescript;

use crate::compilers::{Tool, assert_valid_python, assert_valid_typescript, typescript_errors};

fn corpus() -> Vec<Tool> {
    let tools: Vec<Value> = serde_json::from_str(include_str!("../data/schemas.json")).unwrap();
    assert!(tools.len() >= 60);
    tools
        .into_iter()
        .map(|definition| Tool::new(definition["name"].as_str().unwrap().to_owned(), definition))
        .collect()
}

#[test]
fn the_compiler_takes_every_declaration_and_a_call_of_each() {
    assert_valid_typescript(&corpus());
}

#[test]
fn python_executes_every_stub() {
    assert_valid_python(&corpus());
}

#[test]
fn each_declaration_stands_alone() {
    // A type that only another tool declares would go unnoticed in one large module.
    let folder: Vec<(String, String)> = corpus()
        .iter()
        .enumerate()
        .map(|(index, tool)| {
            (format!("tool{index}.ts"), format!("{}export {{}};\n", typescript(&[tool.api()])))
        })
        .collect();
    let files: Vec<(&str, &str)> =
        folder.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(typescript_errors(&files), "");
}

#[test]
fn the_declarations_bind() {
    let tool = Tool::taking(
        "ticket_create",
        json!({
            "type": "object",
            "properties": { "title": { "type": "string" }, "state": { "enum": ["open", "closed"] } },
            "required": ["title"],
        }),
    );
    let declarations = typescript(&[tool.api()]);
    for (call, code) in [
        ("ticket_create({})", "TS2741"),
        ("ticket_create()", "TS2554"),
        ("ticket_create({ title: 1 })", "TS2322"),
        ("ticket_create({ title: 'x', state: 'ajar' })", "TS2322"),
        ("ticket_create({ title: 'x', colour: 'red' })", "TS2353"),
        ("ticket_make({ title: 'x' })", "TS2304"),
    ] {
        let uses = format!("{call};\n");
        let errors = typescript_errors(&[("declarations.ts", &declarations), ("uses.ts", &uses)]);
        assert!(errors.contains(code), "{call}: {errors}");
    }
}
