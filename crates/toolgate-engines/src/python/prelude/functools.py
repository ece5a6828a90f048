def _tg_make_functools(tuple=tuple, sorted=sorted, type=type, id=id):
    def cached(function):
        kept = {}

        def wrapper(*arguments, **named):
            key = (arguments, tuple(sorted(named.items())))
            if key not in kept:
                kept[key] = function(*arguments, **named)
            return kept[key]

        return wrapper

    def lru_cache(maxsize=128, typed=False):
        if type(maxsize).__name__ == "function":
            return cached(maxsize)
        return cached

    def update_wrapper(wrapper, wrapped, *arguments):
        # Both are kept, so that nothing else gets their numbers.
        _tg_wrapped[id(wrapper)] = (wrapper, wrapped)
        return wrapper

    def wraps(wrapped, *arguments, **named):
        return lambda wrapper: update_wrapper(wrapper, wrapped)

    return _tg_module("functools", {"lru_cache": lru_cache, "cache": cached, "wraps": wraps, "update_wrapper": update_wrapper})


_tg_functools = _tg_make_functools()
