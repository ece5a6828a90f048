# ---- generators with send, throw, close and yield from
def averager():
    total, n, mean = 0, 0, None
    try:
        while True:
            try:
                value = yield mean
            except ValueError as e:
                print("reset", e); total = n = 0; mean = None; continue
            total += value; n += 1; mean = total / n
    finally:
        print("closing", total)
g = averager(); next(g)
print(g.send(10), g.send(20), g.throw(ValueError("bad")), g.send(6)); g.close()
def inner():
    got = yield 1
    print("inner got", got)
    return "inner result"
def outer():
    result = yield from inner()
    yield result
    yield from [7, 8]
    return "end"
o = outer(); print(next(o), o.send("hey"), list(o))
def numbers():
    yield 1
    return 5
n = numbers(); next(n)
try: next(n)
except StopIteration as s: print("value", s.value)
def flatten(x):
    for i in x:
        if isinstance(i, list): yield from flatten(i)
        else: yield i
print(list(flatten([1, [2, [3, [4]], 5]])), sum(x * x for x in range(5) if x % 2), next((x for x in [] ), "none"))
def fails():
    yield 1
    raise KeyError("in generator")
for v in fails(): print(v)

# ---- lazy generators stop early
def noisy():
    for i in range(10):
        print("make", i); yield i
for v in noisy():
    if v == 2: break
first = next(iter(noisy()))
print(any(v > 0 for v in noisy()), first)
def primes():
    found = []
    n = 2
    while True:
        if all(n % p for p in found): found.append(n); yield n
        n += 1
from itertools import islice
print(list(islice(primes(), 10)))
class Countdown:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n <= 0: raise StopIteration
        self.n -= 1; return self.n
print(list(Countdown(3)), [*zip(Countdown(2), "ab")], max(Countdown(4)), list(iter(lambda c=Countdown(5): next(c), 2)))
it = iter([1, 2, 3]); print(list(zip(it, it)), next(it, "gone"))
def gen():
    x = yield
    yield x
g = gen(); g.send(5)

# ---- context managers
from contextlib import contextmanager, ExitStack, suppress, closing, nullcontext, AbstractContextManager, ContextDecorator
class Managed:
    def __init__(self, name, swallow=False): self.name, self.swallow = name, swallow
    def __enter__(self): print("enter", self.name); return self
    def __exit__(self, kind, error, trace):
        print("exit", self.name, kind and kind.__name__, error); return self.swallow
@contextmanager
def step(name):
    print("begin", name)
    try: yield name.upper()
    except ValueError as e: print("handled", e)
    finally: print("end", name)
with Managed("a") as a, Managed("b", True), step("c") as c:
    print(a.name, c); raise ValueError("v")
with Managed("d", True): raise KeyError("k")
with suppress(ZeroDivisionError, KeyError): print("in"); 1 / 0
with ExitStack() as stack:
    for n in "xy": stack.enter_context(Managed(n))
    stack.callback(print, "callback"); stack.push(lambda *a: print("push", a[0]))
class Timed(ContextDecorator):
    def __enter__(self): print("start"); return self
    def __exit__(self, *a): print("stop")
@Timed()
def work(): return 5
print(work())
class Own(Exception): pass
with suppress(Own): raise Own("x")
with (Managed("p"), Managed("q")):
    pass
with Managed("last"):
    raise Own("out")

# ---- exceptions: chains, groups, notes, finally
class AppError(Exception):
    def __init__(self, code, detail=None): super().__init__(code, detail); self.code, self.detail = code, detail
    def __str__(self): return f"[{self.code}] {self.detail or 'unknown'}"
def f(n):
    try:
        if n == 0: raise ValueError("zero")
        if n == 1: return "returned"
        if n == 2: {}["k"]
        return n
    except KeyError as e:
        raise AppError(404, "missing") from e
    else: print("else")
    finally: print("finally", n)
for n in range(4):
    try: print(f(n))
    except AppError as e: print(type(e).__name__, e, e.args, repr(e.__cause__), e.code)
    except (ValueError, TypeError) as e: print("other", e, e.__cause__, type(e) == ValueError)
try:
    try: 1 / 0
    except ZeroDivisionError: int("x")
except ValueError as e: print(type(e.__context__).__name__, e.__suppress_context__); e.add_note("a note"); print(e.__notes__)
try:
    raise ExceptionGroup("many", [ValueError(1), TypeError(2), ExceptionGroup("deep", [KeyError(3)])])
except* ValueError as g: print("values", g.exceptions)
except* (TypeError, KeyError) as g: print("rest", g.exceptions)
def loop():
    for i in range(3):
        try: continue
        finally: print("f", i)
    while True:
        try: break
        finally: print("broke")
    return "done"
print(loop())
assert 1 + 1 == 2, "fine"
try: assert False, (1, 2)
except AssertionError as e: print(e.args)
raise AppError(500) from RuntimeError("root")

# ---- match statements
from dataclasses import dataclass
@dataclass
class Click: x: int; y: int; button: str = "left"
class Key:
    __match_args__ = ("name",)
    def __init__(self, name): self.name = name
def what(v):
    match v:
        case None: return "none"
        case True | False: return "bool"
        case int(n) if n > 100: return f"big {n}"
        case int() | float(): return "number"
        case "go" | "run" as word: return f"word {word}"
        case str(s): return f"text {len(s)}"
        case []: return "empty"
        case [x]: return f"one {x}"
        case [first, *rest, last]: return f"{first}..{last} ({len(rest)})"
        case {"type": "user", "name": str(name), **more}: return f"user {name} {more}"
        case {"items": [{"id": i}, *_]}: return f"item {i}"
        case {}: return "dict"
        case Click(x=0, y=y): return f"left edge {y}"
        case Click(x, y, "right"): return f"right {x},{y}"
        case Click(): return "click"
        case Key("esc"): return "escape"
        case Key(n): return f"key {n}"
        case (a, b) | {"a": a, "b": b}: return "pair"
        case _: return type(v).__name__
for v in [None, True, 500, 5, 1.5, "go", "hello", [], [1], (1, 2, 3), {"type": "user", "name": "A", "z": 1}, {"items": [{"id": 9}, 1]}, {}, Click(0, 5), Click(1, 2, "right"), Click(3, 3), Key("esc"), Key("f1"), {1, 2}]:
    print(what(v), end="; ")
print()
match {"a": 1}:
    case {"b": x}: pass
print(x)

# ---- closures, decorators, partial functions, caches
import functools
def counter():
    n = 0
    def inc(by=1):
        nonlocal n; n += by; return n
    return inc
c = counter(); c(); print(c(5), c.__closure__[0].cell_contents)
def retry(times, *kinds):
    def wrap(f):
        @functools.wraps(f)
        def inner(*a, **k):
            for i in range(times):
                try: return f(*a, **k)
                except kinds as e: print("try", i, e)
            raise RuntimeError(f"{f.__name__} failed") from e if False else None
        inner.calls = times
        return inner
    return wrap
tries = []
@retry(3, ValueError)
def flaky(x, *, y=2):
    "doc"
    tries.append(x)
    if len(tries) < 3: raise ValueError(len(tries))
    return x + y
print(flaky(1, y=5), flaky.__name__, flaky.__doc__, flaky.calls)
@functools.lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(80), fib.cache_info())
@functools.singledispatch
def show(v): return f"any {v}"
@show.register
def _(v: int): return f"int {v}"
@show.register(list)
def _(v): return f"list {len(v)}"
print(show(1), show([1]), show("x"), functools.partial(pow, 2)(5), functools.reduce(lambda a, b: a + b, [[1], [2]]))
class C:
    @functools.cached_property
    def slow(self): print("computing"); return 42
o = C(); print(o.slow, o.slow)
fs = [lambda i=i: i for i in range(3)] + [lambda: i for i in range(3)]
print([f() for f in fs])
def args(a, b=2, /, c=3, *rest, d, e=5, **kw): return (a, b, c, rest, d, e, kw)
print(args(1, d=4), args(1, 2, 3, 4, 5, d=6, z=7), args(*[1, 2], **{"d": 0, "a": 9}))
args(1)

# ---- scopes, global, del, walrus, unpacking, chained comparisons
count = 0
def bump():
    global count, made
    count += 1; made = "global made"
bump(); bump(); print(count, made)
a, *b, (c, d), e = 1, 2, 3, (4, 5), 6
print(a, b, c, d, e); a, b = b, a; print(a, b)
x = y = []; x.append(1); print(y, x is y)
if (n := len("walrus")) > 3: print(n, [m for w in ["a", "bb"] if (m := len(w)) > 1], m)
print(1 < 2 < 3 != 4, 1 < 3 > 2, not 0 or 1 and 2, 5 if n else 6, [] or "default", None is None)
d = {**{"a": 1}, "b": 2, **{"a": 3}}; d |= {"c": 4}; print(d, d.pop("a"), d.setdefault("z", []), d.get("q", 0), {"x": 1} | {"y": 2})
l = [0, 1, 2, 3, 4, 5]; l[1:3] = ["x"]; del l[-1]; l[::2] = [9, 9]; print(l, l[::-1], sorted(set("hello")), {*"ab"} ^ {*"bc"})
for i in range(3):
    for j in range(3):
        if j == 1: continue
        if i == 1: break
    else: print("inner done", i)
else: print("outer done")
while count: count -= 1
else: print("zero")
del l
print(l)

# ---- deep recursion and big loops
import sys
def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
print(depth(900), sys.getrecursionlimit())
def ack(m, n): return n + 1 if m == 0 else ack(m - 1, 1) if n == 0 else ack(m - 1, ack(m, n - 1))
print(ack(2, 3), sum(i * i for i in range(200_000)), len(str(3 ** 5000)))
sys.setrecursionlimit(3000); print(depth(2500))
def hanoi(n, a="A", b="B", c="C"): return [] if n == 0 else hanoi(n - 1, a, c, b) + [(a, c)] + hanoi(n - 1, b, a, c)
print(len(hanoi(10)), hanoi(2))
try: depth(10 ** 6)
except RecursionError as e: print("too deep:", str(e)[:30])
def forever(): return forever()
forever()

# ---- errors keep their lines through try, with and finally
class Guard:
    def __enter__(self): return self
    def __exit__(self, *a): return False
def run(step):
    with Guard():
        try:
            if step == 1:
                pass
            value = {"a": 1}
            result = value["b"]
            print("not here")
        finally:
            x = 1
            y = 2
        z = 3
    return z
try:
    run(0)
except KeyError as e:
    import traceback
    print([f.lineno for f in traceback.extract_tb(e.__traceback__)], traceback.format_exception_only(e))
def outer():
    with Guard() as g, Guard():
        for i in range(3):
            try:
                if i == 2:
                    raise RuntimeError(
                        "line of the raise",
                    )
            except ValueError:
                pass
outer()

# ---- an error in a multi-line expression
values = [1, 2, 0, 4]
def ratio(a, b):
    return (
        a
        /
        b
    )
total = sum(
    ratio(10, v)
    for v in values
    if v != 99
)

# ---- an error inside a class body, a decorator and a default
def check(f):
    if f.__name__ == "bad":
        raise NameError("bad name")
    return f
class Fine:
    @check
    def good(self, x=len("abc")): return x
print(Fine().good())
class Wrong:
    x = 1
    @check
    def bad(self): pass

# ---- an error in a lambda in a comprehension
handlers = {name: (lambda v, n=name: v[n]) for name in ("a", "b")}
print(handlers["a"]({"a": 1}))
print([h({"a": 2}) for h in handlers.values()])

# ---- unicode columns and tabs
naïve = {"größe": 1}
if True:
	for ключ in naïve:
		print(ключ, naïve["größe"] + naïve["größe"], naïve["fehlt" if ключ else "größe"])

# ---- system exit with a code
import sys
print("before")
try:
    sys.exit(0)
except SystemExit as e:
    print("code", e.code)
def main():
    try:
        sys.exit("bad input")
    finally:
        print("cleaned up")
main()

# ---- del, __del__ and reference counts
import gc, sys
log = []
class Res:
    def __init__(self, n): self.n = n
    def __del__(self): log.append(self.n)
r = Res(1); r = Res(2); print(log); del r; print(log)
def f():
    x = Res(3)
    return len(log)
print(f(), log)
a = Res(4); b = Res(5); a.o, b.o = b, a; del a, b; gc.collect(); print(sorted(log))
cycle = []; cycle.append(cycle); print(cycle, sys.getrefcount(cycle) > 1)
class Slots:
    __slots__ = ("a",)
s = Slots(); s.a = 1
s.b = 2
