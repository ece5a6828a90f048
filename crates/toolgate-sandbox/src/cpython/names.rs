//! The names that a script can use without defining them, and the modules that it can import.

/// The names that exist without an import, beside the built-in ones of every Python.
#[rustfmt::skip]
pub(crate) const GLOBALS: &[&str] = &[
    "ToolError", "__annotations__", "__builtins__", "__debug__", "__doc__", "__file__",
    "__import__", "__loader__", "__name__", "__package__", "__spec__", "asyncio", "exit", "help",
    "json", "math", "quit", "re", "tools",
];

/// The modules of the standard library that a script can import.
#[rustfmt::skip]
pub(crate) const MODULES: &[&str] = &[
    "abc", "argparse", "array", "ast", "asyncio", "atexit", "base64", "bdb", "binascii", "bisect",
    "builtins", "bz2", "cProfile", "calendar", "cmath", "cmd", "code", "codecs", "codeop",
    "collections", "colorsys", "compileall", "concurrent", "configparser", "contextlib",
    "contextvars", "copy", "copyreg", "csv", "dataclasses", "datetime", "decimal", "difflib",
    "dis", "doctest", "email", "encodings", "enum", "errno", "faulthandler", "fcntl", "filecmp",
    "fileinput", "fnmatch", "fractions", "ftplib", "functools", "gc", "getopt", "getpass",
    "gettext", "glob", "graphlib", "gzip", "hashlib", "heapq", "hmac", "html", "http", "imaplib",
    "importlib", "inspect", "io", "ipaddress", "itertools", "json", "keyword", "linecache",
    "locale", "logging", "lzma", "mailbox", "marshal", "math", "mimetypes", "mmap",
    "modulefinder", "netrc", "numbers", "opcode", "operator", "optparse", "os", "pathlib", "pdb",
    "pickle", "pickletools", "pkgutil", "platform", "plistlib", "poplib", "posix", "posixpath",
    "ntpath", "pprint", "profile", "pstats", "pwd", "py_compile", "pyclbr", "pydoc", "pyexpat",
    "queue", "quopri", "random", "re", "reprlib", "resource", "runpy", "sched", "secrets",
    "select", "selectors", "shelve", "shlex", "shutil", "signal", "site", "smtplib", "socket",
    "socketserver", "sqlite3", "stat", "statistics", "string", "stringprep", "struct",
    "subprocess", "symtable", "sys", "sysconfig", "tabnanny", "tarfile", "tempfile", "textwrap",
    "threading", "time", "timeit", "token", "tokenize", "tomllib", "trace", "traceback",
    "tracemalloc", "types", "typing", "unicodedata", "unittest", "urllib", "uuid", "warnings",
    "wave", "weakref", "wsgiref", "xml", "xmlrpc", "zipapp", "zipfile", "zipimport", "zlib",
    "zoneinfo",
];
