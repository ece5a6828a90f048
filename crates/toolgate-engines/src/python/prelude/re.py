import re as _tg_native_re


def _tg_make_re(native, isinstance=isinstance, str=str, list=list, len=len, min=min, enumerate=enumerate, type=type):
    def is_pattern(value):
        return type(value).__name__ in ("Pattern", "re.Pattern")

    def prepared(pattern, text, flags=0, replacement=None):
        compiled = native.compile(pattern, flags) if isinstance(pattern, str) else pattern
        # Python finds the empty text behind a match as well, and Monty does not.
        if replacement != "" and compiled.match("") is not None and [1 for match in compiled.finditer(text) if match.group()]:
            _tg_refuse("a pattern that matches the empty text, such as x*, beside longer matches: use x+")
        return compiled

    def parts_of(compiled, text, limit):
        # The texts between the matches, and the matches. Positions in a text would take quadratic time.
        found = list(compiled.finditer(text))
        if limit:
            return compiled.split(text, limit), found[:limit]
        return compiled.split(text), found

    def subn(pattern, repl, string, count=0, flags=0):
        compiled = prepared(pattern, string, flags, repl)
        if isinstance(repl, str):
            made = len(list(compiled.finditer(string)))
            return compiled.sub(repl, string, count), (min(made, count) if count else made)
        parts, found = parts_of(compiled, string, count)
        made = [parts[0]]
        for index, match in enumerate(found):
            made.append(repl(match))
            made.append(parts[index + 1])
        return "".join(made), len(found)

    def sub(pattern, repl, string, count=0, flags=0):
        if isinstance(repl, str):
            return prepared(pattern, string, flags, repl).sub(repl, string, count)
        return subn(pattern, repl, string, count, flags)[0]

    def split(pattern, string, maxsplit=0, flags=0):
        parts, found = parts_of(prepared(pattern, string, flags), string, maxsplit)
        made = [parts[0]]
        for index, match in enumerate(found):
            made.extend(match.groups())
            made.append(parts[index + 1])
        return made

    def findall(pattern, string, flags=0):
        return prepared(pattern, string, flags).findall(string)

    def finditer(pattern, string, flags=0):
        return prepared(pattern, string, flags).finditer(string)

    # The methods of patterns. Other objects may have methods of these names.
    def method_sub(value, *arguments, **named):
        return sub(value, *arguments, **named) if is_pattern(value) else value.sub(*arguments, **named)

    def method_subn(value, *arguments, **named):
        return subn(value, *arguments, **named) if is_pattern(value) else value.subn(*arguments, **named)

    def method_findall(value, *arguments, **named):
        return findall(value, *arguments, **named) if is_pattern(value) else value.findall(*arguments, **named)

    def method_finditer(value, *arguments, **named):
        return finditer(value, *arguments, **named) if is_pattern(value) else value.finditer(*arguments, **named)

    return method_sub, method_subn, method_findall, method_finditer, _tg_module("re", {
        "split": split, "sub": sub, "subn": subn, "findall": findall, "finditer": finditer, "UNICODE": 0, "U": 0,
    })


_tg_sub, _tg_subn, _tg_findall, _tg_finditer, _tg_re = _tg_make_re(_tg_native_re)
_tg_split = _tg_re.split
