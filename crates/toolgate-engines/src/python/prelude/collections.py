_tg_collections = _tg_module("collections", {})
