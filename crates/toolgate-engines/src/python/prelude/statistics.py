import math as _tg_native_math


def _tg_make_statistics(native, sum=sum, len=len, list=list, sorted=sorted, max=max, zip=zip, range=range, float=float, isinstance=isinstance, min=min):
    def data(values, least=1, problem="mean requires at least one data point"):
        values = list(values)
        if len(values) < least:
            raise ValueError(problem)
        return values

    def converted(number, divisor, power, values):
        # Integers stay integers where that is exact.
        if number % divisor == 0 and not [value for value in values if isinstance(value, float)]:
            return number // divisor
        return _tg_quotient(number, divisor, power)

    def mean(values):
        values = data(values)
        numbers, power = _tg_integers(values)
        return converted(sum(numbers), len(values), power, values)

    def fmean(values, weights=None):
        values = data(values, 1, "fmean requires at least one data point")
        if weights is not None:
            weights = list(weights)
            values = [value * weight for value, weight in zip(values, weights)]
        return total(values) / (len(values) if weights is None else total(weights))

    def total(values):
        numbers, power = _tg_integers(values)
        return _tg_quotient(sum(numbers), 1, power)

    def median(values):
        values = sorted(data(values, 1, "no median for empty data"))
        middle = len(values) // 2
        return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2

    def median_low(values):
        values = sorted(data(values, 1, "no median for empty data"))
        return values[(len(values) - 1) // 2]

    def median_high(values):
        values = sorted(data(values, 1, "no median for empty data"))
        return values[len(values) // 2]

    def counts(values):
        found = {}
        for value in data(values, 1, "no mode for empty data"):
            found[value] = found.get(value, 0) + 1
        return found

    def mode(values):
        found = counts(values)
        most = max(found.values())
        return [value for value, count in found.items() if count == most][0]

    def multimode(values):
        values = list(values)
        if not values:
            return []
        found = counts(values)
        most = max(found.values())
        return [value for value, count in found.items() if count == most]

    def spread(values, free):
        numbers, power = _tg_integers(values)
        squares = len(values) * sum([number * number for number in numbers]) - sum(numbers) ** 2
        return squares, len(values) * (len(values) - free), 2 * power

    def variance(values, xbar=None):
        values = data(values, 2, "variance requires at least two data points")
        return converted(*spread(values, 1), values)

    def pvariance(values, mu=None):
        values = data(values, 1, "pvariance requires at least one data point")
        return converted(*spread(values, 0), values)

    def stdev(values, xbar=None):
        return _tg_square_root(*spread(data(values, 2, "stdev requires at least two data points"), 1))

    def pstdev(values, mu=None):
        return _tg_square_root(*spread(data(values, 1, "pstdev requires at least one data point"), 0))

    def geometric_mean(values):
        return native.exp(fmean([native.log(value) for value in data(values)]))

    def harmonic_mean(values, weights=None):
        if weights is not None:
            _tg_refuse("harmonic_mean() with weights: write sum(weights) / sum(w / x for w, x in zip(weights, values))")
        values = data(values, 1, "harmonic_mean requires at least one data point")
        if [value for value in values if value < 0]:
            raise ValueError("harmonic mean does not support negative values")
        if len(values) == 1 or 0 in values:
            return values[0] if len(values) == 1 else 0
        numbers, power = _tg_integers([1 / value for value in values])
        return _tg_quotient(len(values), sum(numbers), -power)

    def quantiles(values, n=4, method="exclusive"):
        values = sorted(data(values, 2, "must have at least two data points"))
        last = len(values) - 1
        cuts = []
        for index in range(1, n):
            if method == "inclusive":
                low, rest = (index * last) // n, (index * last) % n
                cuts.append((values[low] * (n - rest) + values[low + 1] * rest) / n)
            else:
                low = min(max(index * (last + 2) // n, 1), last)
                rest = index * (last + 2) - low * n
                cuts.append((values[low - 1] * (n - rest) + values[low] * rest) / n)
        return cuts

    return _tg_module("statistics", {
        "mean": mean, "fmean": fmean, "median": median, "median_low": median_low, "median_high": median_high,
        "mode": mode, "multimode": multimode, "variance": variance, "pvariance": pvariance, "stdev": stdev,
        "pstdev": pstdev, "geometric_mean": geometric_mean, "harmonic_mean": harmonic_mean, "quantiles": quantiles,
        "StatisticsError": ValueError,
    })


_tg_statistics = _tg_make_statistics(_tg_native_math)
