//! The check follows values through a script as the compiler does: what the compiler accepts is
//! accepted, and nearly all that it refuses is refused.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_bindings::{
    check::{CheckFinding, CheckSeverity, Language, Lookup, LookupResult, check},
    typescript,
};

use crate::compilers::{Tool, typescript_errors};

struct Tools(BTreeMap<String, Value>);

impl Tools {
    fn read() -> Self {
        Self(serde_json::from_str(include_str!("../data/typed/tools.json")).unwrap())
    }

    /// The declarations of the tools, and of what the engine gives to scripts.
    fn declarations(&self) -> String {
        let tools: Vec<Tool> = self
            .0
            .iter()
            .map(|(name, tool)| {
                let mut definition = json!({ "inputSchema": tool["input"] });
                if let Some(output) = tool.get("output") {
                    definition["outputSchema"] = output.clone();
                }
                Tool::new(name, definition)
            })
            .collect();
        let apis: Vec<_> = tools.iter().map(Tool::api).collect();
        let members: Vec<String> =
            self.0.keys().map(|name| format!("{name}: typeof {name}")).collect();
        format!(
            "{}declare const tools: {{ {} }};\ndeclare const console: {{ log(...all: unknown[]): void }};\n",
            typescript(&apis),
            members.join("; ")
        )
    }
}

impl Lookup for Tools {
    fn look_up(&mut self, names: &[String]) -> Vec<LookupResult> {
        let raw = |value: &Value| serde_json::value::to_raw_value(value).unwrap();
        let answer = |name: &String| match self.0.get(name) {
            Some(tool) => LookupResult::Tool {
                name: name.clone(),
                input_schema: raw(&tool["input"]),
                output_schema: tool.get("output").map(raw),
            },
            None => LookupResult::Unknown { name: name.clone(), nearest: Vec::new() },
        };
        names.iter().map(answer).collect()
    }
}

fn scripts(text: &str) -> Vec<&str> {
    text.split("\n---\n").map(str::trim).collect()
}

fn errors(script: &str) -> Vec<CheckFinding> {
    errors_in(Language::TypeScript, script)
}

fn errors_in(language: Language, script: &str) -> Vec<CheckFinding> {
    let modules = [
        "asyncio",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "json",
        "operator",
        "random",
        "sys",
        "typing",
    ];
    let globals = ["tools", "ToolError"];
    let checked = check(language, script, &globals, &modules, &mut Tools::read());
    checked.findings.into_iter().filter(|it| it.severity == CheckSeverity::Error).collect()
}

/// The numbers of the scripts that the compiler refuses.
fn refused_by_compiler(scripts: &[&str]) -> Vec<usize> {
    let declarations = Tools::read().declarations();
    let names: Vec<String> = (0..scripts.len()).map(|at| format!("script{at}.ts")).collect();
    let texts: Vec<String> = scripts
        .iter()
        .map(|script| {
            format!("export {{}};\nasync function script() {{\n{script}\n}}\nvoid script;\n")
        })
        .collect();
    let mut files = vec![("declarations.d.ts", declarations.as_str())];
    files.extend(names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)));
    let said = typescript_errors(&files);
    assert!(!said.contains("declarations.d.ts("), "{said}");
    (0..scripts.len()).filter(|at| said.contains(&format!("script{at}.ts("))).collect()
}

const WRONG: &str = include_str!("../data/typed/wrong.txt");
const VALID: &str = include_str!("../data/typed/valid.txt");

#[test]
fn nearly_all_that_the_compiler_refuses_is_refused() {
    let wrong = scripts(WRONG);
    let missed: Vec<&str> = wrong.iter().copied().filter(|it| errors(it).is_empty()).collect();
    let caught = wrong.len() - missed.len();
    assert!(
        caught * 40 >= wrong.len() * 38,
        "{caught} of {}\n{}",
        wrong.len(),
        missed.join("\n---\n")
    );
}

#[test]
fn no_valid_script_is_refused() {
    let valid = scripts(VALID);
    let refused: Vec<String> = valid
        .iter()
        .filter_map(|script| {
            let errors = errors(script);
            (!errors.is_empty()).then(|| format!("{script}\n{}", errors[0]))
        })
        .collect();
    assert!(refused.is_empty(), "{}", refused.join("\n\n"));
}

const WRONG_PYTHON: &str = include_str!("../data/typed/wrong_python.txt");
const VALID_PYTHON: &str = include_str!("../data/typed/valid_python.txt");

/// Of what cannot work, nearly all is refused in Python too.
#[test]
fn nearly_all_wrong_python_is_refused() {
    let wrong = scripts(WRONG_PYTHON);
    let missed: Vec<&str> =
        wrong.iter().copied().filter(|it| errors_in(Language::Python, it).is_empty()).collect();
    let caught = wrong.len() - missed.len();
    assert!(
        caught * 50 >= wrong.len() * 48,
        "{caught} of {}\n{}",
        wrong.len(),
        missed.join("\n---\n")
    );
}

#[test]
fn no_valid_python_is_refused() {
    let refused: Vec<String> = scripts(VALID_PYTHON)
        .iter()
        .filter_map(|script| {
            let errors = errors_in(Language::Python, script);
            (!errors.is_empty()).then(|| format!("{script}\n{}", errors[0]))
        })
        .collect();
    assert!(refused.is_empty(), "{}", refused.join("\n\n"));
}

#[test]
fn a_method_of_a_dict_is_no_data() {
    let call = "await tracker_list_issues(owner='a', repo='b')";
    for (script, says) in [
        (format!("r = {call}\nr.items[0]"), ("items", "call it: `.items()`")),
        (
            format!("r = {call}\nfor x in r.values:\n    print(x)"),
            ("values", "call it: `.values()`"),
        ),
    ] {
        let errors = errors_in(Language::Python, &script);
        let [error] = errors.as_slice() else { panic!("{script}: {errors:?}") };
        let message = format!(
            "the result of `tracker_list_issues` is a dict, and `{}` is a method of it",
            says.0
        );
        assert_eq!(
            (error.message.as_str(), error.hint.as_deref()),
            (message.as_str(), Some(says.1))
        );
    }
}

/// The compiler refuses these, but a result may well have more than an open schema declares.
#[test]
fn a_part_that_is_only_looked_for_refuses_no_script() {
    let call = "await tracker_list_issues({ owner: 'a', repo: 'b' })";
    for script in [
        format!("let cursor; do {{ const r = {call}; cursor = r.nextCursor; }} while (cursor);"),
        format!(
            "while (true) {{ const r = {call}; const next = r.nextCursor; if (!next) break; }}"
        ),
        format!("let c; while ((c = ({call}).nextCursor) !== undefined) console.log(c);"),
        format!("let c = 'x'; for (; c; ) {{ const r = {call}; c = r.nextCursor; }}"),
        format!(
            "let c; do {{ const r = {call}; if (c = r.nextCursor) console.log(c); }} while (false);"
        ),
    ] {
        assert_eq!(errors(&script), [], "{script}");
    }
    let wrong = format!("const r = {call}; const all = r.items; return all.length;");
    assert_eq!(errors(&wrong).len(), 1, "{wrong}");
}

/// The corpora are what they say.
#[test]
fn the_compiler_agrees_with_the_corpora() {
    let (wrong, valid) = (scripts(WRONG), scripts(VALID));
    assert_eq!(refused_by_compiler(&wrong), (0..wrong.len()).collect::<Vec<_>>());
    assert_eq!(refused_by_compiler(&valid), Vec::<usize>::new());
}
