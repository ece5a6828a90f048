def _tg_make_warnings():
    def warn(message, category=None, stacklevel=1):
        _tg_host_write(True, f"warning: {message}\n")

    def ignore(*arguments, **options):
        pass

    return _tg_module("warnings", {"warn": warn, "filterwarnings": ignore, "simplefilter": ignore})


_tg_warnings = _tg_make_warnings()
