import binascii as _tg_native_binascii

_tg_Failure = _tg_native_binascii.Error


_tg_at = 0


def _tg_check(value, isinstance=isinstance, Failure=_tg_Failure):
    if isinstance(value, Failure):
        raise _tg_failed(value)
    return value


def _tg_check_all(values, isinstance=isinstance, Failure=_tg_Failure):
    for value in values:
        if isinstance(value, Failure):
            raise _tg_failed(value)
    return values


def _tg_failed(failure):
    tool, _, rest = failure.args[0].partition("\x00")
    return RuntimeError(tool + ": " + rest.partition("\x00")[2])


def _tg_kept(error):
    return error


# Other tasks may have run meanwhile.
def _tg_check_at(value, at):
    global _tg_at
    _tg_at = at
    return _tg_check(value)


def _tg_check_all_at(values, at):
    global _tg_at
    _tg_at = at
    return _tg_check_all(values)


def _tg_go(at):
    global _tg_at
    before = _tg_at
    _tg_at = at
    return before


def _tg_back(before, value):
    global _tg_at
    _tg_at = before
    return value
