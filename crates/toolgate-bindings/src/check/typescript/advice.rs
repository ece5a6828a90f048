//! Names that scripts expect of other places, and what there is instead.

use crate::check::names::{Advice, Role};

/// What to say about a name that is known from Node, Deno or a browser.
pub(super) fn advice(name: &str, _: &Role) -> Option<Advice> {
    let (is_stub, message, hint) = match name {
        "fetch" | "XMLHttpRequest" | "WebSocket" | "EventSource" => (true, NETWORK, CALL_A_TOOL),
        "axios" | "got" | "ky" | "superagent" | "request" => (false, NETWORK, CALL_A_TOOL),
        "require" => (true, "a script has no modules", NO_REQUIRE),
        // Where an engine has some of it, nothing is said here.
        "process" => (false, SYSTEM, PROCESS),
        "Deno" | "Bun" => (true, SYSTEM, PROCESS),
        "fs" | "child_process" | "os" => (false, SYSTEM, CALL_A_TOOL),
        "path" => (false, "a script has no modules", "write the path as text"),
        "Buffer" => {
            (false, "there is no `Buffer`", "use `TextEncoder`, `TextDecoder`, `btoa` and `atob`")
        }
        "window" | "document" | "localStorage" | "sessionStorage" | "alert" | "prompt"
        | "navigator" => {
            (false, "a script runs in no browser", "`return` the result, or `console.log` it")
        }
        "module" | "exports" | "__dirname" | "__filename" => {
            (false, "a script is no module", "end with `return` and the value")
        }
        "print" => (
            false,
            "there is no `print`",
            "write `console.log(…)`; if it is Python, set `language` to \"python\"",
        ),
        "mcp" | "client" | "server" => (
            false,
            "there is no client to call tools with",
            "call tools as functions: `name({ … })`",
        ),
        "callTool" => (
            false,
            "there is no `callTool`",
            "call tools as functions: `name({ … })`; `await call_tool({ name, arguments })` calls \
             one by its name",
        ),
        "_" | "lodash" | "moment" | "dayjs" => {
            (false, "a script has no libraries", "write what it would do yourself")
        }
        _ => return None,
    };
    Some(Advice { message, hint, is_stub, is_import: false })
}

const NETWORK: &str = "a script has no network";
const SYSTEM: &str = "a script has no files, no processes and no environment";
const CALL_A_TOOL: &str = "call a tool; `await search_tools({ query })` finds one";
const PROCESS: &str = "call a tool; end with `return` and the value";
const NO_REQUIRE: &str = "all tools are functions already: call them without `require`";
