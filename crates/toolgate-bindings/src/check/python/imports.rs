//! Modules, of which only some are there.

use ruff_python_ast::{Stmt, StmtImport, StmtImportFrom};

use super::{advice, offset, reader::Parent};
use crate::check::{
    finding::Report,
    words::{cut, quoted_list},
};

/// A module that a script imports.
pub(super) struct Import<'a> {
    module: &'a str,
    offset: usize,
    /// `from . import x`.
    is_relative: bool,
    /// Whether the script is prepared for it not to be there.
    is_minded: bool,
}

impl<'a> Import<'a> {
    pub(super) fn of(import: &'a StmtImport, parents: &[Parent<'a>]) -> impl Iterator<Item = Self> {
        let is_minded = within_try(parents);
        import.names.iter().map(move |alias| Self {
            module: alias.name.as_str(),
            offset: offset(alias),
            is_relative: false,
            is_minded,
        })
    }

    pub(super) fn of_from(import: &'a StmtImportFrom, parents: &[Parent<'a>]) -> Self {
        Self {
            module: import.module.as_ref().map_or("", |module| module.as_str()),
            offset: offset(import),
            is_relative: import.level > 0,
            is_minded: within_try(parents),
        }
    }
}

/// Reports imports of modules that are not there. Where none is known to be, nothing is said.
pub(super) fn check(imports: &[Import<'_>], modules: &[&str], report: &mut Report<'_>) {
    if modules.is_empty() {
        return;
    }
    for import in imports.iter().filter(|import| !import.is_minded) {
        if !import.is_relative && is_there(import.module, modules) {
            continue;
        }
        let message = if import.is_relative {
            "there are no modules beside the script".to_owned()
        } else {
            format!("there is no module `{}`", cut(import.module))
        };
        let hint = advice::module(import.module).map_or_else(|| there_are(modules), str::to_owned);
        report.error(import.offset, message, hint);
    }
}

/// The modules that scripts use most; of the others nobody needs a list.
const COMMON: &[&str] = &[
    "json",
    "re",
    "datetime",
    "math",
    "asyncio",
    "collections",
    "itertools",
    "statistics",
    "random",
    "time",
];

fn there_are(modules: &[&str]) -> String {
    let common: Vec<&str> =
        COMMON.iter().copied().filter(|module| modules.contains(module)).collect();
    let shown = if common.is_empty() { &modules[..modules.len().min(10)] } else { &common };
    let others = if modules.len() > shown.len() { ", and a few others" } else { "" };
    let list = quoted_list(shown, "and");
    format!("there are {list}{others}; tools are functions already, without an import")
}

/// Whether a module is there, itself or as a part of one that is.
fn is_there(module: &str, modules: &[&str]) -> bool {
    module == "__future__"
        || modules.contains(&module)
        || module.match_indices('.').any(|(at, _)| modules.contains(&&module[..at]))
        // `import urllib` for `urllib.parse`.
        || modules.iter().any(|known| {
            known.strip_prefix(module).is_some_and(|rest| rest.starts_with('.'))
        })
}

fn within_try(parents: &[Parent<'_>]) -> bool {
    parents.iter().any(|parent| matches!(parent, Parent::Statement(Stmt::Try(_))))
}
