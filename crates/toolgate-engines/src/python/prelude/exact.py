import math as _tg_native_math


def _tg_make_exact(native, isinstance=isinstance, float=float, int=int, len=len, bin=bin, min=min, divmod=divmod):
    # Numbers as integers with one power of two, so that sums of them are exact and a result is rounded once.
    def integers(values):
        parts = []
        for value in values:
            if isinstance(value, float):
                fraction, exponent = native.frexp(value)
                parts.append((int(fraction * 9007199254740992), exponent - 53))
            else:
                parts.append((int(value), 0))
        power = min([exponent for _, exponent in parts]) if parts else 0
        return [number << (exponent - power) for number, exponent in parts], power

    def bits(number):
        return len(bin(number)) - 2 if number else 0

    def rounded(number, power):
        # The nearest float. The lowest bit says that there was a rest.
        extra = bits(number) - 53
        if extra > 0:
            rest = number & ((1 << extra) - 1)
            number >>= extra
            half = 1 << (extra - 1)
            if rest > half or (rest == half and number & 1):
                number += 1
            power += extra
        return native.ldexp(float(number), power)

    def scaled(number, divisor, width):
        shift = width + bits(divisor) - bits(number)
        shift = shift + shift % 2 if shift > 0 else 0
        whole, rest = divmod(number << shift, divisor)
        return whole, rest, shift

    def quotient(number, divisor, power=0):
        if number < 0:
            return -quotient(-number, divisor, power)
        whole, rest, shift = scaled(number, divisor, 60)
        return rounded(whole << 1 | (1 if rest else 0), power - shift - 1)

    def root(number, divisor, power):
        if power % 2:
            number, power = number << 1, power - 1
        whole, rest, shift = scaled(number, divisor, 120)
        guess = 1 << ((bits(whole) + 1) // 2)
        while whole:
            better = (guess + whole // guess) // 2
            if better >= guess:
                break
            guess = better
        guess = guess if whole else 0
        return rounded(guess << 1 | (1 if rest or guess * guess != whole else 0), (power - shift) // 2 - 1)

    return integers, quotient, root


_tg_integers, _tg_quotient, _tg_square_root = _tg_make_exact(_tg_native_math)
