def _tg_make_dataclasses(isinstance=isinstance, list=list, tuple=tuple, dict=dict, getattr=getattr, hasattr=hasattr, type=type):
    def names(value):
        return [field for field in type(value).__dataclass_fields__] if hasattr(type(value), "__dataclass_fields__") else None

    def asdict(value, dict_factory=None):
        own = names(value)
        if own is not None:
            return {name: asdict(getattr(value, name)) for name in own}
        if isinstance(value, list):
            return [asdict(item) for item in value]
        if isinstance(value, tuple):
            return tuple([asdict(item) for item in value])
        if isinstance(value, dict):
            return {key: asdict(item) for key, item in value.items()}
        return value

    def astuple(value):
        return tuple([getattr(value, name) for name in names(value)])

    def replace(value, **changes):
        fields = {name: getattr(value, name) for name in names(value)}
        fields.update(changes)
        return type(value)(**fields)

    def field(**options):
        _tg_refuse("field() is for the body of a @dataclass here: write it there")

    return _tg_module("dataclasses", {"field": field, "asdict": asdict, "astuple": astuple, "replace": replace})


_tg_dataclasses = _tg_make_dataclasses()
