# ---- data classes
from dataclasses import dataclass, field, asdict, astuple, replace, fields, InitVar, KW_ONLY, FrozenInstanceError
from typing import ClassVar
@dataclass(order=True)
class Item:
    sort_index: float = field(init=False, repr=False)
    name: str
    price: float = 0.0
    tags: list[str] = field(default_factory=list, compare=False)
    count: ClassVar[int] = 0
    scale: InitVar[float] = 1.0
    def __post_init__(self, scale):
        self.price *= scale; self.sort_index = self.price; Item.count += 1
items = [Item("b", 2.0), Item("a", 5.0, ["x"], 0.1), Item("c")]
print(sorted(items), Item.count, items[1] == replace(items[1], scale=1.0))
print(asdict(items[1]), astuple(items[0]), [f.name for f in fields(Item)])
@dataclass(frozen=True, slots=True)
class Point:
    x: int
    _: KW_ONLY
    y: int = 0
    @property
    def norm(self): return abs(self.x) + abs(self.y)
p = Point(1, y=-2)
print(p, p.norm, hash(p) == hash(Point(1, y=-2)), {p: "ok"}[Point(1, y=-2)])
try:
    p.x = 5
except FrozenInstanceError as e:
    print(type(e).__name__, e)
@dataclass
class Special(Item):
    extra: dict = field(default_factory=dict)
print(Special("s", 1.5, extra={"k": [1]}), [f.name for f in fields(Special)])
Point(1, 2)

# ---- named tuples and typed dicts
from collections import namedtuple
from typing import NamedTuple, TypedDict, Optional
P = namedtuple("P", "x y z", defaults=[0])
p = P(1, 2)
print(p, p._replace(z=9), p._asdict(), P._make([4, 5, 6]), p.x + p[1], P._fields, p == (1, 2, 0))
class Emp(NamedTuple):
    name: str
    id: int = 3
    def label(self): return f"{self.name}#{self.id}"
e = Emp("Ann")
print(e, e.label(), Emp.__annotations__, [*e], e._field_defaults)
class Movie(TypedDict, total=False):
    name: str
    year: int
m: Movie = {"name": "Brazil"}
m["year"] = 1985
print(m, Movie.__total__)
match e:
    case Emp(name=n, id=i): print("matched", n, i)
x, y, z = p
print(max([P(1, 5), P(2, 0)], key=lambda q: q.y))
p.x = 3

# ---- collections
from collections import Counter, OrderedDict, defaultdict, deque, ChainMap, UserDict
c = Counter("mississippi")
print(c.most_common(2), c["z"], sorted((c + Counter(s=3)).items()), c - Counter("sss"), c & Counter(i=2, p=9), c.total())
c.subtract("iii"); print(c, +c, sorted(c.elements()))
d = defaultdict(lambda: defaultdict(int))
for a, b in [("x", 1), ("x", 2), ("y", 3)]: d[a][b] += 1
print({k: dict(v) for k, v in d.items()})
o = OrderedDict(a=1, b=2, c=3); o.move_to_end("a"); o.move_to_end("c", last=False)
print(o, o.popitem(last=False), list(reversed(o)))
q = deque([1, 2, 3], maxlen=4); q.appendleft(0); q.append(9); q.rotate(1); q.extendleft("ab")
print(q, q.index("a"), q.count(1))
chain = ChainMap({"a": 1}, {"a": 2, "b": 3}); chain["c"] = 4
print(chain["a"], chain["b"], chain.maps[0], dict(chain.new_child({"b": 7})), chain.parents)
class Upper(UserDict):
    def __setitem__(self, k, v): super().__setitem__(k.upper(), v)
u = Upper(a=1); u.update(b=2); print(u, "A" in u)
q[10]

# ---- sorting and grouping
from itertools import groupby, accumulate, chain, combinations, permutations, product, islice, takewhile, dropwhile, zip_longest, count, cycle, tee, starmap, compress, pairwise
from operator import itemgetter, attrgetter, methodcaller
from functools import cmp_to_key, reduce
rows = [{"k": "b", "v": 3}, {"k": "a", "v": 2}, {"k": "b", "v": 1}, {"k": "a", "v": 5}]
rows.sort(key=itemgetter("k", "v"))
print({k: [r["v"] for r in g] for k, g in groupby(rows, itemgetter("k"))})
print(sorted(rows, key=lambda r: (-r["v"], r["k"])), sorted("bAc", key=str.casefold, reverse=True))
print(sorted([3, 1, 2], key=cmp_to_key(lambda a, b: b - a)), reduce(lambda a, b: a * b, range(1, 6), 1))
print(list(accumulate([1, 2, 3], initial=10)), list(chain.from_iterable(["ab", "c"])), list(combinations("abc", 2)))
print(list(permutations([1, 2, 3], 2))[:3], list(product("ab", repeat=2)), list(islice(count(5, 2), 3)))
print(list(takewhile(lambda n: n < 3, [1, 2, 3, 1])), list(dropwhile(lambda n: n < 3, [1, 2, 3, 1])), list(zip_longest("ab", "c", fillvalue="-")))
a, b = tee(iter([1, 2, 3])); next(a)
print(list(zip(a, b)), list(starmap(pow, [(2, 3), (3, 2)])), list(compress("abcd", [1, 0, 1, 0])), list(pairwise("abc")))
print(list(zip(cycle("xy"), range(3))), list(map(methodcaller("upper"), "ab")), list(zip([1, 2], "ab", strict=True)))
list(zip([1], "ab", strict=True))

# ---- decimals and fractions
from decimal import Decimal, getcontext, localcontext, ROUND_HALF_UP, ROUND_DOWN, InvalidOperation, DivisionByZero
from fractions import Fraction
total = sum((Decimal(x) for x in ("0.1", "0.2", "19.99")), Decimal())
print(total, total.quantize(Decimal("0.1"), ROUND_HALF_UP), Decimal("2.675").quantize(Decimal("0.01")), f"{Decimal('1234567.891'):,.2f}")
with localcontext() as ctx:
    ctx.prec = 6
    print(Decimal(1) / Decimal(7), ctx.prec)
print(Decimal(1) / 7, getcontext().prec, Decimal("1E+3").normalize(), Decimal("-0.00"), Decimal("NaN").is_nan())
print(Decimal("7") // 2, Decimal("-7") % 3, divmod(Decimal("7.5"), 2), Decimal(2).sqrt(), Decimal("1.5").as_tuple(), int(Decimal("9.99")))
print(Fraction(3, 4) + Fraction("0.125"), Fraction(0.5), Fraction(22, 7).limit_denominator(5), float(Fraction(1, 3)), Fraction(7, 2) // 1)
try:
    Decimal("abc")
except InvalidOperation as error:
    print(type(error).__name__)
Decimal(1) / Decimal(0)

# ---- statistics and math
import math, statistics as st, cmath, random
v = [2.5, 3.5, 1.0, 9.0, 3.5]
print(st.mean(v), st.median(v), st.mode(v), round(st.stdev(v), 6), round(st.pvariance(v), 6), st.quantiles(v, n=4), st.multimode("aabb"))
print(st.fmean([1, 2]), st.harmonic_mean([40, 60]), round(st.geometric_mean([1, 9, 3]), 6), st.linear_regression([1, 2, 3], [2, 4, 6]))
print(math.isclose(0.1 + 0.2, 0.3), math.fsum([0.1] * 10), math.comb(5, 2), math.perm(5, 2), math.gcd(12, 18, 30), math.lcm(4, 6), math.isqrt(17), math.prod([2, 3, 4]))
print(math.floor(-1.5), math.ceil(-1.5), math.trunc(-1.5), round(2.5), round(-2.675, 2), math.copysign(1, -0.0), math.dist((0, 0), (3, 4)), math.log2(8), math.tau)
print(cmath.sqrt(-1), (1 + 2j) * (3 - 1j), abs(3 + 4j), complex("1+2j").conjugate(), cmath.polar(1j))
r = random.Random(42); print(r.random(), r.randint(1, 100), r.sample(range(50), 4), r.choices("ab", [1, 3], k=5), r.gauss(0, 1))
random.seed("text"); print(random.random(), random.uniform(1, 2), random.shuffle(l := list(range(6))), l, random.getrandbits(20), random.triangular(0, 1))
n = st.NormalDist(100, 15); print(n.cdf(115), n.inv_cdf(0.5), n + 5)
st.mean([])

# ---- integers, bytes and formats
print(2 ** 200, -7 // 2, -7 % 3, divmod(-7, 3), 7 ^ 2, ~5, 1 << 70, int("ff", 16), int("0b101", 0), hex(255), (1023).bit_length(), (5).bit_count())
print(f"{1234567.891:,.1f} {0.256:.1%} {42:#x} {42:08b} {'a':>5}|{'b':^5}|{'c':<5}| {3.0:g} {1e20:.3e} {-5:+d} {5: d} {1_000_000:_}")
print("%5.2f|%-6s|%06d|%x|%s|%r|%%" % (3.14159, "ab", 42, 255, None, "q"), "{0[k]} {1.real} {2!s:>4}".format({"k": 1}, 5, "z"))
b = bytes(range(5)) + b"\xff"; ba = bytearray(b); ba[0] = 65; ba += b"!"
print(b, ba, b.hex(" "), bytes.fromhex("00 ff"), ba.decode("latin-1"), b[1:3], memoryview(b)[2], int.from_bytes(b[:2], "big"), (300).to_bytes(2, "little"))
print("naïve €".encode(), "naïve".encode("ascii", "replace"), b"a,b".split(b","), "abc".encode("utf-16-le"), "\N{BULLET}", ascii("é"), ord("€"))
import struct, array, base64, binascii, zlib, hashlib
print(struct.pack("<IhB", 1, -2, 255), struct.unpack(">H", b"\x01\x02"), struct.calcsize("!Qd"), array.array("i", [1, 2]).tobytes())
print(base64.b64encode(b"hi?>"), base64.urlsafe_b64encode(b"hi?>"), base64.b32encode(b"x"), base64.b64decode("aGk="), binascii.crc32(b"abc"), zlib.decompress(zlib.compress(b"a" * 50)))
print(hashlib.sha256(b"x").hexdigest()[:16], hashlib.md5(b"x").hexdigest(), hashlib.new("sha1", b"x").hexdigest(), hashlib.blake2b(b"x", digest_size=4).hexdigest(), hashlib.sha3_256(b"").hexdigest()[:8])
int("12x")
