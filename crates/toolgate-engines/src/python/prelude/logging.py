def _tg_make_logging(str=str, isinstance=isinstance):
    levels = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
    state = {"level": 30}

    class Logger:
        def __init__(self, name):
            self.name = name

        def log(self, level, message, *arguments, **options):
            if level < state["level"]:
                return
            text = _tg_mod(str(message), arguments) if arguments else str(message)
            name = [name for name in levels if levels[name] <= level][-1]
            _tg_host_write(True, f"{name}:{self.name}:{text}\n")

        def debug(self, message, *arguments, **options):
            self.log(10, message, *arguments)

        def info(self, message, *arguments, **options):
            self.log(20, message, *arguments)

        def warning(self, message, *arguments, **options):
            self.log(30, message, *arguments)

        def error(self, message, *arguments, **options):
            self.log(40, message, *arguments)

        def exception(self, message, *arguments, **options):
            self.log(40, message, *arguments)

        def critical(self, message, *arguments, **options):
            self.log(50, message, *arguments)

        def setLevel(self, level):
            state["level"] = levels[level] if isinstance(level, str) else level

        def addHandler(self, handler):
            pass

    root = Logger("root")

    def getLogger(name=None):
        return root if name is None else Logger(name)

    def basicConfig(level=30, **options):
        root.setLevel(level)

    return _tg_module("logging", {**levels, "getLogger": getLogger, "basicConfig": basicConfig, "debug": root.debug, "info": root.info, "warning": root.warning, "error": root.error, "exception": root.exception, "critical": root.critical, "log": root.log, "Logger": Logger})


_tg_logging = _tg_make_logging()
