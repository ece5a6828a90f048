//! What is learned from results, as declarations.

use serde_json::{Value, json};
use toolgate_bindings::{
    Output, Shape, ToolApi,
    check::{CheckSeverity, Language, Lookup, LookupResult, check},
    python, typescript,
};

fn learned(results: &[Value]) -> Shape {
    let mut shape = Shape::default();
    for result in results {
        shape.observe(result);
    }
    shape
}

/// The declaration of a result, without the function around it.
fn declared(results: &[Value]) -> String {
    let shape = learned(results);
    let schema = json!({});
    let tool = ToolApi {
        name: "f",
        description: None,
        input_schema: &schema,
        output: Output::Learned(&shape),
    };
    let text = typescript(&[tool]);
    let start = "declare function f(args?: { [key: string]: unknown }): Promise</* inferred */ ";
    text.trim_end().trim_start_matches(start).trim_end_matches(">;").to_owned()
}

#[test]
fn scalars_add_up() {
    assert_eq!(declared(&[json!("a")]), "string");
    assert_eq!(declared(&[json!("a"), json!(1)]), "number | string");
    assert_eq!(declared(&[json!(1), json!(1.5)]), "number");
    assert_eq!(declared(&[json!("a"), json!(null)]), "string | null");
    assert_eq!(declared(&[]), "unknown", "nothing was seen");
}

#[test]
fn fields_that_are_missing_once_are_optional() {
    let results = [json!({ "id": 1, "name": "a" }), json!({ "id": 2, "note": null })];
    assert_eq!(declared(&results), "{ id: number; name?: string; note?: null }");
    let results = [json!({ "id": 1 }), json!({ "id": null })];
    assert_eq!(declared(&results), "{ id: number | null }");
}

#[test]
fn items_of_arrays_are_one_type() {
    let results = [json!([{ "a": 1 }, { "a": 2, "b": true }]), json!([])];
    assert_eq!(declared(&results), "{ a: number; b?: boolean }[]");
    assert_eq!(declared(&[json!([])]), "unknown[]");
}

#[test]
fn keys_that_are_data_become_a_map() {
    let dates = json!({ "2026-11-14": 1, "2026-11-15": 2, "2026-11-16": 3.5 });
    assert_eq!(declared(&[dates]), "{ [key: string]: number }");
    let many: serde_json::Map<String, Value> =
        (0..200).map(|index| (format!("user{index}"), json!({ "age": index }))).collect();
    assert_eq!(declared(&[Value::Object(many)]), "{ [key: string]: { age: number } }");
    // A field here, another there, all alike: names of things, not of fields.
    let varying: Vec<Value> =
        (b'a'..=b'n').map(|letter| json!({ char::from(letter).to_string(): 1 })).collect();
    assert_eq!(declared(&varying), "{ [key: string]: number }");
    assert_eq!(declared(&[json!({})]), "{ [key: string]: unknown }");
}

#[test]
fn a_record_stays_a_record() {
    let results = [json!({ "first_name": "a", "last_name": "b", "e-mail": "c" })];
    assert_eq!(
        declared(&results),
        r#"{ "e-mail": string; first_name: string; last_name: string }"#
    );
}

#[test]
fn depth_and_size_are_bounded() {
    let deep = (0..200).fold(json!(1), |inner, _| json!({ "a": inner }));
    assert!(declared(&[deep]).contains("a: unknown"));
    let wide: Vec<Value> = (0..60)
        .map(|outer| {
            let inner: serde_json::Map<String, Value> = (0..60)
                .map(|index| (format!("f{index}"), json!({ "x": { "y": index } })))
                .collect();
            json!({ format!("outer{outer}"): inner })
        })
        .collect();
    let size = serde_json::to_string(&learned(&wide)).unwrap().len();
    assert!(size < 100_000, "{size}");
}

#[test]
fn python_says_that_it_is_inferred() {
    let shape = learned(&[json!({ "id": 1, "labels": [{ "name": "x" }] })]);
    let schema = json!({ "type": "object" });
    let tool = ToolApi {
        name: "tickets_get",
        description: Some("One ticket."),
        input_schema: &schema,
        output: Output::Learned(&shape),
    };
    insta::assert_snapshot!(python(&[tool]), @r#"
        class TicketsGetResult(TypedDict):
            id: int
            labels: list[Label]
        class Label(TypedDict):
            name: str
        async def tickets_get() -> TicketsGetResult:  # inferred
            """One ticket."""
        "#);
    let bare = ToolApi { description: None, ..tool };
    insta::assert_snapshot!(python(&[bare]), @r"
    class TicketsGetResult(TypedDict):
        id: int
        labels: list[Label]
    class Label(TypedDict):
        name: str
    async def tickets_get() -> TicketsGetResult: ...  # inferred
    ");
}

struct OneTool(Value);

impl Lookup for OneTool {
    fn look_up(&mut self, names: &[String]) -> Vec<LookupResult> {
        let raw = |value: &Value| serde_json::value::to_raw_value(value).unwrap();
        let answer = |name: &String| LookupResult::Tool {
            name: name.clone(),
            input_schema: raw(&json!({})),
            output_schema: Some(raw(&self.0)),
        };
        names.iter().map(answer).collect()
    }
}

/// A schema that does not say that its fields are all of them.
#[test]
fn fields_that_results_had_are_known_to_the_check() {
    let declared = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let mut seen = declared.clone();
    learned(&[json!({ "name": "p", "hidden": { "deep": [1] } })]).complete(&mut seen);
    let found = |schema: &Value, script: &str| -> Vec<(CheckSeverity, Option<String>)> {
        let source = format!("const r = await tool({{}}); return {script};");
        let checked = check(Language::TypeScript, &source, &[], &[], &mut OneTool(schema.clone()));
        checked.findings.into_iter().map(|it| (it.severity, it.hint)).collect()
    };
    for script in ["r.hidden.deep.length", "r.hidden?.deep", "r.name.length", "(r as any).other"] {
        assert_eq!(found(&seen, script), [], "{script}");
    }
    let refused = found(&declared, "r.hidden.deep.length");
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].0, CheckSeverity::Error);
    let hint = refused[0].1.clone().unwrap_or_default();
    assert!(hint.contains("`name`") && hint.contains("(… as any).hidden"), "{hint}");
    assert_eq!(found(&seen, "r.other.deep").len(), 1, "never seen");
}
