//! Every definition is a valid tool, and every tool answers a call that fits it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use toolgate_catalog::{Definition, TokenCounter};
use toolgate_demo::{Instance, definitions, servers};

/// Arguments that fit a schema, read off the schema alone: its examples, else the simplest value.
fn sample(schema: &Value, every_property: bool) -> Value {
    if let Some(example) = schema["examples"].get(0).or(schema["enum"].get(0)) {
        return example.clone();
    }
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let properties = schema["properties"].as_object().into_iter().flatten();
            let wanted = properties.filter(|(name, _)| {
                every_property || required.contains(&Value::from(name.as_str()))
            });
            let values =
                wanted.map(|(name, schema)| (name.clone(), sample(schema, every_property)));
            values.collect::<Map<_, _>>().into()
        }
        Some("array") => json!([sample(&schema["items"], every_property)]),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("string") => match schema["format"].as_str() {
            Some("date") => json!("2026-10-10"),
            Some("date-time") => json!("2026-10-10T08:00:00Z"),
            // A word, and a duration, for parameters that are either.
            _ => json!("6h"),
        },
        _ => Value::Null,
    }
}

/// Every server's name and one of its definitions.
fn all() -> impl Iterator<Item = (&'static str, Value)> {
    let of = |name: &'static str| {
        definitions(name).unwrap().into_iter().map(move |definition| (name, definition))
    };
    servers().iter().flat_map(move |server| of(&server.name))
}

#[test]
fn there_are_ten_servers_with_over_a_hundred_tools() {
    assert_eq!(servers().len(), 10);
    assert!(servers().iter().map(|server| server.tools).sum::<usize>() > 100);
    for server in servers() {
        assert!((8..=20).contains(&server.tools), "{} has {}", server.name, server.tools);
        assert_eq!(definitions(&server.name).unwrap().len(), server.tools);
        assert!(!server.description.is_empty());
        assert_eq!(server.prefix.as_deref(), (server.name == "team").then_some(""));
    }
}

#[test]
fn every_definition_is_a_valid_tool() {
    let mut names = BTreeSet::new();
    for (server, definition) in all() {
        let name = definition["name"].as_str().unwrap();
        assert!(names.insert((server, name.to_owned())), "{server} has {name} twice");
        assert!(name.len() <= 40 && !name.contains(' '), "{name}");
        let description = definition["description"].as_str().unwrap();
        assert!(description.len() > 20 && description.ends_with('.'), "{name}: {description}");
        assert!(!description.contains("  "), "{name}: {description}");
        assert_eq!(definition["inputSchema"]["type"], "object");
        Definition::from_value(&definition).unwrap();
        for schema in ["inputSchema", "outputSchema"] {
            let schema = definition.get(schema).cloned().unwrap_or(json!({ "type": "object" }));
            assert_eq!(schema["type"], "object");
            assert!(jsonschema::meta::is_valid(&schema), "{name}");
        }
        let properties = definition["inputSchema"]["properties"].as_object().unwrap();
        for (property, schema) in properties {
            assert!(schema["description"].is_string(), "{name}: {property} is not described");
        }
    }
}

#[test]
fn every_tool_can_be_called_and_gives_what_it_declares() {
    for (server, definition) in all() {
        let name = definition["name"].as_str().unwrap();
        let input = jsonschema::validator_for(&definition["inputSchema"]).unwrap();
        for every_property in [false, true] {
            let arguments = sample(&definition["inputSchema"], every_property);
            assert!(input.is_valid(&arguments), "{name}: {arguments}");
            let mut instance = Instance::open(server).unwrap();
            let value = instance.call(name, arguments.clone());
            let value = value.unwrap_or_else(|error| panic!("{name} {arguments}: {error}"));
            let Some(schema) = definition.get("outputSchema") else { continue };
            let value = if value.is_object() { value } else { json!({ "result": value }) };
            let output = jsonschema::validator_for(schema).unwrap();
            let errors: Vec<String> =
                output.iter_errors(&value).map(|error| error.to_string()).take(3).collect();
            assert!(errors.is_empty(), "{name}: {errors:?}");
            // Typed exactly: whatever a result has is in its schema.
            if let Some(row) = value["result"].get(0).and_then(Value::as_object) {
                let known = &schema["properties"]["result"]["items"]["properties"];
                assert!(row.keys().all(|key| known.get(key).is_some()), "{name}: {row:?}");
            }
        }
    }
}

#[test]
fn the_definitions_vary_like_real_ones() {
    let count = |test: fn(&Value) -> bool| all().filter(|(_, definition)| test(definition)).count();
    let total = all().count();
    let named = |character: char| {
        all().filter(|(_, one)| one["name"].as_str().unwrap().contains(character)).count()
    };
    assert!(named('_') > 30 && named('-') > 5);
    assert!(count(|one| one["name"].as_str().unwrap().contains(char::is_uppercase)) > 30);
    assert!((total / 5..total * 3 / 5).contains(&count(|one| one.get("outputSchema").is_some())));
    assert!((total / 2..total).contains(&count(|one| one.get("annotations").is_some())));
    assert!(count(|one| one["annotations"]["destructiveHint"] == json!(true)) > 5);
}

#[test]
fn the_definitions_have_a_realistic_cost() {
    let mut prompt = 0;
    let mut whole = 0;
    for (_, definition) in all() {
        prompt += Definition::from_value(&definition).unwrap().tokens();
        whole += TokenCounter::shared().count(&definition.to_string());
    }
    println!("{prompt} tokens of names, descriptions and input schemas; {whole} of everything");
    assert!((20_000..40_000).contains(&prompt), "{prompt}");
    assert!((25_000..50_000).contains(&whole), "{whole}");
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    for (server, definition) in all() {
        let name = definition["name"].as_str().unwrap();
        let schema = &definition["inputSchema"];
        let mut instance = Instance::open(server).unwrap();
        let mut refuse = |arguments: Value| {
            let outcome = instance.call(name, arguments.clone());
            assert!(outcome.is_err(), "{name} takes {arguments}");
        };
        refuse(json!([]));
        let mut unknown = sample(schema, false);
        unknown["no such argument"] = json!(1);
        refuse(unknown);
        for property in schema["properties"].as_object().unwrap().keys() {
            // No property of the demo takes an object of a list.
            let mut wrong = sample(schema, false);
            wrong[property] = json!({ "": [{}] });
            refuse(wrong);
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            let mut missing = sample(schema, false);
            missing.as_object_mut().unwrap().remove(required.as_str().unwrap());
            refuse(missing);
        }
    }
}
