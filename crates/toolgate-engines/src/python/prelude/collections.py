def _tg_make_collections(dict=dict, list=list):
    def OrderedDict(*arguments, **named):
        return dict(*arguments, **named)

    return _tg_module("collections", {"OrderedDict": OrderedDict})


_tg_collections = _tg_make_collections()
