def _tg_make_copy(isinstance=isinstance, dict=dict, list=list, set=set, tuple=tuple, id=id, type=type):
    def copy(value):
        return value.copy() if isinstance(value, (dict, list, set)) else value

    def deepcopy(value, memo=None):
        memo = {} if memo is None else memo
        if isinstance(value, (dict, list)):
            if id(value) in memo:
                return memo[id(value)]
            made = value.copy()
            memo[id(value)] = made
            if isinstance(value, dict):
                for key in value:
                    made[key] = deepcopy(value[key], memo)
            else:
                for index in range(len(value)):
                    made[index] = deepcopy(value[index], memo)
            return made
        if isinstance(value, tuple) and type(value).__name__ == "tuple":
            return tuple([deepcopy(item, memo) for item in value])
        if isinstance(value, set):
            return value.copy()
        return value

    return _tg_module("copy", {"copy": copy, "deepcopy": deepcopy})


_tg_copy = _tg_make_copy()
