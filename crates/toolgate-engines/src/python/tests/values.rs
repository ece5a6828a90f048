//! Values that pass through a call and back are equal.

use proptest::{collection::vec, prelude::*, test_runner::Config};
use serde_json::{Map, Number, Value};

use super::run;

/// A JSON value as Python writes it.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => literal(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", "))
        }
        Value::Object(pairs) => {
            let pairs: Vec<String> = pairs
                .iter()
                .map(|(key, value)| format!("{}: {}", literal(key), python(value)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

fn literal(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => format!("\\x{:02x}", c as u32),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        prop::sample::select(vec![
            "__proto__",
            "__class__",
            "__dict__",
            "constructor",
            "",
            "\0",
            "\u{feff}",
            "😀é",
            "\u{2028}",
            "a b",
        ])
        .prop_map(str::to_owned),
    ]
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        any::<f64>().prop_filter_map("finite", Number::from_f64),
        prop::sample::select(vec![
            0.0,
            -0.0,
            1.0,
            1e16,
            1e-7,
            5e-324,
            f64::MAX,
            f64::MIN_POSITIVE,
            9_007_199_254_740_993.0,
        ])
        .prop_filter_map("finite", Number::from_f64),
        prop::sample::select(vec![i64::MIN, i64::MAX, -1, 1 << 53]).prop_map(Number::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number().prop_map(Value::Number),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(8, 48, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            vec((text(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(Config { cases: 96, ..Config::default() })]

    #[test]
    fn a_value_comes_back_as_it_was(value in value()) {
        let run = run(&format!("r = await echo(x={})\nr['x']", python(&value)));
        prop_assert_eq!(&run.calls[0].1["x"], &value);
        let back = run.outcome.expect("the script ends well").unwrap_or(Value::Null);
        prop_assert_eq!(back, value);
    }

    #[test]
    fn keys_are_kept(keys in vec(text(), 1..8)) {
        let object: Map<String, Value> = keys.into_iter().map(|key| (key, Value::Bool(true))).collect();
        let value = Value::Object(object);
        let run = run(&format!("r = await echo(**{})\nr", python(&value)));
        prop_assert_eq!(run.value(), value);
    }
}

#[test]
fn integers_of_any_size_are_kept() {
    let digits = "123456789012345678901234567890";
    let run = run(&format!("n = (await echo({digits}))['x']\nprint(n, n + 1, type(n).__name__)"));
    assert_eq!(run.output, format!("{digits} 123456789012345678901234567891 int\n"));
}
