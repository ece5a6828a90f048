def _tg_make_typing():
    def cast(kind, value):
        return value

    def same(value=None, *arguments, **named):
        return value

    def NewType(name, kind):
        return cast_to

    def cast_to(value):
        return value

    def runtime_checkable(kind):
        _tg_refuse("isinstance() with a Protocol: look for its methods with hasattr()")

    return _tg_module("typing", {
        "cast": cast, "NewType": NewType, "overload": same, "final": same, "no_type_check": same,
        "runtime_checkable": runtime_checkable, "ParamSpec": same, "TypeVar": same, "TypeVarTuple": same,
        "assert_never": same, "reveal_type": same, "override": same, "AbstractSet": "AbstractSet",
        "AnyStr": "AnyStr", "AsyncContextManager": "AsyncContextManager", "AsyncGenerator": "AsyncGenerator",
        "AsyncIterable": "AsyncIterable", "AsyncIterator": "AsyncIterator", "Awaitable": "Awaitable",
        "BinaryIO": "BinaryIO", "Collection": "Collection", "Concatenate": "Concatenate",
        "Container": "Container", "ContextManager": "ContextManager", "Coroutine": "Coroutine",
        "Counter": "Counter", "DefaultDict": "DefaultDict", "Deque": "Deque", "Hashable": "Hashable",
        "IO": "IO", "LiteralString": "LiteralString", "Match": "Match", "MutableMapping": "MutableMapping",
        "MutableSequence": "MutableSequence", "MutableSet": "MutableSet", "NotRequired": "NotRequired",
        "OrderedDict": "OrderedDict", "Pattern": "Pattern", "Required": "Required",
        "Reversible": "Reversible", "Sized": "Sized", "SupportsFloat": "SupportsFloat",
        "SupportsInt": "SupportsInt", "Text": "Text", "TextIO": "TextIO", "TypeAlias": "TypeAlias",
        "TypeGuard": "TypeGuard", "Unpack": "Unpack", "TypedDict": "TypedDict",
    })


_tg_typing = _tg_make_typing()
