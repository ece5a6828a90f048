//! Functions of the embedding program, as tools.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

/// A function of your program that models and scripts can call.
///
/// The attribute [`tool`](macro@crate::tool) makes one of a function. [`FunctionTool::new`] makes one of
/// anything that can be called, such as a closure that holds its state:
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
/// use toolgate::FunctionTool;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Visit {
///     /// Who comes in.
///     name: String,
/// }
///
/// let visits = Arc::new(AtomicU64::new(0));
/// let tool = FunctionTool::new("count_visit", "Counts a visitor.", move |visit: Visit| {
///     let number = visits.fetch_add(1, Ordering::Relaxed) + 1;
///     async move { Ok::<_, std::convert::Infallible>(format!("{} is number {number}", visit.name)) }
/// });
/// ```
///
/// All functions together are the server `functions`. A function is treated like the tool of any other
/// server: search finds it, the policy decides about its calls (`functions/count_visit` in a rule), the
/// audit log has them, and scripts can call it. A function that fails or panics is an error of that call,
/// and nothing else is affected.
#[derive(Clone)]
pub struct FunctionTool {
    pub(crate) name: String,
    pub(crate) definition: Map<String, Value>,
    pub(crate) defer: Option<bool>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) output: OutputShape,
    pub(crate) call: Arc<CallFunction>,
}

/// Takes the arguments, and returns the value or the text of the error.
pub(crate) type CallFunction =
    dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync;

/// How the value of a function becomes the result of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputShape {
    /// It is an object, and so structured content.
    Object,
    /// It is something else. Structured content must be an object, so the value is in `result`.
    Wrapped,
    /// There is no value.
    Nothing,
    /// The type does not say what it is.
    Unknown,
}

impl FunctionTool {
    /// A tool that calls `function`. The schema of its arguments is that of the type `I`. An error is
    /// passed on to the model as its text.
    pub fn new<I, O, E, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: impl Fn(I) -> F + Send + Sync + 'static,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema + 'static,
        O: Serialize + JsonSchema + 'static,
        E: fmt::Display + 'static,
        F: Future<Output = Result<O, E>> + Send + 'static,
    {
        let (name, description): (String, String) = (name.into(), description.into());
        let (output_schema, output) = output_schema(schema_of::<O>(false));
        let mut definition = Map::new();
        definition.insert("name".to_owned(), json!(name));
        definition.insert("description".to_owned(), json!(description));
        definition.insert("inputSchema".to_owned(), input_schema(schema_of::<I>(true)));
        definition.extend(output_schema.map(|schema| ("outputSchema".to_owned(), schema)));
        let call = move |arguments: Value| -> BoxFuture<'static, Result<Value, String>> {
            // The broker has checked the schema. A type can still refuse, such as an `i8`.
            let input = serde_json::from_value::<I>(arguments);
            let calling = input.map(&function);
            Box::pin(async move {
                let calling =
                    calling.map_err(|error| format!("the arguments do not fit: {error}"))?;
                let value = calling.await.map_err(|error| error.to_string())?;
                serde_json::to_value(value)
                    .map_err(|error| format!("the result cannot be written as JSON: {error}"))
            })
        };
        Self { name, definition, defer: None, timeout: None, output, call: Arc::new(call) }
    }

    /// The name of the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets a title for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.insert("title".to_owned(), json!(title.into()));
        self
    }

    /// Declares that the function changes nothing.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.annotate("readOnlyHint", true).annotate("destructiveHint", false)
    }

    /// Declares that the function may destroy something. Without a policy of your own,
    /// [`on_approval`](crate::HostBuilder::on_approval) is asked about each call.
    #[must_use]
    pub fn destructive(self) -> Self {
        self.annotate("readOnlyHint", false).annotate("destructiveHint", true)
    }

    /// Declares that a repeated call changes nothing more.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.annotate("idempotentHint", true)
    }

    /// Lists the tool only after somebody searched for it or loaded it.
    #[must_use]
    pub fn deferred(mut self) -> Self {
        self.defer = Some(true);
        self
    }

    /// Lists the tool from the start, in every mode.
    #[must_use]
    pub fn always_loaded(mut self) -> Self {
        self.defer = Some(false);
        self
    }

    /// Sets how long a call may take. Without it a call may take 10 minutes. When the time is over, the
    /// future of the function is dropped.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    fn annotate(mut self, hint: &str, value: bool) -> Self {
        let annotations = self.definition.entry("annotations").or_insert_with(|| json!({}));
        annotations[hint] = json!(value);
        self
    }
}

impl fmt::Debug for FunctionTool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FunctionTool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The schema of a type, as values of it are read or as they are written.
fn schema_of<T: JsonSchema>(is_input: bool) -> Value {
    let settings = SchemaSettings::draft2020_12();
    let settings = if is_input { settings.for_deserialize() } else { settings.for_serialize() };
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(fields) = schema.as_object_mut() {
        // The definition of a tool says which dialect it is in, and the name of a Rust type helps nobody.
        fields.remove("$schema");
        fields.remove("title");
    }
    schema
}

/// The arguments of a tool are an object.
fn input_schema(schema: Value) -> Value {
    match schema {
        Value::Object(mut fields) => {
            fields.entry("type").or_insert_with(|| json!("object"));
            Value::Object(fields)
        }
        _ => json!({ "type": "object" }),
    }
}

/// The output schema for the schema of a value, and how the value becomes a result.
fn output_schema(schema: Value) -> (Option<Value>, OutputShape) {
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => (Some(schema), OutputShape::Object),
        Some("null") => (None, OutputShape::Nothing),
        _ if schema.as_object().is_none_or(Map::is_empty) => (None, OutputShape::Unknown),
        _ => {
            let mut inner = schema;
            // References start at the root.
            let definitions = inner.as_object_mut().and_then(|fields| fields.remove("$defs"));
            let mut outer = json!({
                "type": "object", "properties": { "result": inner }, "required": ["result"],
            });
            if let Some(definitions) = definitions {
                outer["$defs"] = definitions;
            }
            (Some(outer), OutputShape::Wrapped)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, Serialize, JsonSchema)]
    struct Point {
        /// To the right.
        x: i64,
    }

    fn definition<O: Serialize + JsonSchema + 'static>(value: fn() -> O) -> Value {
        let call = move |_: Point| async move { Ok::<O, std::convert::Infallible>(value()) };
        Value::Object(FunctionTool::new("t", "d", call).definition)
    }

    #[test]
    fn a_list_is_wrapped_and_an_object_is_not() {
        let list = definition(|| vec![Point { x: 1 }]);
        assert_eq!(list.pointer("/outputSchema/required"), Some(&json!(["result"])), "{list}");
        assert!(list.pointer("/outputSchema/$defs/Point").is_some(), "{list}");
        let object = definition(|| Point { x: 1 });
        assert!(object.pointer("/outputSchema/properties/x").is_some(), "{object}");
        assert_eq!(definition(|| ()).get("outputSchema"), None);
        assert_eq!(definition(|| Value::Null).get("outputSchema"), None);
    }

    #[test]
    fn the_documentation_of_a_field_reaches_the_schema() {
        let definition = definition(|| ());
        let described = definition.pointer("/inputSchema/properties/x/description");
        assert_eq!(described, Some(&json!("To the right.")));
        assert_eq!(definition.pointer("/inputSchema/type"), Some(&json!("object")));
        assert_eq!(definition.pointer("/inputSchema/$schema"), None);
    }
}
