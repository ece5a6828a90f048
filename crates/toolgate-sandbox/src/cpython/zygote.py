# The process that waits for runs, and forks a worker for each.
import hashlib
import hmac
import socket
import struct
import subprocess


def patch_library():
    """Replaces what a script gets from its host, and what it cannot have."""
    patch_datetime()
    patch_json()
    hide_own_frames()
    install_loop()
    if not hasattr(hashlib, "pbkdf2_hmac"):
        hashlib.pbkdf2_hmac = pbkdf2_hmac
    uuid._generate_time_safe = uuid._UuidCreate = None
    uuid._node = 0x02_00_00_00_00_01
    real_seed = random.Random.seed

    def seed(self, a=None, version=2):
        real_seed(self, int.from_bytes(world.urandom(32), "little") if a is None else a, version)

    random.Random.seed = seed
    builtins.ToolError = ToolError
    builtins.tools = tools
    builtins.toolgate_import_all = import_all_names
    builtins.input = no_input
    builtins.exit = builtins.quit = exit_script
    builtins.help = show_help
    refuse_processes()
    # Scripts use these without an import too.
    for module in (asyncio, json, math, re):
        setattr(builtins, module.__name__, module)
    os._exit = posix._exit = exit_script
    os.environ._data.clear()
    sys.argv[:] = [SCRIPT]
    sys.stdout = sys.__stdout__ = output
    sys.stderr = sys.__stderr__ = error_output
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BytesIO(b""), "utf-8")


def pbkdf2_hmac(hash_name, password, salt, iterations, dklen=None):
    """Password based key derivation function 2, which newer versions take from OpenSSL."""
    size = hashlib.new(hash_name).digest_size
    key = b""
    for block in range(1, -(-(dklen or size) // size) + 1):
        part = hmac.digest(password, salt + block.to_bytes(4, "big"), hash_name)
        total = int.from_bytes(part, "big")
        for _ in range(iterations - 1):
            part = hmac.digest(password, part, hash_name)
            total ^= int.from_bytes(part, "big")
        key += total.to_bytes(size, "big")
    return key[: dklen or size]


def no_input(prompt="", /):
    raise EOFError("input(): nobody answers while a script runs")


# What starts a process or replaces this one, and timers that send a signal.
PROCESSES = (
    "execl", "execle", "execlp", "execlpe", "execv", "execve", "execvp", "execvpe", "fork", "forkpty", "popen",
    "posix_spawn", "posix_spawnp", "spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve", "spawnvp",
    "spawnvpe", "system",
)
TIMERS = ("alarm", "pause", "setitimer", "sigtimedwait", "sigwait", "sigwaitinfo")


def refuse_processes():
    """Replaces what the system refuses, or does not do, by errors that say what to use instead."""

    def without_processes(name):
        def refused(*arguments, **named):
            raise PermissionError(13, f"{name}: a script has no other processes: call a tool instead")

        return refused

    def without_timers(name):
        def refused(*arguments):
            raise PermissionError(
                13, f"signal.{name}(): a script gets no signals: use asyncio.timeout() or asyncio.wait_for()"
            )

        return refused

    for module, prefix in ((os, "os."), (posix, "os.")):
        for name in PROCESSES:
            if hasattr(module, name):
                setattr(module, name, without_processes(f"{prefix}{name}()"))
    for name in TIMERS:
        if hasattr(signal, name):
            setattr(signal, name, without_timers(name))
    # All functions of this module make one.
    subprocess.Popen.__init__ = without_processes("subprocess")


def show_help(*things):
    """Writes the documentation of a thing, as Python's `help` does."""
    if not things:
        raise TypeError("help() takes what it is about, as in help(str.split): nobody answers while a script runs")
    thing = things[0]
    if isinstance(thing, ToolName) or getattr(thing, "__module__", None) == "tools":
        name = thing.__name__
        known = ", ".join(f"{parameter}=…" for parameter in tools._known.get(name, ((),))[0])
        text = f"{name}({known})\n    A tool. `await get_tool_details([\"{name}\"], \"python\")` describes it.\n"
    else:
        import pydoc

        try:
            text = pydoc.plain(pydoc.render_doc(thing, "Help on %s:"))
        except ImportError:
            text = f"No Python documentation found for {thing!r}.\n"
    print(text)


def exit_script(code=None):
    raise SystemExit(code)


def patch_datetime():
    """Lets `datetime` take the time from the host. The classes stay Python's own."""

    def now(cls, tz=None):
        return cls.fromtimestamp(world.time(), tz)

    def utcnow(cls):
        return cls.fromtimestamp(world.time(), datetime.timezone.utc).replace(tzinfo=None)

    def today(cls):
        return cls.fromtimestamp(world.time())

    for kind, methods in ((datetime.datetime, (now, utcnow, today)), (datetime.date, (today,))):
        (attributes,) = [part for part in gc.get_referents(kind.__dict__) if type(part) is dict]
        for method in methods:
            method.__qualname__ = f"{kind.__name__}.{method.__name__}"
            attributes[method.__name__] = classmethod(method)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def patch_json():
    real_loads = json.loads

    def loads(s, **named):
        # The result of a tool is data already.
        if isinstance(s, (dict, list, int, float)):
            return s
        return real_loads(s, **named)

    loads.__doc__ = real_loads.__doc__
    json.loads = loads
