# The process that waits for runs, and forks a worker for each.
import hashlib
import hmac
import socket
import struct


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
