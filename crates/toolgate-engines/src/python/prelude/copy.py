def _tg_make_copy(isinstance=isinstance, dict=dict, list=list, set=set, tuple=tuple, id=id, type=type, hasattr=hasattr, range=range, len=len):
    def shallow(value):
        if isinstance(value, (dict, list, set)) or type(value).__name__ == "deque":
            return value.copy()
        # Monty cannot make an object without calling the class.
        if hasattr(value, "__class__") and not hasattr(value, "_tg_enum"):
            _tg_refuse("copies of objects of own classes are not available here: write a method that makes a new one")
        return value

    def deepcopy(value, memo=None):
        memo = {} if memo is None else memo
        if id(value) in memo:
            return memo[id(value)]
        if isinstance(value, tuple):
            items = [deepcopy(item, memo) for item in value]
            return tuple(items) if type(value).__name__ == "tuple" else type(value)(*items)
        made = shallow(value)
        memo[id(value)] = made
        if isinstance(value, dict):
            for key in value:
                made[key] = deepcopy(value[key], memo)
        elif isinstance(value, list) or type(value).__name__ == "deque":
            for index in range(len(value)):
                made[index] = deepcopy(value[index], memo)
        return made

    return _tg_module("copy", {"copy": shallow, "deepcopy": deepcopy})


_tg_copy = _tg_make_copy()
