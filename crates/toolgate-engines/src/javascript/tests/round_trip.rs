//! A value that passes through a call and back is the same.

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json, value::RawValue};

use super::value;

/// Equal as JSON: numbers by what they are, not by how they are written.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => left == right,
    }
}

/// Gives `json` to the script as a result, to a tool as an argument, back, and returns it.
fn pass(json: &Value) -> Value {
    let text = json!({ "value": json.to_string() }).to_string();
    let source = format!(
        "const result = await text({text}); const {{ value }} = await echo({{ value: result }}); return {{ value }}"
    );
    let mut returned: Value = serde_json::from_str(&value(&source)).expect("JSON");
    returned["value"].take()
}

fn any_number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |n| Number::from_f64(n).map(Value::Number)),
        (-10_i64..10).prop_map(|n| Value::from((1_i64 << 53) + n)),
        (-10_i64..10).prop_map(|n| Value::from(-(1_i64 << 53) + n)),
        (0_u64..10).prop_map(|n| Value::from(u64::MAX - n)),
    ]
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("__proto__".to_owned()),
        Just("constructor".to_owned()),
        Just("toJSON".to_owned()),
        Just("then".to_owned()),
        Just("length".to_owned()),
        Just(String::new()),
        Just("0".to_owned()),
        any::<String>(),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any_number(),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any_key(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_in_comes_out(json in any_json()) {
        let returned = pass(&json);
        prop_assert!(same(&json, &returned), "{json}\n{returned}");
    }
}

#[test]
fn depth_is_kept() {
    let deep = (0..100).fold(json!("core"), |inner, _| json!([{ "in": inner }]));
    let text = deep.to_string();
    let source = format!("return JSON.stringify(await text({}))", json!({ "value": text }));
    let returned: String = serde_json::from_str(&value(&source)).expect("a string");
    assert_eq!(returned, text);
}

#[test]
fn integers_beyond_all_types_are_kept() {
    let digits = "-123456789012345678901234567890123456789";
    let returned = value(&format!("return await text({{ value: '[{digits}]' }})"));
    assert_eq!(returned, format!("[{digits}]"));
    assert!(RawValue::from_string(returned).is_ok());
}
