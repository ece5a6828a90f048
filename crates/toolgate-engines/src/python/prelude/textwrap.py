def _tg_make_textwrap(len=len, min=min, list=list):
    def wrap(text, width=70, initial_indent="", subsequent_indent="", **options):
        lines = []
        line = initial_indent
        empty = True
        for word in text.split():
            while True:
                room = width - len(line) - (0 if empty else 1)
                if len(word) <= room:
                    line += word if empty else " " + word
                    empty = False
                    break
                if empty:
                    room = room if room > 0 else 1
                    lines.append(line + word[:room])
                    word = word[room:]
                else:
                    lines.append(line)
                line = subsequent_indent
                empty = True
                if not word:
                    break
        if not empty:
            lines.append(line)
        return lines

    def fill(text, width=70, **options):
        return "\n".join(wrap(text, width, **options))

    def shorten(text, width, placeholder=" [...]", **options):
        words = text.split()
        whole = " ".join(words)
        if len(whole) <= width:
            return whole
        kept = ""
        for word in words:
            longer = kept + (" " if kept else "") + word
            if len(longer) + len(placeholder) > width:
                break
            kept = longer
        return kept + placeholder if kept else placeholder.strip()

    def dedent(text):
        lines = text.split("\n")
        margins = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
        margin = min(margins) if margins else 0
        return "\n".join([line[margin:] if line.strip() else "" for line in lines])

    def indent(text, prefix, predicate=None):
        return "".join([prefix + line if (line.strip() if predicate is None else predicate(line)) else line for line in text.splitlines(True)])

    return _tg_module("textwrap", {"wrap": wrap, "fill": fill, "shorten": shorten, "dedent": dedent, "indent": indent})


_tg_textwrap = _tg_make_textwrap()
