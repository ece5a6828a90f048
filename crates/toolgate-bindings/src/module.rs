//! The functions of a module and the types that they use.

use serde_json::Value;

use crate::{
    Output, ToolApi,
    limits::{MAX_TOOL_DESCRIPTION, ReadBudget},
    model::{Arena, Node, NodeId, Object},
    reader::{Direction, SchemaReader},
    text::{clean, pascal_case},
};

/// The functions that are declared together.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) arena: Arena,
    pub(crate) functions: Vec<ToolFunction>,
}

/// The function of a tool.
#[derive(Debug)]
pub(crate) struct ToolFunction {
    pub(crate) name: String,
    /// The cleaned description, with a note if something was left out.
    pub(crate) description: String,
    pub(crate) input: NodeId,
    /// The parameters, derived from `input`.
    pub(crate) parameters: Object,
    pub(crate) output: NodeId,
    pub(crate) origin: ResultSource,
}

/// The source of a result type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultSource {
    Declared,
    Inferred,
}

impl Module {
    pub(crate) fn read(tools: &[ToolApi<'_>]) -> Self {
        let mut arena = Arena::new();
        let functions = tools
            .iter()
            .enumerate()
            .map(|(index, tool)| function(&mut arena, index, tool))
            .collect();
        Self { arena, functions }
    }
}

/// See [`crate::parameters`].
pub(crate) fn parameters(input_schema: &Value) -> Vec<String> {
    let (mut arena, mut budget) = (Arena::new(), ReadBudget::new());
    let input = SchemaReader::new(&mut arena, &mut budget, input_schema, Direction::Input, 0)
        .read("Arguments");
    let object = arena.outline(input, &mut ReadBudget::new()).unwrap_or_default();
    object.properties.into_iter().map(|property| property.name).collect()
}

/// The type of the property `result` of an object.
fn wrapped_result(arena: &mut Arena, node: NodeId) -> Option<NodeId> {
    let object = arena.outline(node, &mut ReadBudget::new())?;
    object
        .properties
        .iter()
        .find(|property| property.name == "result")
        .map(|wrapped_result| wrapped_result.node)
}

fn function(arena: &mut Arena, index: usize, tool: &ToolApi<'_>) -> ToolFunction {
    let mut budget = ReadBudget::new();
    let name = pascal_case(tool.name);
    let input = SchemaReader::new(arena, &mut budget, tool.input_schema, Direction::Input, index)
        .read(&format!("{name}Arguments"));
    let hint = format!("{name}Result");
    let (output, origin) = match tool.output {
        Output::Declared(schema) => {
            let reader = SchemaReader::new(arena, &mut budget, schema, Direction::Output, index);
            let node = reader.read(&hint);
            let inside = if wraps_result(schema) { wrapped_result(arena, node) } else { None };
            (inside.unwrap_or(node), ResultSource::Declared)
        }
        Output::Learned(shape) => match shape.declare(arena, &hint, index) {
            // No result has been observed.
            Arena::NEVER => (Arena::UNKNOWN, ResultSource::Inferred),
            node => (node, ResultSource::Inferred),
        },
        Output::Unknown => (Arena::UNKNOWN, ResultSource::Declared),
    };
    // The cost of the outline is limited by what was read.
    let parameters = arena.outline(input, &mut ReadBudget::new()).unwrap_or_else(|| Object {
        properties: Vec::new(),
        rest: (!matches!(arena.node(input), Node::Never)).then_some(Arena::UNKNOWN),
    });
    let mut description = clean(tool.description.unwrap_or_default(), MAX_TOOL_DESCRIPTION);
    if description.is_empty() {
        arena.description(input).clone_into(&mut description);
    }
    if budget.exceeded() | arena.take_overflow() {
        if !description.is_empty() {
            description.push('\n');
        }
        description.push_str("(Too large to show whole: some of the types are left out.)");
    }
    ToolFunction { name: tool.name.to_owned(), description, input, parameters, output, origin }
}

/// Whether an output schema only wraps the result of the tool.
///
/// Up to protocol version 2025-11-25 structured content must be an object, so SDKs wrap a list or a
/// text: `{"result": […]}`. Scripts get the inner value, and declarations show its type.
pub fn wraps_result(output_schema: &Value) -> bool {
    let properties = output_schema.get("properties").and_then(Value::as_object);
    let required = output_schema.get("required").and_then(Value::as_array);
    properties.is_some_and(|properties| properties.len() == 1 && properties.contains_key("result"))
        && required.is_some_and(|names| names.iter().any(|name| name == "result"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Output, ToolApi, python, typescript};

    #[test]
    fn one_required_property_of_that_name() {
        let list = json!({"type": "array", "items": {"type": "string"}});
        assert!(wraps_result(&json!({"properties": {"result": list}, "required": ["result"]})));
        assert!(!wraps_result(&json!({"properties": {"result": list}})));
        let more = json!({"properties": {"result": list, "total": {}}, "required": ["result"]});
        assert!(!wraps_result(&more));
        assert!(!wraps_result(&json!({"properties": {"items": list}, "required": ["items"]})));
        assert!(!wraps_result(&json!(true)));
    }

    #[test]
    fn a_declaration_shows_its_members() {
        let output = json!({
            "type": "object", "required": ["result"],
            "properties": {"result": {"type": "array", "items": {"type": "string"}}},
        });
        let input = json!({"type": "object"});
        let tool = ToolApi {
            name: "names",
            description: None,
            input_schema: &input,
            output: Output::Declared(&output),
        };
        assert!(typescript(&[tool]).contains("Promise<string[]>"), "{}", typescript(&[tool]));
        assert!(python(&[tool]).contains("-> list[str]"), "{}", python(&[tool]));
    }
}
