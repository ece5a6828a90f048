def _tg_make_typing():
    def cast(kind, value):
        return value

    def same(value=None, *arguments, **named):
        return value

    def NewType(name, kind):
        return cast_to

    def cast_to(value):
        return value

    attributes = {"cast": cast, "NewType": NewType, "overload": same, "final": same, "no_type_check": same, "runtime_checkable": same, "ParamSpec": same, "TypeVar": same, "TypeVarTuple": same, "assert_never": same, "reveal_type": same, "override": same}
    for name in ['AbstractSet', 'AnyStr', 'AsyncContextManager', 'AsyncGenerator', 'AsyncIterable', 'AsyncIterator', 'Awaitable', 'BinaryIO', 'Collection', 'Concatenate', 'Container', 'ContextManager', 'Coroutine', 'Counter', 'DefaultDict', 'Deque', 'Hashable', 'IO', 'LiteralString', 'Match', 'MutableMapping', 'MutableSequence', 'MutableSet', 'NotRequired', 'OrderedDict', 'Pattern', 'Required', 'Reversible', 'Sized', 'SupportsFloat', 'SupportsInt', 'Text', 'TextIO', 'TypeAlias', 'TypeGuard', 'Unpack', 'TypedDict']:
        attributes[name] = name
    return _tg_module("typing", attributes)


_tg_typing = _tg_make_typing()
