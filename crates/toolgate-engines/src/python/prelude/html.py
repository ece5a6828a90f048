def _tg_make_html(int=int, chr=chr):
    def escape(text, quote=True):
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return text.replace('"', "&quot;").replace("'", "&#x27;") if quote else text

    def unescape(text):
        names = {"lt": "<", "gt": ">", "quot": '"', "apos": "'", "nbsp": "\xa0", "amp": "&"}
        pieces = text.split("&")
        result = pieces[0]
        for piece in pieces[1:]:
            name, semicolon, rest = piece.partition(";")
            if semicolon and name in names:
                result += names[name] + rest
            elif semicolon and name[:2] in ("#x", "#X"):
                result += chr(int(name[2:], 16)) + rest
            elif semicolon and name[:1] == "#" and name[1:].isdigit():
                result += chr(int(name[1:])) + rest
            else:
                result += "&" + piece
        return result

    return _tg_module("html", {"escape": escape, "unescape": unescape})


_tg_html = _tg_make_html()
