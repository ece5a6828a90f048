# ---- strings
s = "  The quick brown Fox, jumps -- over THE lazy dog  "
print(s.strip().split(), s.title().strip(), s.casefold().count("the"), "ß".casefold(), "İ".lower(), "ﬀ".upper())
print("a,b,,c".split(","), "a b  c".split(None, 1), "x=y=z".partition("="), "x=y=z".rpartition("="), "a\nb\r\nc\x0bd".splitlines(), "ab".join("123"))
print("abc".center(9, "*"), "7".zfill(3), "-7".zfill(4), "tab\tx".expandtabs(4), "abc".translate(str.maketrans({"a": "1", "b": None})), "swap".swapcase())
print("prefix_x".removeprefix("prefix_"), "x.py".removesuffix(".py"), "abcabc".rfind("b"), "abc".find("z"), "hello"[::-1], "hello"[1:-1:2])
print("½".isnumeric(), "²".isdigit(), "a1".isalnum(), "var_1".isidentifier(), "A".isupper(), " ".isspace(), "é" == "e\u0301", "abc" "def")
import unicodedata as u
print(u.normalize("NFC", "e\u0301") == "é", u.name("€"), u.category("A"), u.lookup("SNOWMAN"), u.east_asian_width("あ"))
print(repr("it's \"q\" \t \x00 \u200b é"), "%s" % ("t",), f"{'nested ' + str(1 + 1)!r:>12}", f"{s.strip()[:3]=}")
name, width = "x", 8
print(f"{name:{width}}|{name:>{width}}|{3.14159:{width}.{2}f}|{{}}", rf"\d{name}")
"abc".index("z")

# ---- regular expressions
import re
log = "2024-01-05 ERROR [db] timeout=30s; 2024-02-06 WARN [web] slow=1.5s"
pattern = re.compile(r"(?P<date>\d{4}-(?P<month>\d\d)-\d\d)\s+(?P<level>[A-Z]+)\s+\[(?P<unit>\w+)\]\s+(\w+)=([\d.]+)s")
for m in pattern.finditer(log):
    print(m.groupdict(), m.groups()[-2:], m.span("level"), m["unit"], m.lastindex, m.start())
print(re.sub(r"(\w+)=(\S+)", r"\2:\1", log), re.subn(r"\d", "#", "a1b22", count=2), re.sub(r"\b(\w)", lambda m: m[1].upper(), "two words"))
print(re.split(r"[;,]\s*|\s{2,}", "a, b;c  d"), re.findall(r"(a)(b)?", "abaa"), re.fullmatch(r"\d+", "12a"), re.match(r"\w+", "abc def")[0])
print(re.findall(r"(?i)the", "The the"), re.search(r"(?<=\$)\d+(?!\d|%)", "cost $45 or $6%").group(), re.escape("a.b*c"), re.search(r"^b", "a\nb", re.M) is not None)
print(re.compile(r"""
    (\d+)   # number
    \s*
    (k|m)?  # unit
""", re.X | re.I).findall("10k 5 M 7"), re.sub(r"(?s)<!--.*?-->", "", "a<!-- x\ny -->b"), re.match(r"(a+)+b", "aaaab").group(1))
re.compile("(unclosed")

# ---- csv in both directions
import csv, io
text = 'id,name,note\n1,"Smith, J.","said ""hi"""\n2,Ann,"two\nlines"\n3,,\n'
rows = list(csv.DictReader(io.StringIO(text)))
print(rows, csv.DictReader(io.StringIO(text)).fieldnames)
out = io.StringIO()
w = csv.DictWriter(out, ["name", "id"], extrasaction="ignore", lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
w.writeheader(); w.writerows(rows); print(out.getvalue())
print(list(csv.reader(["a;b;'c;d'", "1;2;3"], delimiter=";", quotechar="'")), next(csv.reader(["x\ty"], dialect="excel-tab")))
print(csv.Sniffer().sniff("a;b;c\n1;2;3\n").delimiter, list(csv.reader(["1.5,x"], quoting=csv.QUOTE_NONNUMERIC)) if False else "-")
big = io.StringIO(); cw = csv.writer(big)
for i in range(20_000): cw.writerow([i, f"name {i}", i * 1.5])
big.seek(0); print(sum(float(r[2]) for r in csv.reader(big)))
w.writerow({"id": 1, "zz": 2}); csv.DictWriter(out, ["a"]).writerow({"b": 1})

# ---- json
import json
from datetime import date
data = {"b": [1, 2.5, None, True], "a": {"é": "\u2028", "n": 10 ** 30}, 3: (4,)}
print(json.dumps(data), json.dumps(data, ensure_ascii=False, sort_keys=False, separators=(",", ":")))
print(json.dumps({"z": 1, "a": [1, {"k": []}]}, indent=2, sort_keys=True))
print(json.loads('{"x": [1, 1.0, 1e5, -0, "\\u00e9\\n", null, true]}'), json.loads("[1, 2]", parse_int=float), json.loads('{"a": 1}', object_hook=lambda d: list(d)))
class Enc(json.JSONEncoder):
    def default(self, o): return o.isoformat() if isinstance(o, date) else super().default(o)
print(json.dumps([date(2024, 1, 2)], cls=Enc), json.dumps({1, 2}, default=sorted), json.dumps(float("inf")))
try:
    json.loads('{"a": 1,}')
except json.JSONDecodeError as e:
    print(e.msg, e.pos, e.lineno, e.colno, e.doc)
json.dumps(object())

# ---- templates, wrapping, differences
import textwrap, string, difflib, pprint, shlex, html, fnmatch
print(textwrap.fill("The quick brown fox jumps over the lazy dog", 20, initial_indent="> ", subsequent_indent="  "))
print(textwrap.dedent("""
    a
      b
    """), textwrap.shorten("a long line of text", 12), textwrap.indent("x\ny", "- "))
print(string.Template("$who owes ${amount} $$").substitute(who="Ann", amount=5), string.capwords("ab cd"), string.ascii_lowercase[:3], string.punctuation[:4])
print("\n".join(difflib.unified_diff("a b c".split(), "a x c".split(), "one", "two", lineterm="")), difflib.get_close_matches("appel", ["ape", "apple", "peach"]), round(difflib.SequenceMatcher(None, "abcd", "bcde").ratio(), 3))
pprint.pprint({"key": list(range(30)), "other": {"nested": ["x" * 20] * 4}}, width=60, compact=True)
print(shlex.split("a 'b c' --d=\"e f\""), shlex.quote("it's"), html.escape("<a & 'b'>"), html.unescape("&lt;&eacute;&#x41;&nbsp;"), fnmatch.filter(["a.py", "b.txt"], "*.py"))
string.Template("$x").substitute()

# ---- urls and xml
from urllib.parse import urlparse, urlencode, parse_qs, urljoin, quote, unquote, urlsplit, parse_qsl, urlunparse
u = urlparse("https://user:pw@example.com:8080/a/b;p?q=1&q=2&r=%20x#frag")
print(u.netloc, u.hostname, u.port, u.path, parse_qs(u.query), u._replace(query="").geturl(), u.username, u.params)
print(urlencode({"a": [1, 2], "b": "x y&z"}, doseq=True), urljoin("http://a/b/c", "../d"), quote("a/b ü"), unquote("%C3%BC"), parse_qsl("a=1&b=&c", keep_blank_values=True))
import xml.etree.ElementTree as ET
root = ET.fromstring("<r a='1'><i n='x'>one<b/>tail</i><i n='y'>two</i><!-- c --></r>")
print([(i.get("n"), i.text, [c.tail for c in i]) for i in root.iter("i")], root.find("./i[@n='y']").text, root.attrib, root.findtext("i"))
new = ET.SubElement(root, "new", {"k": "v & w"}); new.text = "<t>"
print(ET.tostring(root, encoding="unicode"))
import xml.dom.minidom as md
print(md.parseString("<a><b>1</b></a>").toprettyxml(indent=" ").strip())
from html.parser import HTMLParser
class Links(HTMLParser):
    links = []
    def handle_starttag(self, tag, attrs):
        if tag == "a": self.links.append(dict(attrs).get("href"))
p = Links(); p.feed('<p><a href="/x?a=1&amp;b=2">x</a><a>y</a></p>'); print(p.links)
ET.fromstring("<a><b></a>")

# ---- io, string buffers and context managers over them
import io, contextlib, sys
buffer = io.StringIO("one\ntwo\nthree"); print(buffer.readline(), [l.strip() for l in buffer], buffer.seek(0), buffer.read(5), buffer.tell())
raw = io.BytesIO(); raw.write(b"abc"); raw.seek(1); print(raw.read(), raw.getvalue(), raw.getbuffer()[0])
with contextlib.redirect_stdout(io.StringIO()) as captured:
    print("hidden"); sys.stdout.write("too")
print(repr(captured.getvalue()))
print("a", 1, None, sep="|", end="!\n"); print(*range(3), sep="\n"); print("to", "stderr", file=sys.stderr); sys.stdout.flush()
print("x" * 3, flush=True); sys.stdout.write("no newline"); sys.stdout.write("\n"); print(end=""); print()
wrapper = io.TextIOWrapper(io.BytesIO("é\n".encode()), encoding="utf-8"); print(wrapper.read())
import logging
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
log = logging.getLogger("app"); log.info("hello %s %d", "x", 3); log.debug("no"); log.warning("careful")
try:
    1 / 0
except ZeroDivisionError:
    log.error("failed: %s", sys.exc_info()[0].__name__)
buffer.close(); buffer.read()
