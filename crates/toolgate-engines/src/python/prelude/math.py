import math as _tg_native_math


def _tg_make_math(native, sum=sum, zip=zip, sorted=sorted, abs=abs, float=float):
    def prod(values, start=1):
        for value in values:
            start *= value
        return start

    def hypot(*values):
        values = [float(value) for value in values]
        if [value for value in values if value - value != 0]:
            return native.inf if [value for value in values if abs(value) == native.inf] else native.nan
        numbers, power = _tg_integers(values)
        return _tg_square_root(sum([number * number for number in numbers]), 1, 2 * power)

    def dist(first, second):
        return hypot(*[one - other for one, other in zip(first, second)])

    def fsum(values):
        # Partial sums that do not overlap, so that no digit is lost on the way.
        partials = []
        for value in values:
            kept = []
            for partial in partials:
                if abs(value) < abs(partial):
                    value, partial = partial, value
                high = value + partial
                low = partial - (high - value)
                if low:
                    kept.append(low)
                value = high
            partials = kept + [value]
        return sum(partials, 0.0)

    return _tg_module("math", {"prod": prod, "hypot": hypot, "dist": dist, "fsum": fsum})


_tg_math = _tg_make_math(_tg_native_math)
