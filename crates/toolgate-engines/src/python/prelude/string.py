def _tg_make_string(str=str):
    def capwords(text, sep=None):
        return (" " if sep is None else sep).join([word.capitalize() for word in (text.split() if sep is None else text.split(sep))])

    class Template:
        def __init__(self, template):
            self.template = template

        def _fill(self, values, strict):
            parts = self.template.split("$")
            text = parts[0]
            index = 1
            while index < len(parts):
                part = parts[index]
                index += 1
                if part == "" and index < len(parts):
                    text += "$" + parts[index]
                    index += 1
                    continue
                if part.startswith("{") and "}" in part:
                    name, rest = part[1:].split("}", 1)
                    written = "${" + name + "}"
                else:
                    end = 0
                    while end < len(part) and (part[end].isalnum() or part[end] == "_"):
                        end += 1
                    name, rest, written = part[:end], part[end:], "$" + part[:end]
                if name in values:
                    text += str(values[name]) + rest
                elif strict:
                    raise KeyError(name)
                else:
                    text += written + rest
            return text

        def substitute(self, mapping={}, **named):
            return self._fill({**mapping, **named}, True)

        def safe_substitute(self, mapping={}, **named):
            return self._fill({**mapping, **named}, False)

    lower = "abcdefghijklmnopqrstuvwxyz"
    punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    return _tg_module("string", {
        "ascii_lowercase": lower, "ascii_uppercase": lower.upper(), "ascii_letters": lower + lower.upper(),
        "digits": "0123456789", "hexdigits": "0123456789abcdefABCDEF", "octdigits": "01234567",
        "punctuation": punctuation, "whitespace": " \t\n\r\x0b\x0c",
        "printable": "0123456789" + lower + lower.upper() + punctuation + " \t\n\r\x0b\x0c",
        "capwords": capwords, "Template": Template,
    })


_tg_string = _tg_make_string()
