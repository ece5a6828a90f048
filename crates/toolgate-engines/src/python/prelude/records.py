_tg_missing = _tg_module("missing", {})


def _tg_record(value, name, fields, getattr=getattr):
    return name + "(" + ", ".join([f"{field}={getattr(value, field)!r}" for field in fields]) + ")"


def _tg_same(left, right, fields, getattr=getattr, type=type):
    if type(left) is not type(right):
        return False
    for field in fields:
        if getattr(left, field) != getattr(right, field):
            return False
    return True
