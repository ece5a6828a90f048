_tg_abc = _tg_module("abc", {"ABC": "ABC", "ABCMeta": "ABCMeta", "abstractmethod": "abstractmethod"})
