def _tg_make_enum():
    def auto():
        return _tg_module("enum.auto", {"_automatic": True})

    return _tg_module("enum", {"Enum": "Enum", "IntEnum": "IntEnum", "StrEnum": "StrEnum", "auto": auto})


_tg_enum = _tg_make_enum()
