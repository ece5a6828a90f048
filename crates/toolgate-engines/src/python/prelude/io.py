def _tg_make_io(iter=iter, len=len):
    class StringIO:
        def __init__(self, initial_value="", newline=None):
            self._text = initial_value
            self._at = 0

        def write(self, text):
            self._text += text
            return len(text)

        def writelines(self, lines):
            for line in lines:
                self._text += line

        def getvalue(self):
            return self._text

        def read(self, size=-1):
            rest = self._text[self._at:] if size is None or size < 0 else self._text[self._at:self._at + size]
            self._at += len(rest)
            return rest

        def readline(self):
            end = self._text.find("\n", self._at)
            end = len(self._text) if end < 0 else end + 1
            line = self._text[self._at:end]
            self._at = end
            return line

        def readlines(self):
            return self.read().splitlines(True)

        def seek(self, place, whence=0):
            self._at = place
            return place

        def tell(self):
            return self._at

        def flush(self):
            pass

        def close(self):
            pass

        def __enter__(self):
            return self

        def __exit__(self, kind, error, trace):
            return False

        def __iter__(self):
            return iter(self.readlines())

    return _tg_module("io", {"StringIO": StringIO})


_tg_io = _tg_make_io()
