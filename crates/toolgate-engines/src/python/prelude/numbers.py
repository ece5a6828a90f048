def _tg_make_numbers(native_sum, native_round, list=list, isinstance=isinstance, int=int, float=float, bool=bool, str=str, type=type, abs=abs):
    def number(value):
        return int(value) if isinstance(value, bool) else value

    def total(values, start=0):
        if type(values).__name__ not in ("list", "tuple", "range", "set", "dict", "dict_values"):
            # It may be gone through once only.
            values = list(values)
        try:
            return native_sum(values, start)
        except TypeError:
            # Monty does not add up truth values.
            return native_sum([number(value) for value in values], number(start))

    def rounded(value, ndigits=None):
        if ndigits is None or not isinstance(value, float) or value - value != 0:
            return native_round(value, ndigits)
        if ndigits > 323:
            return value
        if ndigits >= 0:
            return float(f"{value:.{ndigits}f}")
        if ndigits < -308:
            return 0.0 * value
        # Half of a step goes to the even neighbour, and there is nothing inexact among integers.
        scale = 10 ** -ndigits
        size = abs(value)
        whole = int(size)
        steps = whole // scale
        rest = 2 * (whole - steps * scale)
        if rest > scale or (rest == scale and (size != whole or steps % 2 == 1)):
            steps += 1
        # By way of its text: Monty makes no float of a large integer.
        result = float(str(steps * scale))
        return -result if value < 0 else result

    return number, total, rounded


_tg_number, _tg_sum, _tg_round = _tg_make_numbers(sum, round)
