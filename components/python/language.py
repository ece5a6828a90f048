# What the host calls, and what is imported before any script is known.
import importlib
import os

import wit_world

# Modules that need what a component does not have, or that do something when they are imported.
LEFT_OUT = frozenset((
    "__phello__", "_aix_support", "_android_support", "_apple_support", "_ios_support", "_osx_support",
    "antigravity", "ctypes", "curses", "dbm", "ensurepip", "idlelib", "lib2to3", "msilib",
    "multiprocessing", "nt", "ntpath", "nturl2path", "pty", "pydoc", "pydoc_data", "readline", "ssl",
    "test", "this", "tkinter", "tty", "turtle", "turtledemo", "venv", "webbrowser", "winreg", "winsound",
    "xxlimited", "xxlimited_35", "xxsubtype",
))
# Parts of packages that the packages do not import themselves.
PARTS = (
    "collections.abc", "concurrent.futures.thread", "email.mime.text", "email.mime.multipart",
    "email.parser", "email.utils", "html.entities", "html.parser", "importlib.metadata", "json.tool",
    "logging.handlers", "os.path", "unittest.mock", "urllib.parse", "urllib.request", "xml.dom.minidom",
    "xml.etree.ElementTree", "xml.sax.saxutils",
)


def import_library():
    """Imports the standard library: at run time there is no file to import from."""
    for name in sorted(sys.stdlib_module_names):
        if name not in LEFT_OUT and not name.startswith("_"):
            try_import(name)
    for name in PARTS:
        try_import(name)


def try_import(name):
    try:
        importlib.import_module(name)
    except (Exception, SystemExit):
        # It needs what this build of Python does not have.
        sys.modules.pop(name, None)


def submit(name, place, arguments):
    """Makes a call and returns its coroutine. `arguments` is JSON."""
    call = Call(name)
    made.append(call)
    flush_console()
    world.calls[host.submit(name, arguments.decode())] = call
    coroutine = outcome_of(call)
    coroutine.__name__ = coroutine.__qualname__ = name
    return coroutine


def stalled():
    """Does nothing: the host notices a script that waits for nothing."""


def import_hint(name):
    return None


def patch_library():
    """Replaces what a script gets from its host, and what it cannot have."""
    hide_own_frames()
    install_loop()
    builtins.ToolError = ToolError
    builtins.tools = tools
    builtins.toolgate_import_all = import_all_names
    builtins.input = no_input
    builtins.exit = builtins.quit = exit_script
    real_loads = json.loads
    # The result of a tool is data already.
    json.loads = lambda s, **named: s if isinstance(s, (dict, list, int, float)) else real_loads(s, **named)
    # Scripts use these without an import too.
    for module in (asyncio, json, math, re):
        setattr(builtins, module.__name__, module)
    os._exit = exit_script
    sys.argv[:] = [SCRIPT]
    sys.stdout = sys.__stdout__ = output
    sys.stderr = sys.__stderr__ = error_output
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BytesIO(b""), "utf-8")


def no_input(prompt="", /):
    raise EOFError("input(): nobody answers while a script runs")


def exit_script(code=None):
    raise SystemExit(code)


def described(text, known):
    """The script as the other parts take it."""
    # Nothing says whether the first parameter may be an object.
    functions = [
        {"name": tool.name, "parameters": tool.parameters, "first_takes_object": bool(tool.parameters)}
        for tool in known
    ]
    start = {
        "text": text, "source": text, "functions": functions, "places": [],
        "began": 0, "seed": host.random(), "value_bytes": World.value_bytes, "reports_waits": False,
        "value": None, "returns": False, "looks_up": "globals(" in text,
    }
    try:
        tree = ast.parse(text, SCRIPT)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Compiling it says what is wrong.
        return start
    start["returns"] = any(has_return(statement) for statement in tree.body)
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        lines = text.encode("utf-8", "surrogatepass").splitlines(True)
        start["value"] = (
            sum(map(len, lines[: last.lineno - 1])) + last.col_offset,
            sum(map(len, lines[: last.end_lineno - 1])) + last.end_col_offset,
        )
    return start


def has_return(tree):
    """Whether a statement returns from the module."""
    if isinstance(tree, ast.Return):
        return True
    if isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return False
    return any(has_return(part) for part in ast.iter_child_nodes(tree))


class WitWorld(wit_world.WitWorld):
    def run(self, script, tools):
        done = run_script(described(script, tools))
        if "Value" in done and done["Value"] is not None:
            try:
                return to_shown_json(done["Value"]).decode()
            except NotJson as error:
                message = f"the script's value has no JSON: {error}"
                raise Err(wit_world.Failure(message, [])) from None
            except BaseException as error:
                done = {"Failed": failure_of(error)}
        if "Failed" not in done:
            return None
        failure = done["Failed"]
        message = failure["message"]
        if failure["hint"]:
            message += f"\n{failure['hint']}"
        frames = [
            wit_world.Frame(frame["function"], frame["position"]["line"], frame["position"]["column"])
            for frame in failure["stack"]
        ]
        raise Err(wit_world.Failure(message, frames))


import_library()
patch_library()
