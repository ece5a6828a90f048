ToolError = RuntimeError
IOError = EnvironmentError = OSError
StopAsyncIteration = StopIteration
UnicodeError = (UnicodeDecodeError, UnicodeEncodeError)
ConnectionError = BrokenPipeError = ConnectionResetError = ConnectionRefusedError = ConnectionAbortedError = KeyboardInterrupt
InterruptedError = BlockingIOError = ProcessLookupError = KeyboardInterrupt
EOFError = BufferError = SystemError = ReferenceError = FloatingPointError = KeyboardInterrupt
Warning = UserWarning = DeprecationWarning = RuntimeWarning = FutureWarning = KeyboardInterrupt


def callable(value, type=type):
    return type(value).__name__ in ("function", "builtin_function_or_method", "type", "method", "partial", "functools.partial")


def issubclass(kind, kinds, isinstance=isinstance, tuple=tuple):
    if isinstance(kinds, tuple):
        for other in kinds:
            if issubclass(kind, other):
                return True
        return False
    return _tg_subtype(kind, kinds)


def format(value, specification="", str=str):
    return f"{value:{specification}}" if specification else str(value)


def exit(code=None):
    _tg_exit(code)


quit = exit


def _tg_exit(code, isinstance=isinstance, int=int, str=str):
    raise SystemExit("" if code is None else str(code))


def _tg_make_hasattr(native, type=type):
    # Monty knows the methods of its own types only when they are called.
    methods = {
        "dict": "clear copy fromkeys get items keys pop popitem setdefault update values",
        "list": "append clear copy count extend index insert pop remove reverse sort",
        "tuple": "count index",
        "set": "add clear copy difference discard intersection isdisjoint issubset issuperset pop remove union update",
        "str": "capitalize casefold center count encode endswith find format index isalnum isalpha isdigit islower isspace istitle isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title upper zfill",
        "bytes": "count decode endswith find hex index join replace split startswith strip",
        "datetime.datetime": "date isoformat isoweekday replace strftime time timestamp weekday",
        "datetime.date": "isoformat isoweekday replace strftime weekday",
        "datetime.timedelta": "total_seconds",
    }
    shared = {"dict": "__iter__ __len__ __getitem__ __contains__", "list": "__iter__ __len__ __getitem__ __contains__", "tuple": "__iter__ __len__ __getitem__ __contains__", "set": "__iter__ __len__ __contains__", "str": "__iter__ __len__ __getitem__ __contains__"}

    def hasattr(value, name):
        if native(value, name):
            return True
        kind = type(value).__name__
        return name in methods.get(kind, "").split() or name in shared.get(kind, "").split()

    return hasattr


hasattr = _tg_make_hasattr(hasattr)
