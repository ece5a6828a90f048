class SimpleNamespace:
    def __init__(self, **attributes):
        for key in attributes:
            setattr(self, key, attributes[key])


_tg_types = _tg_module("types", {"SimpleNamespace": SimpleNamespace})
