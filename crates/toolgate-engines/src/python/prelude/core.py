def _tg_text(*arguments, len=len, str=str, isinstance=isinstance):
    if not arguments:
        return ""
    if len(arguments) > 1 or not isinstance(arguments[0], str):
        _tg_refuse("an exception takes one text here: write str(value), or an f-string")
    return arguments[0]


def _tg_or(left, right, isinstance=isinstance, dict=dict, type=type, tuple=tuple):
    if isinstance(left, dict) and isinstance(right, dict) and type(left).__name__ != "Counter":
        made = left.copy()
        made.update(right)
        return made
    if type(left).__name__ in ("type", "tuple") or type(right).__name__ in ("type", "tuple"):
        # Types: `isinstance` takes a tuple of them.
        left, right = [kind if isinstance(kind, tuple) else (type(None) if kind is None else kind,) for kind in (left, right)]
        return left + right
    return left | right


def _tg_ior(left, right, isinstance=isinstance, dict=dict, set=set, type=type):
    if isinstance(left, (dict, set)) and type(left).__name__ not in ("Counter", "frozenset"):
        left.update(right)
        return left
    return left | right


def _tg_iadd(own, value, isinstance=isinstance, list=list):
    if isinstance(own, list):
        own.extend(value)
    else:
        own += value
    return own


def _tg_del(collection, key, isinstance=isinstance, tuple=tuple, str=str, type=type):
    if isinstance(collection, (tuple, str)):
        raise TypeError(f"'{type(collection).__name__}' object doesn't support item deletion")
    if type(collection).__name__ == "Counter":
        collection.pop(key, None)
    else:
        collection.pop(key)


_tg_wrapped = {}


def _tg_name(value, str=str, hasattr=hasattr, id=id):
    if id(value) in _tg_wrapped:
        return _tg_name(_tg_wrapped[id(value)][1])
    if hasattr(value, "__name__"):
        return value.__name__
    if str(value) == "<bound method>":
        _tg_refuse("the name of a method of an object: write the name itself")
    shown = str(value).strip("<>").split("'")
    return shown[1].rpartition(".")[2] if len(shown) > 1 else shown[0].rpartition(" ")[2]


def _tg_bytes(value, bytes=bytes, isinstance=isinstance, int=int, str=str):
    if isinstance(value, (bytes, str)):
        return bytes(value)
    if isinstance(value, int):
        return bytes.fromhex("00" * value)
    return bytes.fromhex("".join([f"{byte:02x}" for byte in value]))


def _tg_print(*values, sep=" ", end="\n", file=None, flush=False, str=str):
    text = (" " if sep is None else sep).join([str(value) for value in values])
    text += "\n" if end is None else end
    if file is None:
        _tg_host_write(False, text)
    else:
        file.write(text)


def _tg_maketrans(first, second=None, third="", ord=ord, isinstance=isinstance, str=str, zip=zip):
    if second is None:
        return {ord(key) if isinstance(key, str) else key: value for key, value in first.items()}
    table = {ord(key): ord(value) for key, value in zip(first, second)}
    for key in third:
        table[ord(key)] = None
    return table


def _tg_make_types(native_isinstance, kinds, type=type, str=str):
    exceptions = {str(kind): kind for kind in kinds}
    others = {("bool", "int"), ("datetime.datetime", "datetime.date"), ("collections.Counter", "dict"), ("collections.defaultdict", "dict")}

    def type_of(value):
        # Monty's type of an exception does not equal the name of the exception.
        kind = type(value)
        return exceptions.get(str(kind), kind)

    def subtype(kind, other):
        if str(kind) == str(other) or str(other) == "<class 'object'>":
            return True
        if str(kind) in exceptions:
            return str(other) in exceptions and native_isinstance(exceptions[str(kind)](""), exceptions[str(other)])
        return (str(kind)[8:-2], str(other)[8:-2]) in others

    return type_of, subtype


_tg_type, _tg_subtype = _tg_make_types(isinstance, [
    ArithmeticError, AssertionError, AttributeError, BaseException, Exception, FileExistsError, FileNotFoundError, ImportError, IndexError,
    IsADirectoryError, KeyError, KeyboardInterrupt, LookupError, MemoryError, ModuleNotFoundError, NameError, NotADirectoryError,
    NotImplementedError, OSError, OverflowError, PermissionError, RecursionError, RuntimeError, StopIteration, SyntaxError, SystemExit,
    TimeoutError, TypeError, UnboundLocalError, UnicodeDecodeError, UnicodeEncodeError, ValueError, ZeroDivisionError,
])


def _tg_seen(kind, error):
    return kind, error
