import re as _tg_native_re


def _tg_make_re(native, isinstance=isinstance, str=str, hasattr=hasattr):
    def subn(pattern, replacement, text, count=0, flags=0):
        compiled = native.compile(pattern, flags) if isinstance(pattern, str) else pattern
        if isinstance(replacement, str):
            made = 0
            for found in compiled.finditer(text):
                made += 1
            return compiled.sub(replacement, text, count), (min(made, count) if count else made)
        parts = []
        at = 0
        made = 0
        for found in compiled.finditer(text):
            if count and made >= count:
                break
            parts.append(text[at:found.start()])
            parts.append(replacement(found))
            at = found.end()
            made += 1
        parts.append(text[at:])
        return "".join(parts), made

    def sub(pattern, replacement, text, count=0, flags=0):
        return subn(pattern, replacement, text, count, flags)[0]

    def split(pattern, text, maxsplit=0, flags=0):
        compiled = native.compile(pattern, flags) if isinstance(pattern, str) else pattern
        parts = []
        at = 0
        made = 0
        for found in compiled.finditer(text):
            if maxsplit and made >= maxsplit:
                break
            parts.append(text[at:found.start()])
            parts.extend(found.groups())
            at = found.end()
            made += 1
        parts.append(text[at:])
        return parts

    return _tg_module("re", {"split": split, "sub": sub, "subn": subn, "UNICODE": 0, "U": 0})


_tg_re = _tg_make_re(_tg_native_re)
_tg_split = _tg_re.split
