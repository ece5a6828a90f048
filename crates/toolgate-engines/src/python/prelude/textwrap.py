def _tg_make_textwrap(len=len, min=min):
    def dedent(text):
        lines = [line if line.strip() else "" for line in text.split("\n")]
        starts = [line[:len(line) - len(line.lstrip())] for line in lines if line]
        margin = starts[0] if starts else ""
        for start in starts:
            while not start.startswith(margin):
                margin = margin[:-1]
        return "\n".join([line[len(margin):] for line in lines])

    def indent(text, prefix, predicate=None):
        return "".join([prefix + line if (line.strip() if predicate is None else predicate(line)) else line for line in text.splitlines(True)])

    return _tg_module("textwrap", {"dedent": dedent, "indent": indent})


_tg_textwrap = _tg_make_textwrap()
