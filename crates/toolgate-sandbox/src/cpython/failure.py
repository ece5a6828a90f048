# What went wrong in a script: the message, the frames of the script, and a hint.
import ast
import builtins
import linecache
import traceback

STACK_LIMIT = 32
PARTS = 5


# The longest texts, in characters.
LONGEST_TEXT = 8_000
LONGEST_NAME = 200


def failure_of(error, kind=None):
    """The failure of a script, as `ScriptFailure` describes it."""
    try:
        failure = described_failure(error, kind)
    except MemoryError:
        raise
    except BaseException:
        # An exception of the script that hides what it is.
        failure = {"kind": kind or "Exception", "message": type(error).__name__, "stack": [], "hint": None}
    failure["message"] = failure["message"][:LONGEST_TEXT]
    failure["hint"] = failure["hint"] and failure["hint"][:LONGEST_TEXT]
    return failure


def described_failure(error, kind):
    stack = []
    if kind == "Syntax":
        line, column = error.lineno or 1, error.offset or 1
        stack = [{"function": "", "position": {"line": line, "column": column}}]
        message = f"{type(error).__name__}: {error.msg}"
        hint = None
    else:
        frames = script_frames(BaseException.__traceback__.__get__(error))
        for code, line, column, _ in frames[: -STACK_LIMIT - 1 : -1]:
            function = "" if code.co_name == "<module>" else code.co_name[:LONGEST_NAME]
            stack.append({"function": function, "position": {"line": line, "column": column}})
        message = message_of(error)
        try:
            hint = hint_of(error, frames)
        except Exception:
            # The values of a script may not even show themselves.
            hint = None
    if kind is None:
        if isinstance(error, MemoryError):
            kind = "Memory"
        elif isinstance(error, ImportError):
            kind = "Unsupported"
        else:
            kind = "Exception"
    return {"kind": kind, "message": message, "stack": stack, "hint": hint}


def script_frames(trace):
    """The frames of the script, outermost first: code, line, column, frame and range of the text."""
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == SCRIPT:
            place = next(itertools.islice(code.co_positions(), trace.tb_lasti // 2, None), None)
            line, column = trace.tb_lineno, 0
            if place is not None and place[2] is not None:
                line = place[0]
                column = characters(line, place[2]) + 1
            frames.append((code, line, column, (trace.tb_frame, place)))
        trace = trace.tb_next
    return frames


def characters(line, column):
    """The number of characters before a position, which Python counts in bytes."""
    text = linecache.getline(SCRIPT, line)
    return len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))


def message_of(error):
    try:
        if sys.version_info < (3, 12) and isinstance(error, (NameError, AttributeError)):
            text = displayed(error)
        else:
            text = "".join(traceback.format_exception_only(error)).rstrip("\n")
    except Exception:
        text = type(error).__name__
    if isinstance(error, BaseExceptionGroup):
        lines = text.splitlines()
        text = lines[0].removeprefix("  | ").strip(" |") if lines else type(error).__name__
        text += group_text(error, "\n  ", 3)
    return text


def displayed(error):
    """The last line that Python itself shows. Older versions suggest names only there."""
    kept, sys.stderr = sys.stderr, io.StringIO()
    try:
        sys.__excepthook__(type(error), error, error.__traceback__)
        return sys.stderr.getvalue().rstrip("\n").rpartition("\n")[2]
    finally:
        sys.stderr = kept


def group_text(group, start, depth):
    text = ""
    for error in group.exceptions[:PARTS]:
        frames = script_frames(error.__traceback__)
        place = f" (line {frames[-1][1]})" if frames else ""
        inner = ""
        if isinstance(error, BaseExceptionGroup) and depth:
            inner = group_text(error, start + "  ", depth - 1)
        first = "".join(traceback.format_exception_only(error)).strip().splitlines()
        shown = first[0].strip(" |") if first else type(error).__name__
        text += f"{start}{shown}{place}{inner}"
    if len(group.exceptions) > PARTS:
        text += f"{start}and {len(group.exceptions) - PARTS} more"
    return text


NO_FILES = "a script has no files and no processes: keep data in variables, and call a tool for the rest"
NO_NETWORK = "a script has no network: call a tool"
NO_THREADS = "use asyncio.gather() to make calls in parallel"
NETWORK_NAMES = ("socket", "urlopen", "create_connection", "getaddrinfo", "gethostbyname")
NO_NULL = (
    "leave out an argument that has no value: collect the others in a dictionary, and call the tool with "
    "**arguments"
)
NETWORK_MODULES = frozenset((
    "requests", "httpx", "aiohttp", "urllib3", "ssl", "websockets", "paramiko", "boto3",
))
SYSTEM_MODULES = frozenset(("multiprocessing", "curses", "tkinter", "pty", "tty", "ctypes", "dbm", "readline"))


def hint_of(error, frames):
    text = str(error)
    if isinstance(error, BaseExceptionGroup):
        first = error.exceptions[0]
        return hint_of(first, script_frames(first.__traceback__))
    if isinstance(error, ToolError):
        if "The arguments do not fit" in text and ": null is not " in text:
            return NO_NULL
        return None
    if isinstance(error, ImportError):
        if error.name in store.problems:
            return "`toolgate engines` shows which packages can be used"
        return import_hint((error.name or "").partition(".")[0])
    if isinstance(error, OSError):
        if "a script has no other processes" in text or "a script gets no signals" in text:
            return None
        names = {name for frame in frames for name in frame[0].co_names}
        if "network" in text or "urlopen" in text or not names.isdisjoint(NETWORK_NAMES):
            return NO_NETWORK
        return NO_FILES if isinstance(error, PermissionError) else None
    if isinstance(error, MemoryError):
        return "work on the data in parts"
    if isinstance(error, RecursionError):
        return "use a loop, or a list of what is still to be done"
    if isinstance(error, EOFError) and "input" in text:
        return "write the value into the script"
    if "thread" in text and isinstance(error, RuntimeError) and "this lock" not in text:
        return NO_THREADS
    if "'coroutine' object" in text or "coroutine was expected" in text:
        return "the call was not awaited: write `await` before it" if "'coroutine'" in text else None
    if isinstance(error, (KeyError, AttributeError, TypeError, IndexError)):
        return shape_hint(error, frames)
    return None


def import_hint(name):
    if name in NETWORK_MODULES:
        return NO_NETWORK
    if name in SYSTEM_MODULES:
        return NO_FILES
    if not name or name in sys.stdlib_module_names:
        return None
    return (
        f"codeMode.pythonPackages of the configuration can allow `{name}` if it is installed; else use "
        "the standard library"
    )


def shape_hint(error, frames):
    """Says what a value is whose part the script asked for in vain."""
    if not frames:
        return None
    frame, place = frames[-1][3]
    if place is None or place[2] is None or place[0] != place[1]:
        return None
    line = linecache.getline(SCRIPT, place[0]).encode("utf-8", "surrogatepass")
    text = line[place[2] : place[3]].decode("utf-8", "replace")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    if "'builtin_function_or_method'" in str(error):
        hint = method_hint(tree, frame)
        if hint is not None:
            return hint
    # `r["content"][0]["text"]` fails at one of its parts: the innermost that does.
    if isinstance(tree, ast.Call):
        tree = tree.func
    if not isinstance(tree, (ast.Subscript, ast.Attribute)):
        return None
    wanted = tree.attr if isinstance(tree, ast.Attribute) else key_text(tree.slice)
    envelope = ""
    if wanted in ("content", "structuredContent", "text", "data", "result", "isError"):
        envelope = "results of tools are data already: "
    if isinstance(tree.value, ast.Await) and isinstance(tree.value.value, ast.Call):
        name = tool_name(tree.value.value.func, frame)
        shape = last_results.get(name)
        return shape and f"{envelope}the last result of `{name}` is {shape}"
    value, shown = value_of(tree.value, frame)
    if value is UNKNOWN or not isinstance(value, (dict, list, str, int, float, types.NoneType)):
        return None
    if type(value) not in (dict, list, str, int, float, bool, types.NoneType):
        return None
    return f"{envelope}`{shown}` is {shape_of(value)}"


def method_hint(tree, frame):
    """Says that `r.items` is not `r["items"]`."""
    for part in ast.walk(tree):
        if isinstance(part, ast.Attribute):
            value, shown = value_of(part.value, frame)
            if type(value) is dict:
                instead = f'write `{shown}["{part.attr}"]`' if part.attr in value else shape_of(value)
                return f"`{shown}.{part.attr}` is a method of the dict `{shown}`: {instead}"
    return None


def tool_name(tree, frame):
    """The name of a tool that is called: `name`, `tools.server.tool` or `tools["name"]`."""
    parts = []
    while isinstance(tree, (ast.Attribute, ast.Subscript)):
        parts.append(tree.attr if isinstance(tree, ast.Attribute) else key_text(tree.slice))
        tree = tree.value
    if not isinstance(tree, ast.Name) or not all(isinstance(part, str) for part in parts):
        return None
    if not parts:
        # Each place of a call has a name of its own.
        return getattr(frame.f_globals.get(tree.id), "__name__", None)
    return "_".join(reversed(parts)) if tree.id == "tools" else None


UNKNOWN = object()


def value_of(tree, frame):
    """The value of a name and of its parts, without running any code of the script."""
    shown = ast.unparse(tree)
    path = []
    while isinstance(tree, ast.Subscript):
        if not isinstance(tree.slice, ast.Constant):
            return UNKNOWN, shown
        path.append(tree.slice.value)
        tree = tree.value
    if not isinstance(tree, ast.Name):
        return UNKNOWN, shown
    value = frame.f_locals.get(tree.id, frame.f_globals.get(tree.id, UNKNOWN))
    for part in reversed(path):
        if type(value) not in (dict, list, str):
            return UNKNOWN, shown
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return UNKNOWN, shown
    return value, shown


def key_text(key):
    return key.value if isinstance(key, ast.Constant) else None


def shape_of(value, depth=2):
    """A few words about data."""
    if type(value) is dict:
        if not value:
            return "an empty dict"
        keys = ", ".join(repr(key)[:40] for key in itertools.islice(value, 12))
        more = f" and {len(value) - 12} more" if len(value) > 12 else ""
        return f"a dict with the keys {keys}{more}"
    if type(value) is list:
        if not value:
            return "an empty list"
        inner = f", the first is {shape_of(value[0], depth - 1)}" if depth else ""
        return f"a list of {len(value)}{inner}"
    if type(value) is str:
        shown = repr(value) if len(value) <= 60 else repr(value[:60]) + "…"
        return f"a text: {shown}"
    if value is None:
        return "None"
    return f"the {'truth value' if value is True or value is False else 'number'} {value!r}"


def hide_own_frames():
    """Leaves the frames of this program out of tracebacks that a script prints."""
    walk = traceback.walk_tb

    def walk_tb(tb):
        for frame, line in walk(tb):
            if frame.f_code.co_filename != OWN:
                yield frame, line

    traceback.walk_tb = walk_tb
    if hasattr(traceback, "_walk_tb_with_full_positions"):
        walk_full = traceback._walk_tb_with_full_positions

        def walk_full_tb(tb):
            for frame, place in walk_full(tb):
                if frame.f_code.co_filename != OWN:
                    yield frame, place

        traceback._walk_tb_with_full_positions = walk_full_tb
