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


def _tg_make_hasattr(native, native_getattr, type=type, int=int, set=set, isinstance=isinstance, tuple=tuple, str=str):
    # Monty knows the methods of its own types only when they are called.
    number = "real imag conjugate as_integer_ratio __int__ __float__ __add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __pow__ __bool__ __abs__ __neg__ __round__"
    container = "__iter__ __len__ __contains__"
    mapping = "clear copy fromkeys get items keys pop popitem setdefault update values __getitem__ __setitem__ __delitem__ __or__ __reversed__ " + container
    common_set = "copy difference intersection isdisjoint issubset issuperset symmetric_difference union __and__ __or__ __sub__ __xor__ " + container
    tables = {
        "NoneType": "__bool__", "coroutine": "send throw close __await__",
        "bool": "numerator denominator bit_length to_bytes from_bytes __index__ " + number,
        "int": "numerator denominator bit_length to_bytes from_bytes __index__ " + number,
        "float": "is_integer hex fromhex " + number,
        "dict": mapping, "defaultdict": "default_factory __missing__ " + mapping,
        "Counter": "elements most_common subtract total __add__ __sub__ __missing__ " + mapping,
        "list": "append clear copy count extend index insert pop remove reverse sort __getitem__ __setitem__ __delitem__ __add__ __iadd__ __mul__ __reversed__ " + container,
        "deque": "append appendleft clear copy count extend extendleft index insert maxlen pop popleft remove reverse rotate __getitem__ __setitem__ __delitem__ __add__ __iadd__ __reversed__ " + container,
        "tuple": "count index __getitem__ __add__ __mul__ " + container,
        "range": "count index start stop step __getitem__ __reversed__ " + container,
        "set": "add clear difference_update discard intersection_update pop remove symmetric_difference_update update " + common_set,
        "frozenset": common_set,
        "dict_keys": "isdisjoint mapping __and__ __or__ __sub__ __reversed__ " + container, "dict_items": "isdisjoint mapping __and__ __or__ __sub__ __reversed__ " + container,
        "dict_values": "mapping __iter__ __len__ __reversed__",
        "str": "capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title translate upper zfill __getitem__ __add__ __mul__ __mod__ " + container,
        "bytes": "count decode endswith find fromhex hex index join lower replace rfind split startswith strip upper __getitem__ __add__ __mul__ " + container,
        "datetime": "astimezone combine ctime date dst fold fromisoformat fromordinal fromtimestamp isocalendar isoformat isoweekday now replace strftime strptime time timestamp timetuple timetz today toordinal tzname utcoffset weekday __add__ __sub__",
        "date": "ctime fromisoformat fromordinal fromtimestamp isocalendar isoformat isoweekday replace strftime timetuple today toordinal weekday __add__ __sub__",
        "timedelta": "total_seconds __add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __abs__ __neg__ __bool__",
    }
    tables = {kind: set(names.split()) for kind, names in tables.items()}
    iterator = set("__iter__ __next__".split())
    # What every object has, and what of the rest is known.
    common = set("__class__ __doc__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __str__ __repr__ __init__ __new__ __format__ __dir__ __setattr__ __getattribute__ __delattr__ __sizeof__ __reduce__".split())
    known = set("__iter__ __next__ __len__ __getitem__ __setitem__ __delitem__ __contains__ __call__ __enter__ __exit__ __await__ __aiter__ __anext__ __aenter__ __aexit__ __dict__ __name__ __module__ __int__ __float__ __index__ __bool__ __add__ __sub__ __mul__ __mod__ __reversed__ __missing__ __fspath__ __bytes__ __array__ __slots__ __dataclass_fields__ __members__ __wrapped__ __cause__ __annotations__ __qualname__".split())

    def of_kind(value):
        # The names of a built-in value. Objects of the script have a class.
        if native(value, "__class__"):
            return None
        if isinstance(value, tuple):
            return tables["tuple"]
        kind = type(value).__name__.rpartition(".")[2]
        if kind == "type":
            kind = str(value)[8:-2].rpartition(".")[2]
        return iterator if kind.endswith("iterator") else tables.get(kind)

    def hasattr(value, name):
        if native(value, name) or name in common:
            return True
        names = of_kind(value)
        if names is None:
            if name == "__call__":
                return callable(value)
            if name == "__dict__" and native(value, "__class__"):
                _tg_refuse("__dict__ of an object: name its attributes")
            return False
        if name in names:
            return True
        if name[:2] == "__" and name not in known:
            _tg_refuse(f"looking for {name} in a built-in value: use isinstance()")
        return False

    def getattr(value, name, *default):
        if not native(value, name) and hasattr(value, name):
            if name in ("real", "numerator"):
                return int(value) if type(value).__name__ == "bool" else value
            if name in ("imag", "denominator"):
                return 1 if name == "denominator" else value * 0
            _tg_refuse(f"getattr() of {name}, which is no value here: write it with a dot, and call it")
        return native_getattr(value, name, *default)

    return hasattr, getattr


hasattr, getattr = _tg_make_hasattr(hasattr, getattr)
