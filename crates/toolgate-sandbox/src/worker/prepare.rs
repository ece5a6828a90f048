//! A script is looked through before it runs.

use toolgate_bindings::check::{CheckFinding, Language, Lookup, LookupResult, check};
use toolgate_engines::{
    Function,
    javascript::GLOBALS,
    python::{BUILTINS, MODULES},
};

use super::pipe::{HostLost, Pipe};
use crate::frame::{FromWorker, RunStart, ToWorker};

/// A script that may run.
pub(super) struct Prepared {
    pub(super) source: String,
    pub(super) functions: Vec<Function>,
}

/// Checks a script and strips its types. The inner `Err` is what is wrong with it.
pub(super) fn prepare(
    pipe: &mut Pipe,
    start: &RunStart,
) -> Result<Result<Prepared, Vec<CheckFinding>>, HostLost> {
    let (globals, modules): (&[&str], &[&str]) = match start.language {
        Language::TypeScript => (GLOBALS, &[]),
        Language::Python => (BUILTINS, MODULES),
    };
    let mut lookup = PipeLookup { pipe: &mut *pipe, lost: None };
    let checked = check(start.language, &start.code, globals, modules, &mut lookup);
    if let Some(lost) = lookup.lost {
        return Err(lost);
    }
    if checked.has_errors() {
        return Ok(Err(checked.findings));
    }
    if !checked.findings.is_empty() {
        pipe.send(&FromWorker::Warned(checked.findings));
    }
    let function = |tool: toolgate_bindings::check::ToolUse| Function {
        name: tool.name,
        parameters: tool.parameters,
    };
    let functions = checked.tools.into_iter().map(function).collect();
    Ok(Ok(Prepared { source: checked.source, functions }))
}

/// Asks the host which names are tools.
struct PipeLookup<'a> {
    pipe: &'a mut Pipe,
    lost: Option<HostLost>,
}

impl PipeLookup<'_> {
    fn ask(&mut self, names: &[String]) -> Result<Vec<LookupResult>, HostLost> {
        self.pipe.send(&FromWorker::Describe(names.to_vec()));
        match self.pipe.receive()? {
            ToWorker::Described(found) => Ok(found),
            _ => Err(HostLost),
        }
    }
}

impl Lookup for PipeLookup<'_> {
    fn look_up(&mut self, names: &[String]) -> Vec<LookupResult> {
        self.ask(names).unwrap_or_else(|lost| {
            self.lost = Some(lost);
            Vec::new()
        })
    }
}
