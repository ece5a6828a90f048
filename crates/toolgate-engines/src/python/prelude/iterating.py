def _tg_map(function, *collections, iter=iter, zip=zip, len=len):
    if len(collections) == 1:
        return iter([function(item) for item in collections[0]])
    return iter([function(*items) for items in zip(*collections)])
