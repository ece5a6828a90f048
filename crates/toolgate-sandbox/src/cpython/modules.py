# The modules that a script can import.
#
# A worker can open no file. So modules that many scripts use are imported here, before the fork.
# The others are kept as bytes in memory that all workers share, and are run when a script imports
# them. Modules in machine code must be imported here, because a worker can load none.
import _imp
import ctypes
import importlib.machinery
import importlib.util
import marshal
import mmap
import os
import traceback

# Python's own modules that are never there: they need a network, files, a terminal or a compiler, and
# a script has none.
LEFT_OUT = frozenset((
    "__phello__", "_aix_support", "_hashlib", "_osx_support", "_ssl", "antigravity", "ctypes", "curses",
    "dbm", "distutils", "ensurepip", "idlelib", "lib2to3", "msilib", "multiprocessing", "pydoc_data",
    "pty", "readline", "ssl", "test", "this", "tkinter", "tty", "turtle", "turtledemo", "venv",
    "webbrowser", "xxlimited", "xxlimited_35", "xxsubtype",
))

# Importing these fails as if they were not installed, until packages are imported that may need them.
for name in LEFT_OUT:
    sys.modules.setdefault(name, None)

# Modules that are imported before the fork.
EAGER = (
    "abc", "ast", "asyncio", "atexit", "base64", "bisect", "calendar", "collections", "collections.abc",
    "concurrent.futures.thread", "contextlib", "contextvars", "copy", "csv", "dataclasses", "datetime",
    "decimal", "enum", "fractions", "functools", "gc", "hashlib", "heapq", "inspect", "io", "itertools",
    "json", "keyword", "linecache", "logging", "math", "numbers", "operator", "os", "pprint", "random",
    "re", "secrets", "statistics", "string", "struct", "textwrap", "threading", "traceback", "types",
    "typing", "urllib.parse", "uuid", "warnings", "weakref", "zoneinfo",
)

# Modules in machine code that modules of the store use.
NATIVE = (
    "_blake2", "_bz2", "_csv", "_elementtree", "_hmac", "_lsprof", "_lzma", "_md5", "_pickle", 
    "_queue", "_sha1", "_sha2", "_sha256", "_sha3", "_sha512", "_sqlite3", "_statistics", "_struct",
    "_typing", "_zstd", "array", "binascii", "cmath", "fcntl", "mmap", "pyexpat", "resource", "select",
    "unicodedata", "zlib",
)


class Store:
    """Modules and time zones as bytes, in memory that is shared and not copied by a fork."""

    def __init__(self):
        self.memory = os.memfd_create("toolgate-modules", os.MFD_CLOEXEC)
        self.size = 0
        self.view = None
        # Where the code or the source of a module is, by its name.
        self.modules = {}
        self.zones = {}
        # Why packages that the configuration allows cannot be imported, by their names.
        self.problems = {}

    def add_file(self, path, start=0, check=None):
        """Copies a file, without its first bytes. Returns `None` if `check` rejects these."""
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if check is not None and not check(os.read(file, start)):
                return None
            first, left = self.size, os.fstat(file).st_size - start
            while left > 0:
                sent = os.sendfile(self.memory, file, start, left)
                if not sent:
                    break
                start += sent
                left -= sent
                self.size += sent
            return first, self.size
        finally:
            os.close(file)

    def close(self):
        self.view = mmap.mmap(self.memory, max(self.size, 1), prot=mmap.PROT_READ)
        os.close(self.memory)

    def read(self, place):
        return self.view[place[0] : place[1]]

    # What the import system calls.

    def find_spec(self, name, path=None, target=None):
        if name in self.problems:
            raise ImportError(f"`{name}` could not be loaded: {self.problems[name]}", name=name)
        module = self.modules.get(name)
        if module is None:
            return None
        place, is_code, is_package, file = module
        spec = importlib.machinery.ModuleSpec(name, self, origin=file, is_package=is_package)
        spec.has_location = True
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name):
        place, is_code, is_package, file = self.modules[name]
        data = self.read(place)
        return marshal.loads(data) if is_code else compile(data, file, "exec", dont_inherit=True)

    def is_package(self, name):
        return self.modules[name][2]

    def get_source(self, name):
        return None

    # Filling it.

    def add_module(self, name, file, is_package):
        try:
            compiled = importlib.util.cache_from_source(file)
            place = self.add_file(compiled, 16, lambda header: is_current(header, file))
        except OSError:
            place = None
        is_code = place is not None
        self.modules[name] = (place or self.add_file(file), is_code, is_package, file)

    def add_folder(self, folder, prefix, is_wanted):
        """Adds all modules below a folder. Returns the names of those in machine code."""
        native = []
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return native
        for entry in entries:
            stem, dot, rest = entry.name.partition(".")
            name = prefix + stem
            if not stem.isidentifier() or not is_wanted(name):
                continue
            if entry.is_dir():
                init = entry.path + "/__init__.py"
                if os.path.isfile(init):
                    self.add_module(name, init, True)
                    native += self.add_folder(entry.path, name + ".", is_wanted)
                elif prefix and stem not in ("test", "tests", "__pycache__"):
                    native += self.add_folder(entry.path, name + ".", is_wanted)
            elif rest == "py" and stem != "__init__" and name != "__main__":
                self.add_module(name, entry.path, False)
            elif dot and "." + rest in importlib.machinery.EXTENSION_SUFFIXES:
                native.append(name)
        return native


def is_current(header, source):
    """Whether compiled code belongs to its source, as the import system decides it."""
    if header[:4] != importlib.util.MAGIC_NUMBER:
        return False
    flags = int.from_bytes(header[4:8], "little")
    if flags:
        # Compiled code with a hash, which whoever installed it vouches for.
        return True
    known = os.stat(source)
    time_and_size = int(known.st_mtime) & 0xFFFFFFFF, known.st_size & 0xFFFFFFFF
    return time_and_size == (int.from_bytes(header[8:12], "little"), int.from_bytes(header[12:16], "little"))


store = Store()


def import_all(packages):
    """Imports what scripts use."""
    for name in EAGER:
        importlib.import_module(name)
    for name in NATIVE:
        try_import(name)
    for name in LEFT_OUT:
        if sys.modules[name] is None:
            del sys.modules[name]
    library = os.path.dirname(os.__file__)
    store.add_folder(library, "", lambda name: name.partition(".")[0] not in LEFT_OUT)
    import_packages(packages)
    if not packages:
        # Packages may use it; a script itself has no use for it.
        for name in [name for name in sys.modules if name.partition(".")[0] in ("ctypes", "_ctypes")]:
            del sys.modules[name]
    add_zones()
    store.close()
    sys.meta_path[:] = [importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter, store]
    sys.path.clear()
    sys.path_hooks.clear()
    sys.path_importer_cache.clear()
    # What the zygote has loaded could be loaded again.
    _imp.create_dynamic = no_machine_code


def no_machine_code(spec, file=None):
    raise ImportError("a script cannot load modules in machine code", name=spec.name, path=spec.origin)


def try_import(name):
    """Imports a module. Returns what went wrong."""
    try:
        importlib.import_module(name)
    except (Exception, SystemExit) as error:
        return traceback.format_exception_only(error)[-1].strip()[:300]


def import_packages(packages):
    if not packages:
        return
    import site

    known = site.removeduppaths()
    site.addsitepackages(site.venv(known))
    for package in packages:
        problem = try_import(package)
        if problem is None:
            add_package(sys.modules[package])
        else:
            # A script that imports it, and `toolgate engines`, say why.
            store.problems[package] = problem


def add_package(module):
    """Adds the parts of a package that its import has not loaded."""
    name = module.__name__.partition(".")[0]
    top = sys.modules.get(name)
    if name in sys.builtin_module_names or name in sys.stdlib_module_names:
        return
    folders = getattr(top, "__path__", None)
    if folders is None:
        return

    def is_wanted(name):
        parts = name.split(".")
        return not any(part in ("test", "tests", "testing", "conftest") for part in parts[1:])

    for folder in list(folders):
        for extension in store.add_folder(folder, name + ".", is_wanted):
            try_import(extension)


def add_zones():
    """Reads the time zones, which `zoneinfo` would open files for."""
    import zoneinfo

    for folder in zoneinfo.TZPATH:
        if add_zones_of(folder, ""):
            break
    else:
        try:
            import tzdata

            add_zones_of(os.path.dirname(tzdata.__file__) + "/zoneinfo", "")
        except ImportError:
            pass
    zoneinfo.reset_tzpath(to=[])

    def load_tzdata(key):
        place = store.zones.get(key)
        if place is None:
            raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
        return io.BytesIO(b"TZif" + store.read(place))

    def available_timezones():
        """Returns a set of all available time zones."""
        return set(store.zones)

    import zoneinfo._common

    zoneinfo._common.load_tzdata = load_tzdata
    zoneinfo.available_timezones = zoneinfo._tzpath.available_timezones = available_timezones


def add_zones_of(folder, prefix):
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return False
    for entry in entries:
        if entry.is_dir():
            if entry.name not in ("posix", "right", "__pycache__"):
                add_zones_of(entry.path, prefix + entry.name + "/")
        elif "." not in entry.name:
            place = store.add_file(entry.path, 4, lambda header: header == b"TZif")
            if place is not None:
                store.zones[prefix + entry.name] = place
    return bool(store.zones)
