def _tg_make_numbers(native_sum, native_round, native_divmod, list=list, isinstance=isinstance, int=int, float=float, bool=bool, str=str, type=type, abs=abs, pow=pow, len=len, range=range, getattr=getattr):
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

    def is_finite(value):
        return isinstance(value, (int, float)) and value - value == 0

    def power(base, exp, mod=None):
        exponent = exp
        if mod is not None:
            if isinstance(exponent, int) and exponent < 0:
                return pow(inverse(base, mod), -exponent, mod)
            return pow(base, exponent, mod)
        if isinstance(exponent, float) and is_finite(exponent) and is_finite(base) and base < 0 and exponent % 1 != 0:
            _tg_refuse("a negative number to the power of a fraction, which is complex: take the power of abs(x)")
        result = base ** exponent
        if isinstance(result, float) and result - result != 0 and is_finite(base) and is_finite(exponent):
            raise OverflowError("(34, 'Numerical result out of range')")
        return result

    def inverse(number, modulus):
        before, now, rest, left = 0, 1, abs(modulus), number % abs(modulus)
        while left:
            before, now, rest, left = now, before - rest // left * now, left, rest % left
        if rest != 1:
            raise ValueError("base is not invertible for the given modulus")
        return before % modulus

    def is_duration(value):
        return type(value).__name__ in ("timedelta", "datetime.timedelta")

    def size(duration):
        return (duration.days * 86400 + duration.seconds) * 1000000 + duration.microseconds

    def true_divided(left, right):
        if is_duration(left):
            if is_duration(right):
                return size(left) / size(right)
            if isinstance(right, float):
                _tg_refuse("a timedelta divided by a fraction: write timedelta(seconds=value.total_seconds() / number)")
        return left / right

    def remainder(left, right):
        if is_duration(left) and is_duration(right):
            return left - right * (size(left) // size(right))
        return left % right

    def floor_divided(left, right):
        if is_duration(left) and is_duration(right):
            return size(left) // size(right)
        if not isinstance(left, float) and not isinstance(right, float):
            return left // right
        if not is_finite(left) or not is_finite(right) or right == 0:
            return left // right
        # The quotient is rounded before it is cut off, so that it may be too large.
        quotient = (left - left % right) / right
        if quotient == 0:
            return 0.0 if (left < 0) == (right < 0) or left == 0 else -0.0
        whole = quotient // 1
        return whole + 1 if quotient - whole > 0.5 else whole

    def divided(left, right):
        if isinstance(left, float) or isinstance(right, float):
            return floor_divided(left, right), left % right
        if is_duration(left) and is_duration(right):
            return floor_divided(left, right), remainder(left, right)
        return native_divmod(left, right)

    def to_float(value):
        # Between digits an underscore is allowed.
        if isinstance(value, str) and "_" in value:
            parts = value.strip().split("_")
            for left, right in [(parts[at], parts[at + 1]) for at in range(len(parts) - 1)]:
                if not left[-1:].isdigit() or not right[:1].isdigit():
                    raise ValueError(f"could not convert string to float: {value!r}")
            return float("".join(parts))
        if isinstance(value, int) and abs(value) >= 1 << 62:
            # By way of its text: Monty makes no float of a large integer.
            result = float(str(value))
            if result - result != 0:
                raise OverflowError("int too large to convert to float")
            return result
        return float(value)

    def number_part(value, name):
        if not isinstance(value, (int, float)) or isinstance(value, float) and name in ("numerator", "denominator"):
            return getattr(value, name)
        if name == "imag":
            return value * 0 if isinstance(value, int) else 0.0
        return 1 if name == "denominator" else number(value)

    return number, total, rounded, power, floor_divided, divided, to_float, number_part, true_divided, remainder


_tg_number, _tg_sum, _tg_round, _tg_pow, _tg_floordiv, _tg_divmod, _tg_float, _tg_number_part, _tg_truediv, _tg_remainder = _tg_make_numbers(sum, round, divmod)
