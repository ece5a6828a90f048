# Runs a script.
import atexit
import gc
import json
import math
import random
import re

CO_COROUTINE = inspect.CO_COROUTINE
FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
FUTURE_FLAGS = 0
for feature in __import__("__future__").all_feature_names:
    FUTURE_FLAGS |= getattr(__import__("__future__"), feature).compiler_flag

# All tasks that still exist, those that are done too.
KNOWN_TASKS = getattr(task_module, "_all_tasks", None)
if KNOWN_TASKS is None:
    KNOWN_TASKS = task_module._scheduled_tasks

output = io.TextIOWrapper(Buffered(1, "<stdout>"), "utf-8", "backslashreplace", "\n", line_buffering=True)
error_output = io.TextIOWrapper(
    Buffered(2, "<stderr>"), "utf-8", "backslashreplace", "\n", line_buffering=True
)


def flush_console():
    for console in (output, error_output):
        # A script may close it.
        if not console.closed:
            console.flush()


def run_script(start):
    """Runs a script and returns the last frame."""
    world.began, world.seed = start["began"], start["seed"]
    world.value_bytes, world.reports_waits = start["value_bytes"], start["reports_waits"]
    text = start["text"]
    random.seed(world.seed)
    if "rand" in text:
        seed_packages()
    linecache.cache[SCRIPT] = (len(text), None, text.splitlines(True) or [""], SCRIPT)
    try:
        parts = compiled(start)
    except SyntaxError as error:
        return {"Failed": failure_of(error, "Syntax")}
    except (ValueError, RecursionError, MemoryError) as error:
        # A null character, or a text that is nested too deeply.
        return {"Failed": failure_of(error)}
    done = guarded(parts, main_module(start, parts))
    if "Value" in done:
        wait_for_unawaited()
    end()
    return done


def wait_for_unawaited():
    """Waits for calls that the script made and forgot, so that they do not depend on chance."""
    for call in made:
        while not (call.is_awaited or call.is_settled):
            world.wait(None)


def guarded(parts, variables):
    """Runs the script, and says how it ended."""
    try:
        return {"Value": execute(parts, variables)}
    except SystemExit as error:
        if error.code is None or error.code == 0 and type(error.code) is int or error.code == "":
            return {"Value": None}
        return {"Failed": failure_of(error)}
    except MemoryError as error:
        # There has to be some to say so.
        world.widen()
        return {"Failed": failure_of(error)}
    except BaseException as error:
        return {"Failed": failure_of(error)}


def end():
    """What Python does when a script has ended."""
    if atexit._ncallbacks():
        atexit._run_exitfuncs()
    if ScriptLoop.has_run:
        for task in list(KNOWN_TASKS):
            if task.done() and getattr(task, "_log_traceback", False) and not task.cancelled():
                error = message_of(task.exception())
                say(f"Task exception was never retrieved: {error}\n")
    if made or forgotten:
        say(unawaited_text())
    flush_console()


def say(text):
    if not error_output.closed:
        error_output.write(text)


def main_module(start, parts):
    """The module of the script, and its tools."""
    main = types.ModuleType("__main__")
    variables = main.__dict__
    if start["looks_up"]:
        variables = Globals({name for part in parts for name in names_of(part)}, variables)
        main = module_of(variables)
    variables["__file__"] = SCRIPT
    variables["__builtins__"] = builtins
    variables["__annotations__"] = {}
    sys.modules["__main__"] = main
    if not start["functions"]:
        return variables
    known = {
        function["name"]: (function["parameters"], not function["first_takes_object"])
        for function in start["functions"]
    }
    tools.__dict__["_known"] = known
    for name, (parameters, takes_all) in known.items():
        variables[name] = function_of(name, parameters, None, takes_all)
    for number, place in enumerate(start["places"]):
        name = place["function"]
        if name in known:
            parameters, takes_all = known[name]
            variables[place["alias"]] = function_of(name, parameters, number, takes_all)
    return variables


def names_of(code):
    """The names that code uses as they are."""
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from names_of(part)


def compiled(start):
    """The parts of the script as code: its statements, and the expression that is its value."""
    source = start["source"]
    if start["returns"]:
        return [wrapped(source)]
    if start["value"] is None:
        return [code_of(source, "exec", FLAGS)]
    data = source.encode("utf-8", "surrogatepass")
    first, last = start["value"]
    before, expression = data[:first], data[first:last]
    parts = []
    flags = FLAGS
    if before.strip():
        parts.append(code_of((before + data[last:]).decode("utf-8", "surrogatepass"), "exec", FLAGS))
        flags |= parts[0].co_flags & FUTURE_FLAGS
    # Line breaks and blanks keep the positions, and brackets allow them.
    before = before.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines, column = before.count(b"\n"), len(before) - before.rfind(b"\n") - 1
    if lines:
        expression = b"(" + b"\n" * lines + b" " * column + expression + b"\n)"
    elif column:
        expression = b"(" + b" " * (column - 1) + expression + b"\n)"
    parts.append(code_of(expression.decode("utf-8", "surrogatepass"), "eval", flags))
    return parts


def code_of(source, mode, flags):
    return compile(source, SCRIPT, mode, flags, dont_inherit=True)


def execute(parts, variables):
    if any(part.co_flags & CO_COROUTINE for part in parts):
        return run_in_loop(run_parts(parts, variables))
    value = None
    for part in parts:
        value = eval(part, variables)
    return value


async def run_parts(parts, variables):
    value = None
    for part in parts:
        value = eval(part, variables)
        if part.co_flags & CO_COROUTINE:
            value = await value
    return value


def run_in_loop(main):
    loop = ScriptLoop()
    events.set_event_loop(loop)
    try:
        return loop.run_until_complete(main)
    finally:
        cancel(loop, task_module.all_tasks(loop))
        loop.run_until_complete(loop.shutdown_asyncgens())


def stalled():
    """The script waits for something that can no longer happen."""
    frames = []
    loop = events._get_running_loop()
    for task in task_module.all_tasks(loop) if loop is not None else ():
        for frame in task.get_stack():
            code = frame.f_code
            if code.co_filename == SCRIPT:
                name = "" if code.co_name == "<module>" else code.co_name
                frames.append({"function": name, "position": {"line": frame.f_lineno, "column": 0}})
    flush_console()
    finish({"Failed": {
        "kind": "Stalled",
        "message": "the script waits for something that can no longer happen",
        "stack": frames[:STACK_LIMIT],
        "hint": "every task waits for another one; release or set what they wait for",
    }})


def finish(done):
    """Sends the last frame, and waits to be killed, so that the host can still read the CPU time."""
    world.widen()
    world.pipe.send(last_frame(done))
    while True:
        world.pipe.receive()


def last_frame(done):
    if "Failed" in done:
        return b'{"Done":%b}' % encoded(strict.encode(done))
    value = done["Value"]
    if value is None:
        return b'{"Done":"NoValue"}'
    try:
        text = to_shown_json(value)
    except NotJson as error:
        failure = {"kind": "Exception", "message": f"the script's value has no JSON: {error}", "stack": []}
        failure["hint"] = "write `await` before the last line's call" if error.is_coroutine else None
        return last_frame({"Failed": failure})
    except BaseException as error:
        # A method of the value failed.
        return last_frame({"Failed": failure_of(error)})
    if len(text) > world.value_bytes:
        return b'{"Done":{"ValueTooLarge":{"bytes":%d}}}' % len(text)
    return b'{"Done":{"Value":%b}}' % text


def seed_packages():
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(world.seed & 0xFFFFFFFF)
