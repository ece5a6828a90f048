def _tg_make_os(len=len):
    def join(first, *parts):
        path = first
        for part in parts:
            if part.startswith("/"):
                path = part
            elif not path or path.endswith("/"):
                path += part
            else:
                path += "/" + part
        return path

    def split(path):
        head, slash, tail = path.rpartition("/")
        return (head + slash if not head.strip("/") else head.rstrip("/")), tail

    def splitext(path):
        name = path.rpartition("/")[2]
        stem, dot, extension = name.rpartition(".")
        if not dot or not stem.strip("."):
            return path, ""
        return path[:len(path) - len(extension) - 1], "." + extension

    def normpath(path):
        kept = []
        for part in path.split("/"):
            if part == ".." and kept and kept[-1] != "..":
                kept.pop()
            elif part not in ("", ".") and not (part == ".." and path.startswith("/")):
                kept.append(part)
        return ("/" if path.startswith("/") else "") + "/".join(kept) or "."

    path = _tg_module("os.path", {
        "join": join, "split": split, "splitext": splitext, "normpath": normpath, "sep": "/",
        "basename": lambda path: split(path)[1], "dirname": lambda path: split(path)[0],
        "isabs": lambda path: path.startswith("/"),
    })
    return _tg_module("os", {"path": path, "sep": "/", "linesep": "\n"})


_tg_os = _tg_make_os()
_tg_os_path = _tg_os.path
