//! The functions of a module and the types between them.

use serde_json::Value;

use crate::{
    Output, ToolApi,
    limits::{Budget, MAX_TOOL_DESCRIPTION},
    model::{Arena, Node, NodeId, Object},
    reader::{Direction, Reader},
    text::{clean, pascal_case},
    wrapped::wraps_result,
};

/// Everything that is declared together.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) arena: Arena,
    pub(crate) functions: Vec<Function>,
}

/// One tool.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Cleaned; ends with a remark where something was left out.
    pub(crate) description: String,
    pub(crate) input: NodeId,
    /// The parameters that `input` amounts to.
    pub(crate) parameters: Object,
    pub(crate) output: NodeId,
    pub(crate) origin: Origin,
}

/// How the type of a result is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
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
    let (mut arena, mut budget) = (Arena::new(), Budget::new());
    let input =
        Reader::new(&mut arena, &mut budget, input_schema, Direction::Input, 0).read("Arguments");
    let object = arena.outline(input, &mut Budget::new()).unwrap_or_default();
    object.properties.into_iter().map(|property| property.name).collect()
}

/// What is in the `result` of an object.
fn held(arena: &mut Arena, node: NodeId) -> Option<NodeId> {
    let object = arena.outline(node, &mut Budget::new())?;
    object.properties.iter().find(|property| property.name == "result").map(|held| held.node)
}

fn function(arena: &mut Arena, index: usize, tool: &ToolApi<'_>) -> Function {
    let mut budget = Budget::new();
    let name = pascal_case(tool.name);
    let input = Reader::new(arena, &mut budget, tool.input_schema, Direction::Input, index)
        .read(&format!("{name}Arguments"));
    let hint = format!("{name}Result");
    let (output, origin) = match tool.output {
        Output::Declared(schema) => {
            let reader = Reader::new(arena, &mut budget, schema, Direction::Output, index);
            let node = reader.read(&hint);
            let inside = if wraps_result(schema) { held(arena, node) } else { None };
            (inside.unwrap_or(node), Origin::Declared)
        }
        Output::Learned(shape) => match shape.declare(arena, &hint, index) {
            // Nothing was seen yet.
            Arena::NEVER => (Arena::UNKNOWN, Origin::Inferred),
            node => (node, Origin::Inferred),
        },
        Output::Unknown => (Arena::UNKNOWN, Origin::Declared),
    };
    // What the outline costs is bounded by what was read.
    let parameters = arena.outline(input, &mut Budget::new()).unwrap_or_else(|| Object {
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
    Function { name: tool.name.to_owned(), description, input, parameters, output, origin }
}
