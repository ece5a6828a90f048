def _tg_make_enum():
    def auto():
        return _tg_module("enum.auto", {"_automatic": True})

    def unique(kind):
        return kind

    return _tg_module("enum", {"Enum": "Enum", "IntEnum": "IntEnum", "StrEnum": "StrEnum", "Flag": "Flag", "IntFlag": "IntFlag", "auto": auto, "unique": unique})


_tg_enum = _tg_make_enum()
