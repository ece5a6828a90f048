# The tools, as functions of a script.
import asyncio
import warnings

from asyncio.events import get_running_loop
from json.decoder import JSONDecoder

read_blocks = JSONDecoder().decode


class ToolError(RuntimeError):
    """A tool failed, or was not called."""

    __module__ = "builtins"

    def __init__(self, tool="", message="", content=None):
        # One that a script makes itself has a single text.
        super().__init__(f"{tool}: {message}" if message else tool)
        self.tool = tool if message else ""
        self.message = message or tool
        if content is None:
            content = [{"type": "text", "text": self.message}]
        self.content = content


class Call:
    """A call that was made. Its outcome comes later."""

    __slots__ = ("name", "value", "error", "is_settled", "is_awaited", "future")

    def __init__(self, name):
        self.name = name
        self.is_settled = self.is_awaited = False
        self.future = None

    def settle(self, value, error):
        self.value = value
        self.error = error
        self.is_settled = True
        future = self.future
        if future is not None and not future.done():
            future.set_result(None)


async def outcome_of(call):
    call.is_awaited = True
    if not call.is_settled:
        call.future = get_running_loop().create_future()
        await call.future
    error = call.error
    if error is None:
        # A few words, so that no result is kept.
        last_results[call.name] = shape_of(call.value)
        return call.value
    raise ToolError(error["tool"] or call.name, error["message"], blocks_of(error.get("content")))


def blocks_of(text):
    """The content of an error. Without it there is the message."""
    try:
        return text and read_blocks(text)
    except RecursionError:
        return None


OUTCOME_CODE = outcome_of.__code__
# The calls of the run that were made and may not have been awaited.
made = []
# What the last result of each tool looks like, for hints.
last_results = {}


def submit(name, place, arguments):
    """Makes a call and returns its coroutine. `arguments` is JSON."""
    call = Call(name)
    made.append(call)
    number = world.next_call
    world.next_call = number + 1
    if len(arguments) > world.value_bytes:
        message = (
            f"not sent: it has {bytes_text(len(arguments))}, {bytes_text(world.value_bytes)} are allowed; "
            "send less, or raise codeMode.maxResultBytes"
        )
        world.refused.append((call, {"tool": name, "message": message}))
    else:
        world.calls[number] = call
        flush_console()
        world.pipe.send(
            b'{"Call":{"id":%d,"name":%b,"arguments":%b%b}}' % (number, quoted(name), arguments, place)
        )
        # A call begins when it is made, and runs while the script computes.
        world.pipe.flush()
    coroutine = outcome_of(call)
    coroutine.__name__ = coroutine.__qualname__ = name
    return coroutine


def quoted(text):
    return encoded(strict.encode(text))


def bytes_text(size):
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} bytes"


def function_of(name, parameters, place=None, takes_all=False):
    """The function of a tool. `parameters` is `None` if they are not known.

    If it takes all, a single dict by position has all arguments. It does not if the first parameter may
    be a dict itself.
    """
    suffix = b"" if place is None else b',"place":%d' % place

    def tool(*positional, **named):
        if takes_all and len(positional) == 1 and not named and isinstance(positional[0], dict):
            arguments = positional[0]
        elif positional:
            arguments = bound(name, parameters, positional, named)
        else:
            arguments = named
        try:
            text = to_json(arguments)
        except NotJson as error:
            raise TypeError(without_json(name, arguments, error)) from None
        return submit(name, suffix, text)

    tool.__name__ = tool.__qualname__ = name
    tool.__module__ = "tools"
    return marked(tool)


inspect = __import__("inspect")
if hasattr(inspect, "markcoroutinefunction"):
    marked = inspect.markcoroutinefunction
    # The name of the mark depends on the version.
    coroutine_marks = dict(vars(marked(lambda: None)))
else:
    coroutine_mark = asyncio.coroutines._is_coroutine
    coroutine_marks = {}
    is_coroutine_function = inspect.iscoroutinefunction

    def marked(function):
        function._is_coroutine = coroutine_mark
        return function

    def iscoroutinefunction(obj):
        return is_coroutine_function(obj) or getattr(obj, "_is_coroutine", None) is coroutine_mark

    iscoroutinefunction.__doc__ = is_coroutine_function.__doc__
    inspect.iscoroutinefunction = iscoroutinefunction
if hasattr(asyncio.coroutines, "_is_coroutine"):
    coroutine_marks["_is_coroutine"] = asyncio.coroutines._is_coroutine


def bound(name, parameters, positional, named):
    """Binds arguments by position as Python does, with Python's messages."""
    given = len(positional)
    if given > len(parameters or ()):
        if parameters is None:
            raise TypeError(f"{name}() takes its arguments by name, or in one dict")
        were = "was" if given == 1 else "were"
        if len(parameters) < 2:
            arguments = "argument" if len(parameters) == 1 else "arguments"
            most = f"{len(parameters)} positional {arguments}"
        else:
            most = f"from 0 to {len(parameters)} positional arguments"
        raise TypeError(f"{name}() takes {most} but {given} {were} given")
    arguments = dict(zip(parameters, positional))
    for key in named:
        if key in arguments:
            raise TypeError(f"{name}() got multiple values for argument '{key}'")
    return arguments | named


def without_json(name, arguments, error):
    """The message about arguments that have no JSON form: it names the one that has none."""
    for key, value in arguments.items():
        try:
            to_json(value)
        except NotJson as found:
            return f"{name}() argument '{key}': {found}"
    return f"{name}(): {error}"


class ToolName:
    """`tools.server.tool`, or a tool whose name the script does not mention."""

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, part):
        if part.startswith("__"):
            raise AttributeError(part)
        return tools[f"{self.__name__}_{part}"]

    def __getitem__(self, part):
        return tools[f"{self.__name__}_{part}"]

    def __call__(self, *positional, **named):
        return function_of(self.__name__, None, takes_all=True)(*positional, **named)

    def __repr__(self):
        return f"<tool {self.__name__}>"


for coroutine_mark_name in coroutine_marks:
    setattr(ToolName, coroutine_mark_name, coroutine_marks[coroutine_mark_name])


class Tools:
    """All tools by their names. `known` has the parameters of those that the script mentions."""

    def __init__(self):
        self._known = {}

    def __getitem__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"the name of a tool is a text, not {type(name).__name__}")
        if name in self._known:
            return function_of(name, self._known[name][0], takes_all=True)
        return ToolName(name)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __iter__(self):
        return iter(self._known)

    def __len__(self):
        return len(self._known)

    def __contains__(self, name):
        return name in self._known

    def keys(self):
        return self._known.keys()

    def __dir__(self):
        return list(self._known)


tools = Tools()


class Globals(dict):
    """The variables of a script that looks for tools by computed names: `globals()[name]`."""

    def __init__(self, names, own):
        super().__init__(own)
        self._names = names

    def __missing__(self, name):
        # A name in the text of the script was looked up before the run.
        if name in self._names or not isinstance(name, str) or "_" not in name or name.startswith("_"):
            raise KeyError(name)
        return tools[name]

    def get(self, name, default=None):
        try:
            return self[name]
        except KeyError:
            return default


def module_of(variables):
    """A module with these variables. That of Python has a plain dictionary."""

    class Module(types.ModuleType):
        __dict__ = property(lambda self: variables)

        def __getattribute__(self, name):
            if name in ("__class__", "__dict__"):
                return super().__getattribute__(name)
            try:
                return dict.__getitem__(variables, name)
            except KeyError:
                raise AttributeError(f"module '__main__' has no attribute {name!r}") from None

        def __setattr__(self, name, value):
            variables[name] = value

        def __delattr__(self, name):
            if variables.pop(name, made) is made:
                raise AttributeError(name)

        def __dir__(self):
            return list(variables)

    return Module("__main__")


# How many coroutines of the script's own functions were never awaited, by the names of the functions.
forgotten = {}


def warn_unawaited(coroutine):
    # A call is made even if it is not awaited. The end of the run says so, once for all of them.
    if coroutine.cr_code is OUTCOME_CODE:
        return
    if warnings.filters != plain_filters or getattr(warnings, "_showwarnmsg_impl", None) is not plain_show:
        # The script decides itself what happens.
        real_warn_unawaited(coroutine)
    else:
        name = coroutine.__qualname__[:LONGEST_NAME]
        forgotten[name] = forgotten.get(name, 0) + 1


real_warn_unawaited = warnings._warn_unawaited_coroutine
warnings._warn_unawaited_coroutine = warn_unawaited
plain_filters, plain_show = list(warnings.filters), getattr(warnings, "_showwarnmsg_impl", None)


def unawaited_text():
    text = ""
    names = [call.name for call in made if not call.is_awaited]
    if names:
        shown = ", ".join(sorted(set(names))[:5])
        text = f"RuntimeWarning: {len(names)} call(s) were made and never awaited: {shown}\n"
    if forgotten:
        shown = ", ".join(sorted(forgotten)[:5])
        count = sum(forgotten.values())
        text += f"RuntimeWarning: {count} coroutine(s) were never awaited and did not run: {shown}\n"
    return text
