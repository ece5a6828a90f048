import math as _tg_native_math


def _tg_make_random(native, len=len, list=list, range=range):
    class Random:
        def __init__(self, seed=None):
            self.seed(seed)

        def seed(self, seed=None):
            if seed is not None:
                _tg_refuse("a seed gives other numbers here: leave it out")
            # The seed is that of the run, and this may be made before it.
            self._state = None

        def _next(self):
            state = self._state
            if state is None:
                state = (_tg_host_seed() * 2 + 1) & 0xFFFFFFFFFFFFFFFF
                for _ in range(4):
                    state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
            # A multiplier with a good spectrum; the upper half of the state is the number.
            self._state = state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
            mixed = (state ^ (state >> 29)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
            return mixed ^ (mixed >> 32)

        def random(self):
            return (self._next() >> 11) / 9007199254740992

        def getrandbits(self, bits):
            value = 0
            for _ in range(0, bits, 32):
                value = (value << 32) | (self._next() >> 32)
            return value & ((1 << bits) - 1)

        def randrange(self, start, stop=None, step=1):
            if stop is None:
                start, stop = 0, start
            count = (stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step
            if count <= 0:
                raise ValueError("empty range for randrange()")
            return start + step * (self._next() % count)

        def randint(self, low, high):
            return self.randrange(low, high + 1)

        def uniform(self, low, high):
            return low + (high - low) * self.random()

        def choice(self, values):
            if not len(values):
                raise IndexError("Cannot choose from an empty sequence")
            return values[self._next() % len(values)]

        def choices(self, population, weights=None, cum_weights=None, k=1):
            if cum_weights is not None:
                _tg_refuse("choices() with cum_weights: give weights")
            if weights is None:
                return [self.choice(population) for _ in range(k)]
            ends = []
            total = 0
            for weight in weights:
                total += weight
                ends.append(total)
            chosen = []
            for _ in range(k):
                at = self.random() * total
                low, high = 0, len(ends) - 1
                while low < high:
                    middle = (low + high) // 2
                    if at < ends[middle]:
                        high = middle
                    else:
                        low = middle + 1
                chosen.append(population[low])
            return chosen

        def shuffle(self, values):
            for index in range(len(values) - 1, 0, -1):
                other = self._next() % (index + 1)
                kept = values[index]
                values[index] = values[other]
                values[other] = kept

        def sample(self, population, k):
            pool = list(population)
            if k > len(pool):
                raise ValueError("Sample larger than population or is negative")
            self.shuffle(pool)
            return pool[:k]

        def gauss(self, mu=0.0, sigma=1.0):
            first = 1.0 - self.random()
            return mu + sigma * native.sqrt(-2.0 * native.log(first)) * native.cos(2.0 * native.pi * self.random())

        def expovariate(self, lambd=1.0):
            return -native.log(1.0 - self.random()) / lambd

    shared = Random()
    return _tg_module("random", {
        "Random": Random, "seed": shared.seed, "random": shared.random, "getrandbits": shared.getrandbits,
        "randrange": shared.randrange, "randint": shared.randint, "uniform": shared.uniform, "choice": shared.choice,
        "choices": shared.choices, "shuffle": shared.shuffle, "sample": shared.sample, "gauss": shared.gauss,
        "normalvariate": shared.gauss, "expovariate": shared.expovariate,
    })


_tg_random = _tg_make_random(_tg_native_math)
