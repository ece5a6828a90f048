import json as _tg_native_json


def _tg_make_pprint(isinstance=isinstance, dict=dict, list=list, tuple=tuple, repr=repr, len=len, print=print, sorted=sorted, str=str):
    def pformat(value, indent=1, width=80, depth=None, sort_dicts=True, **options):
        return shown(value, "", width, sort_dicts)

    def whole(value, ordered):
        if not ordered or not value or not isinstance(value, (dict, list)):
            return repr(value)
        if isinstance(value, list):
            return "[" + ", ".join([whole(item, ordered) for item in value]) + "]"
        return "{" + ", ".join([repr(key) + ": " + whole(value[key], ordered) for key in sorted(value, key=str)]) + "}"

    def shown(value, margin, width, ordered):
        flat = whole(value, ordered)
        if len(flat) + len(margin) <= width or not isinstance(value, (dict, list, tuple)) or not value:
            return flat
        inner = margin + " "
        if isinstance(value, dict):
            keys = sorted(value, key=str) if ordered else list(value)
            parts = [repr(key) + ": " + shown(value[key], inner + " " * (len(repr(key)) + 2), width, ordered) for key in keys]
            return "{" + (",\n" + inner).join(parts) + "}"
        parts = [shown(item, inner, width, ordered) for item in value]
        brackets = "[]" if isinstance(value, list) else "()"
        return brackets[0] + (",\n" + inner).join(parts) + brackets[1]

    def pprint(value, stream=None, **options):
        print(pformat(value, **options))

    return _tg_module("pprint", {"pformat": pformat, "pprint": pprint, "pp": pprint})


_tg_pprint = _tg_make_pprint()
