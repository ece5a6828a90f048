//! The tools that exist, asked for once.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{
    Language, ToolUse,
    finding::FindingCollector,
    literal::{Literal, LiteralKind},
    schema::{SchemaChecker, ValueLocation},
};

/// Whoever knows which tools there are.
pub trait Lookup {
    /// Says of each name what it is. A name that is left out is taken to be unknown to nobody: it
    /// gives no finding.
    fn look_up(&mut self, names: &[String]) -> Vec<LookupResult>;
}

/// What a name turned out to be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum LookupResult {
    /// A tool, or another function that the host answers.
    Tool {
        /// The name that was asked for.
        name: String,
        /// The schema of its arguments.
        input_schema: Box<RawValue>,
    },
    /// Nothing.
    Unknown {
        /// The name that was asked for.
        name: String,
        /// Names of tools that are like it, best first.
        nearest: Vec<String>,
    },
}

/// Names that are longer are no tool's.
const MAX_NAME_BYTES: usize = 128;
/// More names than this are not asked for. What is not asked for gives no finding.
const MAX_NAMES: usize = 2000;

/// The answers to all of a script's names.
pub(super) struct ToolTable {
    resolved: BTreeMap<String, ResolvedName>,
    pub(super) budget: CheckBudget,
}

/// What checking arguments may still cost: schemas are somebody else's, and calls may be many.
pub(super) struct CheckBudget(Cell<u32>);

impl CheckBudget {
    /// In schemas that are looked at, and names that are compared.
    const STEPS: u32 = 1_000_000;

    fn new() -> Self {
        Self(Cell::new(Self::STEPS))
    }

    /// Takes some of it; says whether there was enough.
    pub(super) fn take(&self, steps: usize) -> bool {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        let left = self.0.get();
        self.0.set(left.saturating_sub(steps));
        left >= steps
    }
}

/// The answer to one name.
pub(super) enum ResolvedName {
    Tool(ToolSignature),
    Unknown { nearest: Vec<String> },
}

/// A tool that exists.
pub(super) struct ToolSignature {
    pub(super) name: String,
    pub(super) schema: Value,
    pub(super) parameters: Vec<String>,
}

impl ToolTable {
    pub(super) fn ask(names: &BTreeSet<String>, lookup: &mut dyn Lookup) -> Self {
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
        for answer in results {
            match answer {
                LookupResult::Tool { name, input_schema } => {
                    // What cannot be read is not held against the script.
                    let schema =
                        serde_json::from_str(input_schema.get()).unwrap_or(Value::Bool(true));
                    let parameters = crate::parameters(&schema);
                    let tool = ToolSignature { name: name.clone(), schema, parameters };
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

    /// Those of `names` that are tools.
    pub(super) fn used<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<ToolUse> {
        let names: BTreeSet<&str> = names.collect();
        let tools = names.into_iter().filter_map(|name| self.tool(name));
        tools
            .map(|tool| ToolUse { name: tool.name.clone(), parameters: tool.parameters.clone() })
            .collect()
    }
}

/// Reports what does not fit about the arguments, which are an object literal. `offset` is where
/// the tool's name is written.
pub(super) fn check_arguments(
    tool: &ToolSignature,
    arguments: &Literal,
    offset: usize,
    language: Language,
    budget: &CheckBudget,
    report: &mut FindingCollector<'_>,
) {
    if report.is_full() {
        return;
    }
    // What is missing is missing from the call, not from its bracket.
    let arguments = Literal { offset, kind: arguments.kind.clone() };
    let location = ValueLocation::root(&tool.name);
    for violation in SchemaChecker::new(&tool.schema, language, budget).check(&arguments, &location)
    {
        report.add(violation.severity, violation.offset, violation.message, violation.hint);
    }
}

/// The arguments of a call without any.
pub(super) fn no_arguments(offset: usize) -> Literal {
    Literal { offset, kind: LiteralKind::Object { entries: Vec::new(), complete: true } }
}
