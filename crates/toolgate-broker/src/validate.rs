//! Checks arguments against a tool's input schema before anything is sent.

use std::{
    collections::HashMap,
    fmt::{self, Write},
    sync::Arc,
    time::Duration,
};

use jsonschema::{
    PatternOptions, Retrieve, Uri, ValidationError, Validator, paths::LocationSegment,
};
use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;
use toolgate_catalog::{Fingerprint, Tool, signature};

/// The arguments do not match the input schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct InvalidArguments {
    /// The tool's exposed name.
    pub tool: String,
    /// The first violations, at most five.
    pub violations: Vec<Violation>,
    /// The number of all violations.
    pub total: usize,
    /// The signature of the tool.
    pub signature: String,
}

/// One violation of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The path, such as `labels[2].name`; empty for the arguments as a whole.
    pub path: String,
    /// What was expected.
    pub expected: String,
}

/// A schema that cannot be compiled. Other tools of the server are not affected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the arguments of `{tool}` cannot be checked, because its schema is broken ({reason}); the \
     server has to mend it, or set `validateArguments: false` for the tool to call it unchecked"
)]
pub struct Uncheckable {
    /// The tool's exposed name.
    pub tool: String,
    /// What is wrong with the schema.
    pub reason: String,
}

/// Compiled schemas, by content. Compiling is expensive, and schemas are used again.
#[derive(Default)]
pub(crate) struct Validators {
    compiled: Mutex<HashMap<Fingerprint, Arc<Schema>>>,
}

/// A compiled schema, or why it does not compile.
pub(crate) struct Schema {
    validator: Result<Validator, SchemaError>,
    /// Whether the schema refers to parts of itself. Then the time of a check is not bounded by the
    /// size of schema and arguments.
    pub(crate) refers: bool,
}

/// Why a schema cannot be compiled.
#[derive(Debug, Error)]
#[error("{0}")]
struct SchemaError(String);

/// The whole cache is cleared at this size: a caller of a thousand different tools can afford to
/// compile them again.
const MAX_COMPILED: usize = 1024;
const SHOWN_VIOLATIONS: usize = 5;
const MAX_EXPECTED_CHARACTERS: usize = 300;

impl Validators {
    /// The schema of a tool's arguments.
    pub(crate) fn compiled(&self, tool: &Tool) -> Arc<Schema> {
        let fingerprint = tool.definition.fingerprint();
        if let Some(known) = self.compiled.lock().get(&fingerprint) {
            return Arc::clone(known);
        }
        let schema = tool.definition.input_schema();
        let refers = ["\"$ref\"", "\"$dynamicRef\"", "\"$recursiveRef\""]
            .iter()
            .any(|keyword| tool.definition.json().contains(keyword));
        let compiled = Arc::new(Schema { validator: compile(&schema), refers });
        let mut all = self.compiled.lock();
        if all.len() >= MAX_COMPILED {
            all.clear();
        }
        all.insert(fingerprint, Arc::clone(&compiled));
        compiled
    }
}

impl Schema {
    /// Returns the arguments if they match the schema of `tool`.
    pub(crate) fn check(&self, tool: &Tool, arguments: Value) -> Result<Value, crate::BrokerError> {
        let validator = self.validator.as_ref().map_err(|error| Uncheckable::new(tool, error))?;
        if !validator.is_valid(&arguments) {
            return Err(explain(tool, validator, &arguments).into());
        }
        Ok(arguments)
    }

    /// Why arguments of `tool`, whose schema this is, cannot be checked.
    pub(crate) fn broken(&self, tool: &Tool) -> Option<Uncheckable> {
        self.validator.as_ref().err().map(|error| Uncheckable::new(tool, error))
    }
}

impl Uncheckable {
    fn new(tool: &Tool, error: &SchemaError) -> Self {
        Self { tool: tool.name.to_string(), reason: error.to_string() }
    }
}

/// A JSON Schema that somebody else's values are checked against.
#[derive(Debug)]
pub struct ValueSchema(Arc<Validator>);

/// What a value does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Unfit(pub String);

/// How long the check of one value may take. A schema that refers to itself may take for ever.
const VALUE_TIMEOUT: Duration = Duration::from_secs(2);

impl ValueSchema {
    /// Compiles a schema, or says what is wrong with it. Fetches nothing.
    pub fn compile(schema: &Value) -> Result<Self, Unfit> {
        let compiled = compile(schema).map_err(|error| Unfit(error.to_string()))?;
        Ok(Self(Arc::new(compiled)))
    }

    /// Returns the value if it fits. Otherwise says where it does not, which may quote the value.
    pub async fn check(&self, value: Value) -> Result<Value, Unfit> {
        let validator = Arc::clone(&self.0);
        let checking = tokio::task::spawn_blocking(move || {
            let errors: Vec<String> = validator
                .iter_errors(&value)
                .take(SHOWN_VIOLATIONS)
                .map(|error| match path(&error) {
                    place if place.is_empty() => shorten(&error.to_string()),
                    place => format!("{}: {}", shorten(&place), shorten(&error.to_string())),
                })
                .collect();
            if errors.is_empty() { Ok(value) } else { Err(Unfit(errors.join("; "))) }
        });
        match tokio::time::timeout(VALUE_TIMEOUT, checking).await {
            Ok(Ok(outcome)) => outcome,
            _ => Err(Unfit("the check against the schema does not end".to_owned())),
        }
    }
}

/// Fetches nothing, whatever a schema refers to.
struct NoRetrieval;

impl Retrieve for NoRetrieval {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} is not fetched").into())
    }
}

/// Uses the draft that the schema declares, or 2020-12. Fetches nothing.
fn compile(schema: &Value) -> Result<Validator, SchemaError> {
    let patterns = PatternOptions::fancy_regex()
        // Both the pattern and the text come from others and may be hostile.
        .backtrack_limit(100_000)
        .size_limit(4 * 1024 * 1024)
        .dfa_size_limit(4 * 1024 * 1024);
    jsonschema::options()
        .with_retriever(NoRetrieval)
        .with_pattern_options(patterns)
        .build(schema)
        .map_err(|error| SchemaError(shorten(&error.to_string())))
}

fn explain(tool: &Tool, validator: &Validator, arguments: &Value) -> InvalidArguments {
    let mut violations: Vec<Violation> = Vec::new();
    let mut total = 0;
    for error in validator.iter_errors(arguments).take(1000) {
        total += 1;
        let violation = Violation { path: path(&error), expected: shorten(&error.to_string()) };
        if violations.len() < SHOWN_VIOLATIONS && !violations.contains(&violation) {
            violations.push(violation);
        }
    }
    InvalidArguments {
        tool: tool.name.to_string(),
        violations,
        total,
        signature: signature(tool.name.as_str(), &tool.definition.input_schema()),
    }
}

fn path(error: &ValidationError<'_>) -> String {
    let mut text = String::new();
    for segment in error.instance_path() {
        match segment {
            LocationSegment::Property(name) if text.is_empty() => text.push_str(&name),
            LocationSegment::Property(name) => {
                text.push('.');
                text.push_str(&name);
            }
            LocationSegment::Index(index) => {
                let _ = write!(text, "[{index}]");
            }
        }
    }
    text
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= MAX_EXPECTED_CHARACTERS {
        return text.to_owned();
    }
    let half = MAX_EXPECTED_CHARACTERS / 2;
    let start: String = text.chars().take(half).collect();
    let end: Vec<char> = text.chars().rev().take(half).collect();
    // The expectation stands at the end, after the value that was sent.
    format!("{start} … {}", end.into_iter().rev().collect::<String>())
}

impl fmt::Display for InvalidArguments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "The arguments do not fit `{}`, which was not called:", self.tool)?;
        for violation in &self.violations {
            let place = if violation.path.is_empty() { "arguments" } else { &violation.path };
            writeln!(formatter, "- {place}: {}", violation.expected)?;
        }
        if self.total > self.violations.len() {
            writeln!(formatter, "- … {} more", self.total - self.violations.len())?;
        }
        write!(formatter, "Expected: {}", self.signature)
    }
}

impl fmt::Debug for Validators {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Validators({})", self.compiled.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_catalog::{Catalog, CatalogServer, Definition};

    use super::*;
    use crate::BrokerError;

    fn tool(schema: &Value) -> Tool {
        let definition =
            Definition::from_value(&json!({"name": "make", "inputSchema": schema})).unwrap();
        let mut catalog = Catalog::new([CatalogServer::named("shop")]);
        catalog.replace_server(&"shop".into(), vec![definition]);
        catalog.resolve("shop_make").unwrap().clone()
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
    fn check(schema: Value, arguments: Value) -> Result<(), BrokerError> {
        let tool = tool(&schema);
        let schema = Validators::default().compiled(&tool);
        schema.check(&tool, arguments.clone()).map(|same| {
            assert_eq!(same, arguments, "nothing is changed or added");
        })
    }

    #[test]
    fn a_violation_names_the_path_what_was_expected_and_the_signature() {
        let schema = json!({
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "lines": {"type": "array", "items": {"type": "object",
                    "properties": {"count": {"type": "integer", "minimum": 1}}}},
            },
            "required": ["title"], "additionalProperties": false,
        });
        assert!(check(schema.clone(), json!({"title": "x", "lines": [{"count": 1}]})).is_ok());
        let wrong = json!({"titel": "x", "lines": [{"count": 1}, {"count": "many"}]});
        insta::assert_snapshot!(check(schema, wrong).unwrap_err(), @r#"
        The arguments do not fit `shop_make`, which was not called:
        - lines[1].count: "many" is not of type "integer"
        - arguments: Additional properties are not allowed ('titel' was unexpected)
        - arguments: "title" is a required property
        Expected: shop_make(title: string, lines?: object[])
        "#);
    }

    #[test]
    fn the_declared_draft_is_used() {
        // A boolean `exclusiveMinimum` is draft 4; a number is later.
        let four = json!({"$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {"n": {"minimum": 1, "exclusiveMinimum": true}}});
        assert!(check(four.clone(), json!({"n": 2})).is_ok());
        assert!(check(four, json!({"n": 1})).is_err());
        let later = json!({"properties": {"n": {"exclusiveMinimum": 1}}});
        assert!(check(later, json!({"n": 1})).is_err());
        // `prefixItems` means something from 2020-12 on only.
        let tuple = json!({"properties": {"t": {"prefixItems": [{"type": "string"}]}}});
        assert!(check(tuple, json!({"t": [1]})).is_err());
    }

    #[test]
    fn a_broken_schema_is_reported() {
        let broken = json!({"properties": {"id": {"type": "string", "pattern": "("}}});
        insta::assert_snapshot!(check(broken, json!({"id": "1"})).unwrap_err(), @r#"the arguments of `shop_make` cannot be checked, because its schema is broken ("(" is not a "regex"); the server has to mend it, or set `validateArguments: false` for the tool to call it unchecked"#);
        let dangling = json!({"properties": {"id": {"$ref": "#/$defs/Missing"}}});
        assert!(matches!(check(dangling, json!({})), Err(BrokerError::Uncheckable(_))));
        let remote = json!({"$ref": "http://localhost:1/schema.json"});
        assert!(matches!(check(remote, json!({})), Err(BrokerError::Uncheckable(_))));
    }

    #[test]
    fn hostile_input_is_bounded() {
        let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
        let started = check(schema, json!({"a": format!("{}!", "a".repeat(5000))}));
        assert!(started.is_err());
        let wide = json!({"additionalProperties": {"type": "integer"}});
        let many: serde_json::Map<String, Value> =
            (0..5000).map(|index| (format!("k{index}"), json!("x".repeat(1000)))).collect();
        let message = check(wide, Value::Object(many)).unwrap_err().to_string();
        assert!(message.len() < 4000, "{}", message.len());
    }
}
