import json as _tg_native_json


def _tg_make_json(native, isinstance=isinstance, dict=dict, list=list, tuple=tuple, str=str, int=int, float=float, bool=bool, hasattr=hasattr, type=type):
    def plain(value, default, depth):
        if depth > 150:
            raise ValueError("Circular reference detected")
        if hasattr(value, "_tg_enum") and value._tg_enum != "Enum":
            return plain(value.value, default, depth + 1)
        if value is None or isinstance(value, (str, int, float, bool)):
            return value
        if isinstance(value, dict):
            return {(key.value if hasattr(key, "_tg_enum") and key._tg_enum != "Enum" else key): plain(item, default, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(item, default, depth + 1) for item in value]
        if default is None:
            if hasattr(value, "_tg_enum"):
                raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
            return value
        return plain(default(value), default, depth + 1)

    def dumps(value, default=None, cls=None, **named):
        if cls is not None:
            default = cls().default
        return native.dumps(plain(value, default, 0), **named)

    def dump(value, file, **named):
        file.write(dumps(value, **named))

    def loads(text, **named):
        # The result of a tool is data already.
        if not named and (text is None or isinstance(text, (dict, list, int, float))):
            return text
        return native.loads(text, **named)

    def load(file):
        return native.loads(file.read())

    class JSONEncoder:
        def default(self, value):
            raise TypeError("Object is not JSON serializable")

    return _tg_module("json", {"dumps": dumps, "dump": dump, "loads": loads, "load": load, "JSONEncoder": JSONEncoder})


_tg_json = _tg_make_json(_tg_native_json)
