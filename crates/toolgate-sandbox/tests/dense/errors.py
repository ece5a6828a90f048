# ---- an error in a finally block replaces the first
def f():
    try:
        raise ValueError("first")
    finally:
        for i in range(3):
            if i == 1:
                {}.pop("second")
try: f()
except KeyError as e: print(repr(e), repr(e.__context__))
f()

# ---- an error in an except block
def parse(rows):
    out = []
    for row in rows:
        try:
            out.append(int(row))
        except ValueError:
            out.append(float(row))
    return out
print(parse(["1", "2.5"]))
parse(["1", "x"])

# ---- an error in an exit method
class Bad:
    def __enter__(self):
        return self
    def __exit__(self, kind, error, trace):
        if kind:
            raise RuntimeError("while leaving") from error
with Bad(): print("fine")
with Bad():
    x = [1, 2]
    y = x[5]
    z = 1

# ---- an error in an iterator of a for loop
class Rows:
    def __init__(self, n): self.n = n
    def __iter__(self):
        for i in range(self.n):
            if i == 3:
                raise OSError(5, "broken row", "rows.csv")
            yield i
total = 0
for row in Rows(3):
    total += row
print(total)
for row in Rows(9):
    total += row
else:
    print("never")

# ---- an error in a property during formatting
class User:
    def __init__(self, first, last): self.first, self.last = first, last
    @property
    def full(self):
        return " ".join([
            self.first,
            self.last,
        ])
    def __str__(self):
        return f"<{self.full}>"
print(User("Ann", "Lee"), f"{User('B', 'C')!s:>8}")
message = (
    f"hello {User('x', 'y')} "
    f"and {User('z', None)}"
)

# ---- an error in a sort key and in a comparison
rows = [{"n": 2}, {"n": 1}, {"m": 3}]
print(sorted(rows[:2], key=lambda r: r["n"]))
ordered = sorted(
    rows,
    key=lambda r: r["n"],
    reverse=True,
)

# ---- unpacking errors
pairs = [(1, 2), (3, 4, 5)]
a, b = pairs[0]
first, *rest = pairs[1]
print(a, b, first, rest)
for x, y in pairs:
    print(x + y)

# ---- attribute errors suggest names
class Config:
    timeout = 5
    def __init__(self): self.retries = 3
c = Config()
print(getattr(c, "timeout"), hasattr(c, "nothing"))
try: c.retires
except AttributeError as e: print(e.name, e.obj is c)
c.timeuot

# ---- wrong calls
def connect(host, port=80, *, secure=False): return host, port, secure
print(connect("a", secure=True))
for args, named in [((), {}), (("a", 1, 2), {}), (("a",), {"tls": 1}), (("a",), {"host": "b"})]:
    try: connect(*args, **named)
    except TypeError as e: print(e)
connect(host="x", port=1, secure=True, extra=2)

# ---- type errors of operators
for expression in ("1 + '1'", "'a' * 'b'", "[1] + (2,)", "{} | []", "-'x'", "len(5)", "5()", "5[0]", "None.x", "'%d' % 'x'", "int([])", "sum(['a'])", "{[]: 1}", "max([])", "'a' < 1"):
    try: eval(expression)
    except Exception as e: print(f"{expression}: {type(e).__name__}: {e}")
values = {"total": "10"}
values["total"] += 5

# ---- name errors and unbound variables
def later():
    if False:
        value = 1
    return value
try: later()
except UnboundLocalError as e: print(type(e).__name__)
length = 1
del length
def shadow():
    print(len)
    return length
def outer():
    def inner(): return free
    result = inner()
    free = 1
    return result
try: outer()
except NameError as e: print(type(e).__name__)
shadow()

# ---- assertion with a computed message
def area(w, h):
    assert w > 0 and h > 0, f"sizes must be positive, not {w} and {h}"
    return w * h
print(area(2, 3))
sizes = [(1, 2), (0, 5)]
for size in sizes:
    area(*size)

# ---- stop iteration inside a generator becomes a runtime error
def take(source):
    while True:
        yield next(source)
print(list(zip(range(2), take(iter("abc")))))
print(list(take(iter("ab"))))

# ---- an exception with notes and arguments
class Failed(Exception):
    pass
def step(n):
    try:
        if n > 1:
            raise Failed("step", n)
    except Failed as e:
        e.add_note(f"at step {n}")
        raise
step(0)
try: step(2)
except Failed as e: print(e.args, e.__notes__)
raise Failed({"code": 7})

# ---- zero division of all kinds
import math
from fractions import Fraction
for f in (lambda: 1 % 0, lambda: 1.0 / 0, lambda: divmod(1, 0), lambda: 0 ** -1, lambda: Fraction(1, 0), lambda: 1j / 0, lambda: 5 // 0.0):
    try: f()
    except ZeroDivisionError as e: print(e)
def mean(values):
    return sum(values) / len(values)
groups = {"a": [1, 2], "b": []}
print({k: mean(v) for k, v in groups.items()})

# ---- overflow and domain errors
import math
for f in (lambda: math.sqrt(-1), lambda: math.log(0), lambda: math.exp(1000), lambda: math.factorial(-1), lambda: chr(-1), lambda: [0] * (2 ** 63), lambda: float("1e400") and int(float("inf")), lambda: "x".encode("ascii").decode("utf-16")):
    try: f()
    except (ValueError, OverflowError, MemoryError, UnicodeError) as e: print(type(e).__name__, e)
int(float("nan"))

# ---- encodings that fail
data = "Grüße €".encode("latin-1", "replace")
print(data)
try: data.decode("utf-8")
except UnicodeDecodeError as e: print(e.start, e.end, e.reason, e.object[e.start:e.end])
print(data.decode("cp1252"), "€".encode("cp1252"), "日本".encode("utf-8").decode("utf-8", "strict"))
"日本".encode("ascii")

# ---- the wrong exception is not caught
class A(Exception): pass
class B(A): pass
class C(Exception): pass
log = []
for kind in (A, B, C):
    try:
        try: raise kind(kind.__name__)
        except B: log.append("B")
        except A as e: log.append(f"A {e}")
        finally: log.append("f")
    except C: log.append("C outside")
print(log)
try:
    raise B("again")
except C:
    print("no")

# ---- import errors
try: import does_not_exist
except ModuleNotFoundError as e: print(e, e.name)
try: from math import nothing
except ImportError as e: print(str(e).split(" (")[0])
try: import json.nothing
except ImportError as e: print(e)
from collections import Missing

# ---- a long chain of calls
def a(x): return b(x) + 1
def b(x):
    return c(
        x
    ) * 2
class K:
    def method(self, x):
        return [self.item(i) for i in range(x)][-1]
    def item(self, i):
        return 1 // (2 - i)
def c(x): return K().method(x)
print(a(2))
a(3)

# ---- an error after output without a line break
import sys
print("working", end="")
sys.stdout.write("...")
print(".", end="", flush=True)
raise SystemError("stopped")

# ---- an error in code that exec runs
source = "def double(v):\n    return v + v\n"
space = {}
exec(source, space)
print(space["double"](4), eval("double('a')", space))
try: exec("1 +")
except SyntaxError as e: print(e.msg, e.lineno)
exec("space['double'](None)")

# ---- mutation during iteration
d = {"a": 1, "b": 2}
l = [1, 2, 3]
for v in l:
    if v < 3: l.append(v + 10) if len(l) < 5 else None
print(l)
for key in d:
    d[key + "x"] = 1

# ---- slots, frozen and read-only values
from types import MappingProxyType
view = MappingProxyType({"a": 1})
print(view["a"], dict(view))
try: view["b"] = 2
except TypeError as e: print(e)
t = (1, [2])
t[1].append(3)
try: t[1] += [4]
except TypeError as e: print(e, t)
"text"[0] = "T"

# ---- a decorator that loses nothing
import functools
def logged(f):
    @functools.wraps(f)
    def inner(*args, **named):
        try:
            return f(*args, **named)
        except Exception as e:
            print(f"{f.__name__} failed: {e!r}")
            raise
    return inner
@logged
def divide(a, b):
    return a / b
print(divide(4, 2))
divide(1, 0)

# ---- nested functions and comprehensions in classes
class Report:
    def __init__(self, rows): self.rows = rows
    def totals(self):
        def price(row):
            return row["qty"] * row["price"]
        return {
            name: sum(price(r) for r in self.rows if r["name"] == name)
            for name in {r["name"] for r in self.rows}
        }
print(Report([{"name": "a", "qty": 2, "price": 1.5}]).totals())
Report([{"name": "a", "qty": 2}]).totals()
