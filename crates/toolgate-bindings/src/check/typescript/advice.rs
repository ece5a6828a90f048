//! Names that scripts expect of other places, and what there is instead.

use crate::check::names::Advice;

/// What to say about a name that is known from Node, Deno or a browser.
pub(super) fn advice(name: &str) -> Option<Advice> {
    let (is_stub, message, hint) = match name {
        "fetch" | "XMLHttpRequest" | "WebSocket" | "EventSource" => (true, NETWORK, CALL_A_TOOL),
        "axios" | "got" | "ky" | "superagent" | "request" => (false, NETWORK, CALL_A_TOOL),
        "require" => (true, "a script has no modules", NO_REQUIRE),
        "Deno" | "Bun" | "process" => (true, SYSTEM, PROCESS),
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
        "print" => (false, "there is no `print`", "write `console.log(…)`"),
        "mcp" | "client" | "server" => (
            false,
            "there is no client to call tools with",
            "call tools as functions: `name({ … })`",
        ),
        "call_tool" | "callTool" => {
            (false, "tools are not called by a function", "call tools as functions: `name({ … })`")
        }
        "_" | "lodash" | "moment" | "dayjs" => {
            (false, "a script has no libraries", "write what it would do yourself")
        }
        _ => return None,
    };
    Some(Advice { message, hint, is_stub })
}

const NETWORK: &str = "a script has no network";
const SYSTEM: &str = "a script has no files, no processes and no environment";
const CALL_A_TOOL: &str = "call a tool; `await search_tools({ query })` finds one";
const PROCESS: &str = "call a tool; end with `return` and the value";
const NO_REQUIRE: &str = "all tools are functions already: call them without `require`";
