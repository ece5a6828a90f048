//! Names that scripts expect of other places, and what there is instead.

use crate::check::names::Advice;

/// What to say about a name that is not there.
pub(super) fn advice(name: &str) -> Option<Advice> {
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
        "asyncio" => (false, "`asyncio` is not imported", "write `import asyncio`"),
        "json" => (false, "`json` is not imported", "write `import json`"),
        "re" => (false, "`re` is not imported", "write `import re`"),
        "math" => (false, "`math` is not imported", "write `import math`"),
        "datetime" => (false, "`datetime` is not imported", "write `import datetime`"),
        "mcp" | "client" | "server" => {
            (false, "there is no client to call tools with", AS_FUNCTIONS)
        }
        "call_tool" => (false, "tools are not called by a function", AS_FUNCTIONS),
        _ => return None,
    };
    Some(Advice { message, hint, is_stub })
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
        "pandas" | "numpy" | "scipy" | "polars" | "matplotlib" | "sklearn" | "bs4" | "yaml"
        | "dateutil" | "pydantic" => "there are no libraries; write it with lists and dicts",
        "tools" | "mcp" | "toolgate" | "servers" => {
            "tools are functions already: call them without an import"
        }
        _ => return None,
    };
    Some(hint)
}

const CALL_A_TOOL: &str = "call a tool; `await search_tools(query)` finds one";
const AS_FUNCTIONS: &str = "call tools as functions: `await name(…)`";
