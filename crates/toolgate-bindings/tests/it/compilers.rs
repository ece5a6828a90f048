//! Runs the real compilers over declarations.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use toolgate_bindings::{
    Output, PYTHON_PREAMBLE, ToolApi, parameters, python, python_function, typescript,
    typescript_function,
};
use toolgate_testkit::real_servers;

/// A tool that owns its definition.
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) definition: Value,
}

impl Tool {
    pub(crate) fn new(name: impl Into<String>, definition: Value) -> Self {
        Self { name: name.into(), definition }
    }

    /// A tool that takes what the schema says.
    pub(crate) fn taking(name: impl Into<String>, input_schema: impl Into<Value>) -> Self {
        Self::new(name, json!({ "inputSchema": input_schema.into() }))
    }

    pub(crate) fn api(&self) -> ToolApi<'_> {
        ToolApi {
            name: &self.name,
            description: self.definition["description"].as_str(),
            input_schema: &self.definition["inputSchema"],
            output: self.definition.get("outputSchema").map_or(Output::Unknown, Output::Declared),
        }
    }
}

/// Compiles the declarations of all tools at once, then again with a call of each.
pub(crate) fn assert_valid_typescript(tools: &[Tool]) {
    let apis: Vec<ToolApi<'_>> = tools.iter().map(Tool::api).collect();
    let declarations = typescript(&apis);
    assert_compiles(&[("declarations.ts", &declarations)]);
    let uses: Vec<String> = tools
        .iter()
        .enumerate()
        .map(|(index, tool)| {
            let call = call_of(tool, &declarations);
            format!("const result{index}: Promise<unknown> = {call};\n")
        })
        .collect();
    let uses = uses.concat();
    assert_compiles(&[("declarations.ts", &declarations), ("uses.ts", &uses)]);
}

/// What the compiler says of these files; empty where it has nothing to say.
pub(crate) fn typescript_errors(files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let output = Command::new(real_servers().unwrap().typescript_compiler())
        .args([
            "--strict", "--noEmit", "--target", "esnext", "--lib", "esnext", "--types", "",
            "--pretty", "false",
        ])
        .args(files.iter().map(|(name, _)| name))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.success(), text.is_empty(), "{output:?}");
    text
}

/// Executes the stubs of all tools in a Python, evaluates every annotation, and compares the
/// positional parameters with [`parameters`].
pub(crate) fn assert_valid_python(tools: &[Tool]) {
    let apis: Vec<ToolApi<'_>> = tools.iter().map(Tool::api).collect();
    let folder = tempfile::tempdir().unwrap();
    let stubs = python(&apis);
    let expected: Vec<Value> = apis.iter().map(|api| json!(parameters(api.input_schema))).collect();
    write(folder.path(), "stubs.py", &format!("{PYTHON_PREAMBLE}{stubs}"));
    write(folder.path(), "parameters.json", &Value::from(expected).to_string());
    let output = Command::new("python3")
        .args(["-X", "utf8", "-W", "error", "-c", include_str!("stubs.py")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", around(&stubs, &said));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        format!("{} functions", tools.len())
    );
}

fn assert_compiles(files: &[(&str, &str)]) {
    let errors = typescript_errors(files);
    if !errors.is_empty() {
        let start: String = errors.lines().take(20).collect::<Vec<_>>().join("\n");
        let (_, text) = files.last().unwrap();
        panic!("{start}\n{}", around(text, &errors));
    }
}

/// A call with all that is required, where the schema says it plainly.
fn call_of(tool: &Tool, declarations: &str) -> String {
    let name: String = declared_name(&tool.name);
    assert!(declarations.contains(&format!("declare function {name}(")), "{name} is missing");
    let schema = &tool.definition["inputSchema"];
    let plain = ["anyOf", "oneOf", "allOf", "$ref"].iter().all(|key| schema.get(key).is_none());
    let (true, Some(properties)) = (plain, schema["properties"].as_object()) else {
        return format!("{name}(null as any)");
    };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let own = properties.iter().filter(|(_, property)| property["required"] == json!(true));
    // An object without properties says nothing of what it requires.
    let named = required.into_iter().filter(|_| !properties.is_empty());
    let members: Vec<String> = own
        .map(|(key, _)| key.as_str())
        .chain(named)
        .map(|key| format!("{}: null as any", json!(key)))
        .collect();
    match members.join(", ") {
        members if members.is_empty() => format!("{name}()"),
        members => format!("{name}({{ {members} }})"),
    }
}

fn declared_name(name: &str) -> String {
    let mut name: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
        .collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if name == "delete" { "delete_".to_owned() } else { name }
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

/// The lines of `text` around the first line number in what a compiler said.
fn around(text: &str, said: &str) -> String {
    let number = said
        .split(|letter: char| !letter.is_ascii_digit())
        .find_map(|digits| digits.parse::<usize>().ok())
        .unwrap_or(1);
    let lines: Vec<&str> = text.lines().skip(number.saturating_sub(6)).take(12).collect();
    lines.join("\n")
}

#[test]
fn the_declaration_of_extract_gives_the_type_of_the_schema() {
    let declared = ("declarations.ts", typescript_function("extract").unwrap());
    let schema = r#"{ type: "object", properties: { title: { type: "string" }, level: { enum: ["low", "high"] },
      tags: { type: "array", items: { type: "integer" } } }, required: ["title"] }"#;
    let right = format!(
        "const made = extract(7, {schema}, \"x\");\n\
         const checked: Promise<{{ title: string; level?: \"low\" | \"high\"; tags?: number[] }}> = made;\n\
         const word: Promise<boolean> = extract({{}}, \"boolean\");\n\
         interface Ticket {{ title: string }}\n\
         const typed: Promise<Ticket> = extract<Ticket>(7, \"a ticket\");\n\
         const alone: Promise<Ticket> = extract<Ticket>(7);\n"
    );
    assert_eq!(typescript_errors(&[declared, ("uses.ts", &right)]), "");
    let wrong = format!("const made: Promise<{{ title: number }}> = extract(7, {schema});\n");
    assert!(!typescript_errors(&[declared, ("uses.ts", &wrong)]).is_empty());

    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "{PYTHON_PREAMBLE}{}\nimport inspect, typing\n\
         assert list(inspect.signature(extract).parameters) == ['value', 'type', 'hint']\n\
         assert typing.get_type_hints(extract)['return'] is T\n",
        python_function("extract").unwrap()
    );
    write(folder.path(), "stubs.py", &script);
    let output = Command::new("python3").arg(folder.path().join("stubs.py")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
