//! Captured definitions of many real servers, all at once.
//!
//! `TOOLGATE_CATALOGUE` names a folder of captures (`NAME.json`: `{"name", "initialize", "tools"}`).
//! Without it there is nothing to do, so that these tests are ignored unless asked for.

use std::{fs, path::PathBuf};

use serde_json::Value;
use toolgate_bindings::{
    check::{CheckSeverity, Language, Lookup, LookupResult, check},
    python, typescript, wraps_result,
};
use toolgate_catalog::{Catalog, CatalogServer, Definition, TokenCounter};

use crate::compilers::{Tool, assert_valid_python, assert_valid_typescript};

/// All tools under the names that they are exposed by.
fn tools() -> Vec<Tool> {
    let folder = std::env::var_os("TOOLGATE_CATALOGUE").expect("TOOLGATE_CATALOGUE is set");
    let mut captures: Vec<PathBuf> = fs::read_dir(PathBuf::from(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    captures.sort();
    let name_of = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let entries = captures.iter().map(|path| CatalogServer::named(name_of(path).as_str()));
    let mut catalog = Catalog::new(entries);
    for path in &captures {
        let capture: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let definitions = capture["tools"].as_array().unwrap().iter();
        let definitions = definitions.map(|tool| Definition::from_value(tool).unwrap()).collect();
        catalog.replace_server(&name_of(path).as_str().into(), definitions);
    }
    let all: Vec<Tool> = catalog
        .tools()
        .map(|tool| Tool::new(tool.name.to_string(), tool.definition.to_value()))
        .collect();
    assert!(all.len() > 1_000, "{} tools are no catalogue", all.len());
    all
}

#[test]
#[ignore = "needs TOOLGATE_CATALOGUE"]
fn the_compiler_takes_the_declarations_of_every_real_tool() {
    assert_valid_typescript(&tools());
}

#[test]
#[ignore = "needs TOOLGATE_CATALOGUE"]
fn python_executes_the_stubs_of_every_real_tool() {
    assert_valid_python(&tools());
}

#[test]
#[ignore = "needs TOOLGATE_CATALOGUE"]
fn declarations_of_real_tools_are_complete() {
    for tool in tools() {
        let text = typescript(&[tool.api()]);
        assert!(!text.contains("Too large to show whole"), "{}", tool.name);
    }
}

#[test]
#[ignore = "needs TOOLGATE_CATALOGUE"]
fn declarations_are_shorter_than_the_json() {
    let counter = TokenCounter::shared();
    let (mut json, mut declarations, mut stubs) = (0, 0, 0);
    for tool in tools() {
        json += counter.count(&tool.definition.to_string());
        declarations += counter.count(&typescript(&[tool.api()]));
        stubs += counter.count(&python(&[tool.api()]));
    }
    assert!(declarations * 100 <= json * 65, "{declarations} of {json}");
    assert!(stubs * 100 <= json * 65, "{stubs} of {json}");
}

/// A value that a schema accepts, for plain schemas.
fn example(schema: &Value, root: &Value, depth: usize) -> Value {
    if let Some(pointer) = schema["$ref"].as_str().and_then(|text| text.strip_prefix('#'))
        && depth < 8
    {
        return root.pointer(pointer).map_or(Value::Null, |it| example(it, root, depth + 1));
    }
    let first = |list: &Value| list.as_array().and_then(|all| all.first()).cloned();
    if let Some(value) = schema.get("const").cloned().or_else(|| first(&schema["enum"])) {
        return value;
    }
    for branches in ["anyOf", "oneOf"] {
        if let Some(branch) = first(&schema[branches]) {
            return example(&branch, root, depth + 1);
        }
    }
    let name = schema["type"]
        .as_str()
        .map(str::to_owned)
        .or_else(|| first(&schema["type"]).and_then(|name| name.as_str().map(str::to_owned)));
    match name.as_deref() {
        Some("string") => {
            let least = schema["minLength"].as_u64().unwrap_or(1).max(1);
            Value::from("x".repeat(usize::try_from(least).unwrap()))
        }
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(Value::from(1)),
        Some("boolean") => Value::from(true),
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(0);
            (0..least).map(|_| example(&schema["items"], root, depth + 1)).collect()
        }
        Some("object") | None => {
            let required = schema["required"].as_array().into_iter().flatten();
            let keys = required.filter_map(Value::as_str).filter(|_| depth < 8);
            keys.map(|key| (key.to_owned(), example(&schema["properties"][key], root, depth + 1)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        Some(_) => Value::Null,
    }
}

struct OneTool<'t>(&'t Tool);

impl Lookup for OneTool<'_> {
    fn look_up(&mut self, names: &[String]) -> Vec<LookupResult> {
        let raw = |value: &Value| serde_json::value::to_raw_value(value).unwrap();
        let own = names.iter().filter(|name| **name == self.0.name);
        own.map(|name| LookupResult::Tool {
            name: name.clone(),
            input_schema: raw(&self.0.definition["inputSchema"]),
            output_schema: self.0.definition.get("outputSchema").map(raw),
        })
        .collect()
    }
}

fn errors(tool: &Tool, script: &str) -> Vec<String> {
    let checked = check(Language::TypeScript, script, &["tools"], &[], &mut OneTool(tool));
    let errors = checked.findings.iter().filter(|it| it.severity == CheckSeverity::Error);
    errors.map(ToString::to_string).collect()
}

/// Arguments in variables and parts of results, right and wrong.
#[test]
#[ignore = "needs TOOLGATE_CATALOGUE"]
fn calls_of_real_tools_are_followed() {
    let (mut right, mut wrong, mut caught, mut parts) = (0, 0, 0, 0);
    let mut missed = Vec::new();
    for tool in tools() {
        let schema = &tool.definition["inputSchema"];
        let arguments = example(schema, schema, 0);
        let is_plain = jsonschema::is_valid(schema, &arguments);
        let Some(entries) = arguments.as_object().filter(|_| is_plain) else { continue };
        let name = &tool.name;
        let output = tool.definition.get("outputSchema").filter(|it| !wraps_result(it));
        let properties = output.and_then(|it| it["properties"].as_object());
        let reads: Vec<String> = properties
            .into_iter()
            .flatten()
            .map(|(key, _)| format!("r[{}]", Value::from(key.as_str())))
            .collect();
        for script in [
            format!("const a = {arguments};\nreturn await {name}(a);"),
            format!("const a = {arguments};\nreturn await {name}({{ ...a }});"),
            format!("const f = {name};\nreturn await f({arguments});"),
            format!("const f = (a: any) => {name}(a);\nreturn await f({arguments});"),
            format!("const r = await {name}({arguments});\nreturn [{}];", reads.join(", ")),
        ] {
            assert_eq!(errors(&tool, &script), Vec::<String>::new(), "{script}");
            right += 1;
        }
        if let Some(key) = schema["required"].as_array().and_then(|all| all.first()?.as_str()) {
            let mut less = entries.clone();
            less.remove(key);
            let less = Value::Object(less);
            for script in [
                format!("const a = {less};\nreturn await {name}(a);"),
                format!("const a = {less};\nreturn await {name}({{ ...a }});"),
                format!("const f = {name};\nreturn await f({less});"),
                format!(
                    "const a = Math.random() > 1 ? {arguments} : {less};\nreturn await {name}(a);"
                ),
            ] {
                wrong += 1;
                if errors(&tool, &script).is_empty() {
                    missed.push(script);
                } else {
                    caught += 1;
                }
            }
        }
        let is_closed =
            output.is_some_and(|it| it.get("additionalProperties").is_none_or(|it| it == false));
        let is_simple =
            output.is_some_and(|it| it.as_object().unwrap().keys().all(|key| !key.ends_with("Of")));
        if properties.is_some_and(|it| !it.is_empty()) && is_closed && is_simple {
            parts += 1;
            let script = format!("const r = await {name}({arguments});\nreturn r.no_such_part;");
            assert!(!errors(&tool, &script).is_empty(), "{script}");
        }
    }
    println!("{right} right, {caught} of {wrong} wrong, {parts} results");
    assert!(missed.is_empty(), "{} missed, as {}", missed.len(), missed[0]);
}
