import math as _tg_native_math


def _tg_make_statistics(native, sum=sum, len=len, list=list, sorted=sorted, max=max, zip=zip, range=range, int=int):
    def data(values, least=1):
        values = list(values)
        if len(values) < least:
            raise ValueError("mean requires at least one data point" if least == 1 else "variance requires at least two data points")
        return values

    def mean(values):
        values = data(values)
        total = sum(values) / len(values)
        return int(total) if total == int(total) and not [v for v in values if v != int(v)] and sum(values) % len(values) == 0 else total

    def fmean(values, weights=None):
        values = data(values)
        if weights is not None:
            weights = list(weights)
            return sum([value * weight for value, weight in zip(values, weights)]) / sum(weights)
        return sum(values) / len(values)

    def median(values):
        values = sorted(data(values))
        middle = len(values) // 2
        return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2

    def median_low(values):
        values = sorted(data(values))
        return values[(len(values) - 1) // 2]

    def median_high(values):
        values = sorted(data(values))
        return values[len(values) // 2]

    def counts(values):
        found = {}
        for value in data(values):
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
        average = sum(values) / len(values)
        return sum([(value - average) ** 2 for value in values]) / (len(values) - free)

    def variance(values, xbar=None):
        return spread(data(values, 2), 1)

    def pvariance(values, mu=None):
        return spread(data(values), 0)

    def stdev(values, xbar=None):
        return native.sqrt(variance(values))

    def pstdev(values, mu=None):
        return native.sqrt(pvariance(values))

    def harmonic_mean(values):
        values = data(values)
        return len(values) / sum([1 / value for value in values])

    def geometric_mean(values):
        values = data(values)
        return native.exp(sum([native.log(value) for value in values]) / len(values))

    def quantiles(values, n=4, method="exclusive"):
        values = sorted(data(values, 2))
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

    def correlation(first, second):
        first, second = list(first), list(second)
        one, other = sum(first) / len(first), sum(second) / len(second)
        both = sum([(a - one) * (b - other) for a, b in zip(first, second)])
        return both / native.sqrt(sum([(a - one) ** 2 for a in first]) * sum([(b - other) ** 2 for b in second]))

    return _tg_module("statistics", {
        "mean": mean, "fmean": fmean, "median": median, "median_low": median_low, "median_high": median_high,
        "mode": mode, "multimode": multimode, "variance": variance, "pvariance": pvariance, "stdev": stdev,
        "pstdev": pstdev, "harmonic_mean": harmonic_mean, "geometric_mean": geometric_mean, "quantiles": quantiles,
        "correlation": correlation, "StatisticsError": ValueError,
    })


_tg_statistics = _tg_make_statistics(_tg_native_math)
