//! Looks up the tools that a script mentions, in one query.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{
    Language, ToolUse, declared,
    finding::FindingCollector,
    literal::{Literal, LiteralKind, NOWHERE},
    schema::SchemaChecker,
};
use crate::first_takes_object;

/// Knows which tools exist.
pub trait Lookup {
    /// Looks up names. A name without a result gives no finding.
    fn look_up(&mut self, names: &[String]) -> Vec<LookupResult>;
}

/// The result of looking up one name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum LookupResult {
    /// A tool, or another function that the host provides.
    Tool {
        /// The name that was looked up.
        name: String,
        /// The schema of the arguments.
        input_schema: Box<RawValue>,
        /// The schema of the result, if the server declares it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_schema: Option<Box<RawValue>>,
    },
    /// There is no such tool.
    Unknown {
        /// The name that was looked up.
        name: String,
        /// Names of similar tools, best first.
        nearest: Vec<String>,
    },
}

/// The longest name of a tool, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 128;
/// The largest number of names in a query. Further names give no finding.
const MAX_NAMES: usize = 2000;

/// The lookup results of all names of a script.
pub(super) struct ToolTable {
    resolved: BTreeMap<String, ResolvedName>,
    pub(super) budget: CheckBudget,
}

/// The remaining cost of checking arguments. It is limited because servers choose the schemas and a
/// script may have many calls.
pub(super) struct CheckBudget(Cell<u32>);

impl CheckBudget {
    /// The number of schemas to check and names to compare.
    const STEPS: u32 = 1_000_000;

    fn new() -> Self {
        Self(Cell::new(Self::STEPS))
    }

    /// Uses some of the budget. Returns whether there was enough.
    pub(super) fn take(&self, steps: usize) -> bool {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        let left = self.0.get();
        self.0.set(left.saturating_sub(steps));
        left >= steps
    }
}

/// The lookup result of one name.
pub(super) enum ResolvedName {
    Tool(ToolSignature),
    Unknown { nearest: Vec<String> },
}

/// A tool with its schema and parameters.
pub(super) struct ToolSignature {
    pub(super) name: String,
    pub(super) schema: Value,
    pub(super) parameters: Vec<String>,
    /// What a call returns, as far as that is declared.
    pub(super) result: Literal,
}

impl ToolSignature {
    /// Whether the first parameter may be an object, so that a single object by position is not the
    /// object of all arguments.
    pub(super) fn first_takes_object(&self) -> bool {
        first_takes_object(&self.schema, &self.parameters)
    }
}

impl ToolTable {
    pub(super) fn look_up(names: &BTreeSet<String>, lookup: &mut dyn Lookup) -> Self {
        let queried: Vec<String> = names
            .iter()
            .filter(|name| name.len() <= MAX_NAME_BYTES)
            .take(MAX_NAMES)
            .cloned()
            .collect();
        let results = if queried.is_empty() { Vec::new() } else { lookup.look_up(&queried) };
        let mut resolved: BTreeMap<String, ResolvedName> = names
            .iter()
            .filter(|name| name.len() > MAX_NAME_BYTES)
            .map(|name| (name.clone(), ResolvedName::Unknown { nearest: Vec::new() }))
            .collect();
        for result in results {
            match result {
                LookupResult::Tool { name, input_schema, output_schema } => {
                    // An unreadable schema gives no finding.
                    let schema =
                        serde_json::from_str(input_schema.get()).unwrap_or(Value::Bool(true));
                    let parameters = crate::parameters(&schema);
                    let result = declared::result(&name, output_schema.as_deref());
                    let tool = ToolSignature { name: name.clone(), schema, parameters, result };
                    resolved.insert(name, ResolvedName::Tool(tool));
                }
                LookupResult::Unknown { name, nearest } => {
                    resolved.insert(name, ResolvedName::Unknown { nearest });
                }
            }
        }
        Self { resolved, budget: CheckBudget::new() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&ResolvedName> {
        self.resolved.get(name)
    }

    pub(super) fn tool(&self, name: &str) -> Option<&ToolSignature> {
        match self.get(name) {
            Some(ResolvedName::Tool(tool)) => Some(tool),
            _ => None,
        }
    }

    /// The tools among `names`.
    pub(super) fn used<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<ToolUse> {
        let names: BTreeSet<&str> = names.collect();
        let tools = names.into_iter().filter_map(|name| self.tool(name));
        tools
            .map(|tool| ToolUse {
                name: tool.name.clone(),
                parameters: tool.parameters.clone(),
                first_takes_object: tool.first_takes_object(),
            })
            .collect()
    }
}

/// Whether a function takes its arguments by position in TypeScript too. Tools take one object.
pub(super) fn takes_positions(name: &str) -> bool {
    matches!(name, "extract" | "read_resource" | "read_output")
}

/// Checks the arguments, which are an object literal, and reports violations. `named` are those that
/// the call itself names, and `offset` is the position of the tool's name.
pub(super) fn check_arguments(
    tool: &ToolSignature,
    arguments: &Literal,
    named: &[String],
    offset: usize,
    language: Language,
    budget: &CheckBudget,
    report: &mut FindingCollector<'_>,
) {
    if report.is_full() {
        return;
    }
    // A missing parameter is reported at the call, not at the bracket.
    let arguments = Literal::new(offset, arguments.kind.clone());
    let checker = SchemaChecker::new(&tool.schema, language, budget).refusing(named);
    for violation in checker.check(&tool.name, &arguments) {
        let at = if violation.offset == NOWHERE { offset } else { violation.offset };
        report.add(violation.severity, at, violation.message, violation.hint);
    }
}

/// The arguments of a call that passes none.
pub(super) fn no_arguments(offset: usize) -> Literal {
    Literal::new(offset, LiteralKind::object(Vec::new(), true))
}
