def _tg_make_uuid(str=str, int=int, hash=hash):
    class UUID:
        def __init__(self, hex=None, int=None):
            self.hex = f"{int:032x}" if int is not None else hex.replace("-", "").replace("{", "").replace("}", "").lower()
            if len(self.hex) != 32:
                raise ValueError("badly formed hexadecimal UUID string")

        def __str__(self):
            h = self.hex
            return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"

        def __repr__(self):
            return f"UUID('{str(self)}')"

        def __eq__(self, other):
            return self.hex == other.hex

        def __hash__(self):
            return hash(self.hex)

    def uuid4():
        value = (_tg_host_seed() << 124) ^ (_tg_host_seed() << 62) ^ _tg_host_seed()
        value &= (1 << 128) - 1
        value = (value & ~(0xF000 << 64)) | (4 << 76)
        value = (value & ~(0xC000 << 48)) | (0x8000 << 48)
        return UUID(int=value)

    def named(version, algorithm):
        def make(namespace, name):
            digest = _tg_host_digest(algorithm, bytes.fromhex(namespace.hex) + name.encode())[:16]
            value = int(digest.hex(), 16)
            value = (value & ~(0xF000 << 64)) | (version << 76)
            value = (value & ~(0xC000 << 48)) | (0x8000 << 48)
            return UUID(int=value)

        return make

    return _tg_module("uuid", {
        "UUID": UUID, "uuid4": uuid4, "uuid1": uuid4, "uuid3": named(3, "md5"), "uuid5": named(5, "sha1"),
        "NAMESPACE_DNS": UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        "NAMESPACE_URL": UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8"),
    })


_tg_uuid = _tg_make_uuid()
