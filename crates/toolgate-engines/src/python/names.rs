//! The names that a script can use without defining them.

/// The modules that are imported automatically where a script uses them. They are included in
/// [`BUILTINS`].
pub(super) const IMPLICIT_MODULES: &[&str] = &["asyncio", "json", "math", "re"];

/// The names that exist without an import.
#[rustfmt::skip]
pub const BUILTINS: &[&str] = &[
    "ArithmeticError", "AssertionError", "AttributeError", "BaseException", "BlockingIOError",
    "BrokenPipeError", "BufferError", "ConnectionAbortedError", "ConnectionError",
    "ConnectionRefusedError", "ConnectionResetError", "DeprecationWarning", "EOFError", "Ellipsis",
    "EnvironmentError", "Exception", "False", "FileExistsError", "FileNotFoundError",
    "FloatingPointError", "FutureWarning", "IOError", "ImportError", "IndexError",
    "InterruptedError", "IsADirectoryError", "KeyError", "KeyboardInterrupt", "LookupError",
    "MemoryError", "ModuleNotFoundError", "NameError", "None", "NotADirectoryError",
    "NotImplemented", "NotImplementedError", "OSError", "OverflowError", "PermissionError",
    "ProcessLookupError", "RecursionError", "ReferenceError", "RuntimeError", "RuntimeWarning",
    "StopAsyncIteration", "StopIteration", "SyntaxError", "SystemError", "SystemExit",
    "TimeoutError", "ToolError", "True", "TypeError", "UnboundLocalError", "UnicodeDecodeError",
    "UnicodeEncodeError", "UnicodeError", "UserWarning", "ValueError", "Warning",
    "ZeroDivisionError", "__name__", "abs", "all", "any", "asyncio", "bin", "bool",
    "bytes", "callable", "chr", "classmethod", "dict", "divmod", "enumerate", "exit", "filter",
    "float", "format", "frozenset", "getattr", "hasattr", "hash", "hex", "id", "int", "isinstance",
    "issubclass", "iter", "json", "len", "list", "map", "math", "max", "min", "next", "object",
    "oct", "ord", "pow", "print", "property", "quit", "range", "re", "repr", "reversed", "round",
    "set", "setattr", "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple", "type",
    "zip",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::{modules, tests::run};

    #[test]
    fn every_name_is_there() {
        // These are syntax here and have no value of their own.
        let syntax = ["classmethod", "staticmethod", "super"];
        let names: Vec<&str> =
            BUILTINS.iter().copied().filter(|name| !syntax.contains(name)).collect();
        // A module is imported where a part of it is used.
        let names: Vec<&str> =
            names.into_iter().filter(|name| !IMPLICIT_MODULES.contains(name)).collect();
        let run = run(&format!("x = [{}]\nlen(x)", names.join(", ")));
        assert_eq!(run.outcome, Ok(Some(names.len().into())));
    }

    #[test]
    fn every_module_is_there() {
        for module in modules() {
            let script = match module {
                "__future__" => "from __future__ import annotations".to_owned(),
                module => format!("import {module}\nimport {module} as m\n"),
            };
            let run = run(&script);
            assert_eq!(run.outcome, Ok(None), "{script}");
        }
    }
}
