def _tg_text(*arguments, len=len, str=str, isinstance=isinstance):
    if len(arguments) == 1:
        return str(arguments[0])
    return str(arguments) if arguments else ""


def _tg_or(left, right, isinstance=isinstance, dict=dict, type=type, tuple=tuple):
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **right}
    if type(left).__name__ in ("type", "tuple") or type(right).__name__ in ("type", "tuple"):
        # Types: `isinstance` takes a tuple of them.
        left, right = [kind if isinstance(kind, tuple) else (type(None) if kind is None else kind,) for kind in (left, right)]
        return left + right
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
