def _tg_make_itertools(list=list, tuple=tuple, range=range, len=len, iter=iter, reversed=reversed, next=next):
    def groupby(values, key=None):
        groups = []
        for value in values:
            mark = value if key is None else key(value)
            if groups and groups[-1][0] == mark:
                groups[-1][1].append(value)
            else:
                groups.append((mark, [value]))
        return Groups(groups)

    class Groups:
        def __init__(self, groups):
            self._groups = groups
            self._at = -1

        def __iter__(self):
            return self

        def __next__(self):
            self._at += 1
            if self._at >= len(self._groups):
                raise StopIteration
            mark, members = self._groups[self._at]
            return mark, Members(self, members)

    class Members:
        # They are gone as soon as the next group is asked for.
        def __init__(self, owner, members):
            self._owner = owner
            self._at = owner._at
            self._members = iter(members)

        def __iter__(self):
            return self

        def __next__(self):
            if self._owner._at != self._at:
                raise StopIteration
            return next(self._members)

    def product(*collections, repeat=1):
        results = [()]
        for values in [list(collection) for collection in collections] * repeat:
            results = [result + (value,) for result in results for value in values]
        return iter(results)

    def choices(values, length, again, ordered):
        pool = list(values)
        results = [()]
        for _ in range(length):
            extended = []
            for chosen in results:
                first = 0 if ordered or not chosen else chosen[-1] + (0 if again else 1)
                for index in range(first, len(pool)):
                    if again or index not in chosen:
                        extended.append(chosen + (index,))
            results = extended
        return iter([tuple([pool[index] for index in chosen]) for chosen in results])

    def combinations(values, r):
        return choices(values, r, False, False)

    def combinations_with_replacement(values, r):
        return choices(values, r, True, False)

    def permutations(values, r=None):
        pool = list(values)
        return choices(pool, len(pool) if r is None else r, False, True)

    def tee(values, n=2):
        kept = list(values)
        return tuple([iter(list(kept)) for _ in range(n)])

    return _tg_module("itertools", {
        "groupby": groupby, "product": product, "combinations": combinations,
        "combinations_with_replacement": combinations_with_replacement, "permutations": permutations, "tee": tee,
    })


_tg_itertools = _tg_make_itertools()
