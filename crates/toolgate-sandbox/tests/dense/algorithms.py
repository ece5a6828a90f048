# ---- shortest paths with a heap
import heapq
from collections import defaultdict
edges = [("a", "b", 4), ("a", "c", 1), ("c", "b", 2), ("b", "d", 5), ("c", "d", 8)]
graph = defaultdict(dict)
for u, v, w in edges: graph[u][v] = w; graph[v][u] = w
def dijkstra(start):
    dist, prev, heap = {start: 0}, {}, [(0, start)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > dist[u]: continue
        for v, w in graph[u].items():
            if (n := d + w) < dist.get(v, float("inf")): dist[v], prev[v] = n, u; heapq.heappush(heap, (n, v))
    return dist, prev
dist, prev = dijkstra("a"); print(dist, prev)
path, node = [], "d"
while node: path.append(node); node = prev.get(node)
print("->".join(reversed(path)), dijkstra("zz")[0])
print(dist["nowhere"])

# ---- an expression parser and evaluator
import re, operator
class ParseError(ValueError): pass
TOKEN = re.compile(r"\s*(?:(\d+\.?\d*)|(.))")
class Parser:
    OPS = {"+": (1, operator.add), "-": (1, operator.sub), "*": (2, operator.mul), "/": (2, operator.truediv), "^": (3, operator.pow)}
    def __init__(self, text): self.tokens = [(n, o) for n, o in TOKEN.findall(text)] + [("", "")]; self.i = 0
    @property
    def peek(self): return self.tokens[self.i]
    def next(self): t = self.peek; self.i += 1; return t
    def atom(self):
        n, o = self.next()
        if n: return float(n)
        if o == "-": return -self.atom()
        if o == "(":
            v = self.expr(0)
            if self.next()[1] != ")": raise ParseError("expected )")
            return v
        raise ParseError(f"unexpected {o!r}")
    def expr(self, least):
        left = self.atom()
        while self.peek[1] in self.OPS and self.OPS[self.peek[1]][0] >= least:
            o = self.next()[1]; p, f = self.OPS[o]
            left = f(left, self.expr(p if o == "^" else p + 1))
        return left
for e in ("1 + 2 * 3", "(1+2)*3", "2^3^2", "-4 / 2 - 1", "10 / 4"): print(e, "=", Parser(e).expr(0))
Parser("2 * (3 + ").expr(0)

# ---- an LRU cache with a linked list
class Node:
    __slots__ = ("key", "value", "prev", "next")
    def __init__(self, key=None, value=None): self.key, self.value, self.prev, self.next = key, value, None, None
class LRU:
    def __init__(self, size):
        self.size, self.map = size, {}
        self.head, self.tail = Node(), Node(); self.head.next, self.tail.prev = self.tail, self.head
    def _cut(self, n): n.prev.next, n.next.prev = n.next, n.prev
    def _front(self, n): n.next, n.prev = self.head.next, self.head; self.head.next.prev = n; self.head.next = n
    def __getitem__(self, key):
        n = self.map[key]; self._cut(n); self._front(n); return n.value
    def __setitem__(self, key, value):
        if key in self.map: self._cut(self.map[key])
        elif len(self.map) >= self.size: old = self.tail.prev; self._cut(old); del self.map[old.key]
        self.map[key] = n = Node(key, value); self._front(n)
    def __iter__(self):
        n = self.head.next
        while n is not self.tail: yield n.key; n = n.next
    def __contains__(self, key): return key in self.map
cache = LRU(2); cache["a"] = 1; cache["b"] = 2; cache["a"]; cache["c"] = 3
print(list(cache), "b" in cache, cache["a"], list(cache))
cache["b"]

# ---- matrices with operators
class Matrix:
    def __init__(self, rows):
        self.rows = [list(r) for r in rows]
        if len({len(r) for r in self.rows}) > 1: raise ValueError("rows differ in length")
    @classmethod
    def identity(cls, n): return cls([[int(i == j) for j in range(n)] for i in range(n)])
    @property
    def shape(self): return len(self.rows), len(self.rows[0])
    @property
    def T(self): return Matrix(zip(*self.rows))
    def __matmul__(self, o):
        if self.shape[1] != o.shape[0]: raise ValueError(f"{self.shape} @ {o.shape}")
        return Matrix([[sum(a * b for a, b in zip(r, c)) for c in zip(*o.rows)] for r in self.rows])
    def __pow__(self, n):
        result, base = Matrix.identity(len(self.rows)), self
        while n:
            if n & 1: result = result @ base
            base, n = base @ base, n >> 1
        return result
    def __getitem__(self, ij): i, j = ij; return self.rows[i][j]
    def __eq__(self, o): return self.rows == o.rows
    def __repr__(self): return "\n".join(" ".join(f"{v:>6}" for v in r) for r in self.rows)
m = Matrix([[1, 1], [1, 0]]); print(m ** 30, (m ** 30)[0, 1], m.T == m, sep="\n")
def det(a):
    if len(a) == 1: return a[0][0]
    return sum((-1) ** j * a[0][j] * det([r[:j] + r[j + 1:] for r in a[1:]]) for j in range(len(a)))
print(det([[2, 0, 1], [1, 3, 2], [1, 1, 1]]))
m @ Matrix([[1, 2, 3]])

# ---- n queens, permutations and sudoku
from itertools import permutations
print(sum(1 for c in permutations(range(6)) if len({r + c[r] for r in range(6)}) == len({r - c[r] for r in range(6)}) == 6))
grid = [list(map(int, r)) for r in ("530070000", "600195000", "098000060", "800060003", "400803001", "700020006", "060000280", "000419005", "000080079")]
def free(r, c):
    used = set(grid[r]) | {grid[i][c] for i in range(9)} | {grid[r // 3 * 3 + i][c // 3 * 3 + j] for i in range(3) for j in range(3)}
    return [v for v in range(1, 10) if v not in used]
def solve():
    cells = [(len(free(r, c)), r, c) for r in range(9) for c in range(9) if not grid[r][c]]
    if not cells: return True
    _, r, c = min(cells)
    for v in free(r, c):
        grid[r][c] = v
        if solve(): return True
    grid[r][c] = 0
    return False
print(solve(), *("".join(map(str, r)) for r in grid[:3]))
assert grid[0][0] == 1, f"first cell is {grid[0][0]}"

# ---- a tokenizer, a tree and a visitor
from dataclasses import dataclass, field
from typing import Iterator
@dataclass
class Tag:
    name: str
    kids: list = field(default_factory=list)
    attrs: dict = field(default_factory=dict)
    def walk(self, depth=0) -> Iterator[tuple[int, "Tag"]]:
        yield depth, self
        for k in self.kids: yield from k.walk(depth + 1)
    def __getitem__(self, path): 
        head, _, rest = path.partition("/")
        kid = next(k for k in self.kids if k.name == head)
        return kid[rest] if rest else kid
def parse(text):
    import re
    root = Tag("root"); stack = [root]
    for close, name, attrs, alone in re.findall(r"<(/?)(\w+)([^>]*?)(/?)>", text):
        if close:
            if stack[-1].name != name: raise SyntaxError(f"<{stack[-1].name}> closed by </{name}>")
            stack.pop(); continue
        tag = Tag(name, attrs=dict(re.findall(r'(\w+)="([^"]*)"', attrs))); stack[-1].kids.append(tag)
        if not alone: stack.append(tag)
    return root
tree = parse('<a x="1"><b/><c y="2"><d/></c></a>')
for depth, tag in tree.walk(): print("  " * depth + tag.name, tag.attrs)
print(tree["a/c/d"].name, sum(1 for _ in tree.walk()))
parse("<a><b></a>")

# ---- dynamic programming with memo tables
from functools import cache, lru_cache
def lcs(a, b):
    t = [[""] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b): t[i + 1][j + 1] = t[i][j] + x if x == y else max(t[i][j + 1], t[i + 1][j], key=len)
    return t[-1][-1]
@cache
def edit(a, b): return len(a) + len(b) if not a or not b else min(edit(a[1:], b) + 1, edit(a, b[1:]) + 1, edit(a[1:], b[1:]) + (a[0] != b[0]))
def knapsack(items, cap):
    best = {0: (0, ())}
    for name, w, v in items:
        for c, (val, taken) in list(best.items()):
            if c + w <= cap and best.get(c + w, (-1,))[0] < val + v: best[c + w] = (val + v, taken + (name,))
    return max(best.values())
print(lcs("AGGTAB", "GXTXAYB"), edit("kitten", "sitting"), edit.cache_info().hits > 0, knapsack([("a", 2, 3), ("b", 3, 4), ("c", 4, 5)], 5))
coins = [0] + [10 ** 9] * 30
for c in (1, 5, 12):
    for n in range(c, 31): coins[n] = min(coins[n], coins[n - c] + 1)
print(coins[16], coins[30])
coins[31]

# ---- bank accounts, events and an observer
from collections import defaultdict
from decimal import Decimal as D
import weakref
class InsufficientFunds(Exception):
    def __init__(self, need, have): super().__init__(f"need {need}, have {have}"); self.need, self.have = need, have
class Events:
    def __init__(self): self.handlers = defaultdict(list)
    def on(self, name):
        def deco(f): self.handlers[name].append(f); return f
        return deco
    def emit(self, name, *a): return [h(*a) for h in self.handlers[name]]
class Account:
    events = Events(); all = weakref.WeakValueDictionary()
    def __init__(self, owner, balance="0"): self.owner, self._balance, self.history = owner, D(balance), []; Account.all[owner] = self
    @property
    def balance(self): return self._balance
    def _move(self, amount):
        if self._balance + amount < 0: raise InsufficientFunds(-amount, self._balance)
        self._balance += amount; self.history.append(amount); self.events.emit("moved", self, amount)
    def deposit(self, x): self._move(D(x)); return self
    def transfer(self, other, x): self._move(-D(x)); other._move(D(x))
log = []
@Account.events.on("moved")
def note(account, amount): log.append(f"{account.owner}:{amount:+}")
ann, bob = Account("ann", "10.50"), Account("bob")
ann.deposit("0.25").transfer(bob, "5.75"); print(ann.balance, bob.balance, log, sorted(Account.all))
try: bob.transfer(ann, 100)
except InsufficientFunds as e: print(e, e.need, bob.history)
bob.balance = 5

# ---- a state machine and a simulation
import random
from enum import Enum, auto
class State(Enum): IDLE = auto(); RUN = auto(); DONE = auto()
TABLE = {(State.IDLE, "start"): State.RUN, (State.RUN, "finish"): State.DONE, (State.RUN, "pause"): State.IDLE}
class Machine:
    def __init__(self): self.state, self.seen = State.IDLE, []
    def __call__(self, event):
        try: self.state = TABLE[self.state, event]
        except KeyError: raise RuntimeError(f"{event!r} in {self.state.name}") from None
        self.seen.append(self.state); return self
print([s.name for s in Machine()("start")("pause")("start")("finish").seen])
rng = random.Random(7); walk = [0]
for _ in range(1000): walk.append(walk[-1] + rng.choice((-1, 1)))
print(walk[-1], max(walk), min(walk), sum(1 for a, b in zip(walk, walk[1:]) if a * b < 0 or b == 0))
inside = sum(rng.random() ** 2 + rng.random() ** 2 <= 1 for _ in range(5000)); print(4 * inside / 5000)
Machine()("finish")
