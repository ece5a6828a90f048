//! What is wrong with a script, found without running it.
//!
//! A script is parsed once, the names that it does not declare are asked for in one go, and each
//! call of a tool is held against that tool's schema as far as it is written in literals. Whatever
//! depends on a value that only a run would know is left to the broker: a finding of severity
//! [`CheckSeverity::Error`] is for what cannot work.
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
//!         names.iter().map(unknown).collect()|name: &String| Found::Unknown { name: name.clone(), nearest: vec![] };
//!         names.iter().map(unknown).collect()
//!     }
//! }
//!
//! let checked = check(Language::TypeScript, "await shop_buy({})", &[], &[], &mut Nothing);
//! assert_eq!(checked.findings[0].message, "there is no tool `shop_buy`");
//! ```

mod finding;
mod literal;
mod lookup;
mod names;
mod python;
mod schema;
mod source;
#[cfg(test)]
mod tests;
mod typescript;
mod wording;

use serde::{Deserialize, Serialize};

use self::{finding::FindingCollector, source::ScriptText};
pub use self::{
    finding::{CheckFinding, CheckSeverity},
    lookup::{Lookup, LookupResult},
};

/// The largest script that is read at all.
pub const MAX_SOURCE_BYTES: usize = 1024 * 1024;
/// How many findings are given; whoever has more sees the rest once these are mended.
pub const MAX_FINDINGS: usize = 20;

/// The languages that scripts are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// TypeScript, and JavaScript with it.
    TypeScript,
    /// Python.
    Python,
}

/// A script that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// What is to run: JavaScript whose lines are those of the script, or the Python as it was.
    pub source: String,
    /// The tools that it mentions, in the order of their names.
    pub tools: Vec<ToolUse>,
    /// What is wrong with it, in the order of the lines, at most [`MAX_FINDINGS`].
    pub findings: Vec<CheckFinding>,
    /// How many findings there are beyond these, at least.
    pub findings_left_out: usize,
}

impl Checked {
    /// Whether something was found that cannot work.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == CheckSeverity::Error)
    }
}

/// A tool that a script mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    /// Its exposed name.
    pub name: String,
    /// The names of its parameters, in the order of the schema.
    pub parameters: Vec<String>,
}

/// Reads a script and says what is wrong with it.
///
/// `globals` are the names that the engine gives to every script, `modules` those that a Python
/// script can import. `lookup` is asked at most once.
///
/// Parsers recurse. Brackets are counted before they are let near a script, but a chain of a
/// hundred thousand operators can still take a small stack to its end: scripts of strangers are
/// read in a process that may die.
pub fn check(
    language: Language,
    source: &str,
    globals: &[&str],
    modules: &[&str],
    lookup: &mut dyn Lookup,
) -> Checked {
    let script = ScriptText::new(source);
    let script = match ScriptText::within_fence(source) {
        Some(inner) if script.refusal(language).is_none() && !is_script(language, &script.text) => {
            inner
        }
        _ => script,
    };
    let mut report = FindingCollector::new(&script.text);
    let outcome = match script.refusal(language) {
        Some(refusal) => {
            report.error(refusal.offset, refusal.message, refusal.hint);
            None
        }
        None => match language {
            Language::TypeScript => typescript::check(&script.text, globals, lookup, &mut report),
            Language::Python => python::check(&script.text, globals, modules, lookup, &mut report),
        },
    };
    let (source, tools) =
        outcome.map_or((None, Vec::new()), |outcome| (outcome.source, outcome.tools));
    let (findings, findings_left_out) = report.finish(MAX_FINDINGS);
    let source = source.unwrap_or_else(|| script.text.into_owned());
    Checked { source, tools, findings, findings_left_out }
}

/// Whether a text with a fence in it is a script as it is: the fence is in one of its texts or
/// comments.
fn is_script(language: Language, text: &str) -> bool {
    match language {
        // Outside of a comment, three backticks are templates that no script has: `Sure!` and a
        // fenced block would pass for an expression.
        Language::TypeScript => text.contains("/*") && typescript::parses(text),
        Language::Python => python::parses(text),
    }
}

/// What a language's part comes to, beside the findings.
struct LanguageCheck {
    /// What is to run, where that is not the script itself.
    source: Option<String>,
    tools: Vec<ToolUse>,
}
