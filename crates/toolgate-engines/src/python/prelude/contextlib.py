def _tg_make_contextlib():
    class nullcontext:
        def __init__(self, enter_result=None):
            self._value = enter_result

        def __enter__(self):
            return self._value

        def __exit__(self, kind, error, trace):
            return False

        async def __aenter__(self):
            return self._value

        async def __aexit__(self, kind, error, trace):
            return False

    class suppress:
        def __init__(self, *kinds):
            self._kinds = kinds

        def __enter__(self):
            return None

        def __exit__(self, kind, error, trace):
            return error is not None and isinstance(_tg_seen(kind, error)[1], self._kinds)

    return _tg_module("contextlib", {"nullcontext": nullcontext, "suppress": suppress})


_tg_contextlib = _tg_make_contextlib()
