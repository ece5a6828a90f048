//! Checks a script without running it.
//!
//! A script is parsed once. The names that it does not declare are looked up in one query, and each
//! tool call is checked against the schema of the tool, as far as its arguments are literals.
//! Everything that depends on values at run time is left to the broker. A finding has the severity
//! [`CheckSeverity::Error`] only if the script cannot work.
//!
//! ```
//! use toolgate_bindings::check::{Language, Lookup, LookupResult, check};
//!
//! struct Nothing;
//! impl Lookup for Nothing {
//!     fn look_up(&mut self, names: &[String]) -> Vec<LookupResult> {
//!         let unknown = |name: &String| LookupResult::Unknown {
//!             name: name.clone(),
//!             nearest: vec![],
//!         };
//!         names.iter().map(unknown).collect()
//!     }
//! }
//!
//! let checked = check(Language::TypeScript, "await shop_buy({})", &[], &[], &mut Nothing);
//! assert_eq!(checked.findings[0].message, "there is no tool `shop_buy`");
//! ```

mod awaiting;
mod declared;
mod extract_types;
mod finding;
mod flow;
mod literal;
mod lookup;
mod names;
mod positions;
mod python;
mod schema;
mod source;
#[cfg(test)]
mod tests;
mod typescript;
mod wording;

use serde::{Deserialize, Serialize};

use self::{
    finding::FindingCollector,
    source::{refusal, within_fence, without_fence},
};
pub use self::{
    finding::{CheckFinding, CheckSeverity},
    flow::{CallPlace, CallSite, MAX_FLOW_STEPS, ProgramFlow, SiteFlow},
    lookup::{Lookup, LookupResult},
    positions::SourcePositions,
    python::ModuleShape,
    typescript::NOT_RETURNED,
};

/// The largest script that is parsed.
pub const MAX_SOURCE_BYTES: usize = 1024 * 1024;
/// The largest number of findings that are returned.
pub const MAX_FINDINGS: usize = 20;

/// The languages that scripts are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// TypeScript, which includes JavaScript.
    TypeScript,
    /// Python.
    Python,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The source to run, with the line numbers of the script: JavaScript, or Python. Calls of tools
    /// have the names of their places.
    pub source: String,
    /// Which positions of the script those of the source stand for.
    pub positions: SourcePositions,
    /// The script as it was written, without a code fence around it.
    pub text: String,
    /// The tools that it mentions, in the order of their names.
    pub tools: Vec<ToolUse>,
    /// Which results of calls can reach which arguments; `None` if that cannot be known.
    pub flow: Option<ProgramFlow>,
    /// The places where the source calls a tool under a name that only this place uses.
    pub places: Vec<CallPlace>,
    /// How many steps it took to follow the data, at most [`MAX_FLOW_STEPS`] and a few more.
    pub flow_steps: usize,
    /// What the statements are, in Python.
    pub module: ModuleShape,
    /// The findings in the order of the lines, at most [`MAX_FINDINGS`].
    pub findings: Vec<CheckFinding>,
    /// The number of further findings, at least.
    pub findings_left_out: usize,
}

impl Checked {
    /// Whether there is a finding that prevents the script from running.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == CheckSeverity::Error)
    }
}

/// A tool that a script mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    /// The exposed name.
    pub name: String,
    /// The names of the parameters, in the order of the schema.
    pub parameters: Vec<String>,
    /// Whether the first parameter may be an object.
    pub first_takes_object: bool,
}

/// Checks a script.
///
/// `globals` are the names that the engine provides to every script, `modules` the modules that a
/// script can import. An engine that provides `tools` in Python is Python's own interpreter. `lookup`
/// is called at most once.
///
/// Parsers are recursive. Nested brackets are counted before parsing, but a chain of a hundred
/// thousand operators can still overflow a small stack, so untrusted scripts are checked in a
/// worker process, which may crash.
pub fn check(
    language: Language,
    source: &str,
    globals: &[&str],
    modules: &[&str],
    lookup: &mut dyn Lookup,
) -> Checked {
    let mut text = without_fence(source);
    if let Some(inner) = within_fence(source)
        && refusal(&text, language).is_none()
        && !is_script(language, &text)
    {
        text = inner.into();
    }
    if refusal(&text, language).is_none()
        && let Some(expanded) = extract_types::expand(language, &text)
    {
        text = expanded.into();
    }
    let mut report = FindingCollector::new(&text);
    let outcome = match refusal(&text, language) {
        Some(refusal) => {
            report.error(refusal.offset, refusal.message, refusal.hint.to_owned());
            None
        }
        None => match language {
            Language::TypeScript => typescript::check(&text, globals, modules, lookup, &mut report),
            Language::Python => python::check(&text, globals, modules, lookup, &mut report),
        },
    };
    let LanguageCheck { source, positions, tools, flow, places, flow_steps, module } =
        outcome.unwrap_or_default();
    let (findings, findings_left_out) = report.finish(MAX_FINDINGS);
    let (source, text) = match source {
        Some(source) => (source, text.into_owned()),
        None => (text.clone().into_owned(), text.into_owned()),
    };
    Checked {
        source,
        positions,
        text,
        tools,
        flow,
        places,
        flow_steps,
        module,
        findings,
        findings_left_out,
    }
}

/// Whether a text that contains a fence is a script as a whole, because the fence is in a string or
/// a comment.
fn is_script(language: Language, text: &str) -> bool {
    match language {
        // Outside of a comment, three backticks would be template literals, which no script writes
        // like that: `Sure!` and a fenced block would parse as an expression.
        Language::TypeScript => text.contains("/*") && typescript::parses(text),
        Language::Python => python::parses(text),
    }
}

/// The result of checking a script of one language, beside the findings.
#[derive(Default)]
struct LanguageCheck {
    /// The source to run, if it differs from the script.
    source: Option<String>,
    /// What the positions of the source stand for.
    positions: SourcePositions,
    tools: Vec<ToolUse>,
    flow: Option<ProgramFlow>,
    places: Vec<CallPlace>,
    flow_steps: usize,
    module: ModuleShape,
}
