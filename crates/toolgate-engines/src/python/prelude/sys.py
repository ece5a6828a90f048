def _tg_make_sys(str=str, len=len):
    class Stream:
        def __init__(self, error):
            self._error = error

        def write(self, text):
            _tg_host_write(self._error, text)
            return len(text)

        def writelines(self, lines):
            for line in lines:
                _tg_host_write(self._error, line)

        def flush(self):
            pass

        def isatty(self):
            return False

    def exit(code=None):
        raise SystemExit("" if code is None else str(code))

    return _tg_module("sys", {"stdout": Stream(False), "stderr": Stream(True), "exit": exit, "argv": ["script.py"], "maxsize": 9223372036854775807})


_tg_sys = _tg_make_sys()
