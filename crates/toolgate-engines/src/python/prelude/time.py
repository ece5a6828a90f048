import datetime as _tg_native_datetime


def _tg_make_time(native, isinstance=isinstance, int=int):
    def gmtime(seconds=None):
        if seconds is None:
            seconds = _tg_host_time()
        return native.datetime(1970, 1, 1) + native.timedelta(seconds=int(seconds))

    def strftime(pattern, moment=None):
        return (gmtime() if moment is None else moment).strftime(pattern)

    def time_ns():
        return int(_tg_host_time() * 1000000000)

    def mktime(moment):
        return (moment - native.datetime(1970, 1, 1)).total_seconds()

    return _tg_module("time", {
        "time": _tg_host_time, "time_ns": time_ns, "monotonic": _tg_host_monotonic, "perf_counter": _tg_host_monotonic,
        "process_time": _tg_host_monotonic, "sleep": _tg_host_sleep, "gmtime": gmtime, "localtime": gmtime,
        "strftime": strftime, "mktime": mktime, "timezone": 0,
    })


_tg_time = _tg_make_time(_tg_native_datetime)
