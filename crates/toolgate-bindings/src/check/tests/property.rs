//! What holds for whatever is written.

use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser};
use oxc_span::SourceType;
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Map, Value, json};

use super::fixture::Fake;
use crate::check::{CheckFinding, CheckSeverity, Language};

const KEYS: [&str; 4] = ["name", "names", "count", "z"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..4_i64).prop_map(Value::from),
        prop_oneof![Just(0.5), Just(1.0), Just(-2.5), Just(1e300), Just(9_007_199_254_740_993.0)]
            .prop_map(Value::from),
        prop_oneof![Just(""), Just("a"), Just("open"), Just("ä\n\"'`${x}"), Just("2")]
            .prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object_of(inner).prop_map(Value::Object),
        ]
    })
}

fn object_of(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((prop::sample::select(&KEYS[..]), inner), 0..4)
        .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn keyword_of(inner: BoxedStrategy<Value>) -> impl Strategy<Value = (&'static str, Value)> {
    let types = ["string", "number", "integer", "boolean", "null", "array", "object"];
    let type_name = prop::sample::select(types.to_vec());
    let schemas = prop::collection::vec(inner.clone(), 1..3);
    let small = -2..4_i64;
    prop_oneof![
        4 => type_name.clone().prop_map(|name| ("type", json!(name))),
        1 => prop::collection::btree_set(type_name, 1..3).prop_map(|names| ("type", json!(names))),
        2 => prop::collection::vec(value(), 1..3).prop_map(|values| ("enum", json!(values))),
        1 => value().prop_map(|value| ("const", value)),
        4 => object_of(inner.clone()).prop_map(|properties| ("properties", Value::Object(properties))),
        1 => object_of(inner.clone()).prop_map(|patterns| ("patternProperties", Value::Object(patterns))),
        2 => prop::collection::btree_set(prop::sample::select(&KEYS[..]), 0..3)
            .prop_map(|names| ("required", json!(names))),
        2 => prop_oneof![Just(json!(false)), Just(json!(true)), inner.clone()]
            .prop_map(|schema| ("additionalProperties", schema)),
        2 => inner.clone().prop_map(|schema| ("items", schema)),
        1 => schemas.clone().prop_map(|schemas| ("prefixItems", json!(schemas))),
        1 => schemas.clone().prop_map(|schemas| ("items", json!(schemas))),
        2 => schemas.clone().prop_map(|schemas| ("anyOf", json!(schemas))),
        1 => schemas.clone().prop_map(|schemas| ("oneOf", json!(schemas))),
        1 => schemas.prop_map(|schemas| ("allOf", json!(schemas))),
        1 => inner.clone().prop_map(|schema| ("not", schema)),
        1 => inner.prop_map(|schema| ("if", schema)),
        1 => prop_oneof![Just("#/$defs/A"), Just("#/$defs/B"), Just("#"), Just("#/$defs/~1"), Just("#a")]
            .prop_map(|reference| ("$ref", json!(reference))),
        1 => (prop::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), small.clone())
            .prop_map(|(keyword, bound)| (keyword, json!(bound))),
        1 => (prop::sample::select(vec!["minLength", "maxLength", "minItems", "maxItems"]), 0..3_i64)
            .prop_map(|(keyword, bound)| (keyword, json!(bound))),
        1 => Just(("$id", json!("https://example.com/inner"))),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!["string", "integer", "number", "boolean", "array", "object"])
            .prop_map(|name| json!({"type": name})),
        1 => Just(json!(true)),
        1 => Just(json!(false)),
        1 => Just(json!({})),
        1 => Just(json!({"$ref": "#/$defs/A"})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop::collection::vec(keyword_of(inner.boxed()), 0..4).prop_map(|keywords| {
            Value::Object(keywords.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
        })
    })
}

/// A tool's schema: always an object, with definitions, of one of the drafts.
fn tool_schema() -> impl Strategy<Value = Value> {
    let draft = prop_oneof![
        5 => Just(None),
        1 => Just(Some("http://json-schema.org/draft-07/schema#")),
        1 => Just(Some("http://json-schema.org/draft-04/schema#")),
        1 => Just(Some("https://json-schema.org/draft/2019-09/schema")),
        1 => Just(Some("https://json-schema.org/draft/2020-12/schema")),
    ];
    (schema(), schema(), schema(), draft).prop_map(|(root, a, b, draft)| {
        let mut root = match root {
            Value::Object(keywords) => keywords,
            _ => Map::new(),
        };
        root.insert("$defs".to_owned(), json!({"A": a, "B": b}));
        if let Some(draft) = draft {
            root.insert("$schema".to_owned(), json!(draft));
        }
        Value::Object(root)
    })
}

fn as_python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(as_python).collect::<Vec<_>>().join(", "))
        }
        Value::Object(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| format!("{key:?}: {}", as_python(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

fn errors(language: Language, schema: &Value, source: &str) -> Vec<CheckFinding> {
    let checked = Fake::with("make_it", schema.clone()).check(language, source);
    // An open schema takes arguments that it does not name, and the check does not.
    let is_open = schema.get("additionalProperties").is_none();
    let is_unnamed = |one: &CheckFinding| is_open && one.message.contains("has no parameter");
    let errors = checked.findings.into_iter().filter(|one| one.severity == CheckSeverity::Error);
    errors.filter(|one| !is_unnamed(one)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// The broker's word is the last: what it takes is never an error here.
    #[test]
    fn valid_arguments_are_no_error(
        schema in tool_schema(),
        arguments in object_of(value()),
    ) {
        let Ok(validator) = jsonschema::options().build(&schema) else { return Ok(()) };
        let value = Value::Object(arguments.clone());
        if !validator.is_valid(&value) {
            return Ok(());
        }
        let script = format!("return await make_it({value});");
        prop_assert_eq!(errors(Language::TypeScript, &schema, &script), vec![], "{}", schema);
        // By position it could be more than there are parameters.
        let keywords: Vec<String> =
            arguments.iter().map(|(key, value)| format!("{key}={}", as_python(value))).collect();
        let script = format!("await make_it({})", keywords.join(", "));
        prop_assert_eq!(errors(Language::Python, &schema, &script), vec![], "{}", schema);
    }
}

/// Not a promise, but the reason for all of this: most of what would be refused is found.
#[test]
fn most_invalid_arguments_are_found() {
    let mut runner = TestRunner::deterministic();
    let (mut taken, mut refused, mut found) = (0, 0, 0);
    for _ in 0..3000 {
        let schema = tool_schema().new_tree(&mut runner).unwrap().current();
        let arguments = Value::Object(object_of(value()).new_tree(&mut runner).unwrap().current());
        let Ok(validator) = jsonschema::options().build(&schema) else { continue };
        if validator.is_valid(&arguments) {
            taken += 1;
            continue;
        }
        refused += 1;
        let script = format!("return await make_it({arguments});");
        found += usize::from(!errors(Language::TypeScript, &schema, &script).is_empty());
    }
    // Both kinds occur, so that the property above is tested.
    assert!(taken > 500 && refused > 500, "{taken} taken, {refused} refused");
    assert!(found * 10 > refused * 7, "{found} of {refused} found");
}

/// Pieces that scripts are made of.
const TYPESCRIPT: &[&str] = &[
    "await ",
    "async ",
    "notes_list",
    "({ limit: 1 })",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    "\n",
    "const a",
    " = ",
    "=> ",
    "function f",
    ": number",
    "<T>",
    " as any",
    "!",
    "?",
    ".x",
    "enum E ",
    "namespace N ",
    "class C ",
    "private ",
    "abstract ",
    "constructor(public x) ",
    "`",
    "${",
    "'",
    "\"",
    "// x\n",
    "/* ",
    " */",
    "type T = ",
    "interface I ",
    "declare ",
    "export ",
    "import ",
    "return ",
    "if (a) ",
    "for (const b of a) ",
    "...",
    ",",
    "é",
    "\u{2028}",
    "0x",
    "1",
    "/a/",
    "@d ",
    "satisfies T",
    "\\",
    "A = 1",
    "a: string",
];
const PYTHON: &[&str] = &[
    "await ",
    "async ",
    "def f",
    "class C",
    "notes_list",
    "(limit=1)",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ":",
    "\n",
    "\n    ",
    "\n        ",
    "a",
    " = ",
    "lambda x: ",
    "for a in ",
    "if ",
    "else ",
    "return ",
    "f'{",
    "}'",
    "'''",
    "'",
    "\"",
    "# x\n",
    "import json",
    "from x import *",
    "global a",
    "match a:",
    "case ",
    "with ",
    "try:",
    "except E as e:",
    "yield ",
    "*",
    "**",
    ",",
    "é",
    "\t",
    "\\\n",
    "1",
    "@d\n",
    ":= ",
    "not ",
    "None",
];

fn soup(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(pieces), 0..40).prop_map(|pieces| pieces.concat())
}

fn check_anything(language: Language, source: &str) -> Result<(), TestCaseError> {
    let checked = Fake::new().check(language, source);
    let lines = u32::try_from(source.lines().count()).unwrap().max(1);
    for finding in &checked.findings {
        prop_assert!(finding.line >= 1 && finding.line <= lines + 1, "{finding}");
        prop_assert!(finding.column >= 1, "{finding}");
        prop_assert!(finding.source_line.chars().count() <= 162, "{finding}");
        prop_assert!(!finding.to_string().is_empty());
    }
    let breaks = |text: &str| text.matches('\n').count();
    prop_assert_eq!(breaks(&checked.source), breaks(source));
    if language == Language::TypeScript && !checked.has_errors() {
        let allocator = Allocator::default();
        let options =
            ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
        let kind = SourceType::mjs();
        let parsed = Parser::new(&allocator, &checked.source, kind).with_options(options).parse();
        prop_assert!(
            parsed.diagnostics.is_empty(),
            "{}\n{}\n{:?}",
            source,
            checked.source,
            parsed.diagnostics
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_can_be_checked_as_typescript(source in soup(TYPESCRIPT)) {
        check_anything(Language::TypeScript, &source)?;
    }

    #[test]
    fn any_text_can_be_checked_as_python(source in soup(PYTHON)) {
        check_anything(Language::Python, &source)?;
    }

    #[test]
    fn no_text_is_too_strange(source in "\\PC*|(?s).{0,200}") {
        check_anything(Language::TypeScript, &source)?;
        check_anything(Language::Python, &source)?;
    }
}
