def _tg_make_html(int=int, chr=chr):
    names = {"lt;": "<", "gt;": ">", "quot;": '"', "apos;": "'", "nbsp;": "\xa0", "amp;": "&"}
    # Those that are replaced without a semicolon too.
    short = "AElig AMP Aacute Acirc Agrave Aring Atilde Auml COPY Ccedil ETH Eacute Ecirc Egrave Euml GT Iacute Icirc Igrave Iuml LT Ntilde Oacute Ocirc Ograve Oslash Otilde Ouml QUOT REG THORN Uacute Ucirc Ugrave Uuml Yacute aacute acirc acute aelig agrave amp aring atilde auml brvbar ccedil cedil cent copy curren deg divide eacute ecirc egrave eth euml frac12 frac14 frac34 gt iacute icirc iexcl igrave iquest iuml laquo lt macr micro middot nbsp not ntilde oacute ocirc ograve ordf ordm oslash otilde ouml para plusmn pound quot raquo reg sect shy sup1 sup2 sup3 szlig thorn times uacute ucirc ugrave uml uuml yacute yen yuml".split()

    def escape(text, quote=True):
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return text.replace('"', "&quot;").replace("'", "&#x27;") if quote else text

    def character(piece):
        base, digits = (16, "0123456789abcdefABCDEF") if piece[1:2] in ("x", "X") else (10, "0123456789")
        start = end = 2 if base == 16 else 1
        while end < len(piece) and piece[end] in digits:
            end += 1
        if end == start:
            return "&" + piece
        code = int(piece[start:end], base)
        if code in (9, 10) or 32 <= code < 127 or 160 <= code < 55296 or 57344 <= code < 64976:
            return chr(code) + piece[end + 1 if piece[end:end + 1] == ";" else end:]
        _tg_refuse(f"html.unescape() does not know &#{piece[1:end]} here: replace it before")

    def named(piece):
        name, semicolon, rest = piece.partition(";")
        if name + semicolon in names:
            return names[name + semicolon] + rest
        if semicolon and name.isalnum() or [other for other in short if piece.startswith(other)]:
            _tg_refuse(f"html.unescape() knows only &amp; &lt; &gt; &quot; &apos; &nbsp; and numbers here: replace &{piece[:len(name) + 1]} before")
        return "&" + piece

    def unescape(text):
        first, *pieces = text.split("&")
        return first + "".join([character(piece) if piece.startswith("#") else named(piece) for piece in pieces])

    return _tg_module("html", {"escape": escape, "unescape": unescape})


_tg_html = _tg_make_html()
