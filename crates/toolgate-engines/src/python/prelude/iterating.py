def _tg_map(function, *collections, iter=iter, zip=zip, len=len):
    if len(collections) == 1:
        return iter([function(item) for item in collections[0]])
    return iter([function(*items) for items in zip(*collections)])


async def _tg_aiter(source, type=type, hasattr=hasattr):
    if type(source).__name__ == "coroutine":
        source = await source
    if not hasattr(source, "__anext__"):
        return source
    items = []
    while True:
        try:
            items.append(await source.__anext__())
        except StopIteration:
            return items


def _tg_yield(yielded, value, len=len):
    if len(yielded) >= 100000:
        _tg_refuse("a generator yielded more than 100000 values; generators run to their end at once here, so that one without an end needs to be a loop")
    yielded.append(value)


def _tg_yield_from(yielded, values):
    for value in values:
        _tg_yield(yielded, value)
