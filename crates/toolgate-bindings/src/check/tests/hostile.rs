//! Scripts and schemas that want to keep a checker busy. Nothing is timed: what is not bounded
//! does not come to an end here.

use serde_json::{Value, json};

use super::fixture::Fake;
use crate::check::{Language, MAX_FINDINGS, MAX_FLOW_STEPS, MAX_SOURCE_BYTES};

#[path = "../../../benches/scripts/mod.rs"]
mod scripts;

/// A line for each number.
fn numbered(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().concat()
}

const LANGUAGES: [Language; 2] = [Language::TypeScript, Language::Python];

#[test]
fn thousands_of_unknown_names() {
    for language in LANGUAGES {
        let source = numbered(30_000, |index| format!("await nobody_knows{index}()\n"));
        let mut fake = Fake::new();
        let checked = fake.check(language, &source);
        assert_eq!(checked.findings.len(), MAX_FINDINGS);
        assert!(checked.findings_left_out > 0);
        assert!(fake.asked.concat().len() <= 2000);
    }
    let long = format!("await {}({{}});", "x".repeat(100_000));
    let checked = Fake::new().check(Language::TypeScript, &long);
    assert_eq!(checked.findings.len(), 1);
    assert!(checked.findings[0].to_string().len() < 1000);
}

/// Values that become twice as large with each line, and names that depend on all others.
#[test]
fn python_values_that_grow() {
    let twice = |make: &str| {
        let lines = numbered(3_000, |n| {
            make.replace("NEXT", &format!("v{}", n + 1)).replace("LAST", &format!("v{n}")) + "\n"
        });
        format!(
            "v0 = [1]\nc = len(str(await notes_list()))\n{lines}await notes_list(limit=v3000)\n"
        )
    };
    for make in [
        "NEXT = [*LAST, *LAST]",
        "NEXT = LAST if c else [LAST]",
        "NEXT = LAST + LAST",
        "NEXT = {**LAST, 'a': LAST, 'b': LAST}",
        "NEXT = {'a': LAST} | {'b': LAST}",
        "if LAST == LAST:\n    NEXT = LAST",
        "def NEXT(): return [LAST(), LAST()]",
        "async def NEXT(a, b): return await LAST(b, a)",
        "NEXT = LAST\nLAST = NEXT",
        "NEXT = [LAST['a'] for _ in LAST if LAST]",
        "try:\n    NEXT = LAST['a']['b']\nexcept KeyError:\n    NEXT = LAST",
    ] {
        let checked = Fake::new().check(Language::Python, &twice(make));
        assert!(checked.findings.len() <= MAX_FINDINGS, "{make}");
    }
}

#[test]
fn schemas_that_refer_to_themselves() {
    let recursive = json!({
        "$ref": "#/$defs/A",
        "$defs": {
            "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/B"}, {"$ref": "#/$defs/A"}]},
            "B": {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}, {"$ref": "#"}]},
        },
    });
    let source = "await make_it({ a: [{ b: 1 }] });\n".repeat(10_000) + "return 1;";
    let checked = Fake::with("make_it", recursive).check(Language::TypeScript, &source);
    assert!(checked.findings.is_empty());
}

#[test]
fn schemas_with_thousands_of_names() {
    let names = (0..20_000).map(|index| (format!("property_number_{index}"), json!({})));
    let schema = json!({"properties": Value::Object(names.collect())});
    let source = "await make_it({ propertyNumbr: 1, other: 2, another: 3 });\n".repeat(10_000);
    let checked = Fake::with("make_it", schema.clone()).check(Language::TypeScript, &source);
    assert!(checked.has_errors());
    let entries = numbered(30_000, |index| format!("k{index}: 1, k{index}: 2, "));
    let checked = Fake::with("make_it", schema)
        .check(Language::TypeScript, &format!("await make_it({{ {entries} }});"));
    assert!(checked.has_errors());
}

#[test]
fn constants_that_double() {
    let mut source = "const a0 = 1;\n".to_owned();
    source += &numbered(59, |index| format!("const a{} = a{index} + a{index};\n", index + 1));
    source += "return await notes_list({ limit: a59 });\n";
    let checked = Fake::new().check(Language::TypeScript, &source);
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
}

#[test]
fn long_chains_and_long_lists() {
    let calls = "notes_list({}) && ".repeat(2_000);
    let checked = Fake::new().check(Language::TypeScript, &format!("{calls} true;"));
    assert!(checked.has_errors());
    let members = numbered(20_000, |index| format!("  M{index},\n"));
    let checked = Fake::new().check(Language::TypeScript, &format!("enum E {{\n{members}}}"));
    assert!(checked.findings.is_empty());
    assert_eq!(checked.source.matches('\n').count(), 20_001);
    let exports = numbered(10_000, |i| format!("export const c{i}: number = {i};\n"));
    let checked = Fake::new().check(Language::TypeScript, &format!("namespace N {{\n{exports}}}"));
    assert!(checked.findings.is_empty());
}

#[test]
fn scripts_that_are_too_large_or_too_deep_are_reported() {
    for language in LANGUAGES {
        let large = Fake::new().check(language, &"a = 1\n".repeat(MAX_SOURCE_BYTES / 6 + 1));
        assert_eq!(large.findings.len(), 1);
        assert!(large.findings[0].message.contains("bytes"), "{}", large.findings[0]);
        let deep = format!("a = {}{}", "[".repeat(50_000), "]".repeat(50_000));
        let deep = Fake::new().check(language, &deep);
        assert_eq!(deep.findings[0].message, "more than 200 brackets are open here");
    }
}

/// The steps of following the data, and whether the flows are known.
fn followed(shape: scripts::Shape, language: Language, lines: usize) -> (usize, bool) {
    let none = json!({ "type": "object" });
    let tools = ["page", "send"].map(|name| (name.to_owned(), none.clone())).to_vec();
    let script = scripts::script(shape, language, lines);
    let checked = Fake { tools, asked: Vec::new() }.check(language, &script);
    assert!(!checked.has_errors(), "{shape:?} {language:?}: {:?}", checked.findings);
    (checked.flow_steps, checked.flow.is_some())
}

#[test]
fn the_work_of_following_data_is_bounded() {
    for shape in scripts::SHAPES {
        let (steps, is_known) = followed(shape, Language::TypeScript, 3_000);
        // What is under way is completed.
        assert!(steps < MAX_FLOW_STEPS + MAX_FLOW_STEPS / 10, "{shape:?}: {steps}");
        assert!(!is_known || steps <= MAX_FLOW_STEPS, "{shape:?}: {steps}");
    }
    for language in LANGUAGES {
        let (steps, is_known) = followed(scripts::Shape::Mixing, language, 1_400);
        assert!(!is_known && steps > MAX_FLOW_STEPS, "{language:?}: {steps}");
    }
}

#[test]
fn the_work_of_following_data_grows_with_the_length() {
    for shape in [scripts::Shape::Calls, scripts::Shape::Functions] {
        for language in LANGUAGES {
            let [short, long] = [90, 900].map(|lines| followed(shape, language, lines));
            assert!(long.1, "{shape:?} {language:?}");
            assert!(long.0 <= short.0 * 11, "{shape:?} {language:?}: {short:?} {long:?}");
        }
    }
}
