//! Advice about names that scripts know from other environments.

use ruff_python_ast::{Stmt, StmtImport, StmtImportFrom};

use super::{Interpreter, advice, offset, reader::Parent};
use crate::check::{
    finding::FindingCollector,
    names::{Advice, NameRole},
    wording::{cut, quoted_list},
};

/// The advice about a name that does not exist.
pub(super) fn advice(name: &str, role: &NameRole) -> Option<Advice> {
    if let Some((message, hint)) = unimported(name, role) {
        return Some(Advice { message, hint, is_stub: false, is_import: true });
    }
    let (is_stub, message, hint) = match name {
        "open" => (true, "a script has no files", CALL_A_TOOL),
        "input" => (true, "nobody is there to answer", "write the value into the script"),
        "requests" | "httpx" | "aiohttp" | "urllib" => {
            (false, "a script has no network", CALL_A_TOOL)
        }
        "os" | "subprocess" | "shutil" | "pathlib" | "Path" => {
            (false, "a script has no files and no processes", CALL_A_TOOL)
        }
        "console" => (false, "there is no `console`", "write `print(…)`"),
        "null" => (false, "there is no `null`", "write `None`"),
        "true" => (false, "there is no `true`", "write `True`"),
        "false" => (false, "there is no `false`", "write `False`"),
        "undefined" => (false, "there is no `undefined`", "write `None`"),
        "tools" => (false, "there is no `tools`", BY_NAME),
        "mcp" | "client" | "server" => {
            (false, "there is no client to call tools with", AS_FUNCTIONS)
        }
        _ => return None,
    };
    Some(Advice { message, hint, is_stub, is_import: false })
}

/// The advice about a name that exists after an import.
fn unimported(name: &str, role: &NameRole) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "asyncio" => ("`asyncio` is not imported", "write `import asyncio`"),
        "json" => ("`json` is not imported", "write `import json`"),
        "re" => ("`re` is not imported", "write `import re`"),
        "math" => ("`math` is not imported", "write `import math`"),
        "datetime" if is_class(role) => {
            ("`datetime` is not imported", "write `from datetime import datetime`")
        }
        "datetime" => ("`datetime` is not imported", "write `import datetime`"),
        "timedelta" => ("`timedelta` is not imported", "write `from datetime import timedelta`"),
        "timezone" => ("`timezone` is not imported", "write `from datetime import timezone`"),
        "Counter" => ("`Counter` is not imported", "write `from collections import Counter`"),
        "defaultdict" => {
            ("`defaultdict` is not imported", "write `from collections import defaultdict`")
        }
        _ => return None,
    })
}

/// What to write instead of importing a module.
pub(super) fn module(name: &str) -> Option<&'static str> {
    let hint = match name.split('.').next().unwrap_or_default() {
        "requests" | "httpx" | "aiohttp" | "urllib" | "urllib3" | "http" | "socket" | "ssl"
        | "ftplib" | "smtplib" | "websockets" => {
            "the sandbox has no network; call a tool: `await search_tools(query)` finds one"
        }
        "os" | "sys" | "subprocess" | "shutil" | "pathlib" | "glob" | "tempfile" | "io"
        | "sqlite3" | "pickle" | "multiprocessing" | "threading" | "signal" | "ctypes" => {
            "the sandbox has no files and no processes; call a tool: `await search_tools(query)` \
             finds one"
        }
        "decimal" => "count money in integers of cents; `round(x, 2)` rounds",
        "zoneinfo" | "pytz" => {
            "there are fixed offsets only: `from datetime import timezone, timedelta`, then \
             `timezone(timedelta(hours=2))`"
        }
        "inspect" => "tools say what they take: `await get_tool_details(names)`",
        "pandas" | "numpy" | "scipy" | "polars" | "matplotlib" | "sklearn" | "bs4" | "yaml"
        | "dateutil" | "pydantic" => PACKAGE,
        "tools" | "mcp" | "toolgate" | "servers" => {
            "tools are functions already: call them without an import"
        }
        _ => return None,
    };
    Some(hint)
}

const PACKAGE: &str = "there are no libraries; write it with plain lists and dicts";

/// What to do about a package that a script can have, if a person allows it.
fn installable(name: &str) -> String {
    let name = cut(name.split('.').next().unwrap_or(name));
    format!(
        "use the standard library; `codeMode.pythonPackages` in the configuration allows `{name}` if \
         it is installed"
    )
}

/// Whether `datetime` is used as the class and not as the module.
fn is_class(role: &NameRole) -> bool {
    match role {
        NameRole::Called => true,
        NameRole::MethodCalled(method) => matches!(
            method.as_str(),
            "now" | "utcnow" | "today" | "fromisoformat" | "fromtimestamp" | "strptime" | "combine"
        ),
        NameRole::Read => false,
    }
}

const BY_NAME: &str = "tools are functions: `await name(…)`; `await call_tool(name, arguments)` \
                       calls one by its name";
const CALL_A_TOOL: &str = "call a tool; `await search_tools(query)` finds one";
const AS_FUNCTIONS: &str = "call tools as functions: `await name(…)`";

/// A module that a script imports.
pub(super) struct Import<'a> {
    module: &'a str,
    offset: usize,
    /// `from . import x`.
    is_relative: bool,
    /// Whether the script handles a failing import.
    is_intentional: bool,
}

impl<'a> Import<'a> {
    pub(super) fn of(import: &'a StmtImport, parents: &[Parent<'a>]) -> impl Iterator<Item = Self> {
        let is_intentional = within_try(parents);
        import.names.iter().map(move |alias| Self {
            module: alias.name.as_str(),
            offset: offset(alias),
            is_relative: false,
            is_intentional,
        })
    }

    pub(super) fn of_from(import: &'a StmtImportFrom, parents: &[Parent<'a>]) -> Self {
        Self {
            module: import.module.as_ref().map_or("", |module| module.as_str()),
            offset: offset(import),
            is_relative: import.level > 0,
            is_intentional: within_try(parents),
        }
    }
}

/// Reports imports of modules that do not exist. Nothing is reported if no modules are known.
pub(super) fn check_imports(
    imports: &[Import<'_>],
    modules: &[&str],
    interpreter: Interpreter,
    report: &mut FindingCollector<'_>,
) {
    if modules.is_empty() {
        return;
    }
    for import in imports.iter().filter(|import| !import.is_intentional) {
        let is_internal = interpreter == Interpreter::Whole && import.module.starts_with('_');
        if !import.is_relative && (is_there(import.module, modules) || is_internal) {
            continue;
        }
        let message = if import.is_relative {
            "there are no modules beside the script".to_owned()
        } else {
            format!("there is no module `{}`", cut(import.module))
        };
        let hint = match advice::module(import.module) {
            Some(PACKAGE) | None if interpreter == Interpreter::Whole => installable(import.module),
            Some(hint) => hint.to_owned(),
            None => there_are(modules),
        };
        report.error(import.offset, message, hint);
    }
}

/// The most used modules, for the hint.
#[rustfmt::skip]
const COMMON: &[&str] = &[
    "json", "re", "datetime", "math", "asyncio", "collections", "itertools", "statistics",
    "random", "time",
];

fn there_are(modules: &[&str]) -> String {
    let common: Vec<&str> =
        COMMON.iter().copied().filter(|module| modules.contains(module)).collect();
    let shown = if common.is_empty() { &modules[..modules.len().min(10)] } else { &common };
    let others = if modules.len() > shown.len() { ", and a few others" } else { "" };
    let list = quoted_list(shown, "and");
    format!("there are {list}{others}; tools are functions already, without an import")
}

/// Whether a module exists, by itself or as a part of an existing one.
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
