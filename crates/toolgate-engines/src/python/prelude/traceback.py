def _tg_make_traceback():
    def format_exc(limit=None, chain=True):
        return "Traceback (most recent call last):\n  (not kept; print the exception instead)\n"

    def print_exc(limit=None, file=None, chain=True):
        _tg_host_write(True, format_exc())

    def format_exception(error, *arguments):
        return [f"{type(error).__name__}: {error}\n"]

    def print_exception(error, *arguments):
        _tg_host_write(True, format_exception(error)[0])

    return _tg_module("traceback", {"format_exc": format_exc, "print_exc": print_exc, "format_exception": format_exception, "print_exception": print_exception})


_tg_traceback = _tg_make_traceback()
