def _tg_make_operator(getattr=getattr, tuple=tuple, len=len, abs=abs):
    def itemgetter(*keys):
        if len(keys) == 1:
            return lambda value: value[keys[0]]
        return lambda value: tuple([value[key] for key in keys])

    def reach(value, path):
        for name in path.split("."):
            value = getattr(value, name)
        return value

    def attrgetter(*names):
        if len(names) == 1:
            return lambda value: reach(value, names[0])
        return lambda value: tuple([reach(value, name) for name in names])

    def setitem(collection, key, value):
        collection[key] = value

    return _tg_module("operator", {
        "itemgetter": itemgetter, "attrgetter": attrgetter, "setitem": setitem,
        "getitem": lambda a, b: a[b], "contains": lambda a, b: b in a,
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
        "truediv": lambda a, b: a / b, "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b,
        "pow": lambda a, b: a ** b, "neg": lambda a: -a, "abs": abs, "not_": lambda a: not a,
        "and_": lambda a, b: a & b, "or_": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "concat": lambda a, b: a + b,
        "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "truth": lambda a: not not a,
    })


_tg_operator = _tg_make_operator()
