def _tg_make_bisect(len=len):
    def bisect_left(values, wanted, lo=0, hi=None, key=None):
        hi = len(values) if hi is None else hi
        while lo < hi:
            middle = (lo + hi) // 2
            value = values[middle] if key is None else key(values[middle])
            if value < wanted:
                lo = middle + 1
            else:
                hi = middle
        return lo

    def bisect_right(values, wanted, lo=0, hi=None, key=None):
        hi = len(values) if hi is None else hi
        while lo < hi:
            middle = (lo + hi) // 2
            value = values[middle] if key is None else key(values[middle])
            if wanted < value:
                hi = middle
            else:
                lo = middle + 1
        return lo

    def insort(values, wanted, lo=0, hi=None, key=None):
        values.insert(bisect_right(values, wanted if key is None else key(wanted), lo, hi, key), wanted)

    def insort_left(values, wanted, lo=0, hi=None, key=None):
        values.insert(bisect_left(values, wanted if key is None else key(wanted), lo, hi, key), wanted)

    return _tg_module("bisect", {"bisect_left": bisect_left, "bisect_right": bisect_right, "bisect": bisect_right, "insort": insort, "insort_right": insort, "insort_left": insort_left})


_tg_bisect = _tg_make_bisect()
