//! Definitions that want to hurt: no panic, bounded text, bounded time.

use std::time::Instant;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_bindings::{
    MAX_DECLARATION_BYTES, Output, Shape, ToolApi, parameters, python, typescript,
};
use toolgate_testkit::deadline;

use crate::compilers::{Tool, assert_valid_python, assert_valid_typescript};

fn declare(input: &Value, output: &Value, description: &str) {
    let start = Instant::now();
    let tool = ToolApi {
        name: "hostile_tool",
        description: Some(description),
        input_schema: input,
        output: Output::Declared(output),
    };
    for text in [typescript(&[tool]), python(&[tool])] {
        assert!(text.len() <= MAX_DECLARATION_BYTES, "{} bytes", text.len());
    }
    parameters(input);
    assert!(start.elapsed() < deadline(), "{:?}", start.elapsed());
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,6}",
        any::<String>(),
        Just("*/".to_owned()),
        Just("\"\"\"\\".to_owned()),
        Just("\u{202e}\u{2028}\r\n".to_owned()),
        Just("__proto__".to_owned()),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
        prop::sample::select(vec!["string", "object", "array", "null", "integer", "any"])
            .prop_map(Value::from),
    ]
}

/// Names of keywords as often as of anything else, in values that may fit them or not.
fn key() -> impl Strategy<Value = String> {
    let keywords = vec![
        "type",
        "properties",
        "items",
        "required",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "$defs",
        "definitions",
        "prefixItems",
        "additionalProperties",
        "default",
        "description",
        "patternProperties",
        "propertyNames",
        "minItems",
        "minimum",
        "maximum",
        "format",
        "title",
        "$id",
        "$anchor",
        "nullable",
    ];
    prop_oneof![
        3 => prop::sample::select(keywords).prop_map(ToOwned::to_owned),
        1 => text(),
    ]
}

fn reference() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        "#",
        "#/",
        "#/$defs/a",
        "#/$defs/b",
        "#/properties/a",
        "#/anyOf/0",
        "#/items",
        "#/properties/a/properties/b",
        "#a",
        "other",
        "#/%7E%",
        "",
    ])
    .prop_map(|reference| json!({ "$ref": reference }))
}

/// Any JSON, which mostly is no schema.
fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![scalar(), reference()].prop_recursive(8, 128, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// JSON that is a schema, mostly: what is read rather than skipped.
fn schema() -> impl Strategy<Value = Value> {
    let names = || prop_oneof![Just("a".to_owned()), Just("b".to_owned()), text()];
    let leaf = prop_oneof![
        reference(),
        prop::sample::select(vec![
            "string", "integer", "number", "boolean", "null", "object", "array"
        ])
        .prop_map(|name| json!({ "type": name })),
        prop::collection::vec(scalar(), 0..5).prop_map(|values| json!({ "enum": values })),
        scalar().prop_map(|value| json!({ "const": value })),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let properties = prop::collection::vec((names(), inner.clone()), 0..6);
        let several = || prop::collection::vec(inner.clone(), 0..5);
        prop_oneof![
            (properties, prop::collection::vec(names(), 0..3), text(), several()).prop_map(
                |(properties, required, description, rest)| {
                    let properties: Map<String, Value> = properties.into_iter().collect();
                    let rest = rest.into_iter().next().unwrap_or(json!(false));
                    json!({ "properties": properties, "required": required, "$defs": properties,
                        "description": description, "additionalProperties": rest })
                }
            ),
            (several(), prop::sample::select(vec!["anyOf", "oneOf", "allOf", "prefixItems"]))
                .prop_map(|(options, key)| json!({ key: options })),
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            (reference(), inner.clone()).prop_map(|(mut reference, other)| {
                reference["allOf"] = json!([other]);
                reference
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_json_is_declared(input in anything(), output in anything(), description in text()) {
        declare(&input, &output, &description);
    }

    #[test]
    fn any_schema_is_declared(input in schema(), output in schema(), description in text()) {
        declare(&input, &output, &description);
    }

    #[test]
    fn any_result_has_a_shape(results in prop::collection::vec(anything(), 1..6)) {
        let mut shape = Shape::default();
        for result in &results {
            shape.observe(result);
        }
        // What is kept is what was learned.
        let kept: Shape = serde_json::from_value(serde_json::to_value(&shape).unwrap()).unwrap();
        prop_assert_eq!(&kept, &shape);
        let known = shape.clone();
        for result in &results {
            shape.observe(result);
        }
        prop_assert_eq!(&known, &shape, "nothing new is learned from what was seen");
        let mut backwards = Shape::default();
        for result in results.iter().rev() {
            backwards.observe(result);
        }
        prop_assert_eq!(&backwards, &shape, "the order does not matter");
    }
}

/// The same schemas as above, in front of the compilers: one run for many.
#[test]
fn arbitrary_schemas_are_valid_in_both_languages() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let tools: Vec<Tool> = (0..400)
        .map(|index| {
            let mut next = || schema().new_tree(&mut runner).unwrap().current();
            let (input, output) = (next(), next());
            let description = text().new_tree(&mut runner).unwrap().current();
            Tool::new(
                format!("tool_{index}"),
                // One alternative more, so that no use of it knows what is required.
                json!({ "inputSchema": { "allOf": [input.clone()], "$defs": input.get("$defs"),
                    "properties": input.get("properties") }, "outputSchema": output,
                    "description": description }),
            )
        })
        .collect();
    assert_valid_typescript(&tools);
    assert_valid_python(&tools);
}

fn nested(levels: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(json!({ "type": "string" }), |inner, _| wrap(inner))
}

/// `count` definitions, each of which uses the next one twice.
fn doubling(count: usize, using: impl Fn(Value) -> Value) -> Value {
    let mut definitions = Map::new();
    for index in 0..count {
        let next = || using(json!({ "$ref": format!("#/$defs/d{}", index + 1) }));
        definitions.insert(
            format!("d{index}"),
            json!({ "type": "object", "properties": { "l": next(), "r": next() } }),
        );
    }
    definitions.insert(format!("d{count}"), json!({ "type": "string" }));
    json!({ "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions })
}

fn large() -> Vec<Tool> {
    let same = |schema| schema;
    let array = |schema| json!({ "type": "array", "items": schema });
    let property = |schema| json!({ "properties": { "a": schema } });
    let values: Vec<String> = (0..5_000).map(|index| format!("value {index}")).collect();
    let wide: Map<String, Value> =
        (0..20_000).map(|index| (format!("p{index}"), json!({ "type": "string" }))).collect();
    let options: Vec<Value> =
        (0..2_000).map(|index| json!({ "properties": { format!("k{index}"): true } })).collect();
    let chain: Map<String, Value> = (0..3_000)
        .map(|index| {
            (
                format!("d{index}"),
                json!({ "properties": {
            "next": { "$ref": format!("#/$defs/d{}", index + 1) },
            "own": { "$ref": format!("#/$defs/d{index}") } } }),
            )
        })
        .collect();
    // Each has all that the one before it has.
    let growing = |description: &str| -> Map<String, Value> {
        (0..5_000_usize)
            .map(|index| {
                let own =
                    json!({ "properties": { format!("p{index}"): { "description": description } } });
                let last = index.checked_sub(1);
                let base = last.map(|last| json!({ "$ref": format!("#/properties/d{last}") }));
                (format!("d{index}"), json!({ "allOf": [base.unwrap_or(json!(true)), own] }))
            })
            .collect()
    };
    let references: Map<String, Value> = (0..3_000)
        .map(|index| (format!("d{index}"), json!({ "$ref": format!("#/$defs/d{}", index + 1) })))
        .collect();
    let parts: Vec<Value> = (0..3_000).map(|_| json!({ "$ref": "#/$defs/wide" })).collect();
    vec![
        Tool::taking("deep_objects", property(nested(100, property))),
        Tool::taking("deep_arrays", property(nested(100, array))),
        Tool::taking(
            "deep_alternatives",
            nested(100, |inner| json!({ "anyOf": [inner, { "type": "null" }] })),
        ),
        Tool::taking("doubling", doubling(1_000, same)),
        Tool::taking("doubling_arrays", doubling(1_000, array)),
        Tool::taking(
            "doubling_alternatives",
            doubling(1_000, |inner| json!({ "anyOf": [inner, { "type": "null" }] })),
        ),
        Tool::taking(
            "doubling_parts",
            doubling(1_000, |inner| json!({ "allOf": [inner, { "properties": { "x": true } }] })),
        ),
        Tool::taking("long_enumeration", property(json!({ "enum": values }))),
        Tool::taking("wide", json!({ "properties": wide })),
        Tool::taking(
            "wide_parts",
            json!({ "allOf": parts, "$defs": { "wide": { "properties": wide } } }),
        ),
        Tool::taking("growing_parts", json!({ "properties": growing("") })),
        Tool::taking("growing_texts", json!({ "properties": growing(&"long ".repeat(800)) })),
        Tool::taking("many_alternatives", property(json!({ "anyOf": options }))),
        Tool::taking("many_parts", property(json!({ "allOf": options }))),
        Tool::taking(
            "chain_of_recursive_types",
            json!({ "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": chain }),
        ),
        Tool::taking(
            "chain_of_references",
            json!({ "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": references }),
        ),
        Tool::new(
            "long_texts",
            json!({
            "description": "sentence. ".repeat(100_000),
            "inputSchema": property(json!({ "description": "word ".repeat(100_000) })) }),
        ),
        Tool::taking(
            "long_names",
            json!({ "properties": { "n".repeat(100_000): true, "ok": true } }),
        ),
    ]
}

#[test]
fn large_definitions_are_cut_with_a_mark() {
    for tool in large() {
        let start = Instant::now();
        let (declaration, stub) = (typescript(&[tool.api()]), python(&[tool.api()]));
        assert!(start.elapsed() < deadline(), "{}: {:?}", tool.name, start.elapsed());
        for text in [&declaration, &stub] {
            assert!(text.len() <= MAX_DECLARATION_BYTES, "{}: {} bytes", tool.name, text.len());
            assert!(text.contains('…') || text.contains("left out"), "{}: {text:.200}", tool.name);
        }
    }
}

#[test]
fn large_definitions_are_valid_in_both_languages() {
    let tools: Vec<Tool> = large();
    assert_valid_typescript(&tools);
    assert_valid_python(&tools);
}
