import re as _tg_native_re


def _tg_make_re(native, isinstance=isinstance, str=str, list=list, len=len, min=min, enumerate=enumerate, type=type, tuple=tuple):
    def is_pattern(value):
        return type(value).__name__ in ("Pattern", "re.Pattern")

    translated = {}

    def with_ends(pattern, flags):
        # Python's $ is also before a line break at the end, and its \Z is not.
        is_multiline = flags & 8 or native.search(r"\(\?[aiLsux]*m", pattern) is not None
        made = []
        index = 0
        in_class = False
        while index < len(pattern):
            part = pattern[index]
            if part == "\\":
                part = pattern[index:index + 2]
                index += 1
                if part == "\\Z" and not in_class:
                    part = "\\z"
            elif in_class:
                in_class = part != "]"
            elif part == "[":
                in_class = True
                # A closing bracket at the start is a character.
                rest = pattern[index + 1:index + 3]
                more = 2 if rest == "^]" else (1 if rest.startswith("]") else 0)
                part = pattern[index:index + 1 + more]
                index += more
            elif part == "$" and not is_multiline:
                part = "(?=\\n?\\z)"
            made.append(part)
            index += 1
        return "".join(made)

    def as_python(pattern, text, flags=0):
        # The compiled pattern with the meaning that it has in Python for this text.
        compiled = native.compile(pattern, flags) if isinstance(pattern, str) else pattern
        if not isinstance(text, str):
            return compiled
        source = compiled.pattern
        if ("\\s" in source or "\\S" in source) and [1 for mark in "\x1c\x1d\x1e\x1f" if mark in text]:
            _tg_refuse("\\s in a text with one of the characters \\x1c to \\x1f: name the characters, as in [ \\t\\n]")
        if not text.endswith("\n") or not ("$" in source or "\\Z" in source):
            return compiled
        key = (source, compiled.flags)
        if key not in translated:
            translated[key] = native.compile(with_ends(source, compiled.flags), compiled.flags)
        return translated[key]

    def prepared(pattern, text, flags=0, replacement=None):
        compiled = as_python(pattern, text, flags)
        if compiled.match("") is None:
            return compiled
        # Python finds the empty text behind a match as well, and a longer match behind an empty one. Monty does not.
        source = compiled.pattern
        if [1 for part in ("*?", "??", "}?", "(|", "(?:|") if part in source] or source.startswith("|"):
            _tg_refuse("a pattern that matches the empty text first, such as x*?: use x, or x+?")
        if replacement != "" and [1 for match in compiled.finditer(text) if match.group()]:
            _tg_refuse("a pattern that matches the empty text, such as x*, beside longer matches: use x+")
        return compiled

    def match(pattern, string, flags=0):
        return as_python(pattern, string, flags).match(string)

    def search(pattern, string, flags=0):
        return as_python(pattern, string, flags).search(string)

    def fullmatch(pattern, string, flags=0):
        return as_python(pattern, string, flags).fullmatch(string)

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

    def method_match(value, *arguments, **named):
        if is_pattern(value) and arguments:
            return as_python(value, arguments[0]).match(*arguments)
        return value.match(*arguments, **named)

    def method_search(value, *arguments, **named):
        if is_pattern(value) and arguments:
            return as_python(value, arguments[0]).search(*arguments)
        return value.search(*arguments, **named)

    def method_fullmatch(value, *arguments, **named):
        if is_pattern(value) and arguments:
            return as_python(value, arguments[0]).fullmatch(*arguments)
        return value.fullmatch(*arguments, **named)

    def method_groups(value, *arguments, **named):
        if type(value).__name__ not in ("Match", "re.Match"):
            return value.groups(*arguments, **named)
        default = named["default"] if "default" in named else arguments[0]
        return tuple([default if group is None else group for group in value.groups()])

    def method_expand(value, *arguments, **named):
        if type(value).__name__ in ("Match", "re.Match"):
            _tg_refuse("expand() of a match: write an f-string with match.group(1)")
        return value.expand(*arguments, **named)

    methods = (method_match, method_search, method_fullmatch, method_groups, method_expand)
    return method_sub, method_subn, method_findall, method_finditer, methods, _tg_module("re", {
        "match": match, "search": search, "fullmatch": fullmatch,
        "split": split, "sub": sub, "subn": subn, "findall": findall, "finditer": finditer, "UNICODE": 0, "U": 0,
    })


_tg_sub, _tg_subn, _tg_findall, _tg_finditer, _tg_re_methods, _tg_re = _tg_make_re(_tg_native_re)
_tg_match, _tg_search, _tg_fullmatch, _tg_groups, _tg_expand = _tg_re_methods
_tg_split = _tg_re.split
