# Keeps a fork cheap. A worker copies each page that it changes, and looks up each page that it reads
# and that the fork has not prepared. Both cost more than most scripts.


def keep_counts():
    """Lets the objects of the zygote live for ever, so that using them does not change them."""
    if sys.version_info < (3, 12):
        return
    field = ctypes.c_uint32.from_address
    immortal = field(id(None)).value
    seen = set()
    pending = gc.get_objects()
    while pending:
        new = []
        for one in pending:
            if id(one) not in seen:
                seen.add(id(one))
                new.append(one)
        pending = gc.get_referents(*new)
    # These exist only here.
    del pending, new, one
    for address in seen:
        field(address).value = immortal


def share_page_tables():
    """Changes one page of each library, so that a fork copies the page table of the library."""
    try:
        with open("/proc/self/maps") as maps, open("/proc/self/mem", "r+b", buffering=0) as memory:
            for line in maps:
                addresses, access, *_ = line.split()
                first, last = (int(address, 16) for address in addresses.split("-"))
                if access in ("r--p", "r-xp") and last - first >= 1 << 17:
                    memory.seek(first)
                    byte = memory.read(1)
                    memory.seek(first)
                    memory.write(byte)
    except OSError:
        # The system does not allow it, and workers start more slowly.
        pass
