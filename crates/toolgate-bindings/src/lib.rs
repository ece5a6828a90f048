//! Generates TypeScript and Python declarations of tools, and checks scripts against them.
//!
//! The definition of a tool is JSON, and a script calls it as a function. [`typescript`] and
//! [`python`] generate the declaration of that function for models and compilers:
//!
//! ```
//! use serde_json::json;
//! use toolgate_bindings::{Output, ToolApi, typescript};
//!
//! let input = json!({
//!     "type": "object",
//!     "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
//!     "required": ["city"],
//! });
//! let tool = ToolApi {
//!     name: "weather_forecast",
//!     description: Some("The weather to come."),
//!     input_schema: &input,
//!     output: Output::Unknown,
//! };
//! assert_eq!(typescript(&[tool]), "\
//! /** The weather to come. */
//! declare function weather_forecast(args: { city: string; days?: number }): Promise<unknown>;
//! ");
//! ```
//!
//! If a server declares no result, a [`Shape`] learns it from actual results.
//!
//! Definitions may be hostile. Whatever a schema contains, the size of the text is limited
//! ([`MAX_DECLARATION_BYTES`] per tool), so is the time to generate it, and every comment and
//! string in it is closed.

#[cfg(feature = "check")]
pub mod check;

mod limits;
mod model;
mod module;
mod naming;
mod python;
mod reader;
mod script_functions;
mod shape;
mod text;
mod typescript;

use serde_json::Value;

pub use limits::MAX_DECLARATION_BYTES;
pub use module::wraps_result;
pub use naming::DeclaredNames;
pub use python::PYTHON_PREAMBLE;
pub use script_functions::{python_function, typescript_function};
pub use shape::Shape;

/// A tool to declare.
#[derive(Debug, Clone, Copy)]
pub struct ToolApi<'a> {
    /// The exposed name, which is the name of the function. Characters that an identifier cannot
    /// have become `_`.
    pub name: &'a str,
    /// The description from the server.
    pub description: Option<&'a str>,
    /// The JSON Schema of the arguments.
    pub input_schema: &'a Value,
    /// The type of the result.
    pub output: Output<'a>,
}

/// The source of a tool's result type.
#[derive(Debug, Clone, Copy)]
pub enum Output<'a> {
    /// The server declares it in `outputSchema`.
    Declared(&'a Value),
    /// It was learned from results. The declaration says so.
    Learned(&'a Shape),
    /// It is unknown.
    Unknown,
}

/// Generates TypeScript declarations: the named types first, then one function per tool. Each
/// function takes one object and returns a promise.
pub fn typescript(tools: &[ToolApi<'_>]) -> String {
    typescript_beside(tools, &mut DeclaredNames::default())
}

/// The same beside other declarations, whose names are `used`.
pub fn typescript_beside(tools: &[ToolApi<'_>], used: &mut DeclaredNames) -> String {
    typescript::render(&module::Module::read(tools), used)
}

/// Generates Python stubs: the named types first, then one `async` function per tool.
///
/// The parameters have the order of the schema's properties. They can be passed by position up to
/// the `*`, which is placed where Python needs it: before a required parameter that follows an
/// optional one, and after a property that is no Python identifier and is passed as `**{"user-id":
/// …}`.
///
/// To execute the text, prepend [`PYTHON_PREAMBLE`].
pub fn python(tools: &[ToolApi<'_>]) -> String {
    python_beside(tools, &mut DeclaredNames::default())
}

/// The same beside other declarations, whose names are `used`.
pub fn python_beside(tools: &[ToolApi<'_>], used: &mut DeclaredNames) -> String {
    python::render(&module::Module::read(tools), used)
}

/// The names of a tool's parameters in the order of the schema's properties.
///
/// This is the order of positional arguments in Python. Those that [`python`] writes before a `*`
/// are the first of these.
pub fn parameters(input_schema: &Value) -> Vec<String> {
    module::parameters(input_schema)
}

/// Whether the first parameter of a tool may be an object. If not, a single object by position can only
/// have all arguments.
pub fn first_takes_object(input_schema: &Value, parameters: &[String]) -> bool {
    let Some(first) = parameters.first() else { return false };
    let schema = input_schema.get("properties").and_then(|properties| properties.get(first));
    schema.is_some_and(|schema| takes_object(schema, 0))
}

fn takes_object(schema: &Value, depth: usize) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => return name == "object",
        Some(Value::Array(names)) => return names.iter().any(|name| name == "object"),
        _ => {}
    }
    let branches = ["anyOf", "oneOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
    match branches {
        Some(branches) if depth < 4 => branches.iter().any(|it| takes_object(it, depth + 1)),
        _ => schema.get("enum").is_none(),
    }
}
