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
    """Changes one page of each library, so that a fork copies the page table of the library.

    Returns the addresses and the sizes of the libraries. Nothing else of them is changed.
    """
    libraries = []
    try:
        with open("/proc/self/smaps") as maps, open("/proc/self/mem", "r+b", buffering=0) as memory:
            for line in maps:
                word, value, *_ = line.split()
                if not word.endswith(":"):
                    first, last = (int(address, 16) for address in word.split("-"))
                    is_read = value in ("r--p", "r-xp")
                elif word == "Anonymous:" and value == "0" and is_read and last - first >= 1 << 17:
                    memory.seek(first)
                    byte = memory.read(1)
                    memory.seek(first)
                    memory.write(byte)
                    libraries.append((first, last - first))
    except OSError:
        # The system does not allow it, and workers start more slowly.
        pass
    return libraries


def forget_pages(libraries):
    """Empties the page tables of the libraries. They fill again with the pages that are used from now on."""
    for first, size in libraries:
        libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), MADV_DONTNEED)


MADV_DONTNEED = 4
