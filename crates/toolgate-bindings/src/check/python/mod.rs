//! Checks Python scripts.

mod advice;
mod bindings;
pub(super) mod builtins;
mod calls;
mod constants;
mod coroutines;
mod entry;
mod reader;
mod reads;
mod shape;
mod translate;
mod uses;
mod values;

use ruff_python_ast::ModModule;
use ruff_python_parser::{Mode, ParseError, ParseOptions, Parsed, parse};
use ruff_text_size::Ranged;

pub use self::shape::ModuleShape;
use self::{
    reader::{CalleeKind, ScriptReader},
    values::Values,
};
use super::{
    Language, LanguageCheck, SourcePositions,
    finding::FindingCollector,
    flow,
    lookup::{Lookup, ToolTable},
    names::{NameContext, report_hiding_variables},
    typescript, wording,
};

pub(super) fn check(
    text: &str,
    globals: &[&str],
    modules: &[&str],
    lookup: &mut dyn Lookup,
    report: &mut FindingCollector<'_>,
) -> Option<LanguageCheck> {
    let parsed = match parse_script(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let message = format!("syntax error: {}", error.error);
            let is_indentation = message.to_lowercase().contains("inden");
            let is_other =
                !is_indentation && typescript::looks_like(text) && typescript::parses(text);
            let hint = if is_other {
                let name = wording::name(Language::TypeScript);
                Some(format!("it reads as TypeScript: set `language` to \"{name}\""))
            } else {
                is_indentation.then(|| "indent all lines of a block alike".to_owned())
            };
            report.error(error.location.start().to_usize(), message, hint);
            return None;
        }
    };
    let interpreter = Interpreter::with(globals);
    if let Some(meant) = entry::meant(&parsed.syntax().body, text, interpreter)
        && let Ok(parsed) = parse_script(&meant)
    {
        let mut checked = check_parsed(&meant, &parsed, globals, modules, lookup, report);
        checked.source.get_or_insert(meant);
        return Some(checked);
    }
    Some(check_parsed(text, &parsed, globals, modules, lookup, report))
}

fn check_parsed(
    text: &str,
    parsed: &Parsed<ModModule>,
    globals: &[&str],
    modules: &[&str],
    lookup: &mut dyn Lookup,
    report: &mut FindingCollector<'_>,
) -> LanguageCheck {
    let interpreter = Interpreter::with(globals);
    report.unused = entry::unused(&parsed.syntax().body);
    let mut script = ScriptReader::read(&parsed.syntax().body, globals);
    let hidings = script.hidings();
    script.names.mentions.extend(hidings.iter().map(|hiding| hiding.name.clone()));
    advice::check_imports(&script.imports, modules, interpreter, report);
    let knowledge = NameContext {
        language: Language::Python,
        advice: advice::advice,
        modules: if interpreter == Interpreter::Whole { modules } else { &[] },
        own: script.own.iter().copied().collect(),
    };
    let tools = ToolTable::look_up(&script.names.names_to_look_up(&knowledge), lookup);
    script.names.report(&knowledge, &tools, report);
    report_hiding_variables(&hidings, &tools, report);
    let values = Values::new(&script, &tools);
    report.undecided = values.undecided();
    for call in &script.calls {
        let tool = match call.sort {
            CalleeKind::Free => tools.tool(call.name),
            // It may be another name of a tool.
            CalleeKind::Own => values.tool_of(&call.expression.func),
            CalleeKind::Asyncio => None,
        };
        if let Some(tool) = tool {
            calls::check(tool, call, &values, &tools.budget, report);
        }
    }
    reads::check(&script.uses.reads, &script.uses.expected, &values, report);
    coroutines::check(&script, &tools, report);
    let body = &parsed.syntax().body;
    let analysis = flow::analyse(translate::translate(body, interpreter), &tools, text);
    LanguageCheck {
        module: ModuleShape::of(body),
        source: flow::PlaceMark::apply(&analysis.marks, text),
        // Names of places are as long as what they stand for.
        positions: SourcePositions::default(),
        tools: tools.used(script.names.tool_names()),
        flow: analysis.flow,
        flow_steps: analysis.steps,
        places: analysis.marks.into_iter().map(|mark| mark.place).collect(),
    }
}

/// What runs a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interpreter {
    /// One of a part of the language.
    Part,
    /// Python's own. It has the object `tools`, and evaluates annotations.
    Whole,
}

impl Interpreter {
    fn with(globals: &[&str]) -> Self {
        if globals.contains(&"tools") { Self::Whole } else { Self::Part }
    }
}

/// Whether a text parses as Python.
pub(super) fn parses(text: &str) -> bool {
    parse_script(text).is_ok()
}

/// Whether a text that does not parse has lines that only Python has.
pub(super) fn looks_like(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| {
        let is_block = |word: &str| line.starts_with(word) && line.ends_with(':');
        is_block("def ")
            || is_block("async def ")
            || is_block("elif ")
            || is_block("for ") && line.contains(" in ") && !line.starts_with("for (")
            || line.starts_with("from ") && line.contains(" import ")
            || line.starts_with("print(f\"")
            || line.starts_with("print(f'")
    })
}

pub(super) fn parse_script(text: &str) -> Result<Parsed<ModModule>, ParseError> {
    let parsed = parse(text, ParseOptions::from(Mode::Module))?;
    // In this mode the parser returns a module.
    parsed.try_into_module().ok_or_else(|| ParseError {
        error: ruff_python_parser::ParseErrorType::OtherError("not a module".into()),
        location: ruff_text_size::TextRange::default(),
    })
}

fn offset(node: &impl Ranged) -> usize {
    node.start().to_usize()
}
