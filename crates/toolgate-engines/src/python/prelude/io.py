def _tg_make_io(iter=iter, len=len):
    class StringIO:
        def __init__(self, initial_value="", newline="\n"):
            self._parts = [initial_value]
            self._size = len(initial_value)
            self._at = 0
            self._lines = []

        def getvalue(self):
            if len(self._parts) > 1:
                self._parts = ["".join(self._parts)]
            return self._parts[0]

        def write(self, text):
            self._lines = []
            if self._at < self._size:
                whole = self.getvalue()
                self._parts = [whole[:self._at], text, whole[self._at + len(text):]]
            else:
                self._parts.append(text)
            self._at += len(text)
            self._size = self._at if self._at > self._size else self._size
            return len(text)

        def writelines(self, lines):
            for line in lines:
                self.write(line)

        def read(self, size=-1):
            whole = self.getvalue()
            rest = whole[self._at:] if size is None or size < 0 else whole[self._at:self._at + size]
            self._at += len(rest)
            return rest

        def readline(self):
            if self._at >= self._size:
                return ""
            # The rest is cut into lines once.
            if not self._lines or self._lines_at != self._at:
                place = self._at
                self._lines = self.readlines()[::-1]
                self._at = place
            line = self._lines.pop()
            self._at += len(line)
            self._lines_at = self._at
            return line

        def readlines(self):
            *lines, last = self.read().split("\n")
            return [line + "\n" for line in lines] + ([last] if last else [])

        def seek(self, place, whence=0):
            self._at = self._size if whence == 2 else place
            return self._at

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
