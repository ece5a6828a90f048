# ---- sqlite in memory
import sqlite3
db = sqlite3.connect(":memory:"); db.row_factory = sqlite3.Row
db.executescript("create table t(id integer primary key, name text, v real); create index i on t(name);")
with db: db.executemany("insert into t(name, v) values (?, ?)", [("a", 1.5), ("b", 2.5), ("a", 4.0)])
print([dict(r) for r in db.execute("select name, sum(v) s, count(*) n from t group by name order by s desc")])
try:
    with db: db.execute("insert into t values (1, 'dup', 0)")
except sqlite3.IntegrityError as e: print(e)
db.create_function("twice", 1, lambda x: x * 2); print(db.execute("select twice(v), row_number() over (order by v) from t").fetchall()[-1][0], db.total_changes)
print(db.execute("with recursive c(n) as (select 1 union all select n + 1 from c where n < 5) select sum(n) from c").fetchone()[0], sqlite3.sqlite_version_info > (3, 30))
db.execute("select * from missing")

# ---- archives and compression in memory
import gzip, bz2, lzma, zlib, zipfile, tarfile, io
data = b"toolgate " * 100
print(len(gzip.compress(data, mtime=0)) < 60, gzip.decompress(gzip.compress(data)) == data, bz2.decompress(bz2.compress(data)) == data, lzma.decompress(lzma.compress(data)) == data, zlib.adler32(data))
buf = io.BytesIO()
with zipfile.ZipFile(buf, "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("a/b.txt", "hello"); z.writestr("c.txt", data)
with zipfile.ZipFile(io.BytesIO(buf.getvalue())) as z: print(z.namelist(), z.read("a/b.txt"), z.getinfo("c.txt").file_size, z.testzip())
tar = io.BytesIO()
with tarfile.open(fileobj=tar, mode="w:gz") as t:
    info = tarfile.TarInfo("x.txt"); info.size = 5; t.addfile(info, io.BytesIO(b"12345"))
tar.seek(0)
with tarfile.open(fileobj=tar) as t: print(t.getnames(), t.extractfile("x.txt").read())
zipfile.ZipFile(io.BytesIO(b"not a zip"))

# ---- configuration formats
import tomllib, configparser, argparse, io
doc = tomllib.loads('title = "x"\n[owner]\nname = "Ann"\ndob = 1979-05-27T07:32:00Z\n[[items]]\nn = 1\n[[items]]\nn = 2.5\nflags = [true, false]\n')
print(doc["owner"]["dob"].year, doc["items"], doc["title"])
c = configparser.ConfigParser(); c.read_string("[a]\nx = 1\nflag = yes\npath = %(x)s/y\n[b]\nz = 2.5\n")
print(c.sections(), c["a"].getint("x"), c.getboolean("a", "flag"), c["a"]["path"], c.getfloat("b", "z"), c.has_option("b", "q"))
out = io.StringIO(); c.write(out); print(out.getvalue().splitlines()[0])
p = argparse.ArgumentParser(prog="tool", description="d"); p.add_argument("n", type=int); p.add_argument("--kind", choices=["a", "b"], default="a"); p.add_argument("-v", action="count", default=0)
print(p.parse_args(["5", "--kind", "b", "-vv"]), p.format_usage().strip())
tomllib.loads("a = = 1")

# ---- e-mail and mime
from email.message import EmailMessage
from email import message_from_string, policy
from email.utils import parseaddr, formataddr, parsedate_to_datetime
import mimetypes, quopri
m = EmailMessage(); m["Subject"] = "Grüße"; m["From"] = "Ann <a@x.org>"; m["To"] = "b@x.org"; m.set_content("Hello\nwörld"); m.add_attachment(b"1,2", maintype="text", subtype="csv", filename="a.csv")
print(m.get_content_type(), [p.get_filename() for p in m.iter_attachments()], m.get_body().get_content(), m["subject"])
parsed = message_from_string("From: x@y.z\nSubject: =?utf-8?q?caf=C3=A9?=\nDate: Fri, 05 Jan 2024 10:00:00 +0100\n\nbody", policy=policy.default)
print(parsed["subject"], parsedate_to_datetime(parsed["date"]), parsed.get_payload(), parseaddr("Ann B <a@b.c>"), formataddr(("Ann", "a@b.c")))
print(mimetypes.guess_type("a.json")[0], mimetypes.guess_extension("text/html"), quopri.encodestring("é".encode()))
m["From"] = "second@x.org"

# ---- networks as data, graphs, colours
import ipaddress, graphlib, colorsys, uuid, secrets
n = ipaddress.ip_network("10.0.0.0/29"); print(list(n.hosts())[:2], n.num_addresses, ipaddress.ip_address("10.0.0.5") in n, ipaddress.ip_address("::1").is_loopback, list(ipaddress.summarize_address_range(ipaddress.ip_address("10.0.0.0"), ipaddress.ip_address("10.0.0.3"))))
print(list(graphlib.TopologicalSorter({"d": {"b", "c"}, "b": {"a"}, "c": {"a"}}).static_order())[0], [round(x, 3) for x in colorsys.rgb_to_hls(1, 0.5, 0)])
print(uuid.uuid5(uuid.NAMESPACE_DNS, "python.org"), uuid.UUID(int=5), uuid.UUID("12345678123456781234567812345678").version, len(secrets.token_hex(8)), len(str(uuid.uuid4())), uuid.uuid4() != uuid.uuid4(), uuid.uuid1().version)
try: graphlib.TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()
except graphlib.CycleError as e: print(e.args[0])
ipaddress.ip_address("300.1.1.1")

# ---- introspection
import inspect, ast, types, typing, sys, operator, keyword, dis, io
def sample(a: int, b: str = "x", *args, c: list[int] | None = None, **kw) -> bool:
    """Docs."""
    return True
sig = inspect.signature(sample)
print(sig, list(sig.parameters), sig.parameters["b"].default, inspect.getdoc(sample), typing.get_type_hints(sample)["c"], inspect.isfunction(sample))
print(inspect.getsource(sample).splitlines()[0], sample.__code__.co_varnames, sample.__defaults__, sample.__kwdefaults__, sig.bind(1, c=[2]).arguments)
tree = ast.parse("x = 1 + y"); print(ast.unparse(tree), [type(n).__name__ for n in ast.walk(tree)][:3], ast.literal_eval("{'a': [1, (2,)]}"), ast.dump(ast.parse("f(1)", mode="eval").body))
print(eval("a + b", {"a": 1, "b": 2}), [ns := {}, exec("z = 5\ndef g(): return z", ns), ns["g"]()][-1], compile("1+1", "<s>", "eval").co_filename, callable(sample), dir(types.SimpleNamespace(q=1))[-1])
class A:
    def m(self): pass
print([n for n, _ in inspect.getmembers(A, inspect.isfunction)], A.m.__qualname__, type(A().m).__name__, globals()["A"] is A, "sample" in dir(), locals() is globals(), __name__)
print(operator.itemgetter(1)([5, 6]), operator.attrgetter("real")(7), keyword.iskeyword("for"), sys.version_info >= (3, 11), sys.maxsize, sys.byteorder, isinstance(sys.modules["sys"], types.ModuleType))
inspect.signature(5)

# ---- typing at run time
from typing import Any, Callable, Generic, Iterable, Literal, Optional, Protocol, TypeVar, Union, get_args, get_origin, runtime_checkable, overload, Annotated, Final, cast, NewType, Self
T = TypeVar("T", bound="Sized")
@runtime_checkable
class Sized(Protocol):
    def __len__(self) -> int: ...
class Stack(Generic[T]):
    def __init__(self, items: Iterable[T] = ()) -> None: self.items: list[T] = list(items)
    def push(self, item: T) -> Self: self.items.append(item); return self
    def __len__(self): return len(self.items)
print(isinstance(Stack(), Sized), isinstance(5, Sized), Stack[str]([]).push("a").items, Stack.__parameters__, get_origin(dict[str, int]), get_args(Union[int, None, str]), Optional[int], list[int] == list[int])
Mode = Literal["r", "w"]; print(get_args(Mode), Annotated[int, "meta"].__metadata__, cast(int, "x"), NewType("UserId", int)(5), int | None, isinstance(3, int | str))
def f(x: "undefined_name", y: Final = 3) -> "also": return x
print(f.__annotations__, f(1))
@overload
def g(x: int) -> int: ...
@overload
def g(x: str) -> str: ...
def g(x): return x
print(g(2), Callable[[int], str], Any)
isinstance([1], list[int])

# ---- warnings and tracebacks
import warnings, traceback, sys, io
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always"); warnings.warn("old", DeprecationWarning); warnings.warn("own"); print([(w.category.__name__, str(w.message), w.lineno) for w in seen])
def a(): b()
def b(): raise LookupError("deep")
try: a()
except LookupError as e:
    tb = traceback.extract_tb(e.__traceback__)
    print([(f.name, f.lineno, f.line) for f in tb], traceback.format_exc().splitlines()[-1], traceback.format_exception(e)[0].strip())
    t = traceback.TracebackException.from_exception(e); print("".join(t.format_exception_only()).strip(), e.__traceback__.tb_lineno, sys.exc_info()[2].tb_next.tb_frame.f_code.co_name)
try:
    try: int("q")
    except ValueError as e: raise KeyError("outer") from e
except KeyError:
    text = traceback.format_exc(); print(text.count("Traceback"), "direct cause" in text, [l.strip() for l in text.splitlines() if "line" in l and "in <module>" in l][0].split(", ")[1])
print(traceback.format_stack()[-1].splitlines()[-1].strip(), sys._getframe().f_lineno, sys._getframe().f_code.co_name)
warnings.simplefilter("error"); warnings.warn("now an error", UserWarning)

# ---- paths and shell words without files
from pathlib import PurePosixPath, Path, PureWindowsPath
import os, os.path, posixpath, fnmatch, glob
p = PurePosixPath("/a/b/../c.tar.gz"); print(p.name, p.stem, p.suffixes, p.parent, p.parts, p.with_suffix(".zip"), p / "x", p.is_absolute(), PurePosixPath("a/b").relative_to("a"), p.match("*.gz"))
print(os.path.join("a", "/b", "c"), os.path.splitext("x.tar.gz"), os.path.basename("/q/w.e"), os.path.normpath("a//b/../c"), os.path.commonprefix(["abc", "abd"]), os.path.exists("/definitely/not"), os.sep, PureWindowsPath("C:\\x\\y").drive)
print(Path("x") / "y", Path("a/b.txt").with_name("c"), sorted(Path(n) for n in "ba"), os.path.relpath("/a/b", "/a/c"), os.fspath(Path("z")), glob.escape("a[1]"), os.environ.get("NOTHING", "unset"), os.name)
posixpath.join("a", 5)

# ---- random text and table algorithms with standard modules only
import re, string, itertools, collections, textwrap, unicodedata
text = "It was the best of times, it was the worst of times"
words = re.findall(r"[a-z']+", text.lower()); freq = collections.Counter(words); width = max(map(len, freq))
for word, n in sorted(freq.items(), key=lambda kv: (-kv[1], kv[0]))[:4]: print(f"{word:<{width}} {'#' * n} {n / len(words):6.1%}")
table = [("name", "qty", "price"), ("apple", 3, 1.25), ("kiwi", 10, 0.5)]
cols = [max(len(str(r[i])) for r in table) for i in range(3)]
print("\n".join(" | ".join(str(c).ljust(w) if isinstance(c, str) else str(c).rjust(w) for c, w in zip(r, cols)) for r in table))
slug = lambda s: re.sub(r"[^a-z0-9]+", "-", unicodedata.normalize("NFKD", s).encode("ascii", "ignore").decode().lower()).strip("-")
print(slug("Crème Brûlée & Co. — 2024!"), string.capwords("a b"), textwrap.wrap("a b c d e", 4), "".join(itertools.chain(*zip("ace", "bdf"))))
roman = lambda n: "".join(s * (n // v % (10 if i % 2 == 0 else 2) if False else 0) for i, (v, s) in enumerate([])) or "-"
print(roman(4), max(freq.values()), {k: list(g) for k, g in itertools.groupby(sorted(set(words), key=len), key=len)}.get(2))
"{} {}".format("one")

# ---- threads, queues and pools without threads
import queue, threading, concurrent.futures, contextlib
q = queue.Queue(maxsize=2); q.put(1); q.put_nowait(2); print(q.full(), q.get(), q.get_nowait(), q.empty())
try: q.get_nowait()
except queue.Empty: print("empty")
lock = threading.Lock(); rlock = threading.RLock()
with lock, rlock, rlock: print(lock.locked(), threading.current_thread().name, threading.active_count())
local = threading.local(); local.x = 5; print(local.x, threading.main_thread() is threading.current_thread())
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(lambda x: x * x, range(5))), pool.submit(pow, 2, 10).result(), sorted(f.result() for f in concurrent.futures.as_completed([pool.submit(len, "abc"), pool.submit(len, "z")])))
    bad = pool.submit(lambda: 1 / 0); print(type(bad.exception()).__name__, bad.done())
    bad.result()
