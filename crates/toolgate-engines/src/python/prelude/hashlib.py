def _tg_make_hashlib():
    class Hash:
        def __init__(self, name, data=b""):
            self.name = name
            self._parts = [data]

        def update(self, data):
            self._parts.append(data)

        def digest(self):
            return _tg_host_digest(self.name, b"".join(self._parts))

        def hexdigest(self):
            return self.digest().hex()

        def copy(self):
            return Hash(self.name, b"".join(self._parts))

    def new(name, data=b"", **options):
        return Hash(name, data)

    def maker(name):
        return lambda data=b"", **options: Hash(name, data)

    attributes = {"new": new}
    for name in ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"]:
        attributes[name] = maker(name)
    return _tg_module("hashlib", attributes)


_tg_hashlib = _tg_make_hashlib()
