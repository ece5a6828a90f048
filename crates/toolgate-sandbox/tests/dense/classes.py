# ---- a vector with every operator
import math
from functools import total_ordering

@total_ordering
class Vector:
    __slots__ = ("x", "y")
    def __init__(self, x, y): self.x, self.y = x, y
    def __add__(self, other): return Vector(self.x + other.x, self.y + other.y)
    def __radd__(self, other): return self if other == 0 else NotImplemented
    def __sub__(self, other): return Vector(self.x - other.x, self.y - other.y)
    def __mul__(self, k): return Vector(self.x * k, self.y * k)
    __rmul__ = __mul__
    def __matmul__(self, other): return self.x * other.x + self.y * other.y
    def __truediv__(self, k): return Vector(self.x / k, self.y / k)
    def __floordiv__(self, k): return Vector(self.x // k, self.y // k)
    def __mod__(self, k): return Vector(self.x % k, self.y % k)
    def __pow__(self, k, modulo=None): return Vector(pow(self.x, k, modulo), pow(self.y, k, modulo))
    def __neg__(self): return Vector(-self.x, -self.y)
    def __abs__(self): return math.hypot(self.x, self.y)
    def __bool__(self): return bool(self.x or self.y)
    def __len__(self): return 2
    def __iter__(self): yield self.x; yield self.y
    def __getitem__(self, i): return (self.x, self.y)[i]
    def __contains__(self, v): return v in (self.x, self.y)
    def __call__(self, f): return Vector(f(self.x), f(self.y))
    def __eq__(self, other): return isinstance(other, Vector) and tuple(self) == tuple(other)
    def __lt__(self, other): return abs(self) < abs(other)
    def __hash__(self): return hash((self.x, self.y))
    def __repr__(self): return f"Vector({self.x!r}, {self.y!r})"
    def __format__(self, spec): return "<" + ", ".join(format(v, spec) for v in self) + ">"
    def __iadd__(self, other): self.x += other.x; self.y += other.y; return self

a, b = Vector(3, 4), Vector(1, 2)
print(a + b, a - b, a * 2, 3 * b, a @ b, a / 2, a // 2, a % 2, -a, abs(a))
print(bool(Vector(0, 0)), len(a), list(a), a[-1], 4 in a, a(str), a ** 2, pow(a, 2, 5))
print(sorted([a, b, Vector(0, 1)]), max(a, b), a >= b, {a: 1}[Vector(3, 4)], sum([a, b]))
c = a; c += b
print(c is a, f"{a:.2f}", "{:>5}|{!r}".format(b, b))
x, y = a
print(x, y, [*b], a != b)

# ---- diamond inheritance and super
class Base:
    def __init__(self, **left):
        self.log = ["Base"]
        if left: raise TypeError(f"unexpected {sorted(left)}")
    def name(self): return "base"
class Left(Base):
    def __init__(self, left=1, **rest):
        super().__init__(**rest); self.left = left; self.log.append("Left")
    def name(self): return "left>" + super().name()
class Right(Base):
    def __init__(self, right=2, **rest):
        super().__init__(**rest); self.right = right; self.log.append("Right")
    def name(self): return "right>" + super().name()
class Both(Left, Right):
    def name(self): return "both>" + super().name()
both = Both(left=5, right=6)
print(both.log, both.name(), [c.__name__ for c in Both.__mro__])
try:
    Both(other=1)
except TypeError as error:
    print(error)
print(isinstance(both, Right), issubclass(Both, Base), Both.__bases__)

# ---- abstract classes
from abc import ABC, abstractmethod, ABCMeta
class Shape(ABC):
    @property
    @abstractmethod
    def area(self): ...
    @abstractmethod
    def scale(self, k): ...
    def describe(self): return f"{type(self).__name__} of {self.area:.1f}"
    @classmethod
    def __subclasshook__(cls, other): return NotImplemented
class Square(Shape):
    def __init__(self, a): self.a = a
    @property
    def area(self): return self.a ** 2
    def scale(self, k): return Square(self.a * k)
print(Square(3).scale(2).describe())
class Broken(Shape):
    area = 1
for kind in (Shape, Broken):
    try:
        kind()
    except TypeError as error:
        print("abstract" in str(error), sorted(kind.__abstractmethods__))
@Shape.register
class Odd: pass
print(isinstance(Odd(), Shape), type(Shape) is ABCMeta)

# ---- descriptors, __set_name__ and properties
class Typed:
    def __init__(self, kind, default=None): self.kind, self.default = kind, default
    def __set_name__(self, owner, name): self.name = name; owner.__dict__.get("fields", []).append(name)
    def __get__(self, instance, owner):
        if instance is None: return self
        return instance.__dict__.get(self.name, self.default)
    def __set__(self, instance, value):
        if not isinstance(value, self.kind):
            raise TypeError(f"{self.name} must be {self.kind.__name__}, not {type(value).__name__}")
        instance.__dict__[self.name] = value
    def __delete__(self, instance): del instance.__dict__[self.name]
class Person:
    fields = []
    name = Typed(str)
    age = Typed(int, 18)
    @property
    def initials(self): return "".join(p[0] for p in self.name.split())
    @initials.setter
    def initials(self, value): self.name = " ".join(f"{c}." for c in value)
    @initials.deleter
    def initials(self): self.name = "?"
p = Person()
p.name = "Ada Lovelace"
print(p.fields, p.age, p.initials)
p.initials = "XY"; print(p.name)
del p.initials; print(p.name)
del p.name; print(p.name)
p.age = "old"

# ---- metaclasses and __init_subclass__
class Registry(type):
    known = {}
    def __new__(mcls, name, bases, space, tag=None, **kw):
        cls = super().__new__(mcls, name, bases, space, **kw)
        cls.tag = tag or name.lower()
        mcls.known[cls.tag] = cls
        return cls
    def __init__(cls, name, bases, space, tag=None, **kw): super().__init__(name, bases, space)
    def __call__(cls, *a, **k):
        made = super().__call__(*a, **k); made.made = True; return made
    def __len__(cls): return len(cls.known)
    def __contains__(cls, tag): return tag in cls.known
class Plugin(metaclass=Registry): pass
class Csv(Plugin, tag="csv"): pass
class Json(Plugin): pass
print(sorted(Registry.known), len(Plugin), "csv" in Plugin, Csv().made, Json.tag)
class Auto:
    subs = []
    def __init_subclass__(cls, /, prio=0, **kw):
        super().__init_subclass__(**kw); Auto.subs.append((prio, cls.__name__))
class A(Auto, prio=2): pass
class B(Auto): pass
print(sorted(Auto.subs))
print(type("Dyn", (A,), {"x": 1, "get": lambda self: self.x * 2})().get())

# ---- __getattr__, __setattr__, __dir__ and __new__
class Record:
    def __new__(cls, *a, **k):
        self = super().__new__(cls)
        object.__setattr__(self, "_data", {})
        return self
    def __init__(self, **data): self._data.update(data)
    def __getattr__(self, name):
        try: return self._data[name]
        except KeyError: raise AttributeError(f"no {name!r} here") from None
    def __setattr__(self, name, value): self._data[name] = value
    def __delattr__(self, name): del self._data[name]
    def __dir__(self): return sorted(self._data)
r = Record(a=1)
r.b = [2]
r.b.append(3)
del r.a
print(dir(r), r.b, hasattr(r, "a"), getattr(r, "zz", "default"))
class One:
    made = None
    def __new__(cls):
        if cls.made is None: cls.made = super().__new__(cls)
        return cls.made
print(One() is One(), vars(One()))
print(r.missing)

# ---- comparison, bool and containers of own types
class Bag:
    def __init__(self, items=()): self.items = list(items)
    def __len__(self): return len(self.items)
    def __getitem__(self, key):
        if isinstance(key, slice): return Bag(self.items[key])
        return self.items[key]
    def __setitem__(self, key, value): self.items[key] = value
    def __delitem__(self, key): del self.items[key]
    def __reversed__(self): return iter(self.items[::-1])
    def __missing__(self, key): return 0
    def __or__(self, other): return Bag(self.items + other.items)
    def __ror__(self, other): return Bag(other + self.items)
    def __and__(self, other): return Bag(i for i in self.items if i in other.items)
    def __invert__(self): return Bag(-i for i in self.items)
    def __lshift__(self, item): self.items.append(item); return self
    def __index__(self): return len(self.items)
    def __int__(self): return sum(self.items)
    def __float__(self): return sum(self.items) / 2
    def __round__(self, n=0): return round(float(self), n)
    def __bytes__(self): return bytes(self.items)
    def __repr__(self): return f"Bag({self.items})"
bag = Bag([1, 2, 3])
bag[0] = 9; del bag[1]
print(bag, bag[0:1], list(reversed(bag)), bag | Bag([4]), [0] | bag, bag & Bag([3]), ~bag)
print((bag << 7) << 8, [10, 20, 30, 40, 50][bag], int(bag), float(bag), round(bag, 1), bytes(bag), "x" * bag)
print(9 in bag, not Bag(), [i for i in bag], hex(bag), bag[10:])

# ---- class scope, nested classes, class methods and static methods
x = "module"
class Outer:
    x = "class"
    y = [x for _ in range(2)]
    squares = {n: n * n for n in range(4) if n % 2}
    if True:
        def early(self): return x
    else:
        def late(self): return 1
    for name in ("one", "two"):
        locals()[name] = name.upper()
    class Inner:
        def __init__(self, v): self.v = v
        class Deep:
            z = "deep"
    @classmethod
    def make(cls, *a): return cls.Inner(a)
    @staticmethod
    def helper(a, b=2): return a + b
class Child(Outer):
    class Inner(Outer.Inner):
        def __init__(self, v): super().__init__(("child", v))
print(Outer.y, Outer.squares, Outer().early(), Outer.one, Outer.two, Outer.Inner.Deep.z)
print(Outer.make(1).v, Child.make(2).v, Outer.helper(1), Outer().helper(1, 1), Outer.Inner.__qualname__)

# ---- operators that are not there
class A: pass
try:
    A() + A()
except TypeError as e: print(e)
try:
    A() < A()
except TypeError as e: print(e)
try:
    len(A())
except TypeError as e: print(e)
class B:
    def __eq__(self, o): return True
try:
    {B(): 1}
except TypeError as e: print(e)
print([1] < [2], (1, "a") < (1, "b"), {1} < {1, 2}, "a" < "b")
[1, "a"].sort()

# ---- copy, pickle and weak references of own classes
import copy, pickle, weakref, gc
class Node:
    def __init__(self, v, parent=None):
        self.v, self.kids = v, []
        self.parent = parent and weakref.ref(parent)
    def add(self, v): k = Node(v, self); self.kids.append(k); return k
    def __deepcopy__(self, memo):
        new = Node(self.v); memo[id(self)] = new
        new.kids = copy.deepcopy(self.kids, memo); return new
    def __reduce__(self): return (Node, (self.v,), {"kids": self.kids, "parent": None})
root = Node("root"); kid = root.add("kid"); kid.add("grandkid")
twin = copy.deepcopy(root); shallow = copy.copy([root])
print(twin.kids[0].kids[0].v, twin is not root, shallow[0] is root, kid.parent().v)
back = pickle.loads(pickle.dumps(root))
print(back.v, [k.v for k in back.kids])
ref = weakref.ref(root); seen = []
weakref.finalize(root, seen.append, "gone")
del root, shallow; gc.collect()
print(ref() is None, seen)

# ---- enumerations
from enum import Enum, IntEnum, Flag, IntFlag, auto, unique, StrEnum
class Color(Enum):
    RED = 1; GREEN = 2; ALIAS = 1
    @property
    def pretty(self): return self.name.title()
    @classmethod
    def _missing_(cls, value): return cls.GREEN if value == "g" else None
    def __lt__(self, other): return self.value < other.value
print(list(Color), Color(1), Color["GREEN"], Color.ALIAS is Color.RED, Color("g"), Color.RED.pretty, min(Color))
class Perm(Flag):
    R = auto(); W = auto(); X = auto(); RW = R | W
print(Perm.RW, Perm.R in Perm.RW, Perm.R | Perm.X, ~Perm.R & Perm.RW, bool(Perm.R & Perm.W))
class Level(IntEnum):
    LOW = 10; HIGH = 20
print(Level.LOW + 1, Level.HIGH > 15, sorted(Level, reverse=True), f"{Level.LOW}", Level(20).name)
class S(StrEnum):
    A = auto(); B = "bee"
print(S.A, S.B.upper(), S("bee"), {S.A: 1}["a"])
try:
    @unique
    class Bad(Enum):
        A = 1; B = 1
except ValueError as error:
    print(error)
Color(7)
