class SimpleNamespace:
    def __init__(self, **attributes):
        for key in attributes:
            setattr(self, key, attributes[key])

    def __repr__(self):
        _tg_refuse("a namespace does not know its attributes here: use a dictionary")

    def __eq__(self, other):
        _tg_refuse("namespaces are not compared here: use dictionaries")


_tg_types = _tg_module("types", {"SimpleNamespace": SimpleNamespace})
