//! Tools as functions: JSON Schema to TypeScript and Python, and the check of a script against it.
//!
//! A tool's definition is JSON; a script calls it as a function. [`typescript`] and [`python`] say
//! what that function takes and gives, as a declaration that both a model and a compiler can read:
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
//! Where a server declares no result, a [`Shape`] learns it from the results seen.
//!
//! Definitions are hostile: whatever a schema says, the text is bounded
//! ([`MAX_DECLARATION_BYTES`] a tool), made in bounded time, and closes every comment and string
//! that it opens.

#[cfg(feature = "check")]
pub mod check;

mod limits;
mod model;
mod module;
mod naming;
mod python;
mod reader;
mod shape;
mod text;
mod typescript;

use serde_json::Value;

pub use limits::MAX_DECLARATION_BYTES;
pub use module::wraps_result;
pub use python::PYTHON_PREAMBLE;
pub use shape::Shape;

/// A tool, as far as its declaration needs it.
#[derive(Debug, Clone, Copy)]
pub struct ToolApi<'a> {
    /// The exposed name, which is the function's name. What is no identifier in it becomes `_`.
    pub name: &'a str,
    /// What the server says that the tool does.
    pub description: Option<&'a str>,
    /// The JSON Schema of the arguments.
    pub input_schema: &'a Value,
    /// What is known of the result.
    pub output: Output<'a>,
}

/// What is known of a tool's result.
#[derive(Debug, Clone, Copy)]
pub enum Output<'a> {
    /// The server declares it: its `outputSchema`.
    Declared(&'a Value),
    /// Learned from results seen. The declaration says so.
    Learned(&'a Shape),
    /// Nothing yet.
    Unknown,
}

/// TypeScript declarations: the named types first, then one function a tool, each of which takes
/// one object and gives a promise.
pub fn typescript(tools: &[ToolApi<'_>]) -> String {
    typescript::render(&module::Module::read(tools))
}

/// Python stubs: the named types first, then one `async` function a tool.
///
/// The parameters stand in the order of the schema's properties. They can be given by position up
/// to the `*`, which stands where Python needs it: before a required parameter that follows an
/// optional one, and after a property whose name is no Python identifier, which is passed as
/// `**{"user-id": …}`.
///
/// To be executed the text needs [`PYTHON_PREAMBLE`] before it; to be read it does not.
pub fn python(tools: &[ToolApi<'_>]) -> String {
    python::render(&module::Module::read(tools))
}

/// The names of a tool's parameters in the order of the schema's properties.
///
/// It is the order of positional arguments in Python: those that [`python`] shows before a `*` are
/// the first of these.
pub fn parameters(input_schema: &Value) -> Vec<String> {
    module::parameters(input_schema)
}
