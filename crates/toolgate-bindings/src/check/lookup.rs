//! The tools that exist, asked for once.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{
    Language, ToolUse,
    finding::Report,
    literal::{Kind, Literal},
    schema::{Checker, Place},
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
pub(super) struct Tools {
    answers: BTreeMap<String, Answer>,
    pub(super) budget: Budget,
}

/// What checking arguments may still cost: schemas are somebody else's, and calls may be many.
pub(super) struct Budget(Cell<u32>);

impl Budget {
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
pub(super) enum Answer {
    Tool(Tool),
    Unknown { nearest: Vec<String> },
}

/// A tool that exists.
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) schema: Value,
    pub(super) parameters: Vec<String>,
}

impl Tools {
    pub(super) fn ask(names: &BTreeSet<String>, lookup: &mut dyn Lookup) -> Self {
        let asked: Vec<String> = names
            .iter()
            .filter(|name| name.len() <= MAX_NAME_BYTES)
            .take(MAX_NAMES)
            .cloned()
            .collect();
        let found = if asked.is_empty() { Vec::new() } else { lookup.look_up(&asked) };
        let mut answers: BTreeMap<String, Answer> = names
            .iter()
            .filter(|name| name.len() > MAX_NAME_BYTES)
            .map(|name| (name.clone(), Answer::Unknown { nearest: Vec::new() }))
            .collect();
        for answer in found {
            match answer {
                LookupResult::Tool { name, input_schema } => {
                    // What cannot be read is not held against the script.
                    let schema =
                        serde_json::from_str(input_schema.get()).unwrap_or(Value::Bool(true));
                    let parameters = crate::parameters(&schema);
                    let tool = Tool { name: name.clone(), schema, parameters };
                    answers.insert(name, Answer::Tool(tool));
                }
                LookupResult::Unknown { name, nearest } => {
                    answers.insert(name, Answer::Unknown { nearest });
                }
            }
        }
        Self { answers, budget: Budget::new() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Answer> {
        self.answers.get(name)
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        match self.get(name) {
            Some(Answer::Tool(tool)) => Some(tool),
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
    tool: &Tool,
    arguments: &Literal,
    offset: usize,
    language: Language,
    budget: &Budget,
    report: &mut Report<'_>,
) {
    if report.is_full() {
        return;
    }
    // What is missing is missing from the call, not from its bracket.
    let arguments = Literal { offset, kind: arguments.kind.clone() };
    let place = Place::root(&tool.name);
    for violation in Checker::new(&tool.schema, language, budget).check(&arguments, &place) {
        report.add(violation.severity, violation.offset, violation.message, violation.hint);
    }
}

/// The arguments of a call without any.
pub(super) fn no_arguments(offset: usize) -> Literal {
    Literal { offset, kind: Kind::Object { entries: Vec::new(), complete: true } }
}
