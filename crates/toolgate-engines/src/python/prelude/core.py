class _tg_module:
    def __init__(self, name, attributes):
        self.__name__ = name
        for key in attributes:
            setattr(self, key, attributes[key])


def _tg_from(module, name, getattr=getattr, hasattr=hasattr):
    if not hasattr(module, name):
        raise ImportError(f"cannot import name '{name}' from '{module.__name__}'")
    return getattr(module, name)


def _tg_text(*arguments, len=len, str=str, isinstance=isinstance):
    if len(arguments) == 1:
        return str(arguments[0])
    return str(arguments) if arguments else ""


def _tg_or(left, right, isinstance=isinstance, dict=dict):
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **right}
    return left | right


def _tg_ior(left, right, isinstance=isinstance, dict=dict, set=set):
    if isinstance(left, (dict, set)):
        left.update(right)
        return left
    return left | right


def _tg_del(collection, key, hasattr=hasattr):
    if hasattr(collection, "__delitem__"):
        collection.__delitem__(key)
    else:
        collection.pop(key)


def _tg_splice(values, start, stop, replacement, len=len, list=list):
    start = 0 if start is None else (start + len(values) if start < 0 else start)
    stop = len(values) if stop is None else (stop + len(values) if stop < 0 else stop)
    changed = values[:start] + list(replacement) + values[stop if stop > start else start:]
    values.clear()
    values.extend(changed)


def _tg_name(value, str=str, hasattr=hasattr):
    if hasattr(value, "__name__"):
        return value.__name__
    shown = str(value).split("'")
    return shown[1] if len(shown) > 1 else str(value)


def _tg_bytes(value, bytes=bytes, isinstance=isinstance, int=int, str=str):
    if isinstance(value, (bytes, str)):
        return bytes(value)
    if isinstance(value, int):
        return bytes.fromhex("00" * value)
    return bytes.fromhex("".join([f"{byte:02x}" for byte in value]))


_tg_missing = _tg_module("missing", {})


def _tg_record(value, name, fields, getattr=getattr):
    return name + "(" + ", ".join([f"{field}={getattr(value, field)!r}" for field in fields]) + ")"


def _tg_same(left, right, fields, getattr=getattr, type=type):
    if type(left) is not type(right):
        return False
    for field in fields:
        if getattr(left, field) != getattr(right, field):
            return False
    return True


def _tg_map(function, *collections, iter=iter, zip=zip, len=len):
    if len(collections) == 1:
        return iter([function(item) for item in collections[0]])
    return iter([function(*items) for items in zip(*collections)])


def _tg_print(*values, sep=" ", end="\n", file=None, flush=False, str=str):
    text = (" " if sep is None else sep).join([str(value) for value in values])
    text += "\n" if end is None else end
    if file is None:
        _tg_host_write(False, text)
    else:
        file.write(text)


async def _tg_aiter(source, type=type, hasattr=hasattr):
    if type(source).__name__ == "coroutine":
        source = await source
    if not hasattr(source, "__anext__"):
        return source
    items = []
    while True:
        try:
            items.append(await source.__anext__())
        except StopIteration:
            return items


def _tg_yield(yielded, value, len=len):
    if len(yielded) >= 100000:
        raise NotImplementedError("a generator yielded more than 100000 values; generators run to their end at once here, so that one without an end needs to be a loop")
    yielded.append(value)


def _tg_yield_from(yielded, values):
    for value in values:
        _tg_yield(yielded, value)


def _tg_maketrans(first, second=None, third="", ord=ord, isinstance=isinstance, str=str, zip=zip):
    if second is None:
        return {ord(key) if isinstance(key, str) else key: value for key, value in first.items()}
    table = {ord(key): ord(value) for key, value in zip(first, second)}
    for key in third:
        table[ord(key)] = None
    return table


def _tg_mod(left, right, isinstance=isinstance, str=str, tuple=tuple, dict=dict, int=int, float=float, len=len, repr=repr, chr=chr):
    if not isinstance(left, str):
        return left % right
    values = right if isinstance(right, tuple) else (right,)
    used = 0
    parts = []
    at = 0
    while True:
        start = left.find("%", at)
        if start < 0:
            parts.append(left[at:])
            break
        parts.append(left[at:start])
        at = start + 1
        named = None
        if left[at:at + 1] == "(":
            close = left.find(")", at)
            named = left[at + 1:close]
            at = close + 1
        begin = at
        while at < len(left) and left[at] in "#0- +":
            at += 1
        flags = left[begin:at]
        begin = at
        if left[at:at + 1] == "*":
            width = str(values[used])
            used += 1
            at += 1
        else:
            while at < len(left) and left[at] in "0123456789":
                at += 1
            width = left[begin:at]
        precision = ""
        if left[at:at + 1] == ".":
            begin = at
            at += 1
            while at < len(left) and left[at] in "0123456789":
                at += 1
            precision = left[begin:at]
            if precision == ".":
                precision = ".0"
        while at < len(left) and left[at] in "hlL":
            at += 1
        if at >= len(left):
            raise ValueError("incomplete format")
        kind = left[at]
        at += 1
        if kind == "%":
            parts.append("%")
            continue
        if named is not None:
            value = right[named]
        else:
            if used >= len(values):
                raise TypeError("not enough arguments for format string")
            value = values[used]
            used += 1
        align = "<" if "-" in flags else ">"
        sign = "+" if "+" in flags else (" " if " " in flags else "")
        zero = "0" if "0" in flags and "-" not in flags else ""
        other = "#" if "#" in flags else ""
        if kind in "sra":
            text = str(value) if kind == "s" else repr(value)
            specification = align + width + precision
        elif kind in "diu":
            if not isinstance(value, (int, float)):
                raise TypeError(f"%{kind} format: a real number is required, not {type(value).__name__}")
            text = int(value)
            specification = ("" if zero else align) + sign + zero + width + "d"
        elif kind in "eEfFgG":
            text = float(value)
            specification = ("" if zero else align) + sign + zero + width + precision + kind
        elif kind in "xXo":
            text = int(value)
            specification = ("" if zero else align) + sign + other + zero + width + kind
        elif kind == "c":
            text = value if isinstance(value, str) else chr(value)
            specification = align + width
        else:
            raise ValueError(f"unsupported format character '{kind}'")
        parts.append(f"{text:{specification}}")
    if used < len(values) and not isinstance(right, dict):
        raise TypeError("not all arguments converted during string formatting")
    return "".join(parts)
