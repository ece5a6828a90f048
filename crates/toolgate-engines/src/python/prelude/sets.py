def _tg_make_ordered(isinstance=isinstance, set=set, frozenset=frozenset, type=type, len=len):
    def members(value):
        if isinstance(value, (set, frozenset)):
            return value
        return set(value) if type(value).__name__ in ("dict_keys", "dict_items") else None

    def ordered(operator, left, right):
        own = members(left)
        other = None if own is None else members(right)
        if other is None:
            if operator == "<":
                return left < right
            if operator == "<=":
                return left <= right
            return left > right if operator == ">" else left >= right
        if operator in ("<", "<="):
            return own.issubset(other) and (operator == "<=" or len(own) < len(other))
        return other.issubset(own) and (operator == ">=" or len(other) < len(own))

    return ordered


_tg_ordered = _tg_make_ordered()
