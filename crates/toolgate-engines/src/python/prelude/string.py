def _tg_make_string():
    def capwords(text, sep=None):
        return (" " if sep is None else sep).join([word.capitalize() for word in (text.split() if sep is None else text.split(sep))])

    lower = "abcdefghijklmnopqrstuvwxyz"
    punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    return _tg_module("string", {
        "ascii_lowercase": lower, "ascii_uppercase": lower.upper(), "ascii_letters": lower + lower.upper(),
        "digits": "0123456789", "hexdigits": "0123456789abcdefABCDEF", "octdigits": "01234567",
        "punctuation": punctuation, "whitespace": " \t\n\r\x0b\x0c",
        "printable": "0123456789" + lower + lower.upper() + punctuation + " \t\n\r\x0b\x0c",
        "capwords": capwords,
    })


_tg_string = _tg_make_string()
