def _tg_html_escape(text, quote=True):
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#x27;") if quote else text


def _tg_html_unescape(text):
    _tg_refuse("html.unescape() is not available here: use text.replace('&amp;', '&') and the like")


_tg_html = _tg_module("html", {"escape": _tg_html_escape, "unescape": _tg_html_unescape})
