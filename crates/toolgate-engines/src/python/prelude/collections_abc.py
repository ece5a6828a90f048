def _tg_make_abc():
    attributes = {}
    for name in ["AsyncGenerator", "AsyncIterable", "AsyncIterator", "Awaitable", "Callable", "Collection", "Container", "Coroutine", "Generator", "Hashable", "ItemsView", "Iterable", "Iterator", "KeysView", "Mapping", "MutableMapping", "MutableSequence", "MutableSet", "Sequence", "Set", "Sized", "ValuesView"]:
        attributes[name] = name
    return _tg_module("collections.abc", attributes)


_tg_collections_abc = _tg_make_abc()
