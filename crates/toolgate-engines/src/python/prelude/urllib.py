import collections as _tg_native_collections


def _tg_make_urllib(namedtuple, isinstance=isinstance, str=str, dict=dict, list=list, tuple=tuple, int=int, len=len, bytes=bytes, hasattr=hasattr):
    safe_always = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~"

    def quote(text, safe="/", encoding=None, errors=None):
        parts = []
        for character in str(text):
            if character in safe_always or character in safe:
                parts.append(character)
            else:
                digits = character.encode().hex().upper()
                at = 0
                while at < len(digits):
                    parts.append("%" + digits[at:at + 2])
                    at += 2
        return "".join(parts)

    def quote_plus(text, safe="", encoding=None, errors=None):
        return quote(text, safe + " ").replace(" ", "+")

    def unquote(text, encoding="utf-8", errors="replace"):
        first, *pieces = text.split("%")
        parts = [first]
        pending = []
        for piece in pieces:
            digits = piece[:2]
            if len(digits) == 2 and digits[0] in "0123456789abcdefABCDEF" and digits[1] in "0123456789abcdefABCDEF":
                pending.append(digits)
                rest = piece[2:]
            else:
                rest = "%" + piece
            if rest:
                if pending:
                    parts.append(bytes.fromhex("".join(pending)).decode("utf-8", "replace"))
                    pending = []
                parts.append(rest)
        if pending:
            parts.append(bytes.fromhex("".join(pending)).decode("utf-8", "replace"))
        return "".join(parts)

    def unquote_plus(text, encoding="utf-8", errors="replace"):
        return unquote(text.replace("+", " "))

    def urlencode(query, doseq=False, safe="", quote_via=None):
        quoting = quote_plus if quote_via is None else quote_via
        pairs = query.items() if isinstance(query, dict) else query
        parts = []
        for key, value in pairs:
            for item in (value if doseq and isinstance(value, (list, tuple)) else [value]):
                parts.append(quoting(str(key), safe) + "=" + quoting(str(item), safe))
        return "&".join(parts)

    def parse_qsl(query, keep_blank_values=False, **options):
        pairs = []
        for part in query.split("&"):
            if part:
                name, _, value = part.partition("=")
                if value or keep_blank_values:
                    pairs.append((unquote_plus(name), unquote_plus(value)))
        return pairs

    def parse_qs(query, keep_blank_values=False, **options):
        result = {}
        for name, value in parse_qsl(query, keep_blank_values):
            result.setdefault(name, []).append(value)
        return result

    class Parsed:
        def __init__(self, scheme, netloc, path, params, query, fragment):
            self.scheme = scheme
            self.netloc = netloc
            self.path = path
            self.params = params
            self.query = query
            self.fragment = fragment
            user, at, place = netloc.rpartition("@")
            name, colon, port = place.rpartition(":") if not place.endswith("]") else (place, "", "")
            if not colon:
                name, port = place, ""
            self.hostname = name.strip("[]").lower() or None
            self.port = int(port) if port else None
            self.username = user.partition(":")[0] or None
            self.password = user.partition(":")[2] or None

        def geturl(self):
            return urlunparse((self.scheme, self.netloc, self.path, self.params, self.query, self.fragment))

        def _replace(self, **changes):
            fields = {"scheme": self.scheme, "netloc": self.netloc, "path": self.path, "params": self.params, "query": self.query, "fragment": self.fragment}
            fields.update(changes)
            return Parsed(**fields)

        def __iter__(self):
            return iter([self.scheme, self.netloc, self.path, self.params, self.query, self.fragment])

        def __repr__(self):
            return f"ParseResult(scheme={self.scheme!r}, netloc={self.netloc!r}, path={self.path!r}, params={self.params!r}, query={self.query!r}, fragment={self.fragment!r})"

    def urlparse(url, scheme="", allow_fragments=True):
        rest, _, fragment = url.partition("#")
        rest, _, query = rest.partition("?")
        head, colon, tail = rest.partition(":")
        if colon and head and head[0].isalpha() and not [c for c in head if not (c.isalnum() or c in "+-.")]:
            scheme, rest = head.lower(), tail
        netloc = ""
        if rest.startswith("//"):
            netloc, slash, path = rest[2:].partition("/")
            rest = slash + path
        head, slash, last = rest.rpartition("/")
        last, _, params = last.partition(";")
        return Parsed(scheme, netloc, head + slash + last, params, query, fragment)

    def urlsplit(url, scheme="", allow_fragments=True):
        parsed = urlparse(url, scheme)
        return parsed._replace(path=parsed.path + (";" + parsed.params if parsed.params else ""), params="")

    def urlunparse(parts):
        scheme, netloc, path, params, query, fragment = parts
        url = (scheme + ":" if scheme else "") + ("//" + netloc if netloc else "") + path + (";" + params if params else "")
        return url + ("?" + query if query else "") + ("#" + fragment if fragment else "")

    def urljoin(base, url, allow_fragments=True):
        to = urlparse(url)
        if to.scheme:
            return url
        start = urlparse(base)
        if to.netloc:
            return start.scheme + ":" + url
        if not to.path:
            return urlunparse((start.scheme, start.netloc, start.path, "", to.query or start.query, to.fragment))
        if to.path.startswith("/"):
            path = to.path
        else:
            path = start.path.rpartition("/")[0] + "/" + to.path
        kept = []
        for segment in path.split("/"):
            if segment == "..":
                if len(kept) > 1:
                    kept.pop()
            elif segment != ".":
                kept.append(segment)
        if path.endswith(("/.", "/..")):
            kept.append("")
        return urlunparse((start.scheme, start.netloc, "/".join(kept), "", to.query, to.fragment))

    parse = _tg_module("urllib.parse", {
        "quote": quote, "quote_plus": quote_plus, "unquote": unquote, "unquote_plus": unquote_plus,
        "urlencode": urlencode, "parse_qs": parse_qs, "parse_qsl": parse_qsl, "urlparse": urlparse,
        "urlsplit": urlsplit, "urlunparse": urlunparse, "urljoin": urljoin,
    })
    return _tg_module("urllib", {"parse": parse})


_tg_urllib = _tg_make_urllib(_tg_native_collections.namedtuple)
_tg_urllib_parse = _tg_urllib.parse
