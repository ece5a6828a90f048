//! What else is asked of a server, beside calls of tools.
//!
//! A request is judged like the call of a tool that is named after its method: rules, labels, grants and
//! the record know `github/resources/read` with `{ "uri": … }` as they know `github/list_issues`. So there
//! is one kind of rule. Requests that only read are read-only, and no server has to be believed for that.

use std::sync::{Arc, LazyLock};

use serde_json::json;
use toolgate_catalog::{Definition, ServerName, Tool};

/// The methods that read something of a server. No tool may have such a name.
pub const READING: [&str; 6] = [
    "resources/read",
    "resources/subscribe",
    "prompts/get",
    "completion/complete",
    "tasks/get",
    "tasks/result",
];

/// Made once, so that the policy for each server's is made once too.
static DEFINITIONS: LazyLock<Vec<Arc<Definition>>> = LazyLock::new(|| {
    let annotations = json!({ "readOnlyHint": true, "openWorldHint": true });
    let define = |name: &&str| {
        let definition = json!({ "name": name, "inputSchema": {}, "annotations": annotations });
        Definition::from_value(&definition).ok().map(Arc::new)
    };
    READING.iter().filter_map(define).collect()
});

/// Whether this is the name of a method that reads, and therefore of no tool.
pub fn is_reading(name: &str) -> bool {
    READING.contains(&name)
}

/// A request as rules see it; `prefix` is that of the server's names. A method that is not known may do
/// anything. Nothing where no tool could have such a name.
pub fn request_as_tool(
    server: &ServerName,
    prefix: Option<Arc<str>>,
    method: &str,
) -> Option<Tool> {
    let known = DEFINITIONS.iter().find(|known| **known.name() == *method).cloned();
    let definition = known.or_else(|| {
        let definition = json!({ "name": method, "inputSchema": {} });
        Definition::from_value(&definition).ok().map(Arc::new)
    })?;
    Some(Tool::of_method(server, prefix, definition))
}
