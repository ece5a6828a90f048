class _tg_module:
    def __init__(self, name, attributes):
        self.__name__ = name
        for key in attributes:
            setattr(self, key, attributes[key])


def _tg_from(module, name, getattr=getattr, hasattr=hasattr):
    if not hasattr(module, name):
        raise ImportError(f"cannot import name '{name}' from '{module.__name__}'")
    return getattr(module, name)


def _tg_refuse(text):
    # Handlers of a script do not catch it.
    raise SystemExit("\x01" + text)
