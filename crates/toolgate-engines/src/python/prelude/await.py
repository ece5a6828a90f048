import binascii as _tg_native_binascii

_tg_Failure = _tg_native_binascii.Error


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
    return RuntimeError(failure.args[0].replace("\x00", ": ", 1))


def _tg_kept(error):
    return error
