import re as _tg_native_re


def _tg_make_re(native, isinstance=isinstance, str=str, list=list, len=len, min=min, enumerate=enumerate, type=type):
    def compiled(pattern, flags):
        return native.compile(pattern, flags) if isinstance(pattern, str) else pattern

    def parts_of(pattern, text, limit):
        # The texts between the matches, and the matches. Positions in a text would take quadratic time.
        found = list(pattern.finditer(text))
        if limit:
            return pattern.split(text, limit), found[:limit]
        return pattern.split(text), found

    def replaced(pattern, replacement, text, count=0):
        if isinstance(replacement, str):
            made = len(list(pattern.finditer(text)))
            return pattern.sub(replacement, text, count), (min(made, count) if count else made)
        parts, found = parts_of(pattern, text, count)
        made = [parts[0]]
        for index, match in enumerate(found):
            made.append(replacement(match))
            made.append(parts[index + 1])
        return "".join(made), len(found)

    def subn(pattern, replacement, text, count=0, flags=0):
        return replaced(compiled(pattern, flags), replacement, text, count)

    def sub(pattern, replacement, text, count=0, flags=0):
        return subn(pattern, replacement, text, count, flags)[0]

    def split(pattern, text, maxsplit=0, flags=0):
        parts, found = parts_of(compiled(pattern, flags), text, maxsplit)
        made = [parts[0]]
        for index, match in enumerate(found):
            made.extend(match.groups())
            made.append(parts[index + 1])
        return made

    def method_sub(pattern, replacement, *rest, **named):
        if isinstance(replacement, str) or type(pattern).__name__ not in ("Pattern", "re.Pattern"):
            return pattern.sub(replacement, *rest, **named)
        return replaced(pattern, replacement, *rest, **named)[0]

    return method_sub, _tg_module("re", {"split": split, "sub": sub, "subn": subn, "UNICODE": 0, "U": 0})


_tg_sub, _tg_re = _tg_make_re(_tg_native_re)
_tg_split = _tg_re.split
